"""Readers of datasets about ambiguity: AmbigNQ, CAmbigNQ, SituatedQA, CondAmbigQA, RAMDocs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from whichsense.datasets.families import (
    ClarifiedQuestion,
    Condition,
    ConditionalQuestion,
    ConflictDocument,
    ConflictQuestion,
    DocumentKind,
    FullQuestion,
    SearchQuery,
    SituatedQuestion,
)
from whichsense.datasets.readers.parts import (
    IdMaker,
    parse_annotations,
    several_answers,
    single_answer,
    split_references,
)
from whichsense.datasets.records import Annotation, Context, QAPair, Question
from whichsense.datasets.rows import ParsedJson, Row, read_rows
from whichsense.text.clarification import (
    ParsedClarification,
    category_of,
    parse_clarification,
)


def read_ambignq(path: Path | ParsedJson, split: str, fix: str) -> Iterator[Question]:
    """AmbigNQ's light release, and the embedded sample, which adds `kinds` and `evidence`."""
    # {id, question, annotations: [{type, answer} or {type, qaPairs: [{question, answer}]}]}
    for row in read_rows(path, fix):
        yield Question(
            row.text("id"),
            row.text("question"),
            parse_annotations(row),
            row.texts("kinds", optional=True),
        )


def read_ambignq_full(path: Path, split: str, fix: str) -> Iterator[Question]:
    """AmbigNQ's full release."""
    # AmbigNQ's row with viewed_doc_titles, used_queries: [{query, results}], nq_answer, nq_doc_title
    for row in read_rows(path, fix):
        yield FullQuestion(
            row.text("id"),
            row.text("question"),
            parse_annotations(row),
            viewed_titles=row.texts("viewed_doc_titles"),
            searches=_parse_searches(row),
            nq_answers=row.texts("nq_answer"),
            nq_title=row.text("nq_doc_title", default=""),
        )


def _parse_searches(row: Row) -> tuple[SearchQuery, ...]:
    searches = []
    for item in row.rows("used_queries", optional=True):
        results = []
        for hit in item.rows("results"):
            snippet = hit.text("snippet", default="")
            results.append(Context(hit.text("title"), snippet))
        searches.append(SearchQuery(item.text("query"), tuple(results)))
    return tuple(searches)


def read_cambignq(path: Path, split: str, fix: str) -> Iterator[Question]:
    """CAmbigNQ: AmbigNQ's full record with the clarification question and the answers of its options.

    The release has `dqs`, the rewrites that the options stand for, in place of AmbigNQ's annotations.
    """
    # AmbigNQ's full row with clarification_question, clarification_answers: [[alias…]…], dqs
    for row in read_rows(path, fix):
        clarification = row.text("clarification_question")
        answers = row.text_lists("clarification_answers")
        parsed = parse_clarification(
            clarification, expected=len(answers)
        ) or ParsedClarification("", ())
        if row.has("annotations"):
            annotations = parse_annotations(row)
        else:
            annotations = _pair_up(row.texts("dqs"), answers)
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            annotations,
            viewed_titles=row.texts("viewed_doc_titles", optional=True),
            searches=_parse_searches(row),
            nq_answers=row.texts("nq_answer", optional=True),
            nq_title=row.text("nq_doc_title", default=""),
            clarification=clarification,
            clarified_answers=answers,
            category=parsed.category,
            options=parsed.options,
        )


def _pair_up(
    rewrites: tuple[str, ...], answers: tuple[tuple[str, ...], ...]
) -> tuple[Annotation, ...]:
    if not answers:
        return ()
    wordings = list(map(split_references, rewrites))
    if len(wordings) != len(answers):
        # which rewrite belongs to which answer is unknown then
        wordings = [()] * len(answers)
    pairs = tuple(map(QAPair, answers, wordings))
    return (Annotation("multipleQAs", pairs),)


