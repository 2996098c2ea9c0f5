"""Records in memory as a corpus: what was read or made elsewhere needs no file."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from whichsense.corpus.feed import Feed, Record, Step
from whichsense.corpus.formats.jsonlines import document_of
from whichsense.corpus.reading import Corpus, count_record
from whichsense.corpus.report import Broken, Report
from whichsense.errors import BadInput
from whichsense.types import Document, Passage, Redirect, Sense

GivenRecord = Mapping[str, Any] | Record | Passage
"""A mapping with the keys of a JSON line ("text", "title", "id", …), a record, or a passage, which stays whole."""

Sources = str | Path | Iterable[str | Path | GivenRecord]
"""One file or folder, several of them, or records in memory."""


class RecordCorpus:
    """A corpus of records in memory, with the verbs of `Corpus`."""

    def __init__(self, records: Iterable[GivenRecord]) -> None:
        self._records = list(records)
        self._position = 0

    def find_files(self) -> list[Path]:
        """No files are read."""
        return []

    @property
    def fingerprint(self) -> str:
        """Changes when a record does."""
        digest = blake2b(digest_size=16)
        for record in self._records:
            digest.update(repr(record).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @property
    def position(self) -> int:
        """How many records were consumed, broken ones included."""
        return self._position

    @property
    def done(self) -> float:
        """The share of the records that were consumed."""
        return self._position / len(self._records)

    def parts(self) -> list[range]:
        """All records are one part."""
        return [range(1)]

    def records(
        self,
        report: Report,
        skip: int = 0,
        idle: Callable[[], None] | None = None,
        files: range | None = None,
    ) -> Generator[Record, None, None]:
        """Every record from the `skip`-th on. The report counts those handed over and those found broken."""
        feed = Feed(Path("record"), "record", "", idle=idle)
        self._position = skip
        usable = skip > 0
        for number, given in enumerate(self._records[skip:], skip + 1):
            step = _step(feed, number, given)
            self._position = number
            if isinstance(step, Broken):
                report.add_broken(step)
                feed.tick()
                continue
            usable = True
            count_record(report, step)
            yield step
        if not usable and files is None:
            raise self.nothing_usable(report)

    def nothing_usable(self, report: Report) -> BadInput:
        """The error of records none of which can be used."""
        # A report names a place as "file, line"; in memory there is no file.
        first = str(report.named[0]).replace("record, ", "record ", 1)
        count = report.broken
        return BadInput(f"None of {count:,} records could be used. First: {first}")


def make_corpus(
    sources: Sources,
    *,
    format: str | None = None,
    encoding: str | None = None,
    prefix: bool | None = None,
) -> Corpus | RecordCorpus:
    """The corpus of paths or of records."""
    if isinstance(sources, str | Path):
        sources = [sources]
    paths: list[str | Path] = []
    records: list[GivenRecord] = []
    for source in sources:
        if isinstance(source, str | Path):
            paths.append(source)
        else:
            records.append(source)
    if paths and records:
        raise BadInput("Sources are paths or records, not both. Index them in turn.")
    if records:
        return RecordCorpus(records)
    return Corpus(paths, format=format, encoding=encoding, prefix=prefix)


def _step(feed: Feed, number: int, given: GivenRecord) -> Step:
    if isinstance(given, Document | Redirect | Sense):
        return given
    if isinstance(given, Passage):
        return _whole_document(given)
    where = str(number)
    if not isinstance(given, Mapping):
        why = 'not a record. Give {"title": …, "text": …}, a Document or a Passage.'
        return feed.broken(where, why)
    try:
        return document_of(feed, given, number, where)
    except ValueError as error:
        return feed.broken(where, str(error))


def _whole_document(passage: Passage) -> Document:
    sections = ((0, passage.section),) if passage.section else ()
    return Document(
        passage.id, passage.title, passage.text, passage.source, sections, whole=True
    )
