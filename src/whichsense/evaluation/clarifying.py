"""Clarification questions from gold readings, for CAmbigNQ's own questions and, as silver ones, for other datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from whichsense.datasets import Annotation, QAPair, Question
from whichsense.datasets.dataset import load_questions
from whichsense.evaluation.given import with_gold_readings
from whichsense.files import as_json, write_atomically
from whichsense.protocols import Clarifier
from whichsense.provenance import provenance
from whichsense.stages.clarify import CompactClarifier
from whichsense.text.words import normalize
from whichsense.types import FOR_BENCHMARKS, Case


def gold_case(
    question: Question, more: Mapping[str, Question] | None = None
) -> Case | None:
    """A case with the annotated readings, in their order; None where there are not two of them.

    A question without answers of its own (some of CAmbigNQ's) has those of the same id in `more`, AmbigNQ's.
    """
    annotated = question
    if question.several is None and more is not None and question.id in more:
        annotated = _with_every_reading(more[question.id])
    case = Case(question.text, policy=FOR_BENCHMARKS)
    case = with_gold_readings(annotated, case)
    return case if case.readings else None


def _with_every_reading(question: Question) -> Question:
    """All annotators' readings as one annotation, as CAmbigNQ has them; one with the answer of an earlier annotator's
    is left out."""
    merged: list[QAPair] = []
    answered: set[str] = set()
    for annotation in question.annotations:
        if annotation.is_single:
            continue
        names: set[str] = set()
        for pair in annotation.pairs:
            own = set(map(normalize, pair.answers))
            if not own & answered:
                merged.append(pair)
            names |= own
        answered |= names
    return replace(question, annotations=(Annotation("multipleQAs", tuple(merged)),))


def make_clarifications(
    questions: Sequence[Question],
    more: Iterable[Question] = (),
    clarifier: Clarifier | None = None,
) -> list[dict[str, Any]]:
    """A record in CAmbigNQ's form for each question with several gold readings: what `score cambignq` reads as
    predictions, and what a generator can be trained on."""
    by_id = {question.id: question for question in more}
    asked = []
    cases = []
    for question in questions:
        case = gold_case(question, by_id)
        if case is not None:
            asked.append(question)
            cases.append(case)
    clarified = (clarifier or CompactClarifier()).clarify(cases)
    records = []
    for question, case in zip(asked, clarified, strict=True):
        if case.clarification is not None:
            records.append(_record(question, case))
    return records


def _record(question: Question, case: Case) -> dict[str, Any]:
    clarification = case.clarification
    assert clarification is not None
    answers = []
    for option in clarification.options:
        for reading in option.readings:
            answers.append(
                {
                    "question": reading.question,
                    "answer": [reading.answer],
                    "clarification": option.label,
                }
            )
    return {
        "id": question.id,
        "question": question.text,
        "clarification_question": clarification.question,
        "category": clarification.lead,
        "options": [option.label for option in clarification.options],
        "clarification_answers": answers,
    }


def write_clarifications(
    name: str, out: Path, more: Sequence[str] = (), data_dir: Path | None = None
) -> int:
    """Write `make_clarifications` of a dataset, and beside it what it was made from; how many there are."""
    questions, path = load_questions(name, data_dir)
    files = [path]
    others: list[Question] = []
    for other in more:
        found, file = load_questions(other, data_dir)
        others += found
        files.append(file)
    records = make_clarifications(questions, others)
    write_atomically(out, as_json(records, indent=1))
    origin = {"dataset": name, "readings": list(more)} | provenance(files)
    write_atomically(out.with_name(f"{out.name}.provenance.json"), as_json(origin, 1))
    return len(records)
