"""Task compact-support: adapters teach the verifier to tell which sentences a passage supports."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from whichsense.errors import BadConfig
from whichsense.jobs.progress import show_progress
from whichsense.models.bases import load_base
from whichsense.models.compact.encoder.net import from_bert, set_quantization
from whichsense.models.compact.export import VERIFIER
from whichsense.models.compact.support.graph import support
from whichsense.models.compact.support.judge import NETS, NETWORK
from whichsense.models.compact.support.net import SupportNet, own_weights
from whichsense.train.compact.data.tokenizer import CachedTokenizer
from whichsense.train.compact.encoder.base import encoder_shape, load_vocabulary
from whichsense.train.compact.encoder.list_task import draw_numbers
from whichsense.train.compact.encoder.start import Start, load_start
from whichsense.train.compact.support.building import SupportData, read_examples
from whichsense.train.compact.support.encoded import EncodedExamples
from whichsense.train.compact.support.fitting import fit_nets
from whichsense.train.compact.support.from_answers import FEEDBACK
from whichsense.train.compact.verifier.task import area_under_curve
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.optimizer import to_device
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tiny.encoders import located

ADAPTERS = "support.pt"
_EVALUATED = 600  # held-out examples of each source
_EVALUATED_PAIRS = 64


@dataclass(frozen=True, slots=True)
class _SupportModel:
    """The network to train."""

    base: str = "thenlper/gte-small"
    """A plain BERT that is adapted if there is no start."""
    early: int = 4
    start: str = ""
    """The model whose verifier is adapted: a weights folder, or `shipped`; empty: the base."""
    rank: int = 32
    """Of the additions to queries and values."""
    inner: int = 64
    """The width of the networks beside the feed-forward ones."""
    dropout: float = 0.1
    smoothing: float = 0.03
    """How far labels are from 0 and 1: some are wrong."""


@dataclass(frozen=True, slots=True)
class _SupportDraw:
    """What a batch holds."""

    pairs: int = 128
    weights: dict[str, float] = field(default_factory=dict)
    """How often examples are drawn, by source; 1 for all others."""


@dataclass(frozen=True, slots=True)
class SupportOptions:
    model: _SupportModel = field(default_factory=_SupportModel)
    data: SupportData = field(default_factory=SupportData)
    draw: _SupportDraw = field(default_factory=_SupportDraw)
    fitted: int = 3000
    """Held-out examples that the nets over the network's output are fitted on, at most."""


class SupportBatch(NamedTuple):
    """Pairs (pairs × tokens), and whether the passage supports the claim."""

    ids: Tensor
    types: Tensor
    mask: Tensor
    supported: Tensor


