"""Build and add over shards, in steps whose parts an executor spreads: processes here, or workers on a cluster.

1. Each part of the corpus is read and cut into passages, which wait in a file for each shard (spill.py).
2. Passages that occur before in the corpus are found, wherever they would go.
3. Each shard is written from what waits for it.
4. Its passages are encoded, and lists of near vectors are made that all shards share.

What is finished is kept in the staging folder: the same command resumes there after a stop or a kill. As in an index
without shards, the next generation is served in one moment, at the end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.corpus import Report, Seen
from whichsense.files import write_atomically
from whichsense.index import publish
from whichsense.index.folder import STAGING, Manifest, Sharding, shard_root
from whichsense.index.growth import Growth
from whichsense.index.lexical.engine import LexicalWriter
from whichsense.index.names import NamesWriter
from whichsense.index.shards.layout import Spread, alone_with, new_build, write_labels
from whichsense.index.shards.lists import encode_shards
from whichsense.index.shards.shard import KEYS
from whichsense.index.shards.spill import (
    Cutter,
    PartSummary,
    key_of,
    read_names,
    read_spill,
)
from whichsense.index.staging import (
    load_fingerprints,
    own_copy,
    save_array,
    save_fingerprints,
)
from whichsense.index.store import SOURCE, TEXT, TITLE
from whichsense.index.store_writer import PassagesWriter
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.workers import run_here

_JOB = "job.json"
_HEAP = (
    256 * 2**20
)  # bytes of words before a segment is written; several shards may be written at once
# How the progress of a build is shared out among its steps.
_READING, _WRITING = 0.4, 0.9

_SUMMARIES: PartCodec[PartSummary] = PartCodec(
    ".npz", PartSummary.encode, PartSummary.decode
)
_COUNTS: PartCodec[int] = PartCodec(
    ".json",
    lambda count: json.dumps(count).encode(),
    lambda body: int(json.loads(body)),
)


def grow_shards(growth: Growth, spread: Spread) -> Manifest:
    """Stage the next generation of a sharded index, or resume it, and publish it."""
    folder, base = growth.folder, growth.base
    job = growth.job | {"shards": spread.count, "by": spread.by}
    staging = folder / STAGING
    if _staged_job(staging) == job:
        # A run of this very job may have been killed just before it was served.
        manifest = publish.finished(folder)
        if manifest:
            return manifest
    if _staged_job(staging) != job or not (staging / "content").is_dir():
        publish.stage(folder, base)
        write_atomically(staging / _JOB, json.dumps(job))
    nothing = (0,) * spread.count
    before = Sharding(spread.by, "", 0, nothing, nothing)
    if base and base.sharding:
        before = base.sharding
    return _Build(growth, spread, job, before).run()


def _staged_job(staging: Path) -> Any:
    try:
        return json.loads((staging / _JOB).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _known(folder: Path, base: Manifest | None) -> NDArray[np.uint64]:
    """The fingerprints of all passages that are there already."""
    known = [np.empty(0, np.uint64)]
    for root in base.roots(folder) if base else ():
        known.append(load_fingerprints(root).to_array())
    return np.concatenate(known)


@dataclass(frozen=True)
class _Build:
    """A build or an add that is staged: its steps, each of which passes over what is done."""

    growth: Growth
    spread: Spread
    job: dict[str, Any]
    before: Sharding

    @property
    def staging(self) -> Path:
        return self.growth.folder / STAGING

    def run(self) -> Manifest:
        growth, before = self.growth, self.before
        summaries = self._read()
        dropped = find_duplicates(summaries, _known(growth.folder, growth.base))
        report = _counted(summaries, dropped)
        if not (report.documents or report.redirects or report.senses):
            raise growth.corpus.nothing_usable(report)
        added = self._write(summaries, dropped)
        content = self.staging / "content"
        parts = range(before.parts, before.parts + len(summaries))
        _write_names(content, self.staging / "spill", parts)
        now = Sharding(
            before.by,
            new_build(),
            parts.stop,
            tuple(np.add(before.passages, added).tolist()),
            tuple(np.add(before.rows, added).tolist()),
        )
        if growth.encoder is not None:
            rows = list(map(range, before.rows, now.rows))
            executor = self.spread.executor if self.spread.remote else run_here
            encode_shards(content, growth.encoder, rows, executor, growth.progress)
        write_labels(content, now)
        passages, next_row = sum(now.passages), sum(now.rows)
        draft = growth.draft(passages, next_row, report.as_dict(), now)
        return publish.publish(growth.folder, growth.base, draft)

    def _read(self) -> list[PartSummary]:
        """Read and cut the corpus."""
        growth = self.growth
        cutter = Cutter(
            self.staging / "spill",
            growth.corpus,
            growth.cutting,
            growth.id_prefix,
            self.spread.count,
            self.spread.by,
        )
        first = self.before.parts
        parts: Parts[range, PartSummary] = Parts(
            self.staging / "read", "part", self.job, size=1, codec=_SUMMARIES
        )

        def cut(part: Part[range]) -> PartSummary:
            return cutter.cut(first + part.number, part.items[0])

        def progress(done: float | None, count: int) -> None:
            growth.progress(_READING * (done or 0.0), 0)

        items = growth.corpus.parts()
        parts.complete(items, cut, executor=self.spread.executor, progress=progress)
        return list(parts)

    def _write(
        self, summaries: Sequence[PartSummary], dropped: Sequence[NDArray[np.bool_]]
    ) -> list[int]:
        """Write the shards; how many passages each has got."""
        growth, shards, first = self.growth, self.spread.count, self.before.parts
        keys: list[set[int]] = [set() for _ in range(shards)]
        for part, (summary, gone) in enumerate(zip(summaries, dropped, strict=True)):
            for number in np.flatnonzero(gone).tolist():
                keys[int(summary.shards[number])].add(key_of(first + part, number))
        read = range(first, first + len(summaries))
        items = []
        for number in range(shards):
            gone_here = frozenset(keys[number])
            items.append(
                _ShardWork(growth.folder, growth.base, read, number, gone_here)
            )
        parts: Parts[_ShardWork, int] = Parts(
            self.staging / "shards", "shard", self.job, size=1, codec=_COUNTS
        )
        total = sum(len(gone) for gone in dropped)

        def progress(done: float | None, count: int) -> None:
            share = _READING + (_WRITING - _READING) * (done or 0.0)
            growth.progress(share, round(total * (done or 0.0)))

        executor = self.spread.executor
        parts.complete(items, _write_shard, executor=executor, progress=progress)
        return list(parts)


def _counted(
    summaries: Sequence[PartSummary], dropped: Sequence[NDArray[np.bool_]]
) -> Report:
    report = Report()
    for summary, gone in zip(summaries, dropped, strict=True):
        report.include(summary.report)
        report.duplicates += int(gone.sum())
        report.passages += int((~gone).sum())
    return report


def find_duplicates(
    summaries: Sequence[PartSummary], known: NDArray[np.uint64]
) -> list[NDArray[np.bool_]]:
    """Which passages of each part occur before: in the same part, in an earlier one, or among those that are known."""
    prints = np.concatenate(
        [np.empty(0, np.uint64), *[summary.fingerprints for summary in summaries]]
    )
    order = np.argsort(prints, kind="stable")  # equal ones stay in the corpus's order
    gone = np.zeros(len(prints), dtype=bool)
    gone[order[1:]] = prints[order[1:]] == prints[order[:-1]]
    gone |= np.isin(prints, known)
    ends = np.cumsum([len(summary.fingerprints) for summary in summaries])
    return np.split(gone, ends[:-1])


@dataclass(frozen=True, slots=True)
class _ShardWork:
    """What a worker needs to write a shard."""

    folder: Path
    base: Manifest | None
    parts: range
    """Of the corpus."""
    number: int
    dropped: frozenset[int]
    """Keys of passages that occur before."""


def _write_shard(part: Part[_ShardWork]) -> int:
    """Put the passages that wait for a shard behind those that it has; how many they are."""
    (work,) = part.items
    root = shard_root(work.folder / STAGING / "content", work.number)
    with alone_with(root):
        return _write_into(root, work)


def _write_into(root: Path, work: _ShardWork) -> int:
    content, spill = work.folder / STAGING / "content", work.folder / STAGING / "spill"
    shutil.rmtree(root, ignore_errors=True)  # what a killed worker left
    root.mkdir(parents=True)
    row = 0
    if work.base:
        publish.link_files(work.folder, work.base, content, f"{root.name}/")
        row = work.base.shard_rows[work.number]
    lexical = LexicalWriter(root / "lexical", _HEAP)
    keys: list[int] = []
    fingerprints: list[int] = []
    with PassagesWriter(root / "passages", row) as passages:
        for number in work.parts:
            for spilled in read_spill(spill, number, work.number):
                if spilled.key in work.dropped:
                    continue
                fields = spilled.stored.split(b"\n", TEXT)
                title, text = fields[TITLE].decode(), fields[TEXT].decode()
                lexical.add(row + len(keys), title, text)
                source = fields[SOURCE].decode()
                passages.add(spilled.stored, spilled.document, source)
                keys.append(spilled.key)
                fingerprints.append(spilled.fingerprint)
    lexical.commit()
    lexical.close()
    _extend(root, keys, fingerprints)
    return len(keys)


def _extend(root: Path, keys: Sequence[int], fingerprints: Sequence[int]) -> None:
    old_keys, old_prints = np.empty(0, np.int64), np.empty(0, np.uint64)
    if (root / KEYS).exists():
        old_keys = np.load(root / KEYS)
        old_prints = load_fingerprints(root).to_array()
    save_array(root / KEYS, np.concatenate([old_keys, np.array(keys, np.int64)]))
    prints = np.concatenate([old_prints, np.array(fingerprints, np.uint64)])
    save_fingerprints(root, Seen.from_array(np.sort(prints)))


def _write_names(content: Path, spill: Path, parts: range) -> None:
    names = NamesWriter(own_copy(content / "names.sqlite"))
    for part in parts:
        for name in read_names(spill, part):
            names.add(name)
    names.close()
