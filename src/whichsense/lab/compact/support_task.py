"""Task compact-support: adapters teach the verifier to tell which sentences a passage supports."""

from __future__ import annotations

import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from whichsense.errors import BadConfig
from whichsense.jobs.limits import Progress, show_progress, silent
from whichsense.lab.compact.list_task import Start, draw_numbers, load_start, untrained
from whichsense.lab.compact.lists import CachedTokenizer, stack_pairs
from whichsense.lab.compact.scorer_fitting import fit
from whichsense.lab.compact.support_examples import (
    FEEDBACK,
    SupportData,
    SupportExample,
    is_held_out,
    read_examples,
)
from whichsense.lab.compact.verifier_task import area_under_curve
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.task import Lazy, Task, TaskSpec, group_batches
from whichsense.models.compact.encoder import CompactModel, Pair, Tokenizer, pair
from whichsense.models.compact.export import VERIFIER
from whichsense.models.compact.graphs import support
from whichsense.models.compact.nets import SupportNet, own_weights, set_quantization
from whichsense.models.compact.scorer import Net
from whichsense.models.compact.support_judge import (
    LONGEST_CLAIM,
    LONGEST_PAIR,
    NETS,
    NETWORK,
    WINDOW,
    Claim,
    Evidence,
    SupportJudge,
    SupportNets,
)
from whichsense.types import frozen

# Examples as pairs of a claim and the window that says most of it.


def encode(example: SupportExample, tokenizer: Tokenizer) -> Pair:
    """Return the pair that an example is read as."""
    claim = tokenizer.ids(example.claim, LONGEST_CLAIM)
    return pair(tokenizer, claim, *_best_window(example, tokenizer), LONGEST_PAIR)


def _best_window(example: SupportExample, tokenizer: Tokenizer) -> tuple[str, str]:
    """Title and text that the claim is read with: of the passage if it fits, else of its best window."""
    if len(tokenizer.ids(example.text)) <= WINDOW:
        return example.title, example.text
    claim = Claim(example.claim, tokenizer)
    evidence = Evidence.of(example.passage, tokenizer)
    window = evidence.window(claim.terms, tokenizer.vocabulary)
    return window.title, window.text


# Fits the nets over the features of sentences and windows: on judged answers, and on examples that
# were held out.

_Row = dict[str, float]
_SEED = 25
_BATCH = 32
_SHARE_OF_FEEDBACK = 0.3
# With more judged answers, a threshold of a half fits sources that were left out less well.


def fit_nets(
    folder: Path, examples: Sequence[SupportExample], most: int, progress: Progress = silent
) -> SupportNets:
    """Nets whose probability is above a half where a passage more probably supports a sentence than not.

    Supported and unsupported examples count the same, and so do sources within each: a probability is that of a fair
    draw from both.
    """
    judge = SupportJudge(CompactModel(folder))
    chosen = _choose(examples, most)
    rows = _read(judge, list(dict.fromkeys(chosen)), progress)
    if judge.model.lacks(NETWORK):
        return SupportNets()
    return SupportNets(fit_network(chosen, [rows[example] for example in chosen]))


def fit_network(examples: Sequence[SupportExample], features: Sequence[_Row]) -> Net:
    """Return the net over the network's logit: judged answers count no more than any other source."""
    others = Counter((one.supported, one.source) for one in examples if one.source != FEEDBACK)
    most = max(others.values(), default=len(examples))
    counts: Counter[tuple[bool, str]] = Counter()
    rows = []
    labels = []
    for example, row in zip(examples, features, strict=True):
        kind = example.supported, example.source
        if row and counts[kind] < most:
            counts[kind] += 1
            rows.append(row)
            labels.append(float(example.supported))
    return fit(rows, labels)


def _read(
    judge: SupportJudge, examples: Sequence[SupportExample], progress: Progress
) -> dict[SupportExample, _Row]:
    """Return what each example is judged by."""
    features: dict[SupportExample, _Row] = {}
    for batch in group_batches(examples, _BATCH):
        pairs = [(example.claim, example.passage) for example in batch]
        features |= zip(batch, judge.features(pairs), strict=True)
        progress(len(features) / len(examples), len(features))
    return features


def _supported_first(kind: tuple[tuple[bool, str], list[SupportExample]]) -> tuple[bool, str]:
    (supported, source), _ = kind
    return not supported, source


def _choose(examples: Sequence[SupportExample], most: int) -> list[SupportExample]:
    """Return examples that the network has not learnt from: as many supported as not, half of them judged by people.

    A judged example may be chosen several times: far more of them are supported than not.
    """
    rng = random.Random(_SEED)
    by_kind: defaultdict[tuple[bool, str], list[SupportExample]] = defaultdict(list)
    for example in examples:
        if example.source == FEEDBACK or is_held_out(example):
            by_kind[example.supported, example.source].append(example)
    chosen: list[SupportExample] = []
    for (supported, source), own in sorted(by_kind.items(), key=_supported_first):
        if source == FEEDBACK:
            chosen += rng.choices(own, k=int(_SHARE_OF_FEEDBACK * most / 2))
            continue
        others = sum(one == supported and name != FEEDBACK for one, name in by_kind)
        count = int((1 - _SHARE_OF_FEEDBACK) / others * most / 2)
        chosen += rng.sample(own, min(count, len(own)))
    rng.shuffle(chosen)
    return chosen


