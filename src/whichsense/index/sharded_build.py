"""Build an index in shards, in parts that several processes or machines work on."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from whichsense.corpus import Corpus, RecordCorpus, Report, Seen
from whichsense.corpus.cutting import fingerprint
from whichsense.files import write_atomically
from whichsense.index import dense
from whichsense.index import folder as folders
from whichsense.index.dense_writer import encode_rows, encoder_of, put_into_lists
from whichsense.index.folder import STAGING, Manifest, Sharding, shard_root
from whichsense.index.growth import (
    Cutting,
    Growth,
    cut_record,
    load_fingerprints,
    own_copy,
    save_array,
    save_fingerprints,
)
from whichsense.index.lexical import LexicalWriter
from whichsense.index.shards import KEYS, Spread, alone_with, new_build, write_labels
from whichsense.index.store import SOURCE, TEXT, TITLE, NamesWriter, PassagesWriter, pack
from whichsense.jobs.limits import Progress, silent, unsaid
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.workers import Executor, run_here
from whichsense.protocols import Encoder
from whichsense.types import Document

# The first half of a sharded build: a part of the corpus is cut into passages, which wait in a file
# for each shard.

# A key is the part of the corpus, and the passage's number in it.
_PASSAGES_OF_PART = 40  # bits


def key_of(part: int, number: int) -> int:
    """Keys order passages as they stand in the corpus, duplicates included, whoever reads which part."""
    return part << _PASSAGES_OF_PART | number


class Spilled(NamedTuple):
    """A passage on its way to a shard."""

    key: int
    fingerprint: int
    document: str
    stored: bytes


@dataclass(frozen=True, slots=True)
class PartSummary:
    """What a part of the corpus held. Arrays have an entry for each passage, duplicates included."""

    fingerprints: NDArray[np.uint64]
    shards: NDArray[np.uint16]
    report: Report


@dataclass(frozen=True)
class Cutter:
    """Reads parts of a corpus. It travels to whoever does the work."""

    folder: Path
    corpus: Corpus | RecordCorpus
    cutting: Cutting
    id_prefix: str
    shards: int
    by: str

    def cut(self, part: int, files: range) -> PartSummary:
        """Read some files of the corpus; their passages and names are in the folder afterwards, whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        spread = Spread(self.shards, self.by)
        report = Report()
        fingerprints: list[int] = []
        numbers: list[int] = []  # of shards
        with ExitStack() as stack:
            shards = [
                stack.enter_context(_Replacing(spill_path(self.folder, part, shard)))
                for shard in range(self.shards)
            ]
            names = stack.enter_context(_Replacing(names_path(self.folder, part)))
            for record in self.corpus.records(report, files=files):
                if not isinstance(record, Document):
                    pickle.dump(record, names)
                    continue
                for piece in cut_record(record, self.id_prefix, self.cutting):
                    key = fingerprint(piece.title, piece.text)
                    shard = spread.shard_of(key, record.source)
                    stored = pack(piece.names, piece.start, piece.text)
                    spilled = (key_of(part, len(numbers)), key, piece.document, stored)
                    pickle.dump(spilled, shards[shard])
                    fingerprints.append(key)
                    numbers.append(shard)
        return PartSummary(
            np.array(fingerprints, dtype=np.uint64), np.array(numbers, dtype=np.uint16), report
        )


def spill_path(folder: Path, part: int, shard: int) -> Path:
    return folder / f"{part:06d}-{shard:05d}.zst"


def names_path(folder: Path, part: int) -> Path:
    return folder / f"{part:06d}-names.zst"


def read_spill(folder: Path, part: int, shard: int) -> Iterator[Spilled]:
    """Yield the passages of a part that go to a shard, in the corpus's order."""
    return starmap(Spilled, _read_all(spill_path(folder, part, shard)))


def _read_all(path: Path) -> Iterator[Any]:
    """Yield what was written into a file that `_Replacing` made."""
    with zstandard.open(path, "rb") as file, suppress(EOFError):
        reader = io.BufferedReader(file, 2**20)
        while True:
            yield pickle.load(reader)


