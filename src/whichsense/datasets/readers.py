"""One short reader for each schema: the rows of a file become records."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from whichsense.datasets.records import (
    Annotation,
    EntityQuestion,
    JudgedQuestion,
    QAPair,
    Question,
)
from whichsense.datasets.rows import ParsedJson, Row, records

Reader = Callable[[Path, str, str], Iterator[Question]]
"""(file, the split's name inside a file that holds several, what to advise on an error) → records."""


def single(
    answers: tuple[str, ...], evidence: tuple[str, ...] = ()
) -> tuple[Annotation, ...]:
    """The annotations of a question that has one answer; none where there is no answer."""
    return (
        (Annotation("singleAnswer", (QAPair(answers, evidence=evidence),)),)
        if answers
        else ()
    )


class Ids:
    """Ids for datasets that have none: from the text, so that they hold over releases and reorderings."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def of_text(self, text: str) -> str:
        return self.distinct(
            hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]
        )

    def distinct(self, key: str) -> str:
        """The key itself the first time, then `key#2`, `key#3` …"""
        self.seen[key] += 1
        return key if self.seen[key] == 1 else f"{key}#{self.seen[key]}"


def ambignq(path: Path | ParsedJson, split: str, fix: str) -> Iterator[Question]:
    """AmbigNQ's light release, and our sample, which adds `kinds` and `evidence`."""
    for row in records(path, fix):
        yield Question(
            row.text("id"),
            row.text("question"),
            annotated(row),
            row.texts("kinds", optional=True),
        )


def unanswerable(path: Path, split: str, fix: str) -> Iterator[Question]:
    """Questions that nothing answers."""
    for row in records(path, fix):
        yield Question(
            row.text("id"),
            row.text("question"),
            kinds=row.texts("kinds", optional=True),
        )


def annotated(row: Row) -> tuple[Annotation, ...]:
    """AmbigNQ's own way to write annotations."""
    found = tuple(_annotation(item) for item in row.rows("annotations"))
    if not found:
        raise row.bad("'annotations' is empty")
    return found


def _annotation(row: Row) -> Annotation:
    kind = row.text("type")
    if kind == "singleAnswer":
        if not (answers := row.texts("answer")):
            raise row.bad("'answer' is empty")
        return Annotation(
            "singleAnswer",
            (QAPair(answers, evidence=row.texts("evidence", optional=True)),),
        )
    if kind == "multipleQAs":
        if not (pairs := tuple(_pair(item) for item in row.rows("qaPairs"))):
            raise row.bad("'qaPairs' is empty")
        return Annotation("multipleQAs", pairs)
    raise row.bad(f"'type' must be 'singleAnswer' or 'multipleQAs', not '{kind}'")


def _pair(row: Row) -> QAPair:
    answers, question = row.texts("answer"), row.text("question")
    if not answers:
        raise row.bad("'answer' is empty")
    return QAPair(answers, references(question), row.texts("evidence", optional=True))


def references(question: str) -> tuple[str, ...]:
    """The wordings that AmbigNQ accepts for a rewrite.

    >>> references("Who sang it in 1990?|Who was the 1990 singer?")
    ('Who sang it in 1990?', 'Who was the 1990 singer?')
    """
    return tuple(part.strip() for part in question.split("|") if part.strip())


def nq_open(path: Path, split: str, fix: str) -> Iterator[Question]:
    """A question and its aliases, nothing else: NQ-open, its relatives, research samples in the FlashRAG form."""
    ids = Ids()
    for row in records(path, fix):
        text = row.text("question")
        key = ids.distinct(row.text("id")) if row.has("id") else ids.of_text(text)
        yield Question(
            key, text, single(row.texts("answer", "golden_answers", "answers"))
        )


def efficientqa_test(path: Path, split: str, fix: str) -> Iterator[Question]:
    """NQ-open's form, with the judged predictions of the EfficientQA systems."""
    ids = Ids()
    for row in records(path, fix):
        text = row.text("question")
        yield JudgedQuestion(
            ids.of_text(text),
            text,
            single(row.texts("answer")),
            surely_correct=row.texts("def_correct_predictions", optional=True),
            possibly_correct=row.texts("poss_correct_predictions", optional=True),
            incorrect=row.texts("def_incorrect_predictions", optional=True),
        )


def triviaqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """TriviaQA's official JSON. The test set comes without answers."""
    for row in records(path, fix, "Data"):
        answers = trivia_answers(row) if row.has("Answer") else ()
        yield Question(row.text("QuestionId"), row.text("Question"), single(answers))


def trivia_answers(row: Row, *more: str) -> tuple[str, ...]:
    """A TriviaQA answer with its aliases, the main one first; `more` names other lists of them in the file."""
    answer = row.row("Answer")
    lists = (answer.texts(key, optional=True) for key in ("Aliases", *more))
    return tuple(
        dict.fromkeys(
            (answer.text("Value"), *(alias for names in lists for alias in names))
        )
    )


def webquestions(path: Path, split: str, fix: str) -> Iterator[Question]:
    """The factoid form (`qText`, `answers`) and the original one (`utterance`, `targetValue`)."""
    ids = Ids()
    for row in records(path, fix):
        text = row.text("qText", "utterance", "question")
        key = row.text("qId") if row.has("qId") else ids.of_text(text)
        answers = _target(row) if row.has("targetValue") else row.texts("answers")
        yield Question(key, text, single(answers))


def _target(row: Row) -> tuple[str, ...]:
    """WebQuestions wrote its answers in a Lisp: (list (description "Lawyer") (description Jamaica))."""
    import re

    pattern = r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)'
    return tuple(
        quoted or bare for quoted, bare in re.findall(pattern, row.text("targetValue"))
    )


def popqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """PopQA with its metadata."""
    for row in records(path, fix):
        about = row.row("metadata")
        popularity = about.field("s_pop")
        yield EntityQuestion(
            row.text("id"),
            row.text("question"),
            single(row.texts("golden_answers")),
            (about.text("prop"),),
            subject=about.text("subj"),
            popularity=popularity if isinstance(popularity, int) else 0,
        )
