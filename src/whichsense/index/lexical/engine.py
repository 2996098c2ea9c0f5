"""The lexical half of an index: tantivy, which knows for each word the rows of the passages that have it."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tantivy
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex, DiskFull, IndexFault, WriteFault
from whichsense.files import write_atomically
from whichsense.index.lexical.query import ANALYZER, any_of, body_text, content_analyzer

_META = "meta.json"
_HEAP = 512 * 2**20  # bytes of words before a segment is written
# One core is for reading and cutting.
_THREADS = max(1, min((os.cpu_count() or 2) - 1, 8))


def _create(folder: Path) -> None:
    """`body` is searched; `row` says which passage it is.

    Lengths are not counted. tantivy's BM25 has b = 0.75 built in, which punishes long passages too much; passages are
    cut to one length, and without their lengths (b = 0, and k1 falls to 0.3) more answers are found. Its schema has
    that switch, the Python interface has not: hence the edit.
    """
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
    builder.add_integer_field("row", fast=True)
    tantivy.Index(builder.build(), path=str(folder))
    meta = json.loads((folder / _META).read_text(encoding="utf-8"))
    meta["schema"][0]["options"]["indexing"]["fieldnorms"] = False
    write_atomically(folder / _META, json.dumps(meta, indent=2))


def _open(folder: Path) -> tantivy.Index:
    index = tantivy.Index.open(str(folder))
    index.register_tokenizer(ANALYZER, content_analyzer())  # not saved with the index
    return index


def _write_fault(folder: Path, error: Exception) -> IndexFault:
    """tantivy reports everything as ValueError: what it means for the person at the keyboard."""
    message = str(error)
    is_full = "No space left" in message or "os error 28" in message
    if is_full or disk_usage(folder.parent).free < 2**20:
        return DiskFull(folder)
    return WriteFault(f"The lexical index at '{folder}' could not be written: {error}")


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        raise _write_fault(folder, error) from error


@contextlib.contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Turn tantivy's errors into DamagedIndex. A panic in it is not an ordinary exception."""
    try:
        yield
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"
        if is_panic or isinstance(error, ValueError | OSError):
            raise DamagedIndex(
                f"'{folder}' cannot be read ({error}). `whichsense index check` names the damage; build it again."
            ) from None
        raise


@contextlib.contextmanager
def _lockable(folder: Path) -> Iterator[Path]:
    """tantivy takes a lock in the folder even to read. Where that is not allowed, it is given links to the files."""
    if os.access(folder, os.W_OK) or not folder.is_dir():
        yield folder
        return
    with TemporaryDirectory(prefix="whichsense-") as place:
        for path in folder.iterdir():
            if not path.name.endswith(".lock"):
                (Path(place) / path.name).symlink_to(path.resolve())
        yield Path(place)


class LexicalWriter:
    """Adds and deletes passages; nothing counts until `commit`."""

    def __init__(self, folder: Path, heap: int = _HEAP) -> None:
        """`heap` is how many bytes of words are held before a segment is written."""
        self._folder = folder
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if not tantivy.Index.exists(str(folder)):
                _create(folder)
            self._index = _open(folder)
            self._writer = self._index.writer(heap_size=heap, num_threads=_THREADS)

    @property
    def count(self) -> int:
        """Passages committed."""
        self._index.reload()
        return self._index.searcher().num_docs

    def add(self, row: int, title: str, text: str) -> None:
        try:  # not the context manager: this is the hot path of a build
            document = tantivy.Document(body=body_text(title, text), row=row)
            self._writer.add_document(document)
        except ValueError as error:
            raise _write_fault(self._folder, error) from error

    def delete(self, first: int, last: int) -> None:
        """The passages of these rows and of all between them."""
        kind = tantivy.FieldType.Integer
        rows = tantivy.Query.range_query(self._index.schema, "row", kind, first, last)
        self._writer.delete_documents_by_query(rows)

    def commit(self) -> None:
        with _explained(self._folder):
            self._writer.commit()

    def close(self) -> None:
        """Let merges finish, so that the folder is still when it is moved."""
        with _explained(self._folder):
            self._writer.garbage_collect_files()
            self._writer.wait_merging_threads()
            self._index.reload()


