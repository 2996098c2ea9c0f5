"""Fits the nets over the features of sentences and windows: on judged answers, and on examples that were held out."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from whichsense.jobs.progress import Progress, silent
from whichsense.models.compact.encoder.runtime import CompactModel
from whichsense.models.compact.scorer.scorer import Net
from whichsense.models.compact.support.judge import (
    NETWORK,
    SAYS,
    SupportJudge,
    SupportNets,
)
from whichsense.train.compact.scorer.linear import fit
from whichsense.train.compact.support.examples import SupportExample, is_held_out
from whichsense.train.compact.support.from_answers import FEEDBACK

_Row = dict[str, float]
_SEED = 25
_BATCH = 32
_CHOICES = 3  # times that the window of each example is chosen again, by the net so far
_SHARE_OF_FEEDBACK = 0.3
# With more features, or more judged answers, a threshold of a half fits sources that were left out less well.
_BESIDE_NETWORK = (SAYS, "said")
# False claims in a passage's own words: these say nothing about words, and the net over words does not see them.
_SAME_WORDS = ("false_claim", "other answer", "rewrite", "squad/1.1", "squad/2.0")


def fit_nets(
    folder: Path,
    examples: Sequence[SupportExample],
    most: int,
    progress: Progress = silent,
) -> SupportNets:
    """Nets whose probability is above a half where a passage more probably supports a sentence than not.

    Supported and unsupported examples count the same, and so do sources within each: a probability is that of a fair
    draw from both.
    """
    judge = SupportJudge(CompactModel(folder))
    chosen = _choose(examples, most)
    features = _read(judge, list(dict.fromkeys(chosen)), progress)
    windows = [features[example] for example in chosen]
    network = SupportNets().network
    if not judge.model.lacks(NETWORK):
        network = fit_network(chosen, windows)
    return SupportNets(words=_fit_words(chosen, windows), network=network)


def fit_network(
    examples: Sequence[SupportExample], windows: Sequence[Sequence[_Row]]
) -> Net:
    """The net over the network's logit: judged answers count no more than any other source."""
    others = Counter(
        (one.supported, one.source) for one in examples if one.source != FEEDBACK
    )
    most = max(others.values(), default=len(examples))
    counts: Counter[tuple[bool, str]] = Counter()
    rows = []
    labels = []
    for example, own in zip(examples, windows, strict=True):
        kind = example.supported, example.source
        if counts[kind] < most:
            counts[kind] += 1
            rows.append([{name: one[name] for name in _BESIDE_NETWORK} for one in own])
            labels.append(example.supported)
    return fit_best_windows(rows, labels)


def _fit_words(
    examples: Sequence[SupportExample], windows: Sequence[Sequence[_Row]]
) -> Net:
    """The net of a model without the network."""
    rows = []
    labels = []
    for example, own in zip(examples, windows, strict=True):
        if example.supported or example.source not in _SAME_WORDS:
            rows.append([{k: v for k, v in one.items() if k != SAYS} for one in own])
            labels.append(example.supported)
    return fit_best_windows(rows, labels)


def _read(
    judge: SupportJudge, examples: Sequence[SupportExample], progress: Progress
) -> dict[SupportExample, list[_Row]]:
    """The features of every window of each example."""
    features = {}
    for start in range(0, len(examples), _BATCH):
        batch = examples[start : start + _BATCH]
        pairs = [(example.claim, example.passage) for example in batch]
        for example, own in zip(batch, judge.excerpts(pairs), strict=True):
            features[example] = [excerpt.features for excerpt in own]
        done = start + len(batch)
        progress(done / len(examples), done)
    return features


def fit_best_windows(windows: Sequence[Sequence[_Row]], labels: Sequence[bool]) -> Net:
    """A net whose greatest probability over the windows of an example is fitted to its label."""
    kept = [(own, label) for own, label in zip(windows, labels, strict=True) if own]
    rows = [own[0] for own, _ in kept]
    targets = [float(label) for _, label in kept]
    net = fit(rows, targets)
    for _ in range(_CHOICES):
        rows = []
        for own, _ in kept:
            values = net.values(own)
            rows.append(own[values.index(max(values))])
        net = fit(rows, targets)
    return net


def _choose(examples: Sequence[SupportExample], most: int) -> list[SupportExample]:
    """Examples that the network has not learnt from: as many supported as not, half of them judged by people.

    A judged example may be chosen several times: far more of them are supported than not.
    """
    rng = random.Random(_SEED)
    by_kind: defaultdict[tuple[bool, str], list[SupportExample]] = defaultdict(list)
    for example in examples:
        if example.source == FEEDBACK or is_held_out(example):
            by_kind[example.supported, example.source].append(example)
    chosen: list[SupportExample] = []
    for supported in (True, False):
        kinds = {s: own for (label, s), own in by_kind.items() if label is supported}
        others = [source for source in sorted(kinds) if source != FEEDBACK]
        for source, own in sorted(kinds.items()):
            share = (1 - _SHARE_OF_FEEDBACK) / max(len(others), 1)
            if source == FEEDBACK:
                share = _SHARE_OF_FEEDBACK
            count = int(share * most / 2)
            if source == FEEDBACK:
                chosen += rng.choices(own, k=count)
            else:
                chosen += rng.sample(own, min(count, len(own)))
    rng.shuffle(chosen)
    return chosen
