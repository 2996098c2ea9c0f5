"""Detect: whether a question is ambiguous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.protocols import Reader
from whichsense.types import Hit

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact


@dataclass(frozen=True)
class BertDetector:
    """AmbigQA's and CAmbigNQ's detector: BERT over the question, with passages if it was trained with them."""

    model: str | Path
    threshold: float = 0.5
    device: str = ""

    @cached_property
    def _parts(self) -> tuple[Any, Any, int]:
        from whichsense.models.bert import detector

        return detector.opened(self.model, self.device)

    def is_ambiguous(self, question: str, hits: Sequence[Hit] = ()) -> bool:
        return self.probability(question, hits) > self.threshold

    def probability(self, question: str, hits: Sequence[Hit] = ()) -> float:
        from whichsense.models.bert.detector import detector_row, probabilities

        model, inputs, count = self._parts
        row = detector_row(inputs, question, [hit.passage for hit in hits[:count]])
        return probabilities(model, inputs, [row])[0]


@dataclass(frozen=True)
class AnswersDetector:
    """CAmbigNQ's other detector: a question is ambiguous if a reader finds more than one answer to it."""

    reader: Reader

    def is_ambiguous(self, question: str, hits: Sequence[Hit] = ()) -> bool:
        return len(self.reader.read(question, hits)) > 1


@dataclass(frozen=True)
class CompactDetector:
    """The compact model's: by what its encoder says of the passages, the answers that it finds, and the words."""

    compact: Compact

    def is_ambiguous(self, question: str, hits: Sequence[Hit] = ()) -> bool:
        return self.compact.scene(question, hits).is_ambiguous

    def probability(self, question: str, hits: Sequence[Hit] = ()) -> float:
        return self.compact.scene(question, hits).ambiguous
