"""A corpus on its way into an index: records, what is left out and why, and the report of both."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from whichsense import files
from whichsense.errors import BadInput
from whichsense.text.words import whole_characters
from whichsense.types import Document, Redirect, Sense

# The report of a corpus: how many records of each kind, and what was wrong with those left out.

NAMED = 100  # broken records that are named; the rest are counted


class Broken(NamedTuple):
    """A record that was left out: the file, the place in it ("line 7"), and the reason with its fix."""

    file: str
    where: str
    why: str

    def __str__(self) -> str:
        place = f"{self.file}, {self.where}" if self.where else self.file
        return f"{place}: {self.why}"


@dataclass
class Report:
    """Counts of what was read, and the first broken records by name.

    The corpus counts what it reads; `passages` and `duplicates` are counted by whoever cuts and compares.
    """

    documents: int = 0
    redirects: int = 0
    senses: int = 0
    broken: int = 0
    passages: int = 0
    duplicates: int = 0
    passed_over: int = 0
    """Files of a folder that are of no kind that can be read, and index folders in it."""
    rough: int = 0
    """Pages whose markup the parser could not manage and that were stripped by simpler means."""
    named: list[Broken] = field(default_factory=list)

    def add_broken(self, broken: Broken) -> None:
        self.broken += 1
        if len(self.named) < NAMED:
            self.named.append(broken)

    def include(self, other: Report) -> None:
        """Add what another part of the same corpus counted."""
        self.documents += other.documents
        self.redirects += other.redirects
        self.senses += other.senses
        self.broken += other.broken
        self.passages += other.passages
        self.duplicates += other.duplicates
        self.rough += other.rough
        # Files are listed once for the whole corpus.
        self.passed_over = max(self.passed_over, other.passed_over)
        self.named = [*self.named, *other.named][:NAMED]

    def as_dict(self) -> dict[str, Any]:
        """For a checkpoint: plain values that JSON keeps."""
        return {**asdict(self), "named": [list(broken) for broken in self.named]}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Report:
        return cls(**{**saved, "named": [Broken(*broken) for broken in saved["named"]]})

    def summary(self, examples: int = 5) -> str:
        """Return a few lines for a person.

        >>> report = Report(documents=2, passages=7)
        >>> report.add_broken(Broken("a.jsonl", "line 3", "not valid JSON"))
        >>> print(report.summary())
        2 documents, 7 passages
        left out: 1 broken record
          a.jsonl, line 3: not valid JSON
        """
        read = [_counted(self.documents, "document"), _counted(self.passages, "passage")]
        if self.redirects:
            read.append(_counted(self.redirects, "redirect"))
        if self.senses:
            read.append(_counted(self.senses, "sense"))
        left_out = []
        if self.broken:
            left_out.append(_counted(self.broken, "broken record"))
        if self.duplicates:
            left_out.append(_counted(self.duplicates, "duplicate"))
        if self.passed_over:
            left_out.append(f"{self.passed_over:,} of a kind that is not read")
        lines = [", ".join(read)]
        if left_out:
            lines.append(f"left out: {', '.join(left_out)}")
        for broken in self.named[:examples]:
            lines.append(f"  {_printable(broken)}")
        if self.broken > examples:
            lines.append(f"  … and {self.broken - examples:,} more")
        if self.rough:
            lines.append(
                f"markup too tangled for the parser, stripped roughly: {_counted(self.rough, 'page')}"
            )
        return "\n".join(lines)


def _printable(broken: Broken) -> str:
    """Without control characters: names of files and pages may hold anything."""
    characters = [character for character in str(broken) if unicodedata.category(character) != "Cc"]
    return "".join(characters)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


# One file on its way through a reader: what every reader is given and gives back.

Record = Document | Redirect | Sense
Step = Record | Broken
"""A reader turns each record of its file into exactly one of these (a disambiguation page: one for each entry)."""

_IDLE_STEPS = 1000
_LONGEST_NAME = 1000  # characters of an id, title, heading or source


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """How large what is read may be. What is larger is an error or a broken record."""

    document: int = 128 * 2**20
    """Bytes of a file that is one document."""
    line: int = files.LONGEST_LINE
    """Bytes of a line."""
    page: int = 2**24
    """Characters of a page of a Wikipedia dump."""
    tag: int = 2**25
    """Bytes of an XML tag."""
    bomb_floor: int = files.BOMB_FLOOR
    """Bytes that a compressed file may unpack to, whatever its size."""
    zip_floor: int = 2**26
    """Bytes that a Word file may unpack to, whatever its size."""
    pdf_seconds: float = 120.0


@dataclass
class Feed:
    """A file to read, how its ids begin, and how many of its records an earlier run consumed."""

    path: Path
    label: str
    """The name under which the file stands in a report: its path, relative where a folder was given."""
    name: str
    """Short and unique among the files read: the source of its passages."""
    prefix: str = ""
    encoding: str | None = None
    skip: int = 0
    report: Report = field(default_factory=Report)
    done: Callable[[], float] = lambda: 0.0
    idle: Callable[[], None] | None = None
    """Called now and then where nothing is handed over for long."""
    ticks: int = 0
    limits: ReadingLimits = ReadingLimits()

    def passed(self) -> bool:
        """Tell whether the record at hand was consumed by an earlier run. Call it once for each step."""
        if not self.skip:
            return False
        self.skip -= 1
        self.tick()
        return True

    def tick(self) -> None:
        """Something was passed over that no one will see."""
        self.ticks += 1
        if self.idle and not self.ticks % _IDLE_STEPS:
            self.idle()

    def broken(self, where: str, why: str) -> Broken:
        return Broken(self.label, where, why)

    def document(
        self,
        where: str,
        key: str,
        title: str,
        text: str,
        *,
        source: str = "",
        sections: tuple[tuple[int, str], ...] = (),
        whole: bool = False,
    ) -> Step:
        """A record with its names on one line and within reason; the id may stand for others, so it is never cut."""
        key = " ".join(f"{self.prefix}{key}".split())
        if len(key) > _LONGEST_NAME:
            return self.broken(
                where, f"the id is over {_LONGEST_NAME:,} characters long. Give it a shorter one."
            )
        headings = tuple([(at, short(name)) for at, name in sections]) if sections else ()
        source = (short(source) if source else "") or self.name
        return Document(key, short(title), text, source, headings, whole)

    def fault(self, why: str) -> BadInput:
        """Return the error of a file that cannot be used at all."""
        return BadInput(whole_characters(f"'{self.path}' {why}"))

    def open(self) -> io.BufferedReader:
        """Return the file, decompressed, with its first bytes checked: empty and binary files end here."""
        source, reader = files.open_source(self.path, self.limits.bomb_floor)
        self.done = lambda: source.done if not source.closed else 1.0
        try:
            head = reader.peek(1)
        except BadInput:
            reader.close()
            raise
        if not head:
            reader.close()
            raise self.fault("is empty. Check that it was written or fetched to the end.")
        return reader

    def open_text(self) -> io.BufferedReader:
        """As `open`, for formats made of lines of text."""
        if self.encoding and not "a\n".encode(self.encoding).endswith(b"a\n"):
            raise self.fault(
                f"is read line by line, which cannot be done in {self.encoding}. Save it as UTF-8."
            )
        reader = self.open()
        head = reader.peek(1)[:4096]
        if head.startswith((b"\xff\xfe", b"\xfe\xff")) and not self.encoding:
            reader.close()
            raise self.fault("is UTF-16. Save it as UTF-8.")
        if b"\0" in head and not self.encoding:
            reader.close()
            raise self.fault(
                "is binary, not text. Give a file of a known format, or name it with --format."
            )
        return reader

    def lines(self, reader: io.BufferedReader) -> Iterator[tuple[int, bytes | None]]:
        return files.lines(reader, self.limits.line)

    def body(self) -> bytes:
        """Return the whole of a document file, within reason."""
        with self.open() as reader:
            body = reader.read(self.limits.document + 1)
        if len(body) > self.limits.document:
            raise self.fault(
                f"is over {self.limits.document // 2**20} MB. Split it, or give it as JSON lines."
            )
        return body


def one_line(text: str) -> str:
    return " ".join(text.split())


def short(text: str) -> str:
    """Return a title, heading or source: on one line, and of at most 1,000 characters.

    >>> short("New\\n York")
    'New York'
    """
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def numbered(number: int) -> str:
    """Return the id of a record that has none: no other record's own, as "8" might be."""
    return f"@{number}"


def not_in(encoding: str) -> str:
    return f"not {encoding}. Save the file as UTF-8, or name its encoding with --encoding."


def too_long(feed: Feed) -> str:
    return f"the line is over {feed.limits.line // 2**20} MB long. Split it into records, one on each line."


Reader = Callable[[Feed], Iterator[Step]]
