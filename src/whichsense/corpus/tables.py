"""Read rows: JSON lines, TSV and CSV tables, Parquet."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense import files
from whichsense.corpus.feed import Feed, Step, not_in, numbered, too_long
from whichsense.errors import require

# JSON lines of {title, text, …}: ours, WikiExtractor's, BEIR's, Pyserini's.


def read_jsonl(feed: Feed, whole: bool = False) -> Iterator[Step]:
    """Yield a document for each line. Lines consumed earlier are passed over without being parsed."""
    with feed.open_text() as reader:
        head = reader.peek(1)[: 2**16].removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"["):
            raise feed.fault(as_lines(feed.path, "one JSON list, not JSON lines", "'.[]'"))
        if _spread(head):
            raise feed.fault(
                as_lines(feed.path, "a JSON object over several lines, not JSON lines")
            )
        if head.startswith(b"<doc "):
            raise feed.fault("is WikiExtractor's own format. Run WikiExtractor with --json.")
        encoding = feed.encoding or "utf-8"
        for number, line in feed.lines(reader):
            if line is not None and (line.isspace() or line == b"\xef\xbb\xbf"):
                feed.tick()
                continue
            if not feed.passed():
                yield _step(feed, number, line, encoding, whole)


def as_lines(path: Path, what: str, program: str = ".") -> str:
    """Return what a file holds in place of JSON lines, and the command that makes them of it."""
    stem = path.name.partition(".")[0] or path.name
    target = f"{stem}.jsonl" if path.name != f"{stem}.jsonl" else f"{stem}-lines.jsonl"
    source, target = shlex.quote(path.name), shlex.quote(target)
    return f"holds {what}. Run: jq -c {program} {source} > {target}"


def _spread(head: bytes) -> bool:
    """Tell whether the first object goes on behind its line, which no single broken line would look like."""
    first, _, rest = head.partition(b"\n")
    if not first.startswith(b"{") or not first.rstrip().endswith((b"{", b"[", b",", b":")):
        return False
    return bool(rest := rest.lstrip()) and not rest.startswith(b"{")


def read_passages(feed: Feed) -> Iterator[Step]:
    """Yield the same for lines that are passages already: they stay whole."""
    return read_jsonl(feed, whole=True)


def _step(feed: Feed, number: int, line: bytes | None, encoding: str, whole: bool) -> Step:
    try:
        if line is None:
            raise ValueError(too_long(feed))
        record = _record(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, encoding)
        return document_of(feed, record, number, f"line {number}", whole)
    except ValueError as error:
        return feed.broken(f"line {number}", str(error))


_one_value = json.JSONDecoder().raw_decode


def _check_pairs(text: str, record: Any) -> None:
    """Raise where half of a surrogate pair is escaped, which could be written nowhere."""
    if "\\ud" in text or "\\uD" in text:
        json.dumps(record, ensure_ascii=False).encode()


def _record(line: bytes, encoding: str) -> dict[str, Any]:
    """Return the object of a line; ValueError with the reason where there is none."""
    try:
        text = line.decode(encoding)
        if text.startswith("{"):
            record, end = _one_value(text)  # as json.loads, in two thirds of the time
            if end != len(text) and text[end:] != "\n":
                record = json.loads(text)
        else:
            record = json.loads(text)
        if "\\" in text:
            _check_pairs(text, record)
    except UnicodeDecodeError:
        raise ValueError(not_in(encoding)) from None
    except UnicodeEncodeError:
        raise ValueError(
            "half of a surrogate pair (\\ud8… alone). Write whole characters."
        ) from None
    except (ValueError, RecursionError) as error:
        why = (
            error.msg
            if isinstance(error, json.JSONDecodeError)
            else "too deep, or a number too long"
        )
        raise ValueError(f"not valid JSON ({why}).") from None
    if not isinstance(record, dict):
        raise ValueError('not a JSON object. Write {"title": …, "text": …}.')
    return record


def document_of(
    feed: Feed, record: Mapping[str, Any], number: int, where: str, whole: bool = False
) -> Step:
    """Return the document of a JSON object; ValueError with the reason where it is not one."""
    title, text = _title_and_text(record)
    if text is None:
        raise ValueError("no text. Each record needs a key 'text' (or 'contents').")
    if not isinstance(text, str):
        raise ValueError("the text is not a string.")
    if not text or text.isspace():
        raise ValueError("the text is empty.")
    if not isinstance(title, str):
        raise ValueError("the title is not a string.")
    key = record.get("id", record.get("_id"))
    section = record.get("section")
    return feed.document(
        where,
        ("" if key is None else str(key).strip()) or numbered(number),
        title,
        text,
        source=_source(record.get("source")),
        sections=((0, section),) if section and isinstance(section, str) else (),
        whole=whole,
    )


def _title_and_text(record: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return title and text of a JSON object, of whatever type they are; None where it has no text."""
    title, text = record.get("title") or "", record.get("text")
    if text is not None:
        return title, text
    text = record.get("contents")
    if isinstance(text, str) and not title and text.startswith('"'):
        # Pyserini: "title" on the first line
        first, _, rest = text.partition("\n")
        if rest:
            return first.strip().strip('"'), rest
    return title, text


