"""Verify: the readings that hold when they are asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from whichsense.errors import BadInput
from whichsense.protocols import Reader
from whichsense.text.words import normalize
from whichsense.types import Candidate, Hit, Reading

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.seq2seq.generator import Generator

Gold = TypeVar("Gold")
REFUEL_THRESHOLD = -6.1
"""REFUEL's, tuned on AmbigNQ's development set for its own model: tune anew for another one."""


@dataclass(frozen=True)
class LMVerifier:
    """REFUEL's LM verification: how likely is the answer, given its rewrite and the passages?

    Readings are ordered by the sum of the answer's log probabilities; those under `threshold` go, the best one stays.
    Of readings with the same answer the most likely one stays. The score becomes the reading's confidence.
    """

    model: str | Path | Generator
    threshold: float = REFUEL_THRESHOLD
    device: str = ""

    @cached_property
    def generator(self) -> Generator:
        from whichsense.models.seq2seq.generator import opened

        return opened(self.model, ("verification", "answer-prediction"), self.device)

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
        return [above(found, self.threshold) for found in self.scored(readings, hits)]

    def scored(
        self, readings: Sequence[Sequence[Reading]], hits: Sequence[Sequence[Hit]]
    ) -> list[list[Reading]]:
        """All readings of each question with their scores, each answer once, most likely first."""
        from whichsense.models.seq2seq.inputs import composed

        codec, form = self.generator.codec, self.generator.form
        # Readings with the same rewrite are answers to one question: it is encoded once for all of them.
        groups: dict[tuple[int, str], list[Reading]] = {}
        for place, several in enumerate(readings):
            for reading in several:
                groups.setdefault((place, reading.question), []).append(reading)
        inputs = [
            composed(codec, form, [asked], hits[place]) for place, asked in groups
        ]
        targets = [
            [codec.target([one.answer], form.output_tokens) for one in group]
            for group in groups.values()
        ]
        found: list[list[Reading]] = [[] for _ in readings]
        for (key, group), row in zip(
            groups.items(), self.generator.score(inputs, targets), strict=True
        ):
            found[key[0]] += [
                replace(one, confidence=score)
                for one, score in zip(group, row, strict=True)
            ]
        return [_best_of_each(several) for several in found]


def _best_of_each(readings: Sequence[Reading]) -> list[Reading]:
    """Of readings with the same answer the most likely one."""
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

    def verify(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> list[Reading]:
        kept = [reading for reading in readings if self._holds(reading, hits)]
        return kept or list(readings[:1])

    def _holds(self, reading: Reading, hits: Sequence[Hit]) -> bool:
        found = self.reader.read(reading.question, hits)
        return bool(found) and normalize(found[0].answer) == normalize(reading.answer)


def above(readings: Sequence[Reading], threshold: float) -> list[Reading]:
    """Readings whose confidence reaches a threshold; the best one in any case.

    >>> [one.answer for one in above([Reading("q", "a", confidence=-1.0), Reading("q", "b", confidence=-9.0)], -6.1)]
    ['a']
    """
    return [one for one in readings if one.confidence >= threshold] or sorted(
        readings, key=lambda r: -r.confidence
    )[:1]


def tuned_threshold(
    scored: Sequence[Sequence[Reading]],
    golds: Sequence[Gold],
    metric: Callable[[Gold, Sequence[Reading]], float],
) -> tuple[float, float]:
    """The threshold that gives the highest mean of a metric over validation questions, and that mean.

    Every score that occurs is tried; of equally good ones the lowest, which keeps most.
    """
    if not scored or len(scored) != len(golds):
        raise BadInput(
            "A threshold is tuned on questions with scored readings and their gold answers: both are needed."
        )
    tried = sorted({one.confidence for readings in scored for one in readings})
    if not tried:
        raise BadInput(
            "No question has a reading: there is nothing to tune a threshold on."
        )
    found = [
        (
            sum(
                metric(gold, above(own, limit))
                for own, gold in zip(scored, golds, strict=True)
            )
            / len(golds),
            limit,
        )
        for limit in tried
    ]
    best, threshold = max(found, key=lambda pair: (pair[0], -pair[1]))
    return threshold, best


@dataclass(frozen=True)
class CompactVerifier:
    """Each rewrite is asked again, beside what the evidence says of all answers: REFUEL's round trip, without reading
    the passages again.

    A candidate that a rewrite prefers joins the answers, which are rewritten once more. A reading whose rewrite prefers
    another reading's answer goes; the best one stays in any case.
    """

    compact: Compact
    threshold: float | None = None
    """How probable an answer must be to join; without it, what the scorer was tuned to."""
    cautious: bool = False
    """As for `CompactDisambiguator`: what joins is rewritten, too."""

    def verify(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> list[Reading]:
        from whichsense.models.compact.rewrite.resolving import (
            Resolved,
            candidates_of,
            checked,
            resolved,
            telling,
        )

        if not readings:
            return []
        scene = self.compact.scene(question, hits)
        given = [
            Candidate(one.answer, one.confidence, one.evidence) for one in readings
        ]
        found = [
            Resolved(answer, one.question)
            for answer, one in zip(given, readings, strict=True)
        ]
        least = scene.judge.join_over if self.threshold is None else self.threshold
        holds, joining = checked(scene, found, least)
        if joining:
            found = resolved(
                scene, [*given, *candidates_of(scene, joining)], cautious=self.cautious
            )
            holds, _ = checked(scene, found, least)
        kept = [one for one, fits in zip(found, holds, strict=True) if fits]
        kept = kept or [max(found, key=lambda one: one.candidate.score)]
        # What is left alone answers the question as it was asked.
        if self.cautious and len(kept) == 1 and not scene.is_ambiguous:
            kept = [Resolved(kept[0].candidate, question)]
        kept.sort(key=lambda one: -one.candidate.score)
        return [
            Reading(
                one.question,
                one.candidate.answer,
                telling(one.candidate.spans),
                one.candidate.score,
            )
            for one in kept
        ]
