"""A pipeline whose readings have labels and no rewrites, without weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import CompactClarifier
from whichsense.testing import (
    FakeDisambiguator,
    FakeReader,
    FakeRetriever,
    FakeSummarizer,
    FakeVerifier,
    passage_hit,
)
from whichsense.types import Case

QUESTION = "How long is the warranty?"
HITS = [
    passage_hit("Skerry 12: six months of warranty.", "Data sheet"),
    passage_hit("Skerry 24: one year of warranty.", "Data sheet"),
]
ANSWERS = {"12": "six months", "24": "one year"}
LABELS = {"six months": "Skerry 12", "one year": "Skerry 24"}


@dataclass(frozen=True)
class LabelDisambiguator:
    """Leaves the question as it was asked, and gives each answer its label."""

    labels: Mapping[str, str] = field(default_factory=lambda: LABELS)
    confidence: float = 0.8

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        labelled = []
        for case in FakeDisambiguator().disambiguate(cases):
            readings = []
            for one in case.readings:
                label = self.labels.get(one.answer, "")
                as_asked = replace(one, question=case.question, label=label)
                readings.append(replace(as_asked, confidence=self.confidence))
            labelled.append(replace(case, readings=tuple(readings)))
        return labelled


def pipeline(**settings: object) -> Pipeline:
    made = Pipeline(
        FakeRetriever(HITS),
        reader=FakeReader(ANSWERS),
        disambiguator=LabelDisambiguator(),
        verifier=FakeVerifier(),
        clarifier=CompactClarifier(),
        summarizer=FakeSummarizer(),
    )
    return replace(made, **settings)  # type: ignore[arg-type]
