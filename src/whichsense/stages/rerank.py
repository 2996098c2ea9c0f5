"""Rerank: the passages that were found, in a better order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.types import Hit

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact


@dataclass(frozen=True)
class CrossEncoderReranker:
    """REFUEL's reranker: question and passage read together, each passage by itself. `model`: a trained folder."""

    model: str | Path
    device: str = ""

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        from whichsense.models.bert import cross_encoder

        return cross_encoder.opened(
            self.model, "reranker", reads=False, device=self.device
        )

    def rerank(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        from whichsense.models.bert.cross_encoder import relevances

        scores = relevances(*self._parts, question, [hit.passage for hit in hits])
        found = [
            Hit(hit.passage, score) for hit, score in zip(hits, scores, strict=True)
        ]
        return sorted(found, key=lambda hit: -hit.score)


@dataclass(frozen=True)
class JointReranker:
    """In the manner of JPR: the first `picks` are picked one after another so that they hold different answers.

    The others follow by relevance. A hit's score says where it stands in the order, no more.
    """

    model: str | Path
    picks: int = 10
    device: str = ""

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        from whichsense.models.bert import joint

        return joint.opened(self.model, self.device)

    def rerank(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        from whichsense.models.bert.joint import picked_order

        order = picked_order(
            *self._parts, question, [hit.passage for hit in hits], self.picks
        )
        return [Hit(hits[place].passage, score) for place, score in order]


@dataclass(frozen=True)
class CompactReranker:
    """The compact model's own order. All hits go through its first layers, the best through all of them.

    The states of those stay with the model for the other stages: nothing is encoded twice.
    """

    compact: Compact

    def rerank(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        scene = self.compact.scene(question, hits, keep=self.compact.settings.keep)
        return [*scene.evidence.hits, *scene.rest]
