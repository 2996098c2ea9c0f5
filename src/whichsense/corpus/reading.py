"""Read a corpus: files or memory, listed, recognised by their first bytes, and read in a fixed order."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from whichsense import files
from whichsense.corpus.feed import Broken, Feed, Reader, ReadingLimits, Record, Report, Step
from whichsense.corpus.file_formats import (
    ARCHIVES,
    FORMATS,
    SUFFIXES,
    check_format,
    format_by_content,
    format_by_name,
    jq_program,
    reader_of,
    whole_lines,
)
from whichsense.corpus.tables import as_lines, document_of
from whichsense.errors import BadInput
from whichsense.text.words import whole_characters
from whichsense.types import Document, Passage, Redirect, Sense

# List the files of a source: one file, or all readable files below a folder and nothing outside it.


@dataclass
class SourceEntry:
    """A file that will be read, or one that will be named as broken because it must not be (`wrong`)."""

    path: Path
    root: Path | None
    """The folder in which it was found; None where the file itself was given."""
    format: str = ""
    wrong: str = ""
    size: int = 0
    mtime: int = 0
    name: str = field(default="", init=False)

    @property
    def relative(self) -> str:
        return whole_characters(
            self.path.relative_to(self.root).as_posix() if self.root else self.path.name
        )

    @property
    def label(self) -> str:
        return self.relative if self.root else whole_characters(str(self.path))

    @property
    def document(self) -> bool:
        return self.format in FORMATS and FORMATS[self.format].is_document


@dataclass
class Listing:
    """The files of all sources, in the order in which they are read."""

    entries: list[SourceEntry]
    passed_over: int


def list_files(sources: Iterable[Path], format: str | None) -> Listing:
    """Look into each source. A source that holds nothing to read is an error."""
    listing = Listing([], 0)
    for source in sources:
        if os.path.isdir(source):  # unlike Path.is_dir, False for what cannot be a path
            _list_folder(source, format, listing)
        else:
            listing.entries.append(_file_entry(source, format))
    _name(listing.entries)
    return listing


def _list_folder(source: Path, format: str | None, listing: Listing) -> None:
    """Add the files below a folder to the listing."""
    entries = list(_walk(source, format))
    if len(entries) == 1 and entries[0].path == source:
        raise BadInput(f"The folder '{source}' is an index. Give the text that it was made from.")
    readable = False
    for entry in entries:
        if entry.format or entry.wrong:
            listing.entries.append(entry)
        else:
            listing.passed_over += 1
        readable = readable or bool(entry.format)
    if not readable:
        raise BadInput(
            f"The folder '{source}' holds no file that can be read. Kinds that can: {' '.join(SUFFIXES)}."
        )


def _file_entry(path: Path, format: str | None) -> SourceEntry:
    """Look at a file that was given as a source. Raise BadInput for whatever is wrong with it."""
    status = _status(path)
    if not format and files.plain_suffix(path) in ARCHIVES:
        raise BadInput(f"'{path}' is an archive. Unpack it and give the folder.")
    kind = format or format_by_name(path) or whole_lines(path, format_by_content(path))
    if kind is None:
        raise BadInput(f"'{path}' is binary, in no known format. Known: {', '.join(FORMATS)}.")
    if kind == "json":
        kind = "jsonl"  # whose reader says what to run
    return SourceEntry(path, None, kind, size=status.st_size, mtime=status.st_mtime_ns)


def _status(path: Path) -> os.stat_result:
    """Return what the system knows of a file that has content; raise BadInput for anything else."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise BadInput(f"There is no file or folder '{path}'. Check the path.") from None
    except OSError as error:
        raise BadInput(
            f"'{path}' cannot be read: {error.strerror}. Check the path and its rights."
        ) from None
    except ValueError as error:  # a NUL in the name
        raise BadInput(f"{str(path)!r} is not a path: {error}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(
            f"'{path}' is neither a file nor a folder. Write its content to a file first."
        )
    if not status.st_size:
        raise BadInput(f"'{path}' is empty. Check that it was written or fetched to the end.")
    return status