class _Replacing:
    """A compressed file that gets its name when it is whole. Another worker may write the same one meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        host = os.uname().nodename
        self._beside = path.with_name(f".{path.name}.{host}.{os.getpid()}.tmp")

    def __enter__(self) -> IO[bytes]:
        # In a thread of its own: it needs no interpreter.
        compressor = zstandard.ZstdCompressor(level=1, threads=1)
        self._file = zstandard.open(self._beside, "wb", cctx=compressor)
        # Passages are small: many are compressed at once.
        self._buffer = io.BufferedWriter(self._file, 2**18)
        return self._buffer

    def __exit__(self, kind: object, error: object, at: object) -> None:
        self._buffer.close()
        if kind is None:
            os.replace(self._beside, self._path)
        else:
            self._beside.unlink(missing_ok=True)


# The vectors of a sharded index: each shard's own, in lists whose centres all shards share.
#
# A search then reads the same lists in every shard, and finds what it would find in one index.

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
    items = [(encoder.name, root, rows) for root, rows in zip(roots, new_rows, strict=True)]
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
    """Return the centres that one index of all these shards would have: learned from the same vectors in the same
    order.
    """
    from whichsense.index.dense import Clustering, find_centres
    from whichsense.index.dense_writer import VectorsWriter

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
        return find_centres(_reader(roots, pools, dimensions), total, lists, dimensions)


def _reader(
    roots: Sequence[Path], pools: Sequence[dense.Pool], dimensions: int
) -> Callable[[NDArray[np.intp]], Floats]:
    """Return what reads vectors by their places in the order of the whole corpus."""
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


# Build and add over shards, in steps whose parts an executor spreads: processes here, or workers on a
# cluster.
#
# 1. Each part of the corpus is read and cut into passages, which wait in a file for each shard. 2.
# Passages that occur before in the corpus are found, wherever they would go. 3. Each shard is written
# from what waits for it. 4. Its passages are encoded, and lists of near vectors are made that all
# shards share.
#
# What is finished is kept in the staging folder: the same command resumes there after a stop or a
# kill. As in an index without shards, the next generation is served in one moment, at the end.

_JOB = "job.json"
_HEAP = (
    256 * 2**20
)  # bytes of words before a segment is written; several shards may be written at once
# How the progress of a build is shared out among its steps.
_READING, _WRITING = 0.4, 0.9

_PICKLED: PartCodec[Any] = PartCodec(".pickle", pickle.dumps, pickle.loads)


def grow_shards(growth: Growth, spread: Spread) -> Manifest:
    """Stage the next generation of a sharded index, or resume it, and publish it."""
    folder, base = growth.folder, growth.base
    job = growth.job | {"shards": spread.count, "by": spread.by}
    staging = folder / STAGING
    if _staged_job(staging) == job:
        # A run of this very job may have been killed just before it was served.
        manifest = folders.finished(folder)
        if manifest:
            return manifest
    if _staged_job(staging) != job or not (staging / "content").is_dir():
        folders.stage(folder, base)
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
    """Return the fingerprints of all passages that are there already."""
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
        return folders.publish(growth.folder, growth.base, draft)

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
            self.staging / "read", "part", self.job, size=1, codec=_PICKLED
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
        items = [
            _ShardWork(growth.folder, growth.base, read, number, frozenset(keys[number]))
            for number in range(shards)
        ]
        parts: Parts[_ShardWork, int] = Parts(
            self.staging / "shards", "shard", self.job, size=1, codec=_PICKLED
        )
        total = sum(len(gone) for gone in dropped)

        def progress(done: float | None, count: int) -> None:
            share = _READING + (_WRITING - _READING) * (done or 0.0)
            growth.progress(share, round(total * (done or 0.0)))

        executor = self.spread.executor
        parts.complete(items, _write_shard, executor=executor, progress=progress)
        return list(parts)


def _counted(summaries: Sequence[PartSummary], dropped: Sequence[NDArray[np.bool_]]) -> Report:
    report = Report()
    for summary, gone in zip(summaries, dropped, strict=True):
        report.include(summary.report)
        report.duplicates += int(gone.sum())
        report.passages += int((~gone).sum())
    return report


def find_duplicates(
    summaries: Sequence[PartSummary], known: NDArray[np.uint64]
) -> list[NDArray[np.bool_]]:
    """Return which passages of each part occur before: in the same part, in an earlier one, or among those that are
    known.
    """
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
        folders.link_files(work.folder, work.base, content, f"{root.name}/")
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
        for name in _read_all(names_path(spill, part)):
            names.add(name)
    names.close()
