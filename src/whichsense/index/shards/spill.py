"""The first half of a sharded build: a part of the corpus is cut into passages, which wait in a file for each shard."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from struct import Struct
from typing import IO, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from whichsense.corpus import Corpus, RecordCorpus, Report
from whichsense.corpus.duplicates import fingerprint
from whichsense.index.growth import Cutting, cut_record
from whichsense.index.shards.layout import Spread
from whichsense.index.store import pack
from whichsense.types import Document, Redirect, Sense

_HEADER = Struct("<QQII")
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

    def encode(self) -> bytes:
        body = io.BytesIO()
        report = np.frombuffer(json.dumps(self.report.as_dict()).encode(), np.uint8)
        np.savez(
            body, fingerprints=self.fingerprints, shards=self.shards, report=report
        )
        return body.getvalue()

    @classmethod
    def decode(cls, body: bytes) -> PartSummary:
        with np.load(io.BytesIO(body)) as arrays:
            report = json.loads(arrays["report"].tobytes())
            return cls(
                arrays["fingerprints"], arrays["shards"], Report.from_dict(report)
            )


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
            shards = []
            for shard in range(self.shards):
                path = spill_path(self.folder, part, shard)
                shards.append(stack.enter_context(_Replacing(path)))
            names = stack.enter_context(_Replacing(names_path(self.folder, part)))
            for record in self.corpus.records(report, files=files):
                if not isinstance(record, Document):
                    names.write(_name_line(record))
                    continue
                for piece in cut_record(record, self.id_prefix, self.cutting):
                    key = fingerprint(piece.title, piece.text)
                    shard = spread.shard_of(key, record.source)
                    document = piece.document.encode("utf-8", "replace")
                    stored = pack(piece.names, piece.start, piece.text)
                    sizes = (len(document), len(stored))
                    header = _HEADER.pack(len(numbers), key, *sizes)
                    shards[shard].write(header + document + stored)
                    fingerprints.append(key)
                    numbers.append(shard)
        return PartSummary(
            np.array(fingerprints, dtype=np.uint64),
            np.array(numbers, dtype=np.uint16),
            report,
        )


def spill_path(folder: Path, part: int, shard: int) -> Path:
    return folder / f"{part:06d}-{shard:05d}.zst"


def names_path(folder: Path, part: int) -> Path:
    return folder / f"{part:06d}-names.zst"


def read_spill(folder: Path, part: int, shard: int) -> Iterator[Spilled]:
    """The passages of a part that go to a shard, in the corpus's order."""
    with zstandard.open(spill_path(folder, part, shard), "rb") as file:
        reader = io.BufferedReader(file, 2**20)
        while header := reader.read(_HEADER.size):
            number, key, document_size, stored_size = _HEADER.unpack(header)
            document = reader.read(document_size).decode()
            stored = reader.read(stored_size)
            yield Spilled(key_of(part, number), key, document, stored)


def read_names(folder: Path, part: int) -> Iterator[Redirect | Sense]:
    """The redirects and senses of a part."""
    with zstandard.open(names_path(folder, part), "rb") as file:
        for line in io.BufferedReader(file):
            fields = json.loads(line)
            yield Redirect(**fields) if "target" in fields else Sense(**fields)


def _name_line(record: Redirect | Sense) -> bytes:
    return json.dumps(asdict(record)).encode() + b"\n"


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
