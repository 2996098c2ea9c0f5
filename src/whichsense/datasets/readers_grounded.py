"""Readers of the datasets whose questions come with passages: SQuAD, NQ's gold passages, HotpotQA, MuSiQue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whichsense.datasets.readers import Ids, single
from whichsense.datasets.records import Context, GroundedQuestion, Question
from whichsense.datasets.rows import Row, records


def squad(path: Path, split: str, fix: str) -> Iterator[Question]:
    """SQuAD 1.1 and 2.0: the official JSON (`data`, answers with offsets) and a plain list with answer texts."""
    for article in records(path, fix, "data"):
        title = article.text("title").replace("_", " ")
        for paragraph in article.rows("paragraphs"):
            passage = (Context(title, paragraph.text("context"), gold=True),)
            for row in paragraph.rows("qas"):
                yield GroundedQuestion(
                    row.text("id"),
                    row.text("question"),
                    single(_squad_answers(row)),
                    passages=passage,
                )


def _squad_answers(row: Row) -> tuple[str, ...]:
    if row.value.get("is_impossible"):
        return ()
    value = row.field("answers")
    if isinstance(value, list) and any(isinstance(item, str) for item in value):
        found = row.texts("answers")
    else:
        found = tuple(item.text("text") for item in row.rows("answers"))
    if not found:
        raise row.bad("no answer, though 'is_impossible' does not say so")
    return tuple(dict.fromkeys(found))


def gold_passages(path: Path, split: str, fix: str) -> Iterator[Question]:
    """NQ-open questions with the passage that Natural Questions' annotators marked."""
    ids = Ids()
    for row in records(path, fix):
        passages = tuple(
            Context(item.text("title"), item.text("text"), bool(item.field("isgold")))
            for item in row.rows("ctxs")
        )
        text = row.text("question")
        yield GroundedQuestion(
            ids.of_text(text), text, single(row.texts("answers")), passages=passages
        )


def hotpotqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """HotpotQA: ten pages in sentences, some of them supporting."""
    for row in records(path, fix):
        supporting = {str(title) for title, _ in row.field("supporting_facts")}
        try:
            passages = tuple(
                Context(title, "".join(sentences), title in supporting)
                for title, sentences in row.field("context")
            )
        except (TypeError, ValueError):
            raise row.bad("'context' must be a list of [title, sentences]") from None
        yield GroundedQuestion(
            row.text("_id", "id"),
            row.text("question"),
            single((row.text("answer"),)),
            passages=passages,
        )


def musique(path: Path, split: str, fix: str) -> Iterator[Question]:
    """MuSiQue: twenty paragraphs, some of them supporting."""
    for row in records(path, fix):
        passages = tuple(
            Context(
                item.text("title"),
                item.text("paragraph_text"),
                bool(item.value.get("is_supporting")),
            )
            for item in row.rows("paragraphs")
        )
        answers = (row.text("answer"), *row.texts("answer_aliases", optional=True))
        yield GroundedQuestion(
            row.text("id"), row.text("question"), single(answers), passages=passages
        )
