"""The models that some metrics depend on, by name: a reader for Disambig-F1, a judge for citations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whichsense.errors import BadInput
from whichsense.protocols import Support
from whichsense.providers import COMPACT

if TYPE_CHECKING:
    from whichsense.metrics.asqa import Reader
    from whichsense.metrics.citations import Judge


def load_reader(name: str) -> Reader:
    """ "compact", the embedded model, or the folder of a SQuAD 2.0 model."""
    if name == COMPACT:
        from whichsense.models.compact.text_reader import CompactTextReader

        return CompactTextReader()
    from whichsense.models.squad_reader import SquadReader

    return SquadReader(name)


def load_judge(name: str) -> Judge:
    """ "compact", the embedded support judge."""
    if name != COMPACT:
        raise BadInput(f"There is no judge '{name}'. There is one: {COMPACT}.")
    from whichsense.models.compact.encoder.runtime import CompactModel
    from whichsense.models.compact.support.judge import NETWORK, SupportJudge

    model = CompactModel()
    kind = "words" if model.lacks(NETWORK) else "network"
    return CitationJudge(SupportJudge(model), f"{model.folder.name}, by {kind}")


@dataclass(frozen=True)
class CitationJudge:
    """A support judge as ALCE's function: is it more probable than not that the passage says the sentence?"""

    support: Support
    name: str

    def __call__(self, passage: str, sentence: str) -> bool:
        (probability,) = self.support.supports([(sentence, passage)])
        return probability > 0.5
