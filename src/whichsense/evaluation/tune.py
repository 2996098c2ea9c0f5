"""Tune: the threshold of LM verification, on questions with gold answers that a system was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from whichsense.datasets import Question
from whichsense.errors import BadConfig
from whichsense.jobs.progress import Progress, silent
from whichsense.metrics.ambignq import f1_answers
from whichsense.pipeline import Pipeline
from whichsense.stages.verify import LMVerifier, above, tuned_threshold
from whichsense.types import Hit, Reading

_BATCH = 8


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best threshold, and F1ans over all questions with it, with the given one, and without verification."""

    threshold: float
    f1_ans: float
    f1_ans_given: float
    f1_ans_unverified: float
    questions: int


@dataclass(frozen=True)
class _Recorder:
    """Lets every reading through and remembers what the verifier would say of it."""

    verifier: LMVerifier
    scored: list[list[Reading]] = field(default_factory=list)

    def verify(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> list[Reading]:
        return self.verify_many([question], [readings], [hits])[0]

    def verify_many(
        self,
        questions: Sequence[str],
        readings: Sequence[Sequence[Reading]],
        hits: Sequence[Sequence[Hit]],
    ) -> list[list[Reading]]:
        self.scored.extend(self.verifier.scored(readings, hits))
        return [list(several) for several in readings]


def tune(
    pipeline: Pipeline, questions: Sequence[Question], progress: Progress = silent
) -> Tuned:
    """Answer all questions once, then try every threshold on what the verifier scored."""
    verifier = pipeline.verifier
    if not isinstance(verifier, LMVerifier):
        raise BadConfig(
            "Only LM verification has a threshold. Give the system a [verifier] with a model."
        )
    recorder = _Recorder(verifier)
    recording = replace(pipeline, verifier=recorder)
    found: list[list[Reading]] = []
    for start in range(0, len(questions), _BATCH):
        found += recording.readings(
            [question.text for question in questions[start : start + _BATCH]]
        )
        progress(len(found) / len(questions), len(found))
    threshold, score = tuned_threshold(recorder.scored, questions, _f1)
    kept = [above(several, verifier.threshold) for several in recorder.scored]
    return Tuned(
        threshold,
        score,
        _mean(questions, kept),
        _mean(questions, found),
        len(questions),
    )


def _mean(
    questions: Sequence[Question], readings: Sequence[Sequence[Reading]]
) -> float:
    return sum(map(_f1, questions, readings)) / len(questions)


def _f1(question: Question, readings: Sequence[Reading]) -> float:
    answers = [one.answer for one in readings] or [""]
    return max(f1_answers(gold, answers) for gold in question.answer_sets)
