"""The lexical half of an index: tantivy, which also keeps the passages themselves."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

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
_SEPARATOR, _FIELDS = "\n", 8


def _packed(row: int, passage: Passage) -> bytes:
    """One stored field instead of eight: fetching a hundred passages is most of a search's time."""
    names = (passage.id, passage.title, passage.source, passage.section)
    lines = (*(name.replace(_SEPARATOR, " ") for name in names), str(row), str(passage.start), str(passage.end))
    return _SEPARATOR.join((*lines, passage.text)).encode("utf-8", "replace")


def _unpacked(stored: bytes) -> tuple[int, Passage]:
    name, title, source, section, row, start, end, text = stored.decode().split(_SEPARATOR, _FIELDS - 1)
    return int(row), Passage(name, title, text, source, section, int(start), int(end))


def _opened(folder: Path) -> tantivy.Index:
    index = tantivy.Index.open(str(folder))
    index.register_tokenizer(ANALYZER, content_analyzer())  # not saved with the index
    return index


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """tantivy reports everything as ValueError: say what it means for the person at the keyboard."""
    try:
        yield
    except (ValueError, OSError) as error:
        if "No space left" in str(error) or "os error 28" in str(error):
            raise WhichsenseError(
                f"The disk is full: '{folder}' could not be written. Free some space and run the same command again; "
                "the index that was there is untouched."
            ) from None
        raise WhichsenseError(f"The lexical index at '{folder}' could not be written: {error}") from error


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
        with _explained(self._folder):
            self._writer.add_document(entry)

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
        try:
            index = _opened(folder)
            index.config_reader(reload_policy="manual")
            self._searcher = index.searcher()
            self._schema = index.schema
            self._rarities: dict[str, float] = {}
        except (ValueError, OSError) as error:
            raise DamagedIndex(f"'{folder}' cannot be opened ({error}). Build the index again.") from None

    @property
    def count(self) -> int:
        return self._searcher.num_docs

    def search(self, question: str, k: int) -> list[tuple[int, Hit]]:
        """The best k passages with their row numbers: BM25's best, looked at a second time."""
        words = question_words(question)
        query = any_of(self._schema, "body", content_words(words))
        if query is None:
            return []
        found = self._searcher.search(query, limit=max(k, _SECOND_LOOK), count=False).hits
        stored = [self._stored(address) for _, address in found]
        texts = [(passage.title, passage.text) for _, passage in stored[:_SECOND_LOOK]]
        scores = rescored(words, self._rarity, [score for score, _ in found[:_SECOND_LOOK]], texts)
        order = np.argsort(-scores, kind="stable").tolist()
        best = [(stored[place][0], Hit(stored[place][1], float(scores[place]))) for place in order]
        # Beyond the second look BM25's order stands; its scores lack what the features add, so they go on below.
        gap = best[-1][1].score - found[len(best) - 1][0] if len(found) > len(best) else 0.0
        rest = zip(stored[len(best) :], found[len(best) :], strict=True)
        best += [(row, Hit(passage, score + gap)) for (row, passage), (score, _) in rest]
        return best[:k]

    def _rarity(self, term: str) -> float:
        """The idf of a term, as BM25 has it."""
        if term not in self._rarities:
            among = self._searcher.doc_freq("body", term)
            self._rarities[term] = math.log(1 + (self.count - among + 0.5) / (among + 0.5))
        return self._rarities[term]

    def fetch(self, rows: Sequence[int]) -> dict[int, Passage]:
        """Passages by row number; deleted ones are left out."""
        query = tantivy.Query.term_set_query(self._schema, "row", list(rows))
        found = self._searcher.search(query, limit=max(len(rows), 1), count=False).hits
        return dict(self._stored(address) for _, address in found)

    def of_document(self, document: str) -> list[tuple[int, Passage]]:
        """All passages of a document, with their row numbers."""
        return list(self._matching(tantivy.Query.term_query(self._schema, "document", document)))

    def named(self, ids: Iterable[str], sources: Iterable[str]) -> dict[int, Passage]:
        """Passages by row number that bear one of these document ids, passage ids or sources."""
        found: dict[int, Passage] = {}
        for wanted in ids:
            found |= dict(self.of_document(wanted))
            parent = self.of_document(wanted.rpartition("#")[0])
            found |= {row: passage for row, passage in parent if passage.id == wanted}
        for source in sources:
            found |= dict(self._matching(tantivy.Query.term_query(self._schema, "source", source)))
        return found

    def _matching(self, query: tantivy.Query) -> Iterator[tuple[int, Passage]]:
        if self.count == 0:
            return
        for _, address in self._searcher.search(query, limit=self.count, count=False).hits:
            yield self._stored(address)

    def _stored(self, address: tantivy.DocAddress) -> tuple[int, Passage]:
        return _unpacked(bytes(self._searcher.doc(address).get_first("stored") or b""))
