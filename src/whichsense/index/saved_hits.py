"""Hits in a file: search once, then train and predict as often as you like, also where the index is missing.

The file is JSON lines, compressed by the name's ending. The first line says what was searched, and how. Then come, for
each question, the passages that no earlier question had, and the question with the ids and scores of its hits, best
first:
    {"kept": 1, "index": "2026-11-15T06:34:14+0000", "passages": 1112130, "method": "hybrid", "k": 100}
    {"id": "12/3", "title": "Dune (novel)", "text": "…"}
    {"question": "who made dune", "hits": [["12/3", 17.5], …]}
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, TypeGuard, cast

from whichsense.errors import BadInput
from whichsense.files import read_jsonl, sha256
from whichsense.index.search import Index
from whichsense.jobs.parts import closable
from whichsense.jobs.progress import Progress, silent
from whichsense.jobs.workers import Executor, run_here
from whichsense.types import Hit, Method, Passage

_BATCH = 64  # questions that are searched together
_FIX = "Write it again: whichsense retrieve"
_HEAD_KEYS = {"index", "passages", "method", "k"}
_REQUIRED = ("id", "title", "text")


@dataclass(frozen=True)
class SavedHits:
    """The hits in a file, searched like an index: by questions that were searched when it was written."""

    path: Path
    about: Mapping[str, Any]
    _hits: Mapping[str, Sequence[tuple[str, float]]]
    """Ids and scores by question."""
    _passages: Mapping[str, Passage]

    @classmethod
    def open(cls, path: str | Path) -> SavedHits:
        lines = read_jsonl(path)
        _, about = next(lines, (0, None))
        if not _is_head(about):
            raise BadInput(f"'{path}' holds no hits of a search. {_FIX}.")
        hits: dict[str, list[tuple[str, float]]] = {}
        passages: dict[str, Passage] = {}
        for number, record in lines:
            try:
                if "question" in record:
                    hits[record["question"]] = _ids_and_scores(record["hits"])
                else:
                    passages[record["id"]] = _passage(record)
            except (KeyError, TypeError, ValueError):
                raise BadInput(
                    f"'{path}', line {number}: neither a passage nor a question. {_FIX}."
                ) from None
        for ranked in hits.values():
            for passage_id, _ in ranked:
                if passage_id not in passages:
                    raise BadInput(
                        f"'{path}' lacks the passage '{passage_id}', which is a hit in it. {_FIX}."
                    )
        return cls(Path(path), about, hits, passages)

    def __len__(self) -> int:
        return len(self._passages)

    def __contains__(self, question: object) -> bool:
        """Whether the question was searched when the file was written."""
        return question in self._hits

    def describe(self) -> dict[str, Any]:
        """What decides the hits: the index that was searched, and this very file."""
        about = {name: self.about[name] for name in ("index", "passages")}
        return about | {"hits": sha256(self.path)}

    def search_many(
        self, questions: Sequence[str], k: int = 100, method: Method | None = None
    ) -> list[list[Hit]]:
        """The first k hits of each question; `method`, if given, must be the one that they were found with."""
        own = self.about["method"]
        if method not in (None, own):
            raise BadInput(
                f"'{self.path}' holds what '{own}' found, and '{method}' is asked for. {_FIX} … --method {method}"
            )
        if k > self.about["k"]:
            raise BadInput(
                f"'{self.path}' keeps {self.about['k']} hits of each question, and {k} are asked for. {_FIX} … --k {k}"
            )
        return [self._search(question, k) for question in questions]

    def _search(self, question: str, k: int) -> list[Hit]:
        if question not in self._hits:
            raise BadInput(
                f"'{self.path}' has no hits for the question '{question}'. {_FIX} … with its dataset."
            )
        hits = []
        for passage_id, score in self._hits[question][:k]:
            hits.append(Hit(self._passages[passage_id], score))
        return hits

    def passage(self, passage_id: str) -> Passage:
        """A passage by its id."""
        if passage_id not in self._passages:
            raise BadInput(
                f"No passage has the id '{passage_id}' in '{self.path}'. Use the index itself."
            )
        return self._passages[passage_id]


def save_hits(
    index: Index,
    questions: Iterable[str],
    path: str | Path,
    *,
    k: int = 100,
    method: Method | None = None,
    progress: Progress = silent,
    executor: Executor = run_here,
) -> int:
    """Search for all questions, each once, and write the hits. The file appears when all are searched.

    An executor may search elsewhere, where the index's folder is opened once more.
    """
    unique = list(dict.fromkeys(questions))
    head = {
        "kept": 1,
        "index": index.manifest.created,
        "passages": len(index),
        "method": index.method(method),
        "k": k,
    }
    written: set[str] = set()  # ids of passages
    with _line_writer(Path(path)) as write:
        write(head)
        done = 0
        for batch, results in _searched(index, unique, k, method, executor):
            for question, hits in zip(batch, results, strict=True):
                ranked = []
                for hit in hits:
                    passage = hit.passage
                    ranked.append([passage.id, round(hit.score, 6)])
                    if passage.id not in written:
                        written.add(passage.id)
                        write(_record(passage))
                write({"question": question, "hits": ranked})
            done += len(batch)
            progress(done / len(unique), done)
    return len(unique)


class _Searching:
    """What a worker does: search for a batch of questions, over an index that it opens once."""

    def __init__(self, index: Index, k: int, method: Method | None) -> None:
        self._place = index.origin
        self._k = k
        self._method = method
        self._index: Index | None = index

    def __getstate__(self) -> dict[str, Any]:
        """It travels without what is open."""
        return self.__dict__ | {"_index": None}

    def __call__(self, batch: _Batch) -> list[list[Hit]]:
        if self._index is None:
            self._index = Index.open(self._place)
        return self._index.search_many(batch.questions, self._k, self._method)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Questions that are searched together."""

    number: int
    questions: Sequence[str]


