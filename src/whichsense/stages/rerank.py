"""Rerank: the passages that were retrieved, in a better order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.protocols import Reranker
from whichsense.stages.providers import COMPACT, Factory, StageSettings
from whichsense.types import Case, Hit

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact


@dataclass(frozen=True)
class CrossEncoderReranker:
    """REFUEL's reranker: question and passage read together, each passage by itself. `model`: a trained folder."""

    model: str | Path
    device: str = ""

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        from whichsense.models.bert import encoders

        return encoders.load_cross_encoder(self.model, "reranker", reads=False, device=self.device)

    def rerank(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, hits=self._rank(case)) for case in cases]

    def _rank(self, case: Case) -> tuple[Hit, ...]:
        from whichsense.models.bert.encoders import relevances

        passages = [hit.passage for hit in case.hits]
        scores = relevances(*self._parts, case.question, passages)
        scored = map(Hit, passages, scores)
        return tuple(sorted(scored, key=lambda hit: -hit.score))


@dataclass(frozen=True)
class CompactReranker:
    """The compact model's own order. All hits go through its first layers, the best through all of them.

    What it read travels with the case as its scene: the later stages encode no passage again.
    """

    compact: Compact

    def rerank(self, cases: Sequence[Case]) -> list[Case]:
        ranked = []
        for case in cases:
            scene = self.compact.read_search(case.question, case.hits)
            hits = (*scene.evidence.hits, *scene.rest)
            ranked.append(replace(case, hits=hits, scratch=scene))
        return ranked


@dataclass(frozen=True, slots=True)
class RerankerSettings(StageSettings):
    """A system's `[reranker]`."""


PROVIDERS: Mapping[str, Factory[RerankerSettings, Reranker]] = {
    COMPACT: lambda settings, context: CompactReranker(context.compact),
    "reranker": lambda settings, context: CrossEncoderReranker(settings.model, context.device),
}
