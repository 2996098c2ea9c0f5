"""Detect: whether a question is ambiguous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.protocols import Detector
from whichsense.stages.providers import COMPACT, LLM, Factory, StageSettings, endpoint
from whichsense.types import Case

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.endpoint import Endpoint


@dataclass(frozen=True)
class BertDetector:
    """AmbigQA's and CAmbigNQ's detector: BERT over the question, with passages if it was trained with them."""

    model: str | Path
    threshold: float = 0.5
    device: str = ""

    @cached_property
    def _parts(self) -> tuple[Any, Any, int]:
        from whichsense.models.bert import encoders

        return encoders.load_classifier(self.model, self.device)

    def detect(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.bert.encoders import detector_row, probabilities

        model, inputs, count = self._parts
        detected = []
        for case in cases:
            passages = [hit.passage for hit in case.hits[:count]]
            row = detector_row(inputs, case.question, passages)
            ambiguous = probabilities(model, inputs, [row])[0]
            decision = ambiguous > self.threshold
            detected.append(replace(case, ambiguous=ambiguous, is_ambiguous=decision))
        return detected


@dataclass(frozen=True)
class AnswersDetector:
    """CAmbigNQ's other detector: a question is ambiguous if the reader gave it more than one answer."""

    def detect(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, is_ambiguous=len(case.answers) > 1) for case in cases]


@dataclass(frozen=True)
class CompactDetector:
    """The compact model's: by its encoder, the answers that it finds in the passages, and the question's words."""

    compact: Compact

    def detect(self, cases: Sequence[Case]) -> list[Case]:
        return [self.compact.judge(case) for case in cases]


@dataclass(frozen=True)
class LLMDetector:
    """A language model decides, with the answers that were found and their evidence before it."""

    endpoint: Endpoint
    compact: Compact
    threshold: float = 0.5

    def detect(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.llm.talk import think
        from whichsense.models.llm.wording import detect_ambiguity

        thought = partial(detect_ambiguity, threshold=self.threshold)
        instead = CompactDetector(self.compact).detect
        return think(self.endpoint, "detect", cases, thought, instead)


@dataclass(frozen=True, slots=True)
class DetectorSettings(StageSettings):
    """A system's `[detector]`."""

    threshold: float = 0.5


PROVIDERS: Mapping[str, Factory[DetectorSettings, Detector]] = {
    COMPACT: lambda settings, context: CompactDetector(context.compact),
    LLM: lambda settings, context: LLMDetector(
        endpoint(context, "detector"), context.compact, settings.threshold
    ),
    "ambiguity-detector": lambda settings, context: BertDetector(
        settings.model, settings.threshold, context.device
    ),
    "answers": lambda settings, context: AnswersDetector(),
}
