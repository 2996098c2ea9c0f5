"""A corpus: files read one after another into records, with an exact place to go on from after a stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from whichsense.corpus.feed import Feed, Reader, Record, Step
from whichsense.corpus.formats import detection as formats
from whichsense.corpus.listing import Entry, Listing, listed
from whichsense.corpus.report import Broken, Report
from whichsense.errors import BadInput
from whichsense.text.words import whole_characters
from whichsense.types import Document, Redirect


class Corpus:
    """What one or several sources hold. Making one costs nothing; files are looked for on first use.

    `format` overrides what names and first bytes tell; `encoding` is for text that is not UTF-8;
    `prefix` says whether ids begin with the file's name (None: where several files are read).
    """

    def __init__(
        self,
        source: str | Path | Sequence[str | Path],
        *,
        format: str | None = None,
        encoding: str | None = None,
        prefix: bool | None = None,
    ) -> None:
        given = [source] if isinstance(source, str | Path) else list(source)
        if not given:
            raise BadInput("No source given. Name at least one file or folder.")
        self.sources = [Path(path) for path in given]
        self.format = formats.check(format) if format else None
        self.encoding = _known(encoding)
        self.prefix = prefix
        self._position, self._feed = 0, Feed(Path(), "", "")
        self._bytes_before = self._feed_size = 0
        self._ended = False

    @cached_property
    def _listing(self) -> Listing:
        try:
            return listed(self.sources, self.format)
        except BadInput as error:
            raise _printable(error) from None

    @property
    def files(self) -> list[Path]:
        """The files that will be read, in order."""
        return [entry.path for entry in self._listing.entries if not entry.wrong]

    @cached_property
    def fingerprint(self) -> str:
        """Changes when a file is added, removed, resized or touched: a resumed build must read the same thing."""
        parts = [f"{self.format}|{self.encoding}|{self.prefix}"]
        parts += [
            f"{e.relative}|{e.format}|{e.wrong}|{e.size}|{e.mtime}"
            for e in self._listing.entries
        ]
        return blake2b(
            "\n".join(parts).encode("utf-8", "surrogateescape"), digest_size=16
        ).hexdigest()

    @property
    def position(self) -> int:
        """How many records were consumed, broken ones included: what to give as `skip` to go on from here."""
        return self._position

    @property
    def done(self) -> float:
        """The share of the input that was read, between 0 and 1, which it reaches only at the end."""
        total = sum(entry.size for entry in self._listing.entries)
        if self._ended or not total:
            return 1.0
        return min(
            0.999, (self._bytes_before + self._feed_size * self._feed.done()) / total
        )

    def records(
        self, report: Report, skip: int = 0, idle: Callable[[], None] | None = None
    ) -> Generator[Record, None, None]:
        """Every record from the `skip`-th on. The report counts those handed over and those found broken.

        `position` and `report` always agree: both hold the record just handed over, and nothing beyond it.
        `idle` is called about every thousand records that are not handed over: broken, passed over, or skipped.
        What it raises ends the reading; `position` and `report` agree there too.
        """
        readers = {
            name: formats.reader_of(name) for name in self._formats()
        }  # a missing extra is told at once
        report.passed_over = self._listing.passed_over
        self._position, self._bytes_before, self._ended = skip, 0, False
        self._feed = Feed(Path(), "", "")
        usable = skip > 0
        for entry in self._listing.entries:
            self._feed, self._feed_size = (
                self._fed(entry, report, skip, idle),
                entry.size,
            )
            for step in self._steps(entry, readers):
                self._position += 1
                if isinstance(step, Broken):
                    report.add_broken(step)
                    self._feed.tick()
                    continue
                usable = True
                _count(report, step)
                yield step
            skip = self._feed.skip
            self._bytes_before += entry.size
            self._feed_size = 0
        self._ended = True
        if not usable:
            first = f" First: {report.named[0]}" if report.named else ""
            where = ", ".join(f"'{source}'" for source in self.sources[:3])
            raise BadInput(
                f"Nothing in {where} could be used: {report.broken:,} broken.{first}"
            )

    def _formats(self) -> list[str]:
        return sorted(
            {entry.format for entry in self._listing.entries if not entry.wrong}
        )

    def _fed(
        self, entry: Entry, report: Report, skip: int, idle: Callable[[], None] | None
    ) -> Feed:
        several = len(self._listing.entries) > 1 if self.prefix is None else self.prefix
        prefix = f"{entry.name}:" if several and not entry.document else ""
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
        )

    def _steps(self, entry: Entry, readers: dict[str, Reader]) -> Iterator[Step]:
        """One file's steps. Where it stands among documents, a file that cannot be used is itself one broken record."""
        feed = self._feed
        if entry.wrong:
            if not feed.passed():
                yield feed.broken("", entry.wrong)
            return
        lenient = self._lenient(entry)
        resumed, good, first = feed.skip > 0, 0, None
        try:
            for step in readers[entry.format](feed):
                if isinstance(step, Broken):
                    first = first or step
                else:
                    good += 1
                yield step
        except BadInput as error:
            if not lenient:
                raise _printable(error) from None
            if not feed.passed():
                yield feed.broken("", _without_name(str(error), entry.path))
            return
        if not good and not resumed and not lenient:
            raise feed.fault(
                f"holds nothing usable. {first or 'It has no records at all.'}"
            )

    @cached_property
    def _mixed(self) -> set[Path | None]:
        """The folders that hold documents."""
        return {
            entry.root
            for entry in self._listing.entries
            if entry.document and entry.root
        }

    def _lenient(self, entry: Entry) -> bool:
        """One bad page does not spoil a folder of documents; a dump that is missing from a folder of dumps does."""
        return (
            len(self._listing.entries) > 1
            if entry.document
            else entry.root in self._mixed
        )


def _count(report: Report, record: Record) -> None:
    if isinstance(record, Document):
        report.documents += 1
    elif isinstance(record, Redirect):
        report.redirects += 1
    else:
        report.senses += 1


def _printable(error: BadInput) -> BadInput:
    """The error without halves of characters: a path may hold some."""
    return BadInput(whole_characters(str(error)))


def _without_name(message: str, path: Path) -> str:
    return whole_characters(message).removeprefix(whole_characters(f"'{path}' "))


def _known(encoding: str | None) -> str | None:
    if encoding is not None:
        try:
            "".encode(encoding)
        except (
            LookupError,
            ValueError,
        ):  # "undefined" is a codec that refuses everything
            raise BadInput(
                f"No encoding named '{encoding}'. Try cp1252 or latin-1."
            ) from None
    return encoding