def _source(value: Any) -> str:
    """Return a record's own source: a string, or a list of strings joined by a comma."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else ""


# Tables with a header: CSV, TSV, and the passages that DPR released as `psgs_w100.tsv`.

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

    def document(self, feed: Feed, row: Sequence[str | None], number: int, where: str) -> Step:
        """Return a row as a document; ValueError where it has no text."""

        def cell(place: int | None) -> str:
            return (row[place] or "") if place is not None and place < len(row) else ""

        text = cell(self.text)
        if not text or text.isspace():
            raise ValueError("no text in the text column.")
        section = cell(self.section)
        sections = ((0, section),) if section else ()
        key = cell(self.id).strip() or numbered(number)
        return feed.document(
            where, key, cell(self.title), text, source=cell(self.source), sections=sections
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
        self.ended = (
            True  # asked for more: only a quote that is still open makes the csv module do so
        )

    def checked(self, row: list[str] | csv.Error, wrong: str) -> list[str]:
        """Return a row in which nothing is wrong; raise ValueError with what is."""
        if isinstance(row, csv.Error):
            raise ValueError(wrong or f"not valid CSV ({row}). Is a quote left open?")
        if self.ended:
            wrong = "a quote is opened and never closed, which takes in all the lines behind it. Close it."
        if wrong:
            raise ValueError(wrong)
        return row


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
        for row in _table_rows(rows):
            where, begin = f"line {begin}", lines.number + 1
            if not row and not lines.wrong:
                feed.tick()
                continue
            number += 1
            wrong, lines.wrong = lines.wrong, ""
            if feed.passed():
                continue
            try:
                yield columns.document(feed, lines.checked(row, wrong), number, where)
            except ValueError as error:
                yield feed.broken(where, str(error))


def _header(feed: Feed, rows: Iterator[list[str]]) -> list[str]:
    try:
        return next(rows, [])
    except csv.Error as error:
        fix = "Save it with line feeds (LF) at the ends of lines, and every quote closed."
        raise feed.fault(
            f"has no header that can be read ({str(error).partition(' - ')[0]}). {fix}"
        ) from None


def _table_rows(rows: Iterable[list[str]]) -> Iterator[list[str] | csv.Error]:
    """Yield the rows, with the errors of single ones in their place: the csv module goes on behind an error."""
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
    """Tell whether a file that begins like this has DPR's header."""
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
    return feed.document(f"line {number}", key.strip() or numbered(number), title, text, whole=True)


def _unquoted(cell: str) -> str:
    if len(cell) > 1 and cell[0] == '"' and cell[-1] == '"':
        return cell[1:-1].replace('""', '"')
    return cell


# Parquet tables with a text column, read batch by batch. Needs the extra `documents`.

_BATCH = 1024  # rows


def read_parquet(feed: Feed) -> Iterator[Step]:
    """Yield a document for each row. Row groups consumed earlier are not opened."""
    arrow = require("pyarrow", "documents")
    parquet = require("pyarrow.parquet", "documents")
    if feed.path.suffix.lower() in files.COMPRESSED:
        raise feed.fault("is packed once more around Parquet's own compression. Unpack it first.")
    try:
        with parquet.ParquetFile(feed.path) as table:
            yield from _rows(feed, table)
    except (arrow.ArrowException, OSError) as error:
        raise feed.fault(
            f"is not a Parquet file, or is broken: {str(error)[:200]}. Fetch or write it again."
        ) from None


def _unread(feed: Feed, table: Any) -> tuple[list[int], int]:
    """Return the row groups to read, and the rows before them. Whole ones that an earlier run consumed are skipped."""
    groups, number = list(range(table.num_row_groups)), 0
    while groups:
        size = table.metadata.row_group(groups[0]).num_rows
        if feed.skip < size:
            break
        number += size
        feed.skip -= size
        groups.pop(0)
    return groups, number


def _rows(feed: Feed, table: Any) -> Iterator[Step]:
    header = table.schema_arrow.names
    columns = Columns.of(feed, header)
    total = max(1, table.metadata.num_rows)
    groups, number = _unread(feed, table)
    feed.done = lambda: number / total
    # Only the columns that a document is made of are read.
    needed = sorted({at for at in vars(columns).values() if at is not None})
    names = [header[at] for at in needed]
    for batch in table.iter_batches(_BATCH, row_groups=groups, columns=names):
        values = [_values(column) for column in batch.columns]
        for row in range(batch.num_rows):
            number += 1
            if feed.passed():
                continue
            cells: list[Any] = [None] * len(header)
            for at, column in zip(needed, values, strict=True):
                cells[at] = column[row]
            yield _parquet_step(feed, columns, cells, number)


def _parquet_step(feed: Feed, columns: Columns, row: list[Any], number: int) -> Step:
    try:
        if any(isinstance(cell, UnicodeDecodeError) for cell in row):
            raise ValueError("the text is not UTF-8.")
        if row[columns.text] is not None and not isinstance(row[columns.text], str):
            raise ValueError("the text is not a string.")
        cells = [None if cell is None else str(cell) for cell in row]
        return columns.document(feed, cells, number, f"row {number}")
    except ValueError as error:
        return feed.broken(f"row {number}", str(error))


def _values(column: Any) -> list[Any]:
    """Return a column's values; the error in place of one that is not UTF-8."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]
    return values


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return error