def _walk(root: Path, format: str | None) -> Iterator[SourceEntry]:
    """Yield every file below a folder, sorted; hidden ones are left alone, links that lead outside are named.

    A folder that is an index comes as one entry without a format: `index build . --out idx` must not read idx.
    """
    real = Path(os.path.realpath(root))
    for folder, folders, names in os.walk(root, onerror=_unreadable):
        here = Path(folder)
        visible, linked = _visible_folders(here, folders)
        folders[:] = visible  # os.walk goes into these alone
        if _is_index(folders, names):
            # What was made from text is not text: it is passed over as one entry.
            folders.clear()
            yield SourceEntry(here, root)
            continue
        for name in sorted(names + linked):
            path = here / name
            if name.startswith("."):
                continue
            if not path.is_symlink():
                yield _folder_entry(path, root, format)
            elif not Path(os.path.realpath(path)).is_relative_to(real):
                yield SourceEntry(
                    path,
                    root,
                    wrong="path outside the folder: the link is not followed. Copy the file in.",
                )
            elif not path.exists():
                yield SourceEntry(path, root, wrong="the link leads nowhere.")
            # A link to a place inside is ignored: its target is read at its own place.


def _visible_folders(parent: Path, names: list[str]) -> tuple[list[str], list[str]]:
    """Return the folders to go into, sorted, and those that are links."""
    visible, linked = [], []
    for name in names:
        if (parent / name).is_symlink():
            linked.append(name)
        elif not name.startswith("."):
            visible.append(name)
    return sorted(visible), linked


def _is_index(folders: list[str], names: list[str]) -> bool:
    """Tell whether a folder with these in it is an index of ours, or one that is being built."""
    if "staging" in folders and "writer.lock" in names:
        return True
    has_generation = any(name.startswith("generation-") for name in folders)
    return has_generation and "manifest.json" in names


def _unreadable(error: OSError) -> None:
    raise BadInput(
        f"The folder '{error.filename}' cannot be read: {error.strerror}. Check its rights."
    )