class SupportTask(Task[SupportNet, SupportBatch]):
    """The best model tells supported claims from others best: the mean area under the curve over the sources."""

    metric = "area"
    higher_is_better = True

    def __init__(self, options: SupportOptions) -> None:
        self.options = options
        self.start = _load_model(options.model)
        self.tokenizer = CachedTokenizer.of(self.start.vocabulary)
        self.examples = self._load_examples()
        self.probabilities = self._draw_probabilities()

    def _load_examples(self) -> EncodedExamples:
        """The examples as tokens. They are kept beside the file of the examples, if there is one."""
        data = self.options.data
        file = Path(data.examples).with_suffix(".npz") if data.examples else None
        if file and file.exists():
            return EncodedExamples.load(file)
        with show_progress("building examples", "passages") as progress:
            examples = read_examples(data, progress)
        encoded = EncodedExamples.encode(examples, self.tokenizer)
        if file:
            encoded.save(file)
        return encoded

    def _draw_probabilities(self) -> NDArray[np.float64]:
        """How often each example is drawn: never, if it is held out, or if people judged it."""
        examples = self.examples
        weights = np.ones(len(examples.sources))
        for number, source in enumerate(examples.sources):
            weights[number] = self.options.draw.weights.get(source, 1.0)
            # The nets are fitted on these.
            if source == FEEDBACK:
                weights[number] = 0.0
        drawn = weights[examples.kinds] * ~examples.held_out
        if not drawn.any():
            raise BadConfig("data: there is no example to learn from. Name more data.")
        probabilities: NDArray[np.float64] = drawn / drawn.sum()
        return probabilities

    def build(self) -> SupportNet:
        model = self.options.model
        shape = replace(self.start.shape, dropout=model.dropout)
        net = SupportNet(shape, model.rank, model.inner)
        state = net.state_dict()
        for name, value in _verifier_weights(self.start).items():
            if name in state:
                state[name] = value
        net.load_state_dict(state)
        net.freeze()
        set_quantization(net, weights=True, activations=True)
        return net

    def batches(self, epoch: int, seed: int) -> Any:
        size = self.options.draw.pairs
        drawn = draw_numbers(self.probabilities, size, epoch, seed)
        return Lazy(drawn, lambda item: self.batch(item[1]))

    def batch(self, numbers: Sequence[int]) -> SupportBatch:
        rows = np.asarray(numbers)
        examples = self.examples
        sizes = examples.ids.sizes(rows)
        width = int(sizes.max())
        places = np.arange(width)
        mask = places < sizes[:, None]
        ids = np.where(mask, examples.ids.padded(rows, width), 0).astype(np.int64)
        types = (places >= examples.passage_at[rows][:, None]) & mask
        return SupportBatch(
            torch.from_numpy(ids),
            torch.from_numpy(types.astype(np.int64)),
            torch.from_numpy(mask),
            torch.from_numpy(examples.supported[rows].astype(np.float32)),
        )

    def loss(self, model: SupportNet, batch: SupportBatch) -> Tensor:
        smoothing = self.options.model.smoothing
        labels = batch.supported * (1 - 2 * smoothing) + smoothing
        logits = model(batch.ids, batch.types, batch.mask)
        return F.binary_cross_entropy_with_logits(logits, labels)

    @torch.no_grad()
    def evaluate(self, model: SupportNet) -> dict[str, float]:
        """The area under the curve on held-out examples of each source, on judged answers, and the mean of all."""
        areas = {}
        for number, source in enumerate(self.examples.sources):
            rows = self._evaluated_rows(number)
            labels = self.examples.supported[rows]
            # Some sources have supported examples only.
            if labels.all() or not labels.any():
                continue
            areas[source] = area_under_curve(self.logits(model, rows), labels)
        mean = sum(areas.values()) / len(areas) if areas else 0.5
        named = {}
        for source, area in areas.items():
            named[f"area_{source.replace(' ', '_').replace('/', '_')}"] = area
        return {"area": mean, **named}

    def _evaluated_rows(self, kind: int) -> NDArray[np.int64]:
        examples = self.examples
        chosen = examples.kinds == kind
        if examples.sources[kind] != FEEDBACK:
            chosen &= examples.held_out
        return np.flatnonzero(chosen)[:_EVALUATED]

    @torch.no_grad()
    def logits(self, model: SupportNet, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """What the network says of some examples."""
        device = model.support.out.weight.device
        parts = [np.zeros(0, np.float32)]
        for start in range(0, len(rows), _EVALUATED_PAIRS):
            numbers = rows[start : start + _EVALUATED_PAIRS].tolist()
            batch = to_device(self.batch(numbers), device)
            logits = model(batch.ids, batch.types, batch.mask)
            parts.append(logits.cpu().numpy())
        return np.concatenate(parts)

    def save(self, model: SupportNet, folder: Path) -> None:
        torch.save(own_weights(model), folder / ADAPTERS)

    def finish(self, folder: Path) -> None:
        """Export the judge beside the model that it adapts, and fit the nets over what it says."""
        # A checkpoint that is no weights folder has no graphs to refer to.
        if self.start.config is None:
            return
        export_adapters(folder / ADAPTERS, self.start, folder)
        data = self.options.data
        if not (folder / NETS).exists():
            with show_progress("fitting the support judge", "examples") as progress:
                nets = fit_nets(
                    folder, read_examples(data), self.options.fitted, progress
                )
            nets.save(folder / NETS)

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _load_model(model: _SupportModel) -> Start:
    if model.start:
        return load_start(model.start)
    shape = encoder_shape(model.base, model.early)
    net = from_bert(load_base(located(model.base)).state_dict(), shape)
    return Start(Path(), shape, load_vocabulary(model.base), net.state_dict())


def export_adapters(file: Path, start: Start, folder: Path) -> None:
    """Copy the weights folder that was adapted, and write the graph of the judge into the copy."""
    for source in start.folder.iterdir():
        if source.is_file() and source.name not in (NETWORK, NETS):
            shutil.copyfile(source, folder / source.name)
    adapters = torch.load(file, map_location="cpu", weights_only=True)
    weights = {}
    for name, value in (_verifier_weights(start) | adapters).items():
        weights[name] = value.float().numpy()
    assert start.config is not None
    shape = start.config["shape"]
    graph = support(weights, shape, int8=True, beside=folder)
    (folder / NETWORK).write_bytes(graph)


def _verifier_weights(start: Start) -> dict[str, Tensor]:
    """The weights of the encoder, in whose place the verifier's late half stands, where it is apart."""
    weights = dict(start.encoder)
    for name, value in start.state.items():
        if name.startswith(VERIFIER):
            weights[name.removeprefix(VERIFIER)] = value
    # The judge's head begins as that of relevance.
    for part in ("dense", "out"):
        for kind in ("weight", "bias"):
            weights[f"support.{part}.{kind}"] = weights[f"relevance.{part}.{kind}"]
    return weights


SPEC = TaskSpec(SupportOptions, SupportTask)
