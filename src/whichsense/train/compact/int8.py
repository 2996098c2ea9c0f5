"""The compact model's encoder with the arithmetic of its int8 form, taught by the teacher or by what it was before."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.models.compact.net import CompactNet, set_quantization
from whichsense.models.compact.quantized import UNLEARNT, QuantizedLinear
from whichsense.train.compact import losses
from whichsense.train.compact.batch import MOST_PIECES, ListBatch, Taught
from whichsense.train.compact.reader import WEIGHTS, ReaderTask, weighted
from whichsense.train.compact.student import Options

_CALIBRATED = 16  # lists by which the steps of the int8 codes begin


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
        if (options.model.kept or options.teacher.itself) and not options.model.start:
            raise BadConfig("model.kept and teacher.itself are about what training goes on from: give model.start.")
        super().__init__(options)

    def build(self) -> nn.Module:
        """With int8 arithmetic on. Where its steps are not learnt yet, they are as a batch of lists suggests."""
        net = super().build()
        assert isinstance(net, CompactNet)
        first = next(part for part in net.modules() if isinstance(part, QuantizedLinear))
        if first.scale.item() == UNLEARNT:
            self._calibrate(net)
        set_quantization(net, weights=True, activations=True)
        self.before = copy.deepcopy(net).eval().requires_grad_(False) if self.options.teacher.itself else None
        return net

    def _calibrate(self, net: CompactNet) -> None:
        luck = np.random.default_rng(0)
        numbers = luck.choice(len(self.train), min(_CALIBRATED, len(self.train)), p=self.likelihood).tolist()
        batch = self.list_batch(numbers, luck)
        linears = [part for part in net.modules() if isinstance(part, QuantizedLinear)]
        hooks = [linear.register_forward_pre_hook(lambda own, given: own.calibrate(given[0])) for linear in linears]
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

    def loss(self, model: nn.Module, batch: Any) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, CompactNet)
        lists = self._taught_by_itself(batch.lists) if batch.itself else batch.lists
        parts = losses.read(model.read(*lists.pairs[:3]), lists)
        return weighted(parts, WEIGHTS), {name: part.detach() for name, part in parts.items()}

    def _taught_by_itself(self, lists: ListBatch) -> ListBatch:
        """With what the model said of them before this training, as a teacher says it."""
        assert self.before is not None
        before = self.before.to(lists.valid.device)
        with torch.no_grad():
            said = before.read(*lists.pairs[:3])
            best = torch.stack(losses.start_end(said["span"], lists.pairs.region), 1).topk(MOST_PIECES, dim=2)
        return lists._replace(taught=Taught(said["relevance"].view_as(lists.valid), best.indices, best.values.exp()))

    def save(self, model: nn.Module, folder: Path) -> None:
        assert isinstance(model, CompactNet)
        if self.start is not None and self.options.model.kept:
            model = self.start.mixed(model, self.options.model.kept)
        super().save(model, folder)
