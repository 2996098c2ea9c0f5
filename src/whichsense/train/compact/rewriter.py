"""The compact model's decoder learns rewrites alone, over an encoder that stays as it is, to the last code.

From rewrites that people wrote and, beside them, rewrites that a larger model wrote for other questions: files in
AmbigNQ's form, in `data.more`.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whichsense.models.compact.export import CONFIG, SCORER
from whichsense.models.compact.net import CompactNet, CrossAttention
from whichsense.train.compact import writing
from whichsense.train.compact.batch import Writing, evident, list_batch, written_rows
from whichsense.train.compact.joint import JointBatch, JointTask
from whichsense.train.compact.lists import Lists
from whichsense.train.compact.pack import Pack
from whichsense.train.compact.questions import Data
from whichsense.train.compact.reader import weighted
from whichsense.train.compact.start import NET, SHIPPED
from whichsense.train.compact.student import Draw as StudentDraw
from whichsense.train.compact.student import Model, Student, fitting
from whichsense.train.compact.student import Options as StudentOptions
from whichsense.train.optimizer import to_device

_WEIGHTS = {"edits": 1.0, "answers": 0.15}


@dataclass(frozen=True, slots=True)
class Draw:
    """What a batch is made of."""

    lists: int = 64
    passages: int = 6
    """Of each list: first those with the answers that are written about."""
    rewrites: int = 4
    """Of each list, at most."""
    shares: dict[str, float] = field(default_factory=dict)
    """How much of what is written comes from where, by the beginning of a dataset's or a file's name; 1 where nothing
    is said."""


@dataclass(frozen=True, slots=True)
class Options:
    model: Model = field(default_factory=lambda: Model(start=SHIPPED, decoder_layers=6))
    data: Data = field(default_factory=Data)
    lists: Lists = field(default_factory=Lists)
    draw: Draw = field(default_factory=Draw)


def make(options: Options) -> RewriterTask:
    return RewriterTask(options)


class RewriterTask(JointTask):
    """Chosen by the loss on edits of questions that are not learnt from."""

    metric, higher_is_better = "edits", False
    rewritten_only = True

    def __init__(self, options: Options) -> None:
        self.draw = options.draw
        draw = StudentDraw(options.draw.lists, options.draw.passages)
        # Student's own beginning: what the joint task asks for besides is for a scorer, which is not fitted here.
        Student.__init__(self, StudentOptions(model=options.model, data=options.data, lists=options.lists, draw=draw))

    def build(self) -> nn.Module:
        net = super().build()
        assert isinstance(net, CompactNet)
        for name, parameter in net.named_parameters():
            parameter.requires_grad_(name.startswith("decoder.") and not name.endswith(".scale"))
        # The states are coded once, before they are handed out: all that reads them has one step.
        for part in net.modules():
            if isinstance(part, CrossAttention):
                part.key.quantize_activations = part.value.quantize_activations = False
        net.decoder.copy_key.quantize_activations = False
        return net

    @cached_property
    def likelihood(self) -> NDArray[np.float64]:
        """How often each list is drawn, so that sequences have the shares that the recipe says."""
        shares, asked = self.draw.shares, self.train.asked
        keys = [fitting(one.source, shares) for one in asked]
        written: Counter[str] = Counter()
        for key, one in zip(keys, asked, strict=True):
            written[key] += min(len(one.rewritings), self.draw.rewrites)
        each = np.array([shares.get(key, 1.0) / written[key] for key in keys])
        found: NDArray[np.float64] = each / each.sum()
        return found

    def drawn(self, epoch: int, seed: int) -> Sequence[tuple[int, list[int]]]:
        return Student.drawn(self, epoch, seed)

    def _batch(self, numbers: Sequence[int], luck: np.random.Generator) -> JointBatch:
        return self.collated(self.train, numbers, luck)

    def collated(self, pack: Pack, numbers: Sequence[int], luck: np.random.Generator | None) -> JointBatch:
        """Lists, and what is written of them; without luck all rewrites, as they are measured.

        All batches have one size, for which layers are compiled: the first list fills up a smaller one.
        """
        dice = None if luck is None else random.Random(int(luck.integers(2**31)))
        edits: list[Writing] = []
        answers: list[Writing] = []
        slots = []
        for owner, number in enumerate(numbers):
            asked = pack.asked[number]
            own = writing.rewrites(self.tokenizer, asked, owner, dice, most=self.draw.rewrites)
            more = writing.answers(self.tokenizer, asked, owner, dice)
            wanted = dict.fromkeys(one.answer for one in (*own, *more))
            slots.append(evident(pack, number, wanted, self.draw.passages, luck))
            edits += own
            answers += more
        longest, places = self.options.model.longest, self.shape.decoder_positions
        missing = self.draw.lists - len(numbers)
        lists = list_batch(pack, [*numbers, *[numbers[0]] * missing], [*slots, *[slots[0]] * missing], longest)
        return JointBatch(lists, written_rows(edits, places), written_rows(answers, places))

    def loss(self, model: nn.Module, batch: Any) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, CompactNet)
        parts = self.written(model, batch)
        return weighted(parts, _WEIGHTS), {name: part.detach() for name, part in parts.items()}

    def written(self, net: CompactNet, batch: JointBatch) -> dict[str, Tensor]:
        net.encoder.eval()
        with torch.no_grad():
            output = net.read(*batch.lists.pairs[:3])
            output["states"] = net.decoder.copy_key.coded(output["states"])
        return self._written(net, output, batch)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, CompactNet)
        device = model.span.weight.device
        sums: defaultdict[str, float] = defaultdict(float)
        sizes: Counter[str] = Counter()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(0)  # the passages that the decoder is given are shaken by the same numbers every time
            for batch in self._measured():
                for name, part in self.written(model, to_device(batch, device)).items():
                    count = int(getattr(batch, name).counted.sum())
                    sums[name] += float(part) * count
                    sizes[name] += count
        return {name: sums[name] / sizes[name] for name in sums}

    def _measured(self) -> Iterator[JointBatch]:
        every, size = list(range(len(self.dev))), self.draw.lists
        return (self.collated(self.dev, every[start : start + size], None) for start in range(0, len(every), size))

    def save(self, model: nn.Module, folder: Path) -> None:
        """Only what training could go on from: graphs are made of the best, when training is over."""
        Student.save(self, model, folder)

    def finish(self, folder: Path) -> None:
        """The weights folder that the runtime reads, with the scorer of the model that training went on from."""
        if (folder / CONFIG).exists():
            return
        state = torch.load(folder / NET, map_location="cpu", weights_only=True)
        if self.start is not None and (self.start.folder / SCORER).exists():
            shutil.copyfile(self.start.folder / SCORER, folder / SCORER)
        self.write_out(state, self.shape, folder)
