"""Tables with a header: CSV, TSV, and the passages that DPR released as `psgs_w100.tsv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from whichsense.corpus.feed import Feed, Step, not_in, numbered, too_long

_NAMES = {
    "text": ("text", "contents", "content", "passage", "body", "document"),
    "title": ("title", "name", "heading"),
    "id": ("id", "_id", "docid", "doc_id", "pid"),
    "section": ("section",),
    "source": ("source",),
}
_DPR_HEADER = b"id\ttext\ttitle"


@dataclass(frozen=True)
class Columns:
    """Which column holds what; None where the table has none."""

    text: int
    title: int | None = None
    id: int | None = None
    section: int | None = None
    source: int | None = None

    @classmethod
    def of(cls, feed: Feed, header: Sequence[str]) -> Columns:
        """Find the columns by name, in any case."""
        numbers: dict[str, int] = {}
        for number, name in enumerate(header):
            # Of two columns of one name the first counts.
            numbers.setdefault(name.strip().lower(), number)
        columns: dict[str, int] = {}
        for role, names in _NAMES.items():
            for name in names:
                if name in numbers:
                    columns[role] = numbers[name]
                    break
        if "text" not in columns:
            listed = ", ".join(f"'{name[:40]}'" for name in header[:20])
            raise feed.fault(
                f"has no column 'text'. Its columns: {listed}. Rename the one that holds the text."
            )
        return cls(**columns)

    def document(
        self, feed: Feed, row: Sequence[str | None], number: int, where: str
    ) -> Step:
        """A row as a document; ValueError where it has no text."""

        def cell(place: int | None) -> str:
            return (row[place] or "") if place is not None and place < len(row) else ""

        text = cell(self.text)
        if not text or text.isspace():
            raise ValueError("no text in the text column.")
        section = cell(self.section)
        sections = ((0, section),) if section else ()
        key = cell(self.id).strip() or numbered(number)
        return feed.document(
            where,
            key,
            cell(self.title),
            text,
            source=cell(self.source),
            sections=sections,
        )


class _Lines:
    """Decoded lines for the csv module, which remembers what was wrong with those of the record at hand."""

    def __init__(self, feed: Feed, reader: io.BufferedReader) -> None:
        self.encoding = feed.encoding or "utf-8"
        self.feed = feed
        self.lines = feed.lines(reader)
        self.number = 0  # of the line that was read last
        self.wrong = ""
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        for number, line in self.lines:
            self.number = number
            if line is None:
                self.wrong = too_long(self.feed)
                yield "\n"
                continue
            try:
                text = line.decode(self.encoding)
            except UnicodeDecodeError:
                self.wrong = not_in(self.encoding)
                text = line.decode(self.encoding, "replace")
            yield text.removeprefix("\ufeff") if number == 1 else text
        self.ended = True  # asked for more: only a quote that is still open makes the csv module do so


def read_csv(feed: Feed) -> Iterator[Step]:
    yield from _read_table(feed, ",")


def read_tsv(feed: Feed) -> Iterator[Step]:
    yield from _read_table(feed, "\t")


def _read_table(feed: Feed, delimiter: str) -> Iterator[Step]:
    csv.field_size_limit(feed.limits.line)
    with feed.open_text() as reader:
        lines = _Lines(feed, reader)
        rows = csv.reader(iter(lines), delimiter=delimiter)
        header = _header(feed, rows)
        if delimiter == "," and len(header) == 1 and ";" in header[0]:
            # What Excel writes in half of Europe.
            header = header[0].split(";")
            rows = csv.reader(iter(lines), delimiter=";")
        columns = Columns.of(feed, header)
        number, begin, lines.wrong = 0, lines.number + 1, ""
        for row in _rows(rows):
            where, begin = f"line {begin}", lines.number + 1
            if not row and not lines.wrong:
                feed.tick()
                continue
            number += 1
            wrong, lines.wrong = lines.wrong, ""
            if feed.passed():
                continue
            if isinstance(row, csv.Error):
                wrong = wrong or f"not valid CSV ({row}). Is a quote left open?"
            elif lines.ended:
                wrong = "a quote is opened and never closed, which takes in all the lines behind it. Close it."
            if wrong or isinstance(row, csv.Error):
                yield feed.broken(where, wrong)
                continue
            try:
                yield columns.document(feed, row, number, where)
            except ValueError as error:
                yield feed.broken(where, str(error))


def _header(feed: Feed, rows: Iterator[list[str]]) -> list[str]:
    try:
        return next(rows, [])
    except csv.Error as error:
        fix = (
            "Save it with line feeds (LF) at the ends of lines, and every quote closed."
        )
        raise feed.fault(
            f"has no header that can be read ({str(error).partition(' - ')[0]}). {fix}"
        ) from None


def _rows(rows: Iterable[list[str]]) -> Iterator[list[str] | csv.Error]:
    """The rows, with the errors of single ones in their place: the csv module goes on behind an error."""
    iterator = iter(rows)
    while True:
        try:
            yield next(iterator)
        except csv.Error as error:
            yield error
        except StopIteration:
            return


def read_dpr(feed: Feed) -> Iterator[Step]:
    """DPR's passages, cut already. Each stands on one line, so lines are split without the csv module."""
    with feed.open_text() as reader:
        for number, line in feed.lines(reader):
            if number == 1 and line is not None:
                if not is_dpr(line):
                    raise feed.fault(
                        "does not begin with the header 'id<TAB>text<TAB>title'. Give --format tsv."
                    )
                continue
            if (line is None or not line.isspace()) and not feed.passed():
                yield _passage(feed, number, line)


def is_dpr(head: bytes) -> bool:
    """Whether a file that begins like this has DPR's header."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    return first.strip().lower() == _DPR_HEADER


def _passage(feed: Feed, number: int, line: bytes | None) -> Step:
    encoding = feed.encoding or "utf-8"
    if line is None:
        return feed.broken(f"line {number}", too_long(feed))
    try:
        cells = line.decode(encoding).rstrip("\r\n").split("\t")
    except UnicodeDecodeError:
        return feed.broken(f"line {number}", not_in(encoding))
    if len(cells) != 3:
        return feed.broken(
            f"line {number}", f"{len(cells)} columns in place of 3 (id, text, title)."
        )
    key, text, title = cells
    text, title = _unquoted(text), _unquoted(title)
    if not text or text.isspace():
        return feed.broken(f"line {number}", "the text is empty.")
    return feed.document(
        f"line {number}", key.strip() or numbered(number), title, text, whole=True
    )


def _unquoted(cell: str) -> str:
    if len(cell) > 1 and cell[0] == '"' and cell[-1] == '"':
        return cell[1:-1].replace('""', '"')
    return cell
