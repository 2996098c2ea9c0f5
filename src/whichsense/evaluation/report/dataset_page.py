"""A dataset's statistics as one drawing, or as a page with tables and charts."""

from __future__ import annotations

from whichsense.evaluation.report.charts import bar_charts
from whichsense.evaluation.report.html import page, style, table, text
from whichsense.evaluation.report.tables import Statistics, Table, format_cell


def to_svg(statistics: Statistics) -> str:
    """All charts of a dataset, one under the other."""
    about = statistics.release
    return bar_charts(statistics.name, about, statistics.charts, style()) + "\n"


def to_html(statistics: Statistics) -> str:
    """A page with the tables and charts of a dataset."""
    body = [text("p", f"Release: {statistics.release}")]
    for one in statistics.tables:
        body += _table(one)
    body.append(bar_charts(statistics.name, statistics.release, statistics.charts))
    return page(statistics.name, *body)


def _table(content: Table) -> list[str]:
    rows = []
    for row in content.rows:
        cells = [text("td", format_cell(cell)) for cell in row]
        rows.append(cells)
    parts = [table(content.columns, rows, content.title)]
    if content.note:
        parts.append(text("p", content.note))
    return parts
