"""The compact model's encoder with the arithmetic of its int8 form, taught by the teacher or by what it was before; and
by questions that another model made, where there are some."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.files import sha256
from whichsense.models.compact.encoder.net import CompactNet, set_quantization
from whichsense.models.compact.encoder.quantized import UNLEARNT, QuantizedLinear
from whichsense.train.compact.data.batch import MOST_PIECES, ListBatch, Scores, Taught
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.encoder import losses
from whichsense.train.compact.encoder.generated import MADE, Made, lists_of
from whichsense.train.compact.encoder.reader import ReaderTask
from whichsense.train.compact.encoder.scores import taught_scores
from whichsense.train.compact.encoder.student import Options as StudentOptions
from whichsense.train.compact.encoder.student import shared_out

_CALIBRATED = 16  # lists by which the steps of the int8 codes begin


@dataclass(frozen=True, slots=True)
class MadeLists:
    """A recipe's `[made]`."""

    folder: str = ""
    """The model folder of compact-asker, which made questions for the same lists; empty: there are none."""
    share: float = 0.5
    """Of the lists that are drawn."""
    emptied: float = 0.2
    """How often the passages that hold the answer are left out: then nothing answers, and that is to be seen."""


@dataclass(frozen=True, slots=True)
class Options(StudentOptions):
    made: MadeLists = field(default_factory=MadeLists)


class Int8Batch(NamedTuple):
    """Lists, and whether the model that training goes on from is to teach, in place of the teacher."""

    lists: ListBatch
    itself: bool = False


def make(options: Options) -> Int8Task:
    return Int8Task(options)


class Int8Task(ReaderTask):
    """Chosen by how often the best string of a list is a gold answer."""

    before: CompactNet | None = None
    """What training goes on from, where it teaches."""

    def __init__(self, options: Options) -> None:
        self.own = options
        if not 0 <= options.made.share < 1 or not 0 <= options.made.emptied <= 1:
            raise BadConfig(
                "made.share is at least 0 and less than 1; made.emptied is a share, too."
            )
        if (options.model.kept or options.teacher.itself) and not options.model.start:
            raise BadConfig(
                "model.kept and teacher.itself are about what training goes on from: give model.start."
            )
        super().__init__(options)
        self.real = self.train
        self.made = self._made()
        if self.made is not None:
            self.train = self.real.followed_by(self.made)

    def _made(self) -> Pack | None:
        """The lists of questions that were made, over the passages of the others; None where there are none."""
        if not self.own.made.folder:
            return None
        made = Made.load(Path(self.own.made.folder), self.real)
        return lists_of(self.real, made, self.vocabulary) if len(made) else None

    @cached_property
    def likelihood(self) -> NDArray[np.float64]:
        """How often each list is drawn: those of a group together as often as its share says."""
        counts, shares = zip(*self.groups, strict=True)
        parts = np.split(super().likelihood, np.cumsum(counts)[:-1])
        return np.concatenate(list(map(shared_out, shares, parts)))

    @property
    def groups(self) -> list[tuple[int, float]]:
        """The lists' groups in their order, datasets' and made ones: how many, and their share of what is drawn."""
        if self.made is None:
            return [(len(self.real), 1.0)]
        return [
            (len(self.real), 1 - self.own.made.share),
            (len(self.made), self.own.made.share),
        ]

    def said_of(self, pack: Pack) -> Scores:
        """Of made lists the teacher is asked apart: what it says of the others is kept under their numbers, whether
        there are made ones or not. Detectors know people's questions, and are not asked."""
        if self.made is None:
            return super().said_of(pack)
        options, folder = self.options, Path(self.own.made.folder)
        place = str(folder / f"of-{sha256(folder / MADE)[:12]}")
        real = super().said_of(self.real)
        made = taught_scores(
            Path(options.teacher.model), self.made, place, options.model.longest
        )
        found = Scores(
            *(np.concatenate(both) for both in zip(real[:3], made[:3], strict=True))
        )
        if real.ambiguous is None:
            return found
        unsaid = np.full(len(self.made), -1, np.float32)
        return found._replace(ambiguous=np.concatenate([real.ambiguous, unsaid]))

    def slots(self, number: int, luck: np.random.Generator) -> list[int]:
        """Of some made lists without the passages that hold the answer, if others are left."""
        found = super().slots(number, luck)
        made = range(
            len(self.real),
            len(self.real) + (0 if self.made is None else len(self.made)),
        )
        if number not in made or luck.random() >= self.own.made.emptied:
            return found
        return [slot for slot in found if not len(self.train.spans[slot])] or found

    def build(self) -> nn.Module:
        """With int8 arithmetic on. Where its steps are not learnt yet, they are as a batch of lists suggests."""
        net = super().build()
        assert isinstance(net, CompactNet)
        first = next(
            part for part in net.modules() if isinstance(part, QuantizedLinear)
        )
        if first.scale.item() == UNLEARNT:
            self._calibrate(net)
        set_quantization(net, weights=True, activations=True)
        self.before = (
            copy.deepcopy(net).eval().requires_grad_(False)
            if self.options.teacher.itself
            else None
        )
        return net

    def _calibrate(self, net: CompactNet) -> None:
        luck = np.random.default_rng(0)
        numbers = luck.choice(
            len(self.train), min(_CALIBRATED, len(self.train)), p=self.likelihood
        ).tolist()
        batch = self.list_batch(numbers, luck)
        linears = [part for part in net.modules() if isinstance(part, QuantizedLinear)]
        hooks = [
            linear.register_forward_pre_hook(lambda own, given: own.calibrate(given[0]))
            for linear in linears
        ]
        net.eval()
        with torch.no_grad():
            net.read(*batch.pairs[:3])
        for hook in hooks:
            hook.remove()

    def batches(self, epoch: int, seed: int) -> Any:
        return self.lazily(epoch, seed, self._batch)

    def _batch(self, numbers: Sequence[int], luck: np.random.Generator) -> Int8Batch:
        lists = self.list_batch(numbers, luck)
        return Int8Batch(lists, bool(luck.random() < self.options.teacher.itself))

    def loss(
        self, model: nn.Module, batch: Any
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, CompactNet)
        lists = self._taught_by_itself(batch.lists) if batch.itself else batch.lists
        return self.read_loss(model, lists)

    def _taught_by_itself(self, lists: ListBatch) -> ListBatch:
        """With what the model said of them before this training, as a teacher says it."""
        assert self.before is not None
        before = self.before.to(lists.valid.device)
        with torch.no_grad():
            said = before.read(*lists.pairs[:3])
            best = torch.stack(
                losses.start_end(said["span"], lists.pairs.region), 1
            ).topk(MOST_PIECES, dim=2)
        return lists._replace(
            taught=Taught(
                said["relevance"].view_as(lists.valid), best.indices, best.values.exp()
            )
        )

    def save(self, model: nn.Module, folder: Path) -> None:
        assert isinstance(model, CompactNet)
        if self.start is not None and self.options.model.kept:
            model = self.start.mixed(model, self.options.model.kept)
        super().save(model, folder)