# Task compact-support: adapters teach the verifier to tell which sentences a passage supports.

ADAPTERS = "support.pt"
_EVALUATED = 600  # held-out examples of each source
_EVALUATED_PAIRS = 64


@frozen
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


@frozen
class _SupportDraw:
    """What a batch holds."""

    pairs: int = 128
    weights: dict[str, float] = field(default_factory=dict)
    """How often examples are drawn, by source; 1 for all others."""


@frozen
class SupportOptions:
    model: _SupportModel = _SupportModel()
    data: SupportData = SupportData()
    draw: _SupportDraw = _SupportDraw()
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
        model = options.model
        self.start = load_start(model.start) if model.start else untrained(model.base, model.early)
        self.tokenizer = CachedTokenizer.of(self.start.vocabulary)
        with show_progress("building examples", "passages") as progress:
            self.given = read_examples(options.data, progress)
        self.pairs = [encode(example, self.tokenizer) for example in self.given]
        self.held_out = [is_held_out(example) for example in self.given]

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """How often each example is drawn: never, if it is held out, or if people judged it: the nets are fitted on
        these."""
        weights = self.options.draw.weights
        drawn = np.zeros(len(self.given))
        for number, example in enumerate(self.given):
            if example.source != FEEDBACK and not self.held_out[number]:
                drawn[number] = weights.get(example.source, 1.0)
        if not drawn.any():
            raise BadConfig("data: there is no example to learn from. Name more data.")
        return np.asarray(drawn / drawn.sum())

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
        drawn = draw_numbers(self.probabilities, self.options.draw.pairs, epoch, seed)
        return Lazy(drawn, lambda item: self.batch(item[1]))

    def batch(self, numbers: Sequence[int]) -> SupportBatch:
        supported = [float(self.given[number].supported) for number in numbers]
        pairs = [self.pairs[number] for number in numbers]
        return SupportBatch(*stack_pairs(pairs), torch.tensor(supported))

    def loss(self, model: SupportNet, batch: SupportBatch) -> Tensor:
        smoothing = self.options.model.smoothing
        labels = batch.supported * (1 - 2 * smoothing) + smoothing
        logits = model(batch.ids, batch.types, batch.mask)
        return F.binary_cross_entropy_with_logits(logits, labels)

    @torch.no_grad()
    def evaluate(self, model: SupportNet) -> dict[str, float]:
        """Return the area under the curve on held-out examples of each source, on judged answers, and the mean of
        all."""
        by_source: defaultdict[str, list[int]] = defaultdict(list)
        for number, example in enumerate(self.given):
            if example.source == FEEDBACK or self.held_out[number]:
                by_source[example.source].append(number)
        areas = {}
        for source, every in sorted(by_source.items()):
            rows = every[:_EVALUATED]
            labels = np.array([self.given[row].supported for row in rows])
            # Some sources have supported examples only.
            if not labels.all() and labels.any():
                areas[source] = area_under_curve(self.logits(model, rows), labels)
        mean = sum(areas.values()) / len(areas) if areas else 0.5
        named = {
            f"area_{source.replace(' ', '_').replace('/', '_')}": area
            for source, area in areas.items()
        }
        return {"area": mean, **named}

    @torch.no_grad()
    def logits(self, model: SupportNet, rows: Sequence[int]) -> NDArray[np.float32]:
        """Return what the network says of some examples."""
        device = model.support.out.weight.device
        parts = [np.zeros(0, np.float32)]
        for numbers in group_batches(rows, _EVALUATED_PAIRS):
            batch = to_device(self.batch(numbers), device)
            parts.append(model(batch.ids, batch.types, batch.mask).cpu().numpy())
        return np.concatenate(parts)

    def save(self, model: SupportNet, folder: Path) -> None:
        torch.save(own_weights(model), folder / ADAPTERS)

    def finish(self, folder: Path) -> None:
        """Export the judge beside the model that it adapts, and fit the nets over what it says."""
        # A checkpoint that is no weights folder has no graphs to refer to.
        if self.start.config is None:
            return
        export_adapters(folder / ADAPTERS, self.start, folder)
        if not (folder / NETS).exists():
            with show_progress("fitting the support judge", "examples") as progress:
                nets = fit_nets(folder, self.given, self.options.fitted, progress)
            nets.save(folder / NETS)


def export_adapters(file: Path, start: Start, folder: Path) -> None:
    """Copy the weights folder that was adapted, and write the graph of the judge into the copy."""
    for source in start.folder.iterdir():
        if source.is_file() and source.name not in (NETWORK, NETS):
            shutil.copyfile(source, folder / source.name)
    adapters = torch.load(file, map_location="cpu", weights_only=True)
    weights = {
        name: value.float().numpy() for name, value in (_verifier_weights(start) | adapters).items()
    }
    assert start.config is not None
    graph = support(weights, start.config["shape"], int8=True, beside=folder)
    (folder / NETWORK).write_bytes(graph)


def _verifier_weights(start: Start) -> dict[str, Tensor]:
    """Return the weights of the encoder, in whose place the verifier's late half stands, where it is apart."""
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