@dataclass(frozen=True, slots=True)
class Lengths:
    """What BM25 counts of all passages at once. tantivy counts deleted ones until it merges their files."""

    passages: int
    average: float
    """Words of a passage."""

    @property
    def saturation(self) -> float:
        """A term's share of its weight is tf / (tf + saturation). Every passage counts as one word long: see above."""
        return 1.2 * (0.25 + 0.75 / self.average)

    @classmethod
    def together(cls, parts: Iterable[Lengths]) -> Lengths:
        """The same of several indexes as one. Rounded, so that it does not depend on how passages are spread.

        >>> Lengths.together([Lengths(1, 60.0), Lengths(3, 80.0)])
        Lengths(passages=4, average=75.0)
        """
        passages, words = 0, 0.0
        for part in parts:
            passages += part.passages
            words += part.passages * part.average
        return cls(passages, round(words / passages, 4) if passages else 1.0)


def idf(having: int, passages: int) -> float:
    """The rarity of a term, as BM25 has it: `having` of the passages have it."""
    return math.log(1 + (passages - having + 0.5) / (having + 0.5))


class Lexical:
    """Searches one generation. A snapshot: what is written later is not seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _readable(folder), _lockable(folder) as place:
            index = _open(place)
            index.config_reader(reload_policy="manual")
            self._searcher = index.searcher()
            self._schema = index.schema
        self._frequencies: dict[str, int] = {}

    @property
    def count(self) -> int:
        return self._searcher.num_docs

    def any_row(self) -> int | None:
        """The row of some passage; None where there is none."""
        with _readable(self.folder):
            hits = self._searcher.search(tantivy.Query.all_query(), limit=1).hits
            if not hits:
                return None
            values = self._searcher.fast_field_values("row", [hits[0][1]])
        return int(np.array(values, dtype=np.int64)[0])

    def lengths(self, terms: Sequence[str]) -> Lengths:
        """`terms` are those of some passage. tantivy's Python interface gives lengths in explanations of hits alone."""
        if not terms:
            return Lengths(self.count, 1.0)
        query = any_of(self._schema, "body", [(term, 1.0) for term in terms])
        with _readable(self.folder):
            hits = self._searcher.search(query, limit=1, count=False).hits
            if not hits:
                return Lengths(self.count, 1.0)
            explanation = query.explain(self._searcher, hits[0][1]).to_json()
        numbers = dict(_explained_numbers(json.loads(explanation)))
        return Lengths(int(numbers["N"]), numbers["avgdl"])

    def document_frequencies(self, terms: Iterable[str]) -> list[int]:
        """How many passages have each term."""
        frequencies = []
        for term in terms:
            having = self._frequencies.get(term)
            if having is None:
                having = self._searcher.doc_freq("body", term)
                self._frequencies[term] = having
            frequencies.append(having)
        return frequencies

    def search(
        self, terms: Sequence[tuple[str, float]], k: int, slack: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows of the best k passages by BM25, and their scores: best first, equal ones by row.

        Terms come with their boosts. Every passage that scores within `slack` (a share) of the k-th is there too.
        """
        limit = min(k, self.count)
        if not terms or not limit:
            return np.empty(0, np.int64), np.empty(0)
        query = any_of(self._schema, "body", terms)
        wanted = 2 * limit  # room for equals of the last: a second search costs more
        with _readable(self.folder):
            while True:
                hits = self._searcher.search(query, limit=wanted, count=False).hits
                lowest = hits[limit - 1][0] * (1 - slack) if len(hits) >= limit else 0
                if len(hits) < wanted or hits[-1][0] < lowest:
                    break
                wanted *= 4
            scores = np.array([score for score, _ in hits], dtype=np.float64)
            scores = scores[scores >= lowest]
            # Hits come best first, so that these are the first of them.
            addresses = [address for _, address in hits[: len(scores)]]
            values = self._searcher.fast_field_values("row", addresses)
        rows = np.array(values, dtype=np.int64)
        # Equal scores by row, however tantivy lays them out.
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]


def _explained_numbers(node: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Every number of an explanation, by the first word of its description."""
    yield node["description"].partition(",")[0], node["value"]
    for detail in node.get("details", ()):
        yield from _explained_numbers(detail)
