"""The options of task compact-encoder: what its recipes may say besides `[train]`."""

from __future__ import annotations

from dataclasses import dataclass, field

from whichsense.errors import BadConfig
from whichsense.train.compact.data.config import DataConfig, ListConfig
from whichsense.train.compact.encoder.list_task import ListDraw


@dataclass(frozen=True, slots=True)
class _StudentModel:
    """The network to train."""

    base: str = "thenlper/gte-small"
    """A plain BERT with BERT's uncased vocabulary: a name on the hub, a folder, or `tiny-bert-uncased`."""
    start: str = ""
    """The model that training starts from: the model folder of another recipe, any weights folder, or `shipped`, the
    model that comes with the package. Its vocabulary and sizes are used, and no base is needed. Empty: the base."""
    kept: float = 0.0
    """The share of the weights that training started from in the weights that are saved: a mean of both."""
    early: int = 4
    """Layers that all passages go through; the best go through the others too."""
    dropout: float = 0.1
    longest: int = 160
    """Tokens of a pair."""
    int8: bool = False
    """Quantization-aware training: the forward pass has the arithmetic of the exported int8 model."""
    words_stay: bool = False
    """Freeze the word vectors: a writer that shares them still fits."""
    early_stays: bool = False
    """Freeze the early layers and their score: the same passages are then read to the end."""


@dataclass(frozen=True, slots=True)
class _EncoderTeacher:
    """The source of soft labels (distillation)."""

    model: str = ""
    """The model folder of compact-teacher; empty: no teacher."""
    itself: float = 0.0
    """The share of batches whose soft labels come from the model that training started from (self-distillation)."""


@dataclass(frozen=True, slots=True)
class SyntheticLists:
    """A recipe's `[made]`: lists of synthetic questions."""

    folder: str = ""
    """The model folder of compact-asker, which wrote questions for the same lists; empty: there are none."""
    share: float = 0.5
    """Of the lists that are drawn."""
    emptied: float = 0.2
    """How often the passages that hold the answer are left out, so that the list has no answer."""


@dataclass(frozen=True, slots=True)
class _TopicLists:
    """A recipe's `[topics]`: lists of the topics of `data.topics`."""

    share: float = 0.0
    """Of the lists that are drawn; 0: topics are not used."""
    thinned: float = 0.3
    """How often half of the passages that answer are left out, so that one of several answers remains, or none."""


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    model: _StudentModel = field(default_factory=_StudentModel)
    data: DataConfig = field(default_factory=DataConfig)
    lists: ListConfig = field(default_factory=ListConfig)
    teacher: _EncoderTeacher = field(default_factory=_EncoderTeacher)
    draw: ListDraw = field(default_factory=ListDraw)
    made: SyntheticLists = field(default_factory=SyntheticLists)
    topics: _TopicLists = field(default_factory=_TopicLists)

    def check(self) -> None:
        """Raise BadConfig for values that contradict each other."""
        if not _is_share(self.made.share) or not 0 <= self.made.emptied <= 1:
            raise BadConfig(
                "made.share must be at least 0 and less than 1; made.emptied must be between 0 and 1."
            )
        if not _is_share(self.topics.share) or not 0 <= self.topics.thinned <= 1:
            raise BadConfig(
                "topics.share must be at least 0 and less than 1; topics.thinned must be between 0 and 1."
            )
        # A share without topics would silently draw nothing.
        if self.topics.share and not self.data.topics:
            raise BadConfig(
                "data.topics is empty: give a folder with topics, or 'topics', which ships with the recipes."
            )
        needs_start = self.model.kept or self.teacher.itself
        if needs_start and not self.model.start:
            raise BadConfig(
                "model.kept and teacher.itself refer to the model that training starts from: give model.start."
            )


def _is_share(value: float) -> bool:
    """Something must be left for the lists of datasets."""
    return 0 <= value < 1