def _folder_entry(path: Path, root: Path, format: str | None) -> SourceEntry:
    """Return a file below a folder. It has no format where it is of a kind that is not read."""
    status = path.stat()
    entry = SourceEntry(path, root, size=status.st_size, mtime=status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        return entry
    try:
        entry.format = format or format_by_name(path) or _guessed(entry)
    except BadInput as error:
        entry.wrong = whole_characters(str(error))
    return entry


def _guessed(entry: SourceEntry) -> str:
    """Return the format of records in a file whose name tells nothing; empty for another kind. JSON that is not on
    lines is wrong."""
    path = entry.path
    by_wikiextractor = path.name.startswith("wiki_")
    if files.plain_suffix(path) not in ("", ".json") and not by_wikiextractor:
        return ""
    guess = format_by_content(path)
    if guess == "json" and (program := jq_program(path)):
        entry.wrong = as_lines(path, "JSON, but not JSON lines", program)
    return guess if guess in ("jsonl", "wikipedia", "dpr", "parquet") else ""


def _name(entries: list[SourceEntry]) -> None:
    """Give each file the shortest name that no other has: its stem, else its path, else with its folder."""
    forms = [_names(entry) for entry in entries]
    # How often each name stands among the first, second … forms of all files.
    counts = [Counter(names) for names in zip(*forms, strict=True)]
    taken: set[str] = set()
    for entry, names in zip(entries, forms, strict=True):
        name = names[-1]
        for form, count in zip(names, counts, strict=True):
            if count[form] == 1:
                name = form
                break
        while name in taken:  # the same file given twice
            name += "+"
        taken.add(name)
        entry.name = name


def _names(entry: SourceEntry) -> tuple[str, ...]:
    """Return the names that a file may have, shortest first."""
    relative = entry.relative
    path = entry.path.resolve()
    whole = whole_characters(str(path))
    parent = entry.root.resolve() if entry.root else path.parent
    folder = whole_characters(parent.name)
    if entry.document:
        return relative, relative, f"{folder}/{relative}", whole
    own = whole_characters(entry.path.name)
    stem = own.split(".")[0] or own
    with_folders = relative[: len(relative) - len(own)] + stem
    return stem, with_folders, f"{folder}/{relative}", whole


# A corpus: files read one after another into records, with an exact position to resume from after a
# stop.

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
            raise BadInput("No source given. Name at least one file or folder, or give a record.")
        self.sources = [Path(path) for path in sources]
        self.format = check_format(format) if format else None
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
        return [entry.path for entry in self._listing.entries if not entry.wrong]

    @property
    def is_of_documents(self) -> bool:
        """Whether each file that will be read is one document: a text, a page, a PDF."""
        return all(entry.document for entry in self._listing.entries if not entry.wrong)

    def source_names(self) -> list[str]:
        """Return the source that passages of each file have, unless a record names its own."""
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
        """Return the numbers of the files, in runs of about equal size. Each can be read by itself
        (`records(files=…)`).
        """
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
        """Yield every record from the `skip`-th on. The report counts those handed over and those found broken.

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
        return {name: reader_of(name) for name in sorted(names)}

    def nothing_usable(self, report: Report) -> BadInput:
        """Return the error of a corpus without a record that can be used."""
        first = f" First: {report.named[0]}" if report.named else ""
        where = ", ".join(f"'{source}'" for source in self.sources[:3])
        return BadInput(f"Nothing in {where} could be used: {report.broken:,} broken.{first}")

    def _feed_of(
        self, entry: SourceEntry, report: Report, skip: int, idle: Callable[[], None] | None
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
            yield from _whole_broken(feed, entry.wrong)
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
            yield from _whole_broken(feed, _without_name(str(error), entry.path))
            return
        if not any((usable, resumed, lenient)):
            raise feed.fault(f"holds nothing usable. {first_broken or 'It has no records at all.'}")

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


def _whole_broken(feed: Feed, why: str) -> Iterator[Step]:
    """Yield a file that is one broken record."""
    if not feed.passed():
        yield feed.broken("", why)


def count_record(report: Report, record: Record) -> None:
    """Count a record that was handed over."""
    if isinstance(record, Document):
        report.documents += 1
    elif isinstance(record, Redirect):
        report.redirects += 1
    else:
        report.senses += 1


def _printable(error: BadInput) -> BadInput:
    """Return the error without lone surrogates, which a path may hold."""
    return BadInput(whole_characters(str(error)))


def _without_name(message: str, path: Path) -> str:
    return whole_characters(message).removeprefix(whole_characters(f"'{path}' "))


def _check_encoding(encoding: str | None) -> str | None:
    if encoding is not None:
        try:
            "".encode(encoding)
        except (LookupError, ValueError):
            # ValueError: "undefined" is a codec that refuses everything.
            raise BadInput(f"No encoding named '{encoding}'. Try cp1252 or latin-1.") from None
    return encoding


# Records in memory as a corpus: what was read or made elsewhere needs no file.

GivenRecord = Mapping[str, Any] | Record | Passage
"""A mapping with the keys of a JSON line ("text", "title", "id", …), a record, or a passage, which stays whole."""

Sources = str | Path | Iterable[str | Path | GivenRecord]
"""One file or folder, several of them, or records in memory."""


class RecordCorpus:
    """A corpus of records in memory, with the verbs of `Corpus`."""

    def __init__(self, records: Iterable[GivenRecord]) -> None:
        self._records = list(records)
        self._position = 0

    is_of_documents = False

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
        """Return one part: all records."""
        return [range(1)]

    def records(
        self,
        report: Report,
        skip: int = 0,
        idle: Callable[[], None] | None = None,
        files: range | None = None,
    ) -> Generator[Record, None, None]:
        """Yield every record from the `skip`-th on. The report counts those handed over and those found broken."""
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
        """Return the error of records none of which can be used."""
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
    """Return the corpus of paths or of records."""
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
    return Document(passage.id, passage.title, passage.text, passage.source, sections, whole=True)
