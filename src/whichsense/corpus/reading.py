"""A corpus: files read one after another into records, with an exact position to resume from after a stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from whichsense.corpus.feed import Feed, Reader, ReadingLimits, Record, Step
from whichsense.corpus.formats import detection as formats
from whichsense.corpus.listing import Listing, SourceEntry, list_files
from whichsense.corpus.report import Broken, Report
from whichsense.errors import BadInput
from whichsense.text.words import whole_characters
from whichsense.types import Document, Redirect

_PART_BYTES = 2**24  # of small files that are read together


class Corpus:
    """What one or several sources hold. Constructing one costs nothing; files are looked for on first use.

    `format` overrides what names and first bytes say; `encoding` is for text that is not UTF-8;
    `prefix` says whether ids begin with the file's name (None: where several files are read).
    """

    def __init__(
        self,
        source: str | Path | Sequence[str | Path],
        *,
        format: str | None = None,
        encoding: str | None = None,
        prefix: bool | None = None,
        limits: ReadingLimits | None = None,
    ) -> None:
        sources = [source] if isinstance(source, str | Path) else list(source)
        if not sources:
            raise BadInput(
                "No source given. Name at least one file or folder, or give a record."
            )
        self.sources = [Path(path) for path in sources]
        self.format = formats.check(format) if format else None
        self.encoding = _check_encoding(encoding)
        self.prefix = prefix
        self.limits = limits or ReadingLimits()
        self._position = 0
        self._feed = Feed(Path(), "", "")
        self._feed_bytes = 0
        self._bytes_before = 0  # of the files that were read to their end
        self._ended = False

    @cached_property
    def _listing(self) -> Listing:
        try:
            return list_files(self.sources, self.format)
        except BadInput as error:
            raise _printable(error) from None

    def find_files(self) -> list[Path]:
        """The files that will be read, in order. Raises BadInput for a source that does not exist or holds none."""
        paths = []
        for entry in self._listing.entries:
            if not entry.wrong:
                paths.append(entry.path)
        return paths

    def source_names(self) -> list[str]:
        """The source that passages of each file have, unless a record names its own."""
        return [entry.name for entry in self._listing.entries]

    @cached_property
    def fingerprint(self) -> str:
        """Changes when a file is added, removed, resized or touched: a resumed build must read the same files."""
        lines = [f"{self.format}|{self.encoding}|{self.prefix}"]
        for entry in self._listing.entries:
            names = f"{entry.relative}|{entry.format}|{entry.wrong}"
            lines.append(f"{names}|{entry.size}|{entry.mtime}")
        body = "\n".join(lines).encode("utf-8", "surrogateescape")
        return blake2b(body, digest_size=16).hexdigest()

    @property
    def position(self) -> int:
        """How many records were consumed, broken ones included: the `skip` with which reading resumes here."""
        return self._position

    @property
    def done(self) -> float:
        """The share of the input that was read, between 0 and 1, which it reaches only at the end."""
        total = sum(entry.size for entry in self._listing.entries)
        if self._ended or not total:
            return 1.0
        read = self._bytes_before + self._feed_bytes * self._feed.done()
        return min(0.999, read / total)

    def parts(self) -> list[range]:
        """The numbers of the files, in runs of about equal size. Each can be read by itself (`records(files=…)`)."""
        runs = []
        start = size = 0
        for number, entry in enumerate(self._listing.entries, 1):
            size += entry.size
            if size >= _PART_BYTES or number == len(self._listing.entries):
                runs.append(range(start, number))
                start, size = number, 0
        return runs

    def records(
        self,
        report: Report,
        skip: int = 0,
        idle: Callable[[], None] | None = None,
        files: range | None = None,
    ) -> Generator[Record, None, None]:
        """Every record from the `skip`-th on. The report counts those handed over and those found broken.

        With `files`, those of some of the files (`parts`); it is no error then that they hold nothing usable.

        `position` and `report` always agree: both hold the record just handed over, and nothing beyond it.
        `idle` is called about every thousand records that are not handed over: broken, passed over, or skipped.
        What it raises ends the reading; `position` and `report` agree there too.
        """
        readers = self._load_readers()  # a missing extra is an error at once
        report.passed_over = self._listing.passed_over
        self._position, self._bytes_before, self._ended = skip, 0, False
        self._feed = Feed(Path(), "", "")
        usable = skip > 0 or files is not None
        entries = self._listing.entries
        for entry in entries if files is None else entries[files.start : files.stop]:
            self._feed = self._feed_of(entry, report, skip, idle)
            self._feed_bytes = entry.size
            for step in self._steps(entry, readers):
                self._position += 1
                if isinstance(step, Broken):
                    report.add_broken(step)
                    self._feed.tick()
                    continue
                usable = True
                count_record(report, step)
                yield step
            skip = self._feed.skip
            self._bytes_before += entry.size
            self._feed_bytes = 0
        self._ended = True
        if not usable:
            raise self.nothing_usable(report)

    def _load_readers(self) -> dict[str, Reader]:
        names = {entry.format for entry in self._listing.entries if not entry.wrong}
        return {name: formats.reader_of(name) for name in sorted(names)}

    def nothing_usable(self, report: Report) -> BadInput:
        """The error of a corpus without a record that can be used."""
        first = f" First: {report.named[0]}" if report.named else ""
        where = ", ".join(f"'{source}'" for source in self.sources[:3])
        return BadInput(
            f"Nothing in {where} could be used: {report.broken:,} broken.{first}"
        )

    def _feed_of(
        self,
        entry: SourceEntry,
        report: Report,
        skip: int,
        idle: Callable[[], None] | None,
    ) -> Feed:
        prefixed = self.prefix
        if prefixed is None:
            prefixed = len(self._listing.entries) > 1
        # A document's id is its path already.
        prefix = f"{entry.name}:" if prefixed and not entry.document else ""
        return Feed(
            entry.path,
            entry.label,
            entry.name,
            prefix,
            self.encoding,
            skip,
            report,
            idle=idle,
            ticks=self._feed.ticks,
            limits=self.limits,
        )

    def _steps(self, entry: SourceEntry, readers: dict[str, Reader]) -> Iterator[Step]:
        """One file's steps. A file among documents that cannot be used is itself one broken record."""
        feed = self._feed
        if entry.wrong:
            if not feed.passed():
                yield feed.broken("", entry.wrong)
            return
        lenient = self._is_lenient(entry)
        resumed = feed.skip > 0
        usable = 0
        first_broken = None
        try:
            for step in readers[entry.format](feed):
                if isinstance(step, Broken):
                    first_broken = first_broken or step
                else:
                    usable += 1
                yield step
        except BadInput as error:
            if not lenient:
                raise _printable(error) from None
            if not feed.passed():
                yield feed.broken("", _without_name(str(error), entry.path))
            return
        if not usable and not resumed and not lenient:
            raise feed.fault(
                f"holds nothing usable. {first_broken or 'It has no records at all.'}"
            )

    @cached_property
    def _document_folders(self) -> set[Path | None]:
        """The folders given as sources that hold documents."""
        folders: set[Path | None] = set()
        for entry in self._listing.entries:
            if entry.document and entry.root:
                folders.add(entry.root)
        return folders

    def _is_lenient(self, entry: SourceEntry) -> bool:
        """One bad page does not spoil a folder of documents; a dump that is missing from a folder of dumps does."""
        if entry.document:
            return len(self._listing.entries) > 1
        return entry.root in self._document_folders


def count_record(report: Report, record: Record) -> None:
    """Count a record that was handed over."""
    if isinstance(record, Document):
        report.documents += 1
    elif isinstance(record, Redirect):
        report.redirects += 1
    else:
        report.senses += 1


def _printable(error: BadInput) -> BadInput:
    """The error without lone surrogates, which a path may hold."""
    return BadInput(whole_characters(str(error)))


def _without_name(message: str, path: Path) -> str:
    return whole_characters(message).removeprefix(whole_characters(f"'{path}' "))


def _check_encoding(encoding: str | None) -> str | None:
    if encoding is not None:
        try:
            "".encode(encoding)
        except (LookupError, ValueError):
            # ValueError: "undefined" is a codec that refuses everything.
            raise BadInput(
                f"No encoding named '{encoding}'. Try cp1252 or latin-1."
            ) from None
    return encoding
