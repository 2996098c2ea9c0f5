"""Parquet tables with a text column, read batch by batch. Needs the extra `documents`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whichsense import files
from whichsense.corpus.feed import Feed, Step
from whichsense.corpus.formats.tables import Columns
from whichsense.errors import require

_BATCH = 1024


def read_parquet(feed: Feed) -> Iterator[Step]:
    """A document for each row. Row groups consumed earlier are not opened."""
    arrow, parquet = (
        require("pyarrow", "documents"),
        require("pyarrow.parquet", "documents"),
    )
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
    while groups and feed.skip >= (
        size := table.metadata.row_group(groups[0]).num_rows
    ):
        number, feed.skip = number + size, feed.skip - size
        groups.pop(0)
    needed = {place for place in vars(columns).values() if place is not None}
    for batch in table.iter_batches(
        _BATCH, row_groups=groups, columns=[header[place] for place in sorted(needed)]
    ):
        cells = {
            place: _values(batch.column(at)) for at, place in enumerate(sorted(needed))
        }
        for row in range(batch.num_rows):
            number += 1
            if not feed.passed():
                yield _step(
                    feed,
                    columns,
                    [_text(cells, place, row) for place in range(len(header))],
                    number,
                )


def _step(feed: Feed, columns: Columns, row: list[Any], number: int) -> Step:
    try:
        if any(isinstance(cell, UnicodeDecodeError) for cell in row):
            raise ValueError("the text is not UTF-8.")
        if row[columns.text] is not None and not isinstance(row[columns.text], str):
            raise ValueError("the text is not a string.")
        return columns.document(
            feed,
            [None if cell is None else str(cell) for cell in row],
            number,
            f"row {number}",
        )
    except ValueError as error:
        return feed.broken(f"row {number}", str(error))


def _text(cells: dict[int, list[Any]], place: int, row: int) -> Any:
    return cells[place][row] if place in cells else None


def _values(column: Any) -> list[Any]:
    """A column's values; where one is not UTF-8, the error stands in its place."""
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
