"""Hits in a file: search once, then train and predict as often as you like, also where the index is not.

JSON lines, compressed by the name's ending. The first says what was searched, and how; then, for each question, the
passages that no earlier question had, and the question itself with the ids and scores of its hits, best first:
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, cast

from whichsense.errors import BadInput
from whichsense.files import read_jsonl
from whichsense.index.search import Index
from whichsense.jobs.progress import Progress, silent
from whichsense.types import Hit, Method, Passage

_AT_ONCE = 64
_FIX = "Write it again: whichsense retrieve"
_ABOUT = {"index", "passages", "method", "k"}
_OPTIONAL = tuple(
    field for field in fields(Passage) if field.name not in ("id", "title", "text")
)


@dataclass(frozen=True)
class KeptHits:
    """What a file holds, searched like an index: by questions that were asked when it was written."""

    path: Path
    about: Mapping[str, Any]
    _found: Mapping[str, Sequence[tuple[str, float]]]
    _passages: Mapping[str, Passage]

    @classmethod
    def open(cls, path: str | Path) -> KeptHits:
        lines = read_jsonl(path)
        _, about = next(lines, (0, None))
        if (
            not isinstance(about, dict)
            or about.get("kept") != 1
            or not about.keys() >= _ABOUT
        ):
            raise BadInput(f"'{path}' holds no hits of a search. {_FIX}.")
        found: dict[str, list[tuple[str, float]]] = {}
        passages: dict[str, Passage] = {}
        for number, record in lines:
            try:
                if "question" in record:
                    found[record["question"]] = [
                        (key, _score(score)) for key, score in record["hits"]
                    ]
                else:
                    passages[record["id"]] = _passage(record)
            except (KeyError, TypeError, ValueError):
                raise BadInput(
                    f"'{path}', line {number}: neither a passage nor a question. {_FIX}."
                ) from None
        lost = next(
            (key for hits in found.values() for key, _ in hits if key not in passages),
            None,
        )
        if lost is not None:
            raise BadInput(
                f"'{path}' lacks the passage '{lost}', which is a hit in it. {_FIX}."
            )
        return cls(Path(path), about, found, passages)

    def __len__(self) -> int:
        return len(self._passages)

    def __contains__(self, question: object) -> bool:
        """Whether it was asked when the file was written."""
        return question in self._found

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
        return [self._hits(question)[:k] for question in questions]

    def _hits(self, question: str) -> list[Hit]:
        if question not in self._found:
            raise BadInput(
                f"'{self.path}' has no hits for the question '{question}'. {_FIX} … with its dataset."
            )
        return [Hit(self._passages[key], score) for key, score in self._found[question]]

    def passage(self, passage_id: str) -> Passage:
        """A passage by its id."""
        if passage_id not in self._passages:
            raise BadInput(
                f"No passage has the id '{passage_id}' in '{self.path}'. Use the index itself."
            )
        return self._passages[passage_id]


def keep_hits(
    index: Index,
    questions: Iterable[str],
    path: str | Path,
    *,
    k: int = 100,
    method: Method | None = None,
    progress: Progress = silent,
) -> int:
    """Search for all questions, each once, and write what is found. The file appears when all are searched."""
    asked = list(dict.fromkeys(questions))
    written: set[str] = set()
    with _written(Path(path)) as put:
        put(
            {
                "kept": 1,
                "index": index.manifest.created,
                "passages": len(index),
                "method": index.method(method),
                "k": k,
            }
        )
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            for question, hits in zip(
                some, index.search_many(some, k, method), strict=True
            ):
                for hit in hits:
                    if hit.passage.id not in written:
                        written.add(hit.passage.id)
                        put(_record(hit.passage))
                put(
                    {
                        "question": question,
                        "hits": [[hit.passage.id, round(hit.score, 6)] for hit in hits],
                    }
                )
            progress((start + len(some)) / len(asked), start + len(some))
    return len(asked)


def _passage(record: Mapping[str, Any]) -> Passage:
    """Whatever else has its names is none."""
    if not all(isinstance(record[name], str) for name in ("id", "title", "text")):
        raise TypeError("A passage's id, title and text are texts.")
    return Passage(**record)


def _score(value: Any) -> float:
    if not math.isfinite(found := float(value)):
        raise ValueError("A score is a number.")
    return found


def _record(passage: Passage) -> dict[str, Any]:
    """Without what is as in any passage."""
    more = {
        field.name: value
        for field in _OPTIONAL
        if (value := getattr(passage, field.name)) != field.default
    }
    return {"id": passage.id, "title": passage.title, "text": passage.text} | more


@contextmanager
def _written(path: Path) -> Iterator[Any]:
    """Writes records as lines, beside the place; the file is moved there when nothing went wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as raw:
            with _compressed(path.suffix.lower(), raw) as file:
                yield lambda record: file.write(
                    json.dumps(record, ensure_ascii=False).encode() + b"\n"
                )
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _compressed(suffix: str, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
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

        with zstandard.ZstdCompressor(level=10).stream_writer(
            raw, closefd=False
        ) as packed:
            yield cast(IO[bytes], packed)
    else:
        yield raw
