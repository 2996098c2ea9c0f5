"""The lexical half of an index: tantivy, which also keeps the passages themselves."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shutil import disk_usage

import numpy as np
import tantivy

from whichsense.errors import DamagedIndex, WhichsenseError
from whichsense.index.query import ANALYZER, any_of, body_text, content_analyzer, content_words, question_words
from whichsense.index.rescore import rescored
from whichsense.types import Hit, Passage

_HEAP = 512 * 2**20
# How many of BM25's hits are rescored: at 150 two thirds of a point more among the first 100, for half the speed.
_SECOND_LOOK = 50


def _schema() -> tantivy.Schema:
    """`body` is searched, `document`, `source` and `row` are looked up, `stored` is the passage itself."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
    builder.add_text_field("document", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("source", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("row", indexed=True)
    builder.add_bytes_field("stored", stored=True)
    return builder.build()


# In the stored form the text comes last, so that it may hold line breaks; the other fields may not.
_TITLE, _TEXT = 1, 7


def _packed(row: int, passage: Passage) -> bytes:
    """One stored field instead of eight: fetching a hundred passages is most of a search's time."""
    names = (passage.id, passage.title, passage.source, passage.section)
    lines = (*(name.replace("\n", " ") for name in names), str(row), str(passage.start), str(passage.end))
    return "\n".join((*lines, passage.text)).encode("utf-8", "replace")


def _unpacked(stored: bytes) -> tuple[int, Passage]:
    name, title, source, section, row, start, end, text = stored.decode().split("\n", _TEXT)
    return int(row), Passage(name, title, text, source, section, int(start), int(end))


def _opened(folder: Path) -> tantivy.Index:
    index = tantivy.Index.open(str(folder))
    index.register_tokenizer(ANALYZER, content_analyzer())  # not saved with the index
    return index


def _write_fault(folder: Path, error: Exception) -> WhichsenseError:
    """tantivy reports everything as ValueError: what it means for the person at the keyboard."""
    full = "No space left" in str(error) or "os error 28" in str(error) or disk_usage(folder.parent).free < 2**20
    if full:
        return WhichsenseError(
            f"The disk is full: '{folder}' could not be written. Free some space and run the same command again; "
            "the index that was there is untouched."
        )
    return WhichsenseError(f"The lexical index at '{folder}' could not be written: {error}")


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        raise _write_fault(folder, error) from error


@contextlib.contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """What tantivy says of damaged files, and its panics, which are no ordinary exceptions."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, ValueError | OSError) or type(error).__name__ == "PanicException":
            raise DamagedIndex(
                f"'{folder}' cannot be read ({error}). `whichsense index check` names the damage; build it again."
            ) from None
        raise


class LexicalWriter:
    """Adds and deletes passages; nothing counts until `commit`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if not tantivy.Index.exists(str(folder)):
                tantivy.Index(_schema(), path=str(folder))
            self._index = _opened(folder)
            self._writer = self._index.writer(heap_size=_HEAP, num_threads=min(os.cpu_count() or 1, 8))

    @property
    def count(self) -> int:
        """Passages committed."""
        self._index.reload()
        return self._index.searcher().num_docs

    def add(self, row: int, document: str, passage: Passage) -> None:
        entry = tantivy.Document(
            body=body_text(passage.title, passage.text),
            document=document,
            source=passage.source,
            row=row,
            stored=_packed(row, passage),
        )
        try:  # not the context manager: this is the hot path of a build
            self._writer.add_document(entry)
        except ValueError as error:
            raise _write_fault(self._folder, error) from error

    def delete(self, row: int) -> None:
        self._writer.delete_documents_by_term("row", row)

    def commit(self) -> None:
        with _explained(self._folder):
            self._writer.commit()

    def close(self) -> None:
        """Let merges finish, so that the folder is still when it is moved."""
        with _explained(self._folder):
            self._writer.garbage_collect_files()
            self._writer.wait_merging_threads()
            self._index.reload()


class Lexical:
    """Searches one generation. A snapshot: what is written later is not seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _readable(folder):
            index = _opened(folder)
            index.config_reader(reload_policy="manual")
            self._searcher = index.searcher()
            self._schema = index.schema
        self._rarities: dict[str, float] = {}

    @property
    def count(self) -> int:
        return self._searcher.num_docs

    def search(self, question: str, k: int) -> list[tuple[int, Hit]]:
        """The best k passages with their row numbers: BM25's best, looked at a second time."""
        words = question_words(question)
        query = any_of(self._schema, "body", content_words(words))
        if query is None:
            return []
        found = self._found(query, max(k, _SECOND_LOOK))
        stored = [entry for _, entry in found]
        scores = [score for score, _ in found]
        fields = [entry.split(b"\n", _TEXT) for entry in stored[:_SECOND_LOOK]]
        texts = [(field[_TITLE], field[_TEXT]) for field in fields]
        new = rescored(words, self._rarity, scores[:_SECOND_LOOK], texts)
        order = [*np.argsort(-new, kind="stable").tolist(), *range(len(texts), len(stored))]
        # Beyond the second look BM25's order stands; its scores lack what the features add, so they go on below.
        gap = new.min(initial=np.inf) - scores[len(texts) - 1] if texts else 0.0
        scores[: len(texts)] = new.tolist()
        scores[len(texts) :] = [score + gap for score in scores[len(texts) :]]
        return [(row, Hit(passage, scores[at])) for at in order[:k] for row, passage in [_unpacked(stored[at])]]

    def _rarity(self, term: str) -> float:
        """The idf of a term, as BM25 has it."""
        if term not in self._rarities:
            among = self._searcher.doc_freq("body", term)
            self._rarities[term] = math.log(1 + (self.count - among + 0.5) / (among + 0.5))
        return self._rarities[term]

    def fetch(self, rows: Sequence[int]) -> dict[int, Passage]:
        """Passages by row number; deleted ones are left out."""
        query = tantivy.Query.term_set_query(self._schema, "row", list(rows))
        return dict(_unpacked(entry) for _, entry in self._found(query, max(len(rows), 1)))

    def named(self, ids: Iterable[str], sources: Iterable[str]) -> dict[int, Passage]:
        """Passages by row number that bear one of these document ids, passage ids or sources."""
        found: dict[int, Passage] = {}
        for wanted in ids:
            found |= self._with("document", wanted)
            parent = self._with("document", wanted.rpartition("#")[0])
            found |= {row: passage for row, passage in parent.items() if passage.id == wanted}
        for source in sources:
            found |= self._with("source", source)
        return found

    def _with(self, field: str, value: str) -> dict[int, Passage]:
        """All passages that have this value, by row number."""
        query = tantivy.Query.term_query(self._schema, field, value)
        return dict(_unpacked(entry) for _, entry in self._found(query, max(self.count, 1)))

    def _found(self, query: tantivy.Query, limit: int) -> list[tuple[float, bytes]]:
        """Score and stored form of the best passages."""
        with _readable(self.folder):
            hits = self._searcher.search(query, limit=limit, count=False).hits
            return [(score, self._searcher.doc(address).get_first("stored") or b"") for score, address in hits]
