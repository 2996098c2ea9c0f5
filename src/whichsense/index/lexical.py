"""The lexical half of an index: tantivy, which also keeps the passages themselves."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import tantivy

from whichsense.errors import DamagedIndex, WhichsenseError
from whichsense.index.query import ANALYZER, analyzer, body_text, lexical_query
from whichsense.types import Hit, Passage

_HEAP = 256 * 2**20


def _schema() -> tantivy.Schema:
    """`body` is searched, `document`, `source` and `row` are looked up, `stored` is the passage itself."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
    builder.add_text_field("document", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("source", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("row", indexed=True)
    builder.add_bytes_field("stored", stored=True)
    return builder.build()


def _packed(row: int, passage: Passage) -> bytes:
    """One stored field instead of eight, so that 100 passages are fetched quickly."""
    fields = (row, passage.id, passage.title, passage.text, passage.source, passage.section, passage.start, passage.end)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _unpacked(stored: bytes) -> tuple[int, Passage]:
    row, *fields = json.loads(stored)
    return row, Passage(*fields)


def _opened(folder: Path) -> tantivy.Index:
    index = tantivy.Index.open(str(folder))
    index.register_tokenizer(ANALYZER, analyzer())
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
            self._writer = self._index.writer(heap_size=_HEAP, num_threads=2)

    @property
    def count(self) -> int:
        """Passages committed."""
        self._index.reload()
        return self._index.searcher().num_docs

    def add(self, row: int, document: str, passage: Passage) -> None:
        entry = tantivy.Document(
            body=body_text(passage),
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
        except (ValueError, OSError) as error:
            raise DamagedIndex(f"'{folder}' cannot be opened ({error}). Build the index again.") from None

    @property
    def count(self) -> int:
        return self._searcher.num_docs

    def search(self, question: str, k: int) -> list[tuple[int, Hit]]:
        """The best k passages with their row numbers, by BM25."""
        query = lexical_query(self._schema, question)
        if query is None:
            return []
        found = self._searcher.search(query, limit=k, count=False).hits
        stored = ((score, self._stored(address)) for score, address in found)
        return [(row, Hit(passage, float(score))) for score, (row, passage) in stored]

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
