"""The vectors of a sharded index: each shard's own, in lists whose centres all shards share.

A search then reads the same lists in every shard, and finds what it would find in one index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.index.dense import codes
from whichsense.index.dense.encode import encode_rows, encoder_of, put_into_lists
from whichsense.index.folder import shard_root
from whichsense.index.shards.layout import alone_with
from whichsense.index.shards.shard import KEYS
from whichsense.jobs.progress import Progress, silent, unsaid
from whichsense.jobs.workers import Executor, run_here
from whichsense.protocols import Encoder

Floats = NDArray[np.float32]


def encode_shards(
    content: Path,
    encoder: Encoder,
    new_rows: Sequence[range],
    executor: Executor,
    progress: Progress,
) -> None:
    """Encode the new rows of each shard, and put all vectors into lists."""
    roots = [shard_root(content, number) for number in range(len(new_rows))]
    total = sum(map(len, new_rows)) or 1
    done = 0
    # An encoder is loaded anew where it does not come along with this process.
    work = _encode if executor is not run_here else partial(_encode_with, encoder)
    items = []
    for root, rows in zip(roots, new_rows, strict=True):
        items.append((encoder.name, root, rows))
    for (_, _, rows), _ in executor(work, items):
        done += len(rows)
        progress(done / total, done)
    centres = shared_centres(roots, encoder.dimensions)
    for root in roots:
        put_into_lists(root, encoder, centres)


_EncodingWork = tuple[str, Path, range]
"""The encoder's name, a shard's folder, the rows to encode."""


def _encode(item: _EncodingWork) -> None:
    encoder = encoder_of(item[0], None)
    if encoder is not None:
        _encode_with(encoder, item)


def _encode_with(encoder: Encoder, item: _EncodingWork) -> None:
    _, root, rows = item
    with alone_with(root):
        encode_rows(root, encoder, rows, silent, unsaid)


def shared_centres(roots: Sequence[Path], dimensions: int) -> Floats:
    """The centres that one index of all these shards would have: learned from the same vectors in the same order."""
    from whichsense.index.dense.clusters import Clustering, find_centres
    from whichsense.index.dense.writer import VectorsWriter

    with ExitStack() as stack:
        pools = []
        served = None
        writers = []
        for root in roots:
            writer = stack.enter_context(VectorsWriter(root / "vectors", dimensions))
            writers.append(writer)
            pools.append(writer.pool())
        total = sum(map(len, pools))
        lists = Clustering().list_count(total)
        for writer in writers:
            if served is None:
                served = writer.serving_centres(lists)
        if served is not None:
            return served
        if not total:
            return np.zeros((1, dimensions), dtype=np.float32)
        return find_centres(_reader(roots, pools, dimensions), total, lists)


def _reader(
    roots: Sequence[Path], pools: Sequence[codes.Pool], dimensions: int
) -> Callable[[NDArray[np.intp]], Floats]:
    """Reads vectors by their places in the order of the whole corpus."""
    keys, shards, members = [], [], []
    for number, (root, pool) in enumerate(zip(roots, pools, strict=True)):
        keys.append(np.load(root / KEYS)[pool.rows.astype(np.int64)])
        shards.append(np.full(len(pool), number))
        members.append(np.arange(len(pool)))
    order = np.argsort(np.concatenate(keys))
    shard_of, member_of = np.concatenate(shards)[order], np.concatenate(members)[order]

    def read(places: NDArray[np.intp]) -> Floats:
        vectors = np.empty((len(places), dimensions), dtype=np.float32)
        for number, pool in enumerate(pools):
            own = shard_of[places] == number
            vectors[own] = pool.decoded(member_of[places][own])
        return vectors

    return read
