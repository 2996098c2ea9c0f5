"""Readers of the datasets about ambiguity: AmbigNQ in full, CAmbigNQ, ASQA, SituatedQA, CondAmbigQA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whichsense.datasets.readers import Ids, annotated, references, single
from whichsense.datasets.records import (
    Annotation,
    ClarifiedQuestion,
    Condition,
    ConditionalQuestion,
    Context,
    FullQuestion,
    LongQuestion,
    LongReference,
    QAPair,
    Question,
    SearchQuery,
    SituatedQuestion,
)
from whichsense.datasets.rows import ParsedJson, Row, records
from whichsense.text.clarification import parse
from whichsense.types import Clarification


def ambignq_full(path: Path, split: str, fix: str) -> Iterator[Question]:
    """AmbigNQ's full release."""
    for row in records(path, fix):
        yield FullQuestion(
            row.text("id"),
            row.text("question"),
            annotated(row),
            viewed_titles=row.texts("viewed_doc_titles"),
            searches=_searches(row),
            nq_answers=row.texts("nq_answer"),
            nq_title=row.text("nq_doc_title", default=""),
        )


def _searches(row: Row) -> tuple[SearchQuery, ...]:
    return tuple(
        SearchQuery(
            item.text("query"),
            tuple(
                Context(hit.text("title"), hit.text("snippet", default=""))
                for hit in item.rows("results")
            ),
        )
        for item in row.rows("used_queries", optional=True)
    )


def cambignq(path: Path, split: str, fix: str) -> Iterator[Question]:
    """CAmbigNQ: AmbigNQ's full record with the clarification question and the answers of its options.

    The release has `dqs`, the rewrites that the options stand for, in place of AmbigNQ's annotations.
    """
    for row in records(path, fix):
        question, answers = (
            row.text("clarification_question"),
            _answer_lists(row, "clarification_answers"),
        )
        asked = parse(question, expected=len(answers)) or Clarification("", ())
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            annotated(row)
            if row.has("annotations")
            else _folded(row.texts("dqs"), answers),
            viewed_titles=row.texts("viewed_doc_titles", optional=True),
            searches=_searches(row),
            nq_answers=row.texts("nq_answer", optional=True),
            nq_title=row.text("nq_doc_title", default=""),
            clarification=question,
            clarified_answers=answers,
            category=asked.category,
            options=asked.options,
        )


def _folded(
    rewrites: tuple[str, ...], answers: tuple[tuple[str, ...], ...]
) -> tuple[Annotation, ...]:
    wordings = [references(rewrite) for rewrite in rewrites]
    if len(wordings) != len(
        answers
    ):  # which rewrite belongs to which answer cannot be told then
        wordings = [()] * len(answers)
    return (
        (Annotation("multipleQAs", tuple(map(QAPair, answers, wordings))),)
        if answers
        else ()
    )


def _answer_lists(row: Row, key: str) -> tuple[tuple[str, ...], ...]:
    value = row.field(key)
    if not isinstance(value, list):
        raise row.bad(f"'{key}' must be a list of lists of texts")
    return tuple(Row({key: item}, row.where, row.fix).texts(key) for item in value)


def asqa(path: Path | ParsedJson, split: str, fix: str) -> Iterator[Question]:
    """ASQA as released (one file, splits inside, keyed by id) and as a list or JSON lines (Hugging Face)."""
    for row in records(path, fix, split):
        pairs = row.rows("qa_pairs")
        long_answers = tuple(_long_answer(item) for item in row.rows("annotations"))
        if not pairs or not long_answers:
            raise row.bad("'qa_pairs' or 'annotations' is empty")
        yield LongQuestion(
            row.text("sample_id", "id"),
            row.text("ambiguous_question", "question"),
            (Annotation("multipleQAs", tuple(_asqa_pair(pair) for pair in pairs)),),
            long_answers=long_answers,
            contexts=tuple(_given(pair.text("context", default="")) for pair in pairs),
            context_pages=tuple(pair.text("wikipage", default="") for pair in pairs),
            pages=tuple(
                page.text("title") for page in row.rows("wikipages", optional=True)
            ),
        )


def _asqa_pair(row: Row) -> QAPair:
    if not (answers := row.texts("short_answers")):
        raise row.bad("'short_answers' is empty")
    return QAPair(answers, references(row.text("question")))


def _long_answer(row: Row) -> LongReference:
    knowledge = row.rows("knowledge", optional=True)
    pieces = tuple(
        Context(piece.text("wikipage", default=""), piece.text("content"))
        for piece in knowledge
        if piece.has("content")
    )
    return LongReference(row.text("long_answer"), pieces)


def _given(context: str) -> str:
    """ASQA writes a sentence where there is no context: it must not count as one."""
    return "" if context == "No context provided" else context


def situatedqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """SituatedQA, by time or by place."""
    ids = Ids()
    for row in records(path, fix):
        prompt = row.text("id")
        if not (row.has("date") or row.has("location")):
            raise row.bad("no field 'date' or 'location'")
        yield SituatedQuestion(
            ids.distinct(prompt),
            row.text("question"),
            single(row.texts("answer")),
            prompt_id=prompt,
            rewrite=row.text("edited_question"),
            date=row.text("date", default=""),
            place=row.text("location", default=""),
            any_answers=row.texts("any_answer"),
        )


def condambigqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """CondAmbigQA: conditions, what is true under each, the passages that were retrieved."""
    for row in records(path, fix):
        conditions = tuple(_condition(item) for item in row.rows("properties"))
        if not conditions:
            raise row.bad("'properties' is empty")
        pairs = tuple(
            QAPair((" ".join(c.statements),), (c.condition,)) for c in conditions
        )
        yield ConditionalQuestion(
            row.text("id"),
            row.text("question"),
            (Annotation("multipleQAs" if len(pairs) > 1 else "singleAnswer", pairs),),
            passages=tuple(
                Context(item.text("title"), item.text("text"))
                for item in row.rows("ctxs")
            ),
            conditions=conditions,
        )


def _condition(row: Row) -> Condition:
    citations = tuple(
        Context(item.text("title"), item.text("text"))
        for item in row.rows("citations", optional=True)
    )
    return Condition(row.text("condition"), row.texts("groundtruth"), citations)
