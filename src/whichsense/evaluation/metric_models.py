"""The models that some metrics depend on, by name: a reader for Disambig-F1, a judge for citations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whichsense.protocols import Support
from whichsense.providers import COMPACT

if TYPE_CHECKING:
    from whichsense.metrics.asqa import Reader


def load_reader(name: str) -> Reader:
    """ "compact", the embedded model, or the folder of a SQuAD 2.0 model."""
    if name == COMPACT:
        from whichsense.models.compact.text_reader import CompactTextReader

        return CompactTextReader()
    from whichsense.models.squad_reader import SquadReader

    return SquadReader(name)


@dataclass(frozen=True)
class SupportJudge:
    """A support judge as ALCE's function: is the sentence at least as probable as not, given the passage?"""

    support: Support
    name: str
    least: float = 0.5

    def __call__(self, passage: str, sentence: str) -> bool:
        (probability,) = self.support.supports([(sentence, passage)])
        return probability >= self.least
