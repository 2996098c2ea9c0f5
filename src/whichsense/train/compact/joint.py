"""The compact model as a whole, with the arithmetic of its int8 form; what is saved is the weights folder."""

from __future__ import annotations

import copy
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whichsense import sample
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.models.compact.export import SCORER, export
from whichsense.models.compact.inputs import answer_ids
from whichsense.models.compact.net import CompactConfig, CompactNet, set_quantization
from whichsense.models.compact.quantized import QuantizedLinear
from whichsense.progress import shown
from whichsense.train.compact import losses, writing
from whichsense.train.compact.batch import MOST_PIECES, ListBatch, Rows, Taught, Writing, written_rows
from whichsense.train.compact.corpora import Source
from whichsense.train.compact.fitting import fit_scorer
from whichsense.train.compact.measures import batches as measured_batches
from whichsense.train.compact.questions import Asked, held_out, labelled
from whichsense.train.compact.reader import WEIGHTS, ReaderTask, weighted
from whichsense.train.compact.student import Options
from whichsense.train.optimizer import to_device

_OUTPUTS = {"edits": 1.0, "answers": 0.4}
_SEEN = {"edits": 3, "answers": 6}  # passages that a sequence looks at
_WITH_REWRITES = 0.4  # the share of a batch's lists that have rewrites to learn
_GUESSED, _SITUATED = 0.35, 0.25  # how often such a list with rewrites is drawn beside one of AmbigNQ's
_CALIBRATED = 16  # lists by which the steps of the int8 codes begin
_FREQUENT = 3000  # word pieces that the decoder may write whatever stands in the passages


class JointBatch(NamedTuple):
    """Lists, and what the decoder is to write about them."""

    lists: ListBatch
    edits: Rows | None
    answers: Rows | None
    itself: bool = False
    """Whether the model that training goes on from is to teach, in place of the teacher."""


def make(options: Options) -> JointTask:
    return JointTask(options)


