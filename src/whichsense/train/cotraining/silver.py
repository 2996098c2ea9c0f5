"""Silver data: questions with one known answer, and the answers that the models agree on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from whichsense.datasets import Annotation, QAPair, Question, load
from whichsense.files import read_jsonl, write_atomically
from whichsense.stages.read import SeqReader
from whichsense.train.cotraining.settings import CoTraining
from whichsense.train.cotraining.voting import majority_answers
from whichsense.train.tasks.seq2seq.answer_prediction import AnswerPredictionOptions
from whichsense.types import Case


@dataclass(frozen=True, slots=True)
class QuestionVotes:
    """The answers of each model to a question with a known answer."""

    question: Question
    continued: list[list[str]] = field(default_factory=list)
    """What each model writes after the known answer, with it."""
    single: list[list[str]] = field(default_factory=list)
    """What decides whether the known answer is the only one."""

    @property
    def known(self) -> str:
        return self.question.answers[0][0]


def write_silver(
    path: Path,
    settings: CoTraining,
    options: AnswerPredictionOptions,
    models: Sequence[Path],
) -> None:
    """Label the partial questions by the models' votes; one JSON line for each that they agree on."""
    lines = []
    for votes in _collect_votes(settings, options, models):
        answers = _decide(votes)
        if answers is not None:
            question = votes.question
            row = {"id": question.id, "question": question.text, "answers": answers}
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    write_atomically(path, "".join(lines))


def read_silver(path: Path) -> Iterator[Question]:
    for _, row in read_jsonl(path):
        pairs = tuple(QAPair(tuple(aliases)) for aliases in row["answers"])
        kind: Literal["singleAnswer", "multipleQAs"] = "multipleQAs"
        if len(pairs) == 1:
            kind = "singleAnswer"
        annotation = Annotation(kind, pairs)
        yield Question(f"silver-{row['id']}", row["question"], (annotation,))


def _collect_votes(
    settings: CoTraining, options: AnswerPredictionOptions, models: Sequence[Path]
) -> list[QuestionVotes]:
    data = options.data
    questions = []
    for question in load(settings.partial, data_dir=data.folder or None):
        if question.answers:
            questions.append(question)
    questions = questions[: settings.partial_limit or None]
    evidence = data.evidence(options.form.passages)
    evidence.search([question.text for question in questions])
    cases = []
    all_votes = []
    known = []
    for question in questions:
        hits = tuple(evidence.hits(question.text))
        votes = QuestionVotes(question)
        cases.append(Case(question.text, hits))
        all_votes.append(votes)
        known.append(votes.known)
    for model in models:
        reader = SeqReader(model, beams=options.model.beams)
        continued = reader.read_after(cases, known)
        single = continued
        if settings.agreement == "free":
            single = reader.read(cases)
        for place, votes in enumerate(all_votes):
            votes.continued.append(_answers(continued[place]))
            votes.single.append(_answers(single[place]))
    return all_votes


def _answers(case: Case) -> list[str]:
    return [candidate.answer for candidate in case.answers]


def _decide(votes: QuestionVotes) -> list[list[str]] | None:
    """The aliases of each answer that the models agree on; None where they do not."""
    aliases = votes.question.answers[0]
    more = majority_answers(aliases, votes.continued)
    if more:
        agreed = [[votes.known]]
        for answer in more:
            agreed.append([answer])
        return agreed
    for answers in votes.single:
        # One model that gives another answer is enough to leave the question out.
        if majority_answers([votes.known], [answers]):
            return None
    return [list(aliases)]
