"""Search by words: queries and segments of tantivy, and the words of one generation."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tantivy
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex, DiskFull, IndexFault, WriteFault
from whichsense.files import write_atomically
from whichsense.index.store import Field, Passages, unpack
from whichsense.text.words import QUESTION_WORDS, UNINDEXED_WORDS, whole_characters
from whichsense.types import Passage

# From a question to a lexical query: which words count, and how passages are written so that they
# count rightly.
#
# Everything here was chosen on AmbigNQ's training questions over the local Wikipedia; docs/results.md
# has the figures.

ANALYZER = "english-content"
# What the other number of a word counts beside the word itself. A full count would let rare plurals lead astray.
_OTHER_NUMBER = 0.3


def _words() -> tantivy.TextAnalyzerBuilder:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(40))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )


def content_analyzer() -> tantivy.TextAnalyzer:
    """Return how passages are indexed: words without accents, empty ones dropped.

    They are not stemmed: it found hardly more and took a quarter of the time of building and of searching.
    Questions ask for a word's singular and plural instead.
    """
    unindexed = tantivy.Filter.custom_stopword(sorted(UNINDEXED_WORDS))
    return _words().filter(unindexed).build()


_PLAIN = _words().build()
_STEM = _words().filter(tantivy.Filter.stemmer("english")).build()


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return a word without its ending."""
    stemmed = _STEM.analyze(word)
    return stemmed[0] if stemmed else word


def _other_number(word: str) -> str | None:
    """Return the singular of a plural and the plural of anything else; None for words that have hardly one.

    >>> [_other_number(word) for word in ("pumas", "city", "countries", "bus", "class", "cat", "tower", "1984")]
    ['puma', 'cities', 'country', None, None, None, 'towers', None]
    """
    if len(word) < 4 or not word.isalpha() or word.endswith(("ss", "us", "is")):
        return None
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("s"):
        return word[:-1]
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def question_words(question: str) -> list[str]:
    """Return all words of a question, lower-cased and without accents."""
    return _PLAIN.analyze(question)


def content_words(words: Sequence[str]) -> list[str]:
    """Return those that say what is asked about, each once; all of them where a question has no others.

    >>> content_words(question_words("Who were the parents of Ötzi?"))
    ['parents', 'otzi']
    """
    content = [word for word in words if word not in QUESTION_WORDS]
    return list(dict.fromkeys(content or words))


def body_text(title: str, text: str) -> str:
    """What is indexed of a passage. The title stands there twice: the simplest weight, and one field is fastest."""
    return f"{title}\n{title}\n{text}"


def query_terms(words: Sequence[str]) -> list[tuple[str, float]]:
    """Return the terms that a question asks for, and what each counts: its words, and their other number for less.

    >>> query_terms(["pumas", "cat"])
    [('pumas', 1.0), ('puma', 0.3), ('cat', 1.0)]
    """
    terms = []
    for word in words:
        terms.append((word, 1.0))
        if other := _other_number(word):
            terms.append((other, _OTHER_NUMBER))
    return terms


def any_of(schema: tantivy.Schema, field: str, terms: Sequence[tuple[str, float]]) -> tantivy.Query:
    """Return passages with any of the terms, by BM25; each term with its boost. A flat OR, so that tantivy can skip."""
    optional = []
    for term, boost in terms:
        query = tantivy.Query.term_query(schema, field, term, "freq")
        if boost != 1:
            query = tantivy.Query.boost_query(query, boost)
        optional.append((tantivy.Occur.Should, query))
    return tantivy.Query.boolean_query(optional)


# The lexical half of an index: tantivy, which knows for each word the rows of the passages that have
# it.

_META = "meta.json"
_EQUALS = 32  # hits beyond the last, for passages with its score: a second search costs more
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
        """Return the same of several indexes as one. Rounded, so that it does not depend on how passages are spread.

        >>> Lengths.together([Lengths(1, 60.0), Lengths(3, 80.0)])
        Lengths(passages=4, average=75.0)
        """
        passages, words = 0, 0.0
        for part in parts:
            passages += part.passages
            words += part.passages * part.average
        return cls(passages, round(words / passages, 4) if passages else 1.0)


def idf(having: int, passages: int) -> float:
    """Return the rarity of a term, as BM25 has it: `having` of the passages have it."""
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
        """Return the row of some passage; None where there is none."""
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
        """Return how many passages have each term."""
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
        """Return the rows of the best k passages by BM25, and their scores: best first, equal ones by row.

        Terms come with their boosts. Every passage that scores within `slack` (a share) of the k-th is there too.
        """
        limit = min(k, self.count)
        if not terms or not limit:
            return np.empty(0, np.int64), np.empty(0)
        query = any_of(self._schema, "body", terms)
        wanted = limit + _EQUALS
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
    """Yield every number of an explanation, by the first word of its description."""
    yield node["description"].partition(",")[0], node["value"]
    for detail in node.get("details", ()):
        yield from _explained_numbers(detail)


# The passages of one generation, or of one shard of it: looked up by row, document or source.

DELETED = "deleted.npy"


def load_deleted(content: Path) -> NDArray[np.uint64]:
    """Return the rows whose passages were deleted."""
    path = content / DELETED
    if not path.exists():
        return np.empty(0, np.uint64)
    return np.asarray(np.load(path), np.uint64)


class Texts:
    """One immutable generation's passages, without its vectors."""

    def __init__(self, content: Path) -> None:
        self.lexical = Lexical(content / "lexical")
        self.passages = Passages(content / "passages")
        self._content = content

    @cached_property
    def lengths(self) -> Lengths:
        """What BM25 counts of all passages at once."""
        row = self.lexical.any_row()
        if row is None:
            return Lengths(0, 1.0)
        (passage,) = self.fetch([row])
        return self.lexical.lengths(question_words(passage.text))

    def fetch(self, rows: Sequence[int]) -> list[Passage]:
        """Return the passages with these row numbers, in their order."""
        return [unpack(stored) for stored in self.passages.stored(rows)]

    def every(self) -> dict[int, Passage]:
        """Return all passages that are there, by row number."""
        deleted = set(load_deleted(self._content).tolist())
        rows = [row for row in range(self.passages.next_row) if row not in deleted]
        return dict(zip(rows, self.fetch(rows), strict=True))

    def named(self, ids: Iterable[str], sources: Iterable[str] = ()) -> dict[int, Passage]:
        """Return passages by row number that have one of these document ids, passage ids or sources."""
        chosen: dict[int, Passage] = {}
        for wanted in map(whole_characters, ids):
            for row, passage in self._candidates("document", wanted):
                if wanted in (passage.id, _document_id(passage.id)):
                    chosen[row] = passage
            # It may be the id of a passage: "12#3" is a passage of document "12".
            for row, passage in self._candidates("document", _document_id(wanted)):
                if passage.id == wanted:
                    chosen[row] = passage
        for source in map(whole_characters, sources):
            for row, passage in self._candidates("source", source):
                if passage.source == source:
                    chosen[row] = passage
        return chosen

    def _candidates(self, field: Field, name: str) -> list[tuple[int, Passage]]:
        """Return passages whose document or source has the checksum of a name: those of that name, and perhaps
        others.
        """
        deleted = set(load_deleted(self._content).tolist())
        rows = [row for row in self.passages.rows_with(field, name) if row not in deleted]
        return list(zip(rows, self.fetch(rows), strict=True))


def _document_id(passage_id: str) -> str:
    return passage_id.rpartition("#")[0]