class JointTask(ReaderTask):
    """Chosen by how often the best string of a list is a gold answer."""

    before: CompactNet | None = None
    """What training goes on from, where it teaches."""

    def __init__(self, options: Options) -> None:
        data = options.data
        if data.kept and data.held and not data.index:
            raise BadConfig(
                "The scorer is fitted by searching for the held-out questions, which data.hits cannot: give data.index "
                "too, or data.held=0 for a model without a scorer."
            )
        if (options.model.kept or options.teacher.itself) and not options.model.start:
            raise BadConfig("model.kept and teacher.itself are about what training goes on from: give model.start.")
        super().__init__(options)

    @cached_property
    def rewritten(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Lists with rewrites, and how often each is drawn: those whose annotators looked for readings most."""
        found = np.array([n for n, one in enumerate(self.train.asked) if one.rewritings], np.int64)
        weights = np.array([self._welcome(self.train.asked[n]) for n in found.tolist()])
        return found, weights / max(weights.sum(), 1e-9)

    def _welcome(self, asked: Asked) -> float:
        return _GUESSED if asked.guessed else 1.0 if asked.ambiguous >= 0 else _SITUATED

    def build(self) -> nn.Module:
        """With int8 arithmetic on. Where its steps are not learnt yet, they are as a batch of lists suggests."""
        net = super().build()
        assert isinstance(net, CompactNet)
        if self.start is None or self.start.config is None:
            self._calibrate(net)
        set_quantization(net, weights=True, activations=True)
        self.before = copy.deepcopy(net).eval().requires_grad_(False) if self.options.teacher.itself else None
        return net

    def _calibrate(self, net: CompactNet) -> None:
        luck = np.random.default_rng(0)
        numbers = luck.choice(len(self.train), min(_CALIBRATED, len(self.train)), p=self.likelihood).tolist()
        batch = self._batch(numbers, luck)
        linears = [part for part in net.modules() if isinstance(part, QuantizedLinear)]
        hooks = [linear.register_forward_pre_hook(lambda own, given: own.calibrate(given[0])) for linear in linears]
        net.eval()
        with torch.no_grad():
            self._parts(net, batch)
        for hook in hooks:
            hook.remove()

    def drawn(self, epoch: int, seed: int) -> Sequence[tuple[int, list[int]]]:
        """As for reading, but the last lists of each batch have rewrites."""
        found = super().drawn(epoch, seed)
        lists, weights = self.rewritten
        more = int(self.options.draw.lists * _WITH_REWRITES)
        if not len(lists) or not more:
            return found
        luck = np.random.default_rng([seed, epoch, 2])
        return [(n, [*own[:-more], *luck.choice(lists, more, p=weights).tolist()]) for n, own in found]

    def batches(self, epoch: int, seed: int) -> Any:
        return self.lazily(epoch, seed, self._batch)

    def _batch(self, numbers: Sequence[int], luck: np.random.Generator) -> JointBatch:
        lists = self.list_batch(numbers, luck)
        edits, answers = self._rows(self.train.asked, numbers, random.Random(int(luck.integers(2**31))))
        return JointBatch(lists, edits, answers, bool(luck.random() < self.options.teacher.itself))

    def _rows(self, asked: Sequence[Any], numbers: Sequence[int], dice: random.Random | None) -> list[Rows | None]:
        found = []
        for kind in (writing.rewrites, writing.answers):
            sequences: list[Writing] = []
            for owner, number in enumerate(numbers):
                sequences += kind(self.tokenizer, asked[number], owner, dice)
            found.append(written_rows(sequences, self.shape.decoder_positions))
        return found

    def loss(self, model: nn.Module, batch: Any) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, CompactNet)
        if batch.itself:
            batch = batch._replace(lists=self._taught_by_itself(batch.lists))
        parts = self._parts(model, batch)
        return weighted(parts, WEIGHTS | _OUTPUTS), {name: part.detach() for name, part in parts.items()}

    def _taught_by_itself(self, lists: ListBatch) -> ListBatch:
        """With what the model said of them before this training, as a teacher says it."""
        assert self.before is not None
        before = self.before.to(lists.valid.device)
        with torch.no_grad():
            said = before.read(*lists.pairs[:3])
            best = torch.stack(losses.start_end(said["span"], lists.pairs.region), 1).topk(MOST_PIECES, dim=2)
        return lists._replace(taught=Taught(said["relevance"].view_as(lists.valid), best.indices, best.values.exp()))

    def _parts(self, net: CompactNet, batch: JointBatch) -> dict[str, Tensor]:
        output = net.read(*batch.lists.pairs[:3])
        return losses.read(output, batch.lists) | self._written(net, output, batch)

    def _written(self, net: CompactNet, output: dict[str, Tensor], batch: JointBatch) -> dict[str, Tensor]:
        found = {}
        for name, rows in (("edits", batch.edits), ("answers", batch.answers)):
            if rows is not None:
                seen = losses.remembered(
                    output["states"], batch.lists, output["relevance"], rows, _SEEN[name], marked=name == "edits"
                )
                found[name] = losses.written(net, seen, rows)
        return found

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, CompactNet)
        found = super().evaluate(model)
        device = model.span.weight.device
        sums: defaultdict[str, float] = defaultdict(float)
        sizes: Counter[str] = Counter()
        with torch.random.fork_rng():
            torch.manual_seed(0)  # the passages that the decoder is given are shaken by the same numbers every time
            for numbers, lists in measured_batches(self.dev, self.options.model.longest, device):
                rows = to_device(self._rows(self.dev.asked, numbers, None), device)
                output = model.read(*lists.pairs[:3])
                for name, part in self._written(model, output, JointBatch(lists, rows[0], rows[1])).items():
                    sums[name] += float(part) * len(numbers)
                    sizes[name] += len(numbers)
        return found | {name: sums[name] / sizes[name] for name in sums}

    def save(self, model: nn.Module, folder: Path) -> None:
        """The weights folder that the runtime reads, and beside it what training could go on from."""
        assert isinstance(model, CompactNet)
        if self.start is not None and self.options.model.kept:
            model = self.start.mixed(model, self.options.model.kept)
        super().save(model, folder)
        self.write_out(model.state_dict(), model.config, folder)

    def write_out(self, state: Mapping[str, Tensor], config: CompactConfig, folder: Path) -> None:
        """Graphs, word vectors, settings: those of the model that training went on from, where it had some."""
        weights = {name: value.detach().float().cpu().numpy() for name, value in state.items()}
        shape = {name: value for name, value in asdict(config).items() if name != "dropout"}
        before = self.start.config if self.start is not None else None
        settings = {"name": "compact", "frequent": self.frequent} if before is None else before
        export(weights, shape, self.vocabulary, folder, settings=settings)

    def finish(self, folder: Path) -> None:
        """The scorer, on the questions that were held out: with it the folder is complete."""
        data, path = self.options.data, folder / SCORER
        held = held_out(data)
        if path.exists() or not held:
            return
        index = Index.open(Path(data.index)) if data.index else sample.index()
        with shown("fitting the scorer", "questions") as progress:
            source = Source(index, held, data.method)
            fit_scorer(folder, source, progress, learnt=labelled(data)).save(path)

    @cached_property
    def frequent(self) -> list[int]:
        """The commonest word pieces of edits and answers."""
        counts: Counter[int] = Counter()
        for one in self.train.asked:
            for reading in one.rewritings:
                for rewrite in reading.rewrites:
                    counts.update(writing.edit_signs(self.tokenizer, one.text, rewrite))
            for names in one.answers:
                counts.update(answer_ids(self.tokenizer, names[0]))
        return sorted(piece for piece, _ in counts.most_common(_FREQUENT))
