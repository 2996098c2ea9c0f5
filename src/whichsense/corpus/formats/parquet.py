"""Parquet tables with a text column, read batch by batch. Needs the extra `documents`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whichsense import files
from whichsense.corpus.feed import Feed, Step
from whichsense.corpus.formats.tables import Columns
from whichsense.errors import require

_BATCH = 1024  # rows


def read_parquet(feed: Feed) -> Iterator[Step]:
    """A document for each row. Row groups consumed earlier are not opened."""
    arrow = require("pyarrow", "documents")
    parquet = require("pyarrow.parquet", "documents")
    if feed.path.suffix.lower() in files.COMPRESSED:
        raise feed.fault(
            "is packed once more around Parquet's own compression. Unpack it first."
        )
    try:
        with parquet.ParquetFile(feed.path) as table:
            yield from _rows(feed, table)
    except (arrow.ArrowException, OSError) as error:
        raise feed.fault(
            f"is not a Parquet file, or is broken: {str(error)[:200]}. Fetch or write it again."
        ) from None


def _rows(feed: Feed, table: Any) -> Iterator[Step]:
    header = table.schema_arrow.names
    columns = Columns.of(feed, header)
    number, total = 0, max(1, table.metadata.num_rows)
    feed.done = lambda: number / total
    groups = list(range(table.num_row_groups))
    # Whole row groups that an earlier run consumed are skipped without being read.
    while groups:
        size = table.metadata.row_group(groups[0]).num_rows
        if feed.skip < size:
            break
        number += size
        feed.skip -= size
        groups.pop(0)
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
            yield _step(feed, columns, cells, number)


def _step(feed: Feed, columns: Columns, row: list[Any], number: int) -> Step:
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
    """A column's values; the error in place of one that is not UTF-8."""
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
