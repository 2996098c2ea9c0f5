"""Charts as SVG: bars, scores with their intervals, and the distribution of questions' scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whichsense.evaluation.report.html import svg, tag, text
from whichsense.evaluation.report.tables import Bars, format_cell
from whichsense.evaluation.scoring.result import Result

COLOURS = 6
"""How many systems get a colour of their own (classes s0 … s5 of the style sheet)."""

# Sizes in units of the drawing, about a pixel each.
_WIDTH = 640
_MARGIN = 16  # right of every chart
_LABELS = 170  # room for the names of metrics
_ROW = 16  # height of one system's interval
_BAR_LABELS = 215
_BAR_NUMBERS = 75
_BAR_ROW = 22
_BAR_HEAD = 52  # height of a chart's title and note
_BAR_GAP = 28  # between two charts
_BINS = 10


def bar_charts(title: str, note: str, charts: Sequence[Bars], *head: str) -> str:
    """Several bar charts, one under the other, below a title and a note. `head` comes before them."""
    top = 44
    parts = [
        *head,
        tag("rect", width="100%", height="100%", class_="paper"),
        text("text", title, x=0, y=28, font_size=18, font_weight=600, class_="ink"),
        text("text", _shorten(note, 80), x=_WIDTH, y=28, text_anchor="end"),
    ]
    for chart in charts:
        parts += _bar_chart(chart, top)
        top += _BAR_HEAD + len(chart.bars) * _BAR_ROW + _BAR_GAP
    return svg(_WIDTH, top, parts, f"Statistics of {title}")


def _bar_chart(chart: Bars, top: int) -> list[str]:
    """A label, a bar and its number in each row."""
    highest = max((value for _, value in chart.bars), default=0.0) or 1.0
    room = _WIDTH - _BAR_LABELS - _BAR_NUMBERS
    note = f"{chart.unit}; {chart.note}" if chart.note else chart.unit
    parts = [
        text("text", chart.title, x=0, y=top + 18, font_weight=600, class_="ink"),
        text("text", note, x=0, y=top + 35),
    ]
    for number, (label, value) in enumerate(chart.bars):
        y = top + _BAR_HEAD + number * _BAR_ROW
        length = room * value / highest
        shown = format_cell(value)
        short = _shorten(label, 34)
        hover = text("title", f"{label}: {shown}")
        bar = tag("rect", x=_BAR_LABELS, y=y, width=length, height=15, rx=2)
        parts += [
            text("text", short, x=_BAR_LABELS - 10, y=y + 12, text_anchor="end"),
            tag("g", hover, bar, class_="s0"),
            text("text", shown, x=_BAR_LABELS + length + 6, y=y + 12),
        ]
    return parts


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def interval_chart(
    results: Sequence[Result], names: Sequence[str], metrics: Sequence[str]
) -> str:
    """A dot and a line for each system and metric: the score and its 95% interval, on an axis from 0 to 1."""
    block = _ROW * len(results) + 14  # one metric, all systems
    height = block * len(metrics) + 30
    parts = _axis(height - 22)
    for row, metric in enumerate(metrics):
        top = row * block + 8
        center = top + _ROW * len(results) / 2
        parts.append(
            text("text", metric, x=_LABELS - 10, y=center + 4, text_anchor="end")
        )
        for column, result in enumerate(results):
            y = top + _ROW * (column + 0.5)
            title = f"{names[column]} {metric}"
            parts.append(_interval(result, metric, title, y, column))
    return svg(_WIDTH, height, parts, "Scores with 95% intervals")


def _interval(result: Result, metric: str, title: str, y: float, column: int) -> str:
    value = result.metrics.get(metric)
    if value is None:
        return ""
    low, high = result.intervals.get(metric, (value, value))
    hover = text("title", f"{title}: {value:.4f} [{low:.4f}, {high:.4f}]")
    line = tag("line", x1=_score_x(low), x2=_score_x(high), y1=y, y2=y)
    dot = tag("circle", cx=_score_x(value), cy=y, r=4)
    return tag("g", hover, line, dot, class_=_colour(column))


def _score_x(score: float) -> float:
    """Where a score from 0 to 1 is on the horizontal axis."""
    inside = min(1.0, max(0.0, score))
    return _LABELS + (_WIDTH - _LABELS - _MARGIN) * inside


def _axis(y: float) -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        x = _score_x(tenth / 10)
        parts.append(tag("line", class_="grid", x1=x, x2=x, y1=0, y2=y))
        parts.append(text("text", tenth / 10, x=x, y=y + 16, text_anchor="middle"))
    return parts


def distribution_chart(scores: Mapping[str, Sequence[float]]) -> str:
    """For each system the share of questions whose score is in each tenth from 0 to 1."""
    height, base, top, left = 200, 170, 12, 56
    shares = [_histogram(values) for values in scores.values()]
    highest = max(map(max, shares), default=0.0) or 1.0
    slot = (_WIDTH - left - _MARGIN) / _BINS
    bar = (slot - 6) / max(len(shares), 1)
    parts = []
    for column, (name, own) in enumerate(zip(scores, shares, strict=True)):
        for number, share in enumerate(own):
            length = (base - top) * share / highest
            x = left + number * slot + column * bar
            hover = f"{name}: {share:.1%} of the questions score {_bin_name(number)}"
            box = tag("rect", x=x, y=base - length, width=bar * 0.9, height=length)
            group = tag("g", text("title", hover), box, class_=_colour(column))
            parts.append(group)
    for number in range(0, _BINS, 3):
        x = left + (number + 0.5) * slot - 3
        name = _bin_name(number)
        parts.append(text("text", name, x=x, y=base + 20, text_anchor="middle"))
    most = f"{highest:.0%}"
    parts.append(text("text", most, x=left - 6, y=top + 10, text_anchor="end"))
    right = _WIDTH - _MARGIN
    parts.append(tag("line", class_="axis", x1=left, x2=right, y1=base, y2=base))
    return svg(_WIDTH, height, parts, "Distribution of the questions' scores")


def _histogram(values: Sequence[float]) -> list[float]:
    """The share of values in each bin of [0, 1]; values outside count in the first or last bin."""
    counts = [0] * _BINS
    for value in values:
        number = min(_BINS - 1, max(0, int(value * _BINS)))
        counts[number] += 1
    total = max(len(values), 1)
    return [count / total for count in counts]


def _bin_name(number: int) -> str:
    return f"{number / _BINS:.1f}–{(number + 1) / _BINS:.1f}"


def _colour(column: int) -> str:
    """The class of a system's colour; more systems than colours begin again."""
    return f"s{column % COLOURS}"