def read_cambignq_part(path: Path, split: str, fix: str) -> Iterator[Question]:
    """CAmbigNQ's questions in CLAMBER, joined with AmbigNQ: the options are a list, their answers have rewrites.

    A question whose options do not match AmbigNQ's answers in number has no answers.
    """
    # {…, category, options, clarification_answers: [{question, answer, clarification}] or []}
    for row in read_rows(path, fix):
        options = row.texts("options")
        paired = row.rows("clarification_answers")
        if paired:
            _check_options(row, options, paired)
        pairs = []
        for item in paired:
            rewrite = split_references(item.text("question"))
            pairs.append(QAPair(item.texts("answer"), rewrite))
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            (Annotation("multipleQAs", tuple(pairs)),) if pairs else (),
            clarification=row.text("clarification_question"),
            clarified_answers=tuple(pair.answers for pair in pairs),
            category=category_of(row.text("category")),
            options=options,
        )


def _check_options(row: Row, options: tuple[str, ...], paired: list[Row]) -> None:
    """Each answer repeats the option that it belongs to, in the same order."""
    repeated = tuple(item.text("clarification") for item in paired)
    if repeated != options:
        raise row.bad("'clarification_answers' are not those of 'options'")


def read_situatedqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """SituatedQA, by time or by place."""
    # {id, question, edited_question, answer, any_answer, date or location}
    ids = IdMaker()
    for row in read_rows(path, fix):
        prompt = row.text("id")
        if not (row.has("date") or row.has("location")):
            raise row.bad("no field 'date' or 'location'")
        yield SituatedQuestion(
            ids.make_unique(prompt),
            row.text("question"),
            single_answer(row.texts("answer")),
            prompt_id=prompt,
            rewrite=row.text("edited_question"),
            date=row.text("date", default=""),
            place=row.text("location", default=""),
            any_answers=row.texts("any_answer"),
        )


def read_condambigqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """CondAmbigQA: conditions, what is true under each, the retrieved passages."""
    # {id, question, properties: [{condition, groundtruth, citations}], ctxs: [{title, text}]}
    for row in read_rows(path, fix):
        conditions = tuple(map(_parse_condition, row.rows("properties")))
        if not conditions:
            raise row.bad("'properties' is empty")
        pairs = []
        for one in conditions:
            pairs.append(QAPair((" ".join(one.statements),), (one.condition,)))
        yield ConditionalQuestion(
            row.text("id"),
            row.text("question"),
            several_answers(tuple(pairs)),
            passages=tuple(map(_parse_context, row.rows("ctxs"))),
            conditions=conditions,
        )


def _parse_condition(row: Row) -> Condition:
    citations = map(_parse_context, row.rows("citations", optional=True))
    return Condition(row.text("condition"), row.texts("groundtruth"), tuple(citations))


def _parse_context(row: Row) -> Context:
    return Context(row.text("title"), row.text("text"))


def read_ramdocs(path: Path | ParsedJson, split: str, fix: str) -> Iterator[Question]:
    """RAMDocs: documents that are right, wrong or irrelevant, and a right answer for each entity of the name."""
    # {question, documents: [{text, type, answer}], disambig_entity, gold_answers, wrong_answers}
    ids = IdMaker()
    for row in read_rows(path, fix):
        text = row.text("question")
        entities = row.texts("disambig_entity")
        answers = row.texts("gold_answers")
        if not answers:
            raise row.bad("'gold_answers' is empty")
        if len(entities) != len(answers):
            raise row.bad("'disambig_entity' and 'gold_answers' differ in number")
        yield ConflictQuestion(
            ids.from_text(text),
            text,
            several_answers(tuple(QAPair((answer,)) for answer in answers)),
            documents=tuple(map(_parse_document, row.rows("documents"))),
            entities=entities,
            wrong_answers=row.texts("wrong_answers"),
        )


def _parse_document(row: Row) -> ConflictDocument:
    kind = row.text("type")
    for known in get_args(DocumentKind):
        if kind == known:
            return ConflictDocument(row.text("text"), known, row.text("answer"))
    raise row.bad(f"'type' must be 'correct', 'misinfo' or 'noise', not '{kind}'")