def _searched(
    index: Index,
    questions: Sequence[str],
    k: int,
    method: Method | None,
    executor: Executor,
) -> Iterator[tuple[Sequence[str], list[list[Hit]]]]:
    """Batches of questions with their hits, in order, however they are completed."""
    batches: list[_Batch] = []
    for start in range(0, len(questions), _BATCH):
        batches.append(_Batch(len(batches), questions[start : start + _BATCH]))
    work = _Searching(index, k, method)
    early: dict[int, list[list[Hit]]] = {}
    following = 0
    with closing(closable(executor(work, batches))) as completed:
        for batch, results in completed:
            early[batch.number] = results
            while following in early:
                yield batches[following].questions, early.pop(following)
                following += 1


def _is_head(record: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(record, dict) or record.get("kept") != 1:
        return False
    return record.keys() >= _HEAD_KEYS


def _passage(record: Mapping[str, Any]) -> Passage:
    """Reject records whose id, title or text is not a string."""
    for name in _REQUIRED:
        if not isinstance(record[name], str):
            raise TypeError(f"The passage's {name} is not a string.")
    return Passage(**record)


def _ids_and_scores(hits: Sequence[Any]) -> list[tuple[str, float]]:
    ranked = []
    for passage_id, value in hits:
        score = float(value)
        if not math.isfinite(score):
            raise ValueError("The score is not a number.")
        ranked.append((passage_id, score))
    return ranked


def _record(passage: Passage) -> dict[str, Any]:
    """The passage as JSON. Fields that hold their default are left out."""
    record = {}
    for field in fields(Passage):
        value = getattr(passage, field.name)
        if field.name in _REQUIRED or value != field.default:
            record[field.name] = value
    return record


@contextmanager
def _line_writer(path: Path) -> Iterator[Callable[[Any], None]]:
    """Write records as lines of a file beside the path, which is renamed into place when nothing went wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as raw:
            with _compress(path.suffix.lower(), raw) as file:

                def write(record: Any) -> None:
                    line = json.dumps(record, ensure_ascii=False)
                    file.write(line.encode() + b"\n")

                yield write
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _compress(suffix: str, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file that compresses into `raw`, by the ending of the name."""
    if suffix == ".gz":
        # Without a time, so that the same hits are the same file.
        with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
            yield cast(IO[bytes], packed)
    elif suffix == ".bz2":
        with bz2.BZ2File(raw, "wb") as packed:
            yield cast(IO[bytes], packed)
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as packed:
            yield cast(IO[bytes], packed)
    elif suffix == ".zst":
        import zstandard

        compressor = zstandard.ZstdCompressor(level=10)
        with compressor.stream_writer(raw, closefd=False) as packed:
            yield cast(IO[bytes], packed)
    else:
        yield raw
