"""Tune: the threshold of LM verification, on questions with gold answers that a system was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.datasets import Question
from whichsense.errors import BadConfig
from whichsense.jobs.progress import Progress, silent
from whichsense.metrics.ambignq import f1_answers
from whichsense.pipeline import Pipeline
from whichsense.stages.verify import LMVerifier, above, tuned_threshold
from whichsense.types import Reading

_BATCH = 8


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best threshold, and F1ans over all questions with it, with the given one, and without verification."""

    threshold: float
    f1_ans: float
    f1_ans_given: float
    f1_ans_unverified: float
    questions: int


def tune(
    pipeline: Pipeline, questions: Sequence[Question], progress: Progress = silent
) -> Tuned:
    """Answer all questions once, then try every threshold on what the verifier scored."""
    verifier = pipeline.verifier
    if not isinstance(verifier, LMVerifier):
        raise BadConfig(
            "Only LM verification has a threshold. Give the system a [verifier] with a model."
        )
    unverified = replace(pipeline, verifier=None)
    answered: list[Sequence[Reading]] = []
    scored: list[Sequence[Reading]] = []
    for start in range(0, len(questions), _BATCH):
        batch = questions[start : start + _BATCH]
        cases = unverified.run([question.text for question in batch])
        for case in cases:
            answered.append(case.readings)
        for case in verifier.score(cases):
            scored.append(case.readings)
        progress(len(answered) / len(questions), len(answered))
    threshold, score = tuned_threshold(scored, questions, _f1)
    given = [above(readings, verifier.threshold) for readings in scored]
    return Tuned(
        threshold,
        score,
        _mean(questions, given),
        _mean(questions, answered),
        len(questions),
    )


def _mean(
    questions: Sequence[Question], readings: Sequence[Sequence[Reading]]
) -> float:
    return sum(map(_f1, questions, readings)) / len(questions)


def _f1(question: Question, readings: Sequence[Reading]) -> float:
    answers = [one.answer for one in readings] or [""]
    return max(f1_answers(gold, answers) for gold in question.answer_sets)
