"""Bar charts as SVG, and a page that shows them with the tables. Nothing is loaded from elsewhere."""

from __future__ import annotations

from html import escape

from whichsense.evaluation.report.tables import Bars, Cell, Statistics, Table

_WIDTH, _LEFT, _RIGHT, _ROW, _HEAD, _GAP = 720, 250, 90, 22, 52, 28
_FONT = "font-family='system-ui, -apple-system, Segoe UI, sans-serif'"
_INK, _PALE, _BAR = "#1f2933", "#616e7c", "#2f6f8f"


def to_svg(found: Statistics) -> str:
    """All charts of a dataset, one under the other."""
    parts, top = [], 44
    for chart in found.charts:
        body, height = _chart(chart, top)
        parts.append(body)
        top += height + _GAP
    title = f"<text x='20' y='28' font-size='18' font-weight='600' fill='{_INK}'>{escape(found.name)}</text>"
    release = (
        f"<text x='{_WIDTH - 20}' y='28' font-size='11' text-anchor='end' fill='{_PALE}'>"
        f"{_shorter(found.release)}</text>"
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {top}' width='{_WIDTH}' height='{top}' {_FONT}"
        f" role='img' aria-label='Statistics of {escape(found.name, quote=True)}'>"
        f"<rect width='100%' height='100%' fill='white'/>{title}{release}{''.join(parts)}</svg>\n"
    )


def _chart(chart: Bars, top: int) -> tuple[str, int]:
    """One chart: a label, a bar and its number in each row. Returns the drawing and its height."""
    most = max((value for _, value in chart.bars), default=0.0) or 1.0
    room = _WIDTH - _LEFT - _RIGHT
    note = f"{chart.unit}; {chart.note}" if chart.note else chart.unit
    parts = [
        f"<text x='20' y='{top + 18}' font-size='14' font-weight='600' fill='{_INK}'>{escape(chart.title)}</text>",
        f"<text x='20' y='{top + 35}' font-size='11' fill='{_PALE}'>{escape(note)}</text>",
    ]
    for number, (label, value) in enumerate(chart.bars):
        y = top + _HEAD + number * _ROW
        wide = room * value / most
        parts.append(
            f"<text x='{_LEFT - 10}' y='{y + 12}' font-size='12' text-anchor='end' fill='{_INK}'>"
            f"{_shorter(label, 34)}</text>"
            f"<rect x='{_LEFT}' y='{y}' width='{wide:.1f}' height='15' rx='2' fill='{_BAR}'>"
            f"<title>{escape(label)}: {shown(value)}</title></rect>"
            f"<text x='{_LEFT + wide + 6:.1f}' y='{y + 12}' font-size='11' fill='{_PALE}'>{shown(value)}</text>"
        )
    return "".join(parts), _HEAD + len(chart.bars) * _ROW


def _shorter(text: str, most: int = 80) -> str:
    return escape(text if len(text) <= most else text[: most - 1] + "…")


def shown(value: Cell) -> str:
    """A cell as people read it.

    >>> [shown(value) for value in (1003, 12.5, 0.8312, None, "dev")]
    ['1,003', '12.5', '0.83', '–', 'dev']
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return (
            f"{value:,.0f}"
            if value == int(value) and abs(value) >= 1
            else f"{value:,.{1 if abs(value) >= 1 else 2}f}"
        )
    return f"{value:,}" if isinstance(value, int) else value


def to_html(found: Statistics) -> str:
    """One self-contained page with tables and charts."""
    tables = "".join(_table(table) for table in found.tables)
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;max-width:760px;margin:2rem auto;padding:0 1rem}"
        "table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .8rem;text-align:right;"
        "border-bottom:1px solid #e4e7eb}td:first-child,th:first-child{text-align:left;padding-left:0}"
        "caption{text-align:left;font-weight:600}small{color:#616e7c}svg{max-width:100%;height:auto}"
    )
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{escape(found.name)}</title><style>{style}</style><h1>{escape(found.name)}</h1>"
        f"<p>Release: {escape(found.release)}</p>{tables}{to_svg(found)}</html>\n"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th scope='col'>{escape(column)}</th>" for column in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    note = f"<p><small>{escape(table.note)}</small></p>" if table.note else ""
    return f"<table><caption>{escape(table.title)}</caption><tr>{head}</tr>{body}</table>{note}"
