"""Readers of datasets with a question and its answer: NQ-open, TriviaQA, WebQuestions, PopQA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from whichsense.datasets.families import EntityQuestion, JudgedQuestion
from whichsense.datasets.readers.parts import IdMaker, single_answer
from whichsense.datasets.records import Question
from whichsense.datasets.rows import Row, read_rows

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')


def read_unanswerable(path: Path, split: str, fix: str) -> Iterator[Question]:
    """Questions without an answer."""
    # {id, question, kinds?}
    for row in read_rows(path, fix):
        kinds = row.texts("kinds", optional=True)
        yield Question(row.text("id"), row.text("question"), kinds=kinds)


def read_nq_open(path: Path, split: str, fix: str) -> Iterator[Question]:
    """A question and its aliases, nothing else: NQ-open, its relatives, research samples in the FlashRAG form."""
    # {question, answer: [alias…], id?}; FlashRAG: golden_answers; others: answers
    ids = IdMaker()
    for row in read_rows(path, fix):
        text = row.text("question")
        if row.has("id"):
            key = ids.make_unique(row.text("id"))
        else:
            key = ids.from_text(text)
        answers = row.texts("answer", "golden_answers", "answers")
        yield Question(key, text, single_answer(answers))


def read_efficientqa_test(path: Path, split: str, fix: str) -> Iterator[Question]:
    """NQ-open's form, with the judged predictions of the EfficientQA systems."""
    # {question, answer, def_correct_predictions, poss_correct_predictions, def_incorrect_predictions}
    ids = IdMaker()
    for row in read_rows(path, fix):
        text = row.text("question")
        yield JudgedQuestion(
            ids.from_text(text),
            text,
            single_answer(row.texts("answer")),
            surely_correct=row.texts("def_correct_predictions", optional=True),
            possibly_correct=row.texts("poss_correct_predictions", optional=True),
            incorrect=row.texts("def_incorrect_predictions", optional=True),
        )


def read_triviaqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """TriviaQA's official JSON. The test set comes without answers."""
    # {Data: [{QuestionId, Question, Answer: {Value, Aliases}}]}
    for row in read_rows(path, fix, "Data"):
        answers = trivia_answers(row) if row.has("Answer") else ()
        annotations = single_answer(answers)
        yield Question(row.text("QuestionId"), row.text("Question"), annotations)


def trivia_answers(row: Row, *more: str) -> tuple[str, ...]:
    """A TriviaQA answer with its aliases, the main one first; `more` names further alias lists of the file."""
    answer = row.row("Answer")
    aliases = [answer.text("Value")]
    for key in ("Aliases", *more):
        aliases.extend(answer.texts(key, optional=True))
    return tuple(dict.fromkeys(aliases))


def read_webquestions(path: Path, split: str, fix: str) -> Iterator[Question]:
    """The factoid form (`qText`, `answers`) and the original one (`utterance`, `targetValue`)."""
    # {qId, qText, answers} or {utterance, targetValue}
    ids = IdMaker()
    for row in read_rows(path, fix):
        text = row.text("qText", "utterance", "question")
        key = row.text("qId") if row.has("qId") else ids.from_text(text)
        if row.has("targetValue"):
            answers = _parse_target(row.text("targetValue"))
        else:
            answers = row.texts("answers")
        yield Question(key, text, single_answer(answers))


def _parse_target(target: str) -> tuple[str, ...]:
    """The answers of WebQuestions' Lisp form.

    >>> _parse_target('(list (description "Lawyer") (description Jamaica))')
    ('Lawyer', 'Jamaica')
    """
    answers = []
    for quoted, bare in _DESCRIPTION.findall(target):
        answers.append(quoted or bare)
    return tuple(answers)


def read_popqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """PopQA with its metadata."""
    # {id, question, golden_answers, metadata: {subj, prop, s_pop}}
    for row in read_rows(path, fix):
        metadata = row.row("metadata")
        popularity = metadata.field("s_pop")
        yield EntityQuestion(
            row.text("id"),
            row.text("question"),
            single_answer(row.texts("golden_answers")),
            kinds=(metadata.text("prop"),),
            subject=metadata.text("subj"),
            popularity=popularity if isinstance(popularity, int) else 0,
        )
