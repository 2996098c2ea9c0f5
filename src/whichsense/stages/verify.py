"""Verify: the readings that hold when they are asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from whichsense.errors import BadInput
from whichsense.protocols import Reader, Verifier
from whichsense.stages.providers import (
    COMPACT,
    LLM,
    BuildContext,
    Factory,
    GeneratorStage,
    StageSettings,
    endpoint,
    own_reader,
)
from whichsense.text.words import normalize
from whichsense.types import Case, Reading

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.endpoint import Endpoint

Gold = TypeVar("Gold")
REFUEL_THRESHOLD = -6.1
"""REFUEL's, tuned on AmbigNQ's development set for its own model: tune anew for another one."""


@dataclass(frozen=True)
class LMVerifier(GeneratorStage):
    """REFUEL's LM verification: how likely is the answer, given its rewrite and the passages?

    Readings are ordered by the sum of the answer's log probabilities; those under `threshold` go, the best one stays.
    Of readings with the same answer the most likely one stays. The score becomes the reading's confidence.
    """

    tasks: ClassVar = ("verification", "answer-prediction")
    threshold: float = REFUEL_THRESHOLD

    def verify(self, cases: Sequence[Case]) -> list[Case]:
        return [
            replace(case, readings=tuple(above(case.readings, self.threshold)))
            for case in self.score(cases)
        ]

    def score(self, cases: Sequence[Case]) -> list[Case]:
        """Return all readings of each case with their scores, each answer once, most likely first."""
        codec, longest = self.generator.codec, self.generator.form.output_tokens
        # Readings with the same rewrite are answers to one question: it is encoded once for all of them.
        groups: dict[tuple[int, str], list[Reading]] = {}
        for place, case in enumerate(cases):
            for reading in case.readings:
                groups.setdefault((place, reading.question), []).append(reading)
        inputs, targets = [], []
        for (place, rewrite), group in groups.items():
            inputs.append(self.composed([rewrite], cases[place].hits))
            # One target for each reading of the group: its answer's tokens.
            targets.append([codec.target([reading.answer], longest) for reading in group])
        rows = self.generator.score(inputs, targets)
        scored: list[list[Reading]] = [[] for _ in cases]
        for ((place, _), group), row in zip(groups.items(), rows, strict=True):
            for reading, score in zip(group, row, strict=True):
                scored[place].append(replace(reading, confidence=score))
        return [
            replace(case, readings=tuple(_best_of_each(readings)))
            for case, readings in zip(cases, scored, strict=True)
        ]


def _best_of_each(readings: Sequence[Reading]) -> list[Reading]:
    """Return the most likely of the readings with the same answer, for each answer."""
    best: dict[str, Reading] = {}
    for reading in sorted(readings, key=lambda one: -one.confidence):
        best.setdefault(normalize(reading.answer), reading)
    return list(best.values())


@dataclass(frozen=True)
class EMVerifier:
    """Exact-match verification: a reading stays if a reader, asked its rewrite, gives its answer first.

    If none does, the first reading stays: a question gets an answer in any case.
    """

    reader: Reader

    def verify(self, cases: Sequence[Case]) -> list[Case]:
        questions = [
            case.with_question(reading.question) for case in cases for reading in case.readings
        ]
        read = iter(self.reader.read(questions))
        verified = []
        for case in cases:
            held = [one for one in case.readings if _gives_first(next(read), one.answer)]
            verified.append(replace(case, readings=tuple(held) or case.readings[:1]))
        return verified


def _gives_first(case: Case, answer: str) -> bool:
    if not case.answers:
        return False
    return normalize(case.answers[0].answer) == normalize(answer)


def above(readings: Sequence[Reading], threshold: float) -> list[Reading]:
    """Return readings whose confidence reaches a threshold; the best one in any case.

    >>> likely, unlikely = Reading("q", "a", confidence=-1.0), Reading("q", "b", confidence=-9.0)
    >>> [reading.answer for reading in above([likely, unlikely], -6.1)]
    ['a']
    """
    kept = [reading for reading in readings if reading.confidence >= threshold]
    return kept or sorted(readings, key=lambda reading: -reading.confidence)[:1]


def tuned_threshold(
    scored: Sequence[Sequence[Reading]],
    golds: Sequence[Gold],
    metric: Callable[[Gold, Sequence[Reading]], float],
) -> tuple[float, float]:
    """Return the threshold that gives the highest mean of a metric over validation questions, and that mean.

    Every score that occurs is tried; of equally good ones the lowest, which keeps most.
    """
    if not scored or len(scored) != len(golds):
        raise BadInput(
            "A threshold is tuned on questions with scored readings and their gold answers: both are needed."
        )
    thresholds = {reading.confidence for readings in scored for reading in readings}
    if not thresholds:
        raise BadInput("No question has a reading: there is nothing to tune a threshold on.")
    means = []
    for threshold in sorted(thresholds):
        pairs = zip(scored, golds, strict=True)
        total = sum(metric(gold, above(readings, threshold)) for readings, gold in pairs)
        means.append((total / len(golds), threshold))
    best, threshold = max(means, key=lambda pair: (pair[0], -pair[1]))
    return threshold, best


@dataclass(frozen=True)
class CompactVerifier:
    """Each rewrite is asked again, beside what the evidence says of all answers: REFUEL's round trip, without reading
    the passages again.

    A candidate that a rewrite prefers joins the answers, which are rewritten once more. A reading whose rewrite prefers
    another reading's answer goes; the best one stays in any case. Under a careful policy rewrites were asked again when
    they were chosen, over the passages read anew: what is merely possible is kept apart.
    """

    compact: Compact

    def verify(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.compact.people import split_probable
        from whichsense.models.compact.rewriting import verify_readings

        verified = []
        for case in cases:
            scene = self.compact.scene_of(case)
            possible: list[Reading] = []
            if case.policy.careful:
                readings, possible = split_probable(scene, case.readings, case.policy)
            else:
                readings = verify_readings(scene, case.readings, case.policy)
            verified.append(
                replace(case, readings=tuple(readings), possible=tuple(possible), scratch=scene)
            )
        return verified


@dataclass(frozen=True)
class LLMVerifier:
    """A language model is asked each rewrite again and chooses among all listed answers: by the log probabilities of
    its choice where the server gives them, otherwise by the choice alone."""

    endpoint: Endpoint
    compact: Compact

    def verify(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.llm.talk import think
        from whichsense.models.llm.thinking import verify_readings

        thought = partial(verify_readings, compact=self.compact)
        instead = CompactVerifier(self.compact).verify
        return think(self.endpoint, "verify", cases, thought, instead)


@dataclass(frozen=True, slots=True)
class VerifierSettings(StageSettings):
    """A system's `[verifier]`."""

    threshold: float = REFUEL_THRESHOLD


def _lm(settings: VerifierSettings, context: BuildContext) -> Verifier:
    device, threshold = context.device, settings.threshold
    return LMVerifier(settings.model, device=device, threshold=threshold)


PROVIDERS: Mapping[str, Factory[VerifierSettings, Verifier]] = {
    COMPACT: lambda settings, context: CompactVerifier(context.compact),
    LLM: lambda settings, context: LLMVerifier(endpoint(context, "verifier"), context.compact),
    "verification": _lm,
    "answer-prediction": _lm,
    "exact-match": lambda settings, context: EMVerifier(own_reader(context, "verifier")),
}
