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
_LEFT = 56  # of the distribution chart's axis
_TOP = 12
_BASE = 170  # where its bars stand


def bar_charts(title: str, note: str, charts: Sequence[Bars], *head: str) -> str:
    """Several bar charts, one under the other, below a title and a note. `head` comes before them."""
    top = 44  # the title's height
    background = tag("rect", width="100%", height="100%", class_="paper")
    parts = [
        *head,
        background,
        _title(title, 28, size=18),
        _label(_shorten(note, 80), _WIDTH, 28, "end"),
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
    parts = [_title(chart.title, top + 18), _label(note, 0, top + 35)]
    y = top + _BAR_HEAD
    for label, value in chart.bars:
        length = room * value / highest
        number = format_cell(value)
        hover = text("title", f"{label}: {number}")
        bar = _box(_BAR_LABELS, y, length, 15)
        baseline = y + 12  # of the texts beside the bar
        parts += [
            _label(_shorten(label, 34), _BAR_LABELS - 10, baseline, "end"),
            tag("g", hover, bar, class_=_colour(0)),
            _label(number, _BAR_LABELS + length + 6, baseline),
        ]
        y += _BAR_ROW
    return parts


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
        parts.append(_label(metric, _LABELS - 10, center + 4, "end"))
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
    line = _line(_score_x(low), _score_x(high), y, y)
    dot = tag("circle", cx=_score_x(value), cy=y, r=4)
    return tag("g", hover, line, dot, class_=_colour(column))


def _score_x(score: float) -> float:
    """Where a score from 0 to 1 is on the horizontal axis."""
    inside = min(1.0, max(0.0, score))
    return _LABELS + (_WIDTH - _LABELS - _MARGIN) * inside


def _axis(y: float) -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        share = tenth / 10
        x = _score_x(share)
        parts.append(_line(x, x, 0, y, "grid"))
        parts.append(_label(f"{share:.1f}", x, y + 16, "middle"))
    return parts


def distribution_chart(scores: Mapping[str, Sequence[float]]) -> str:
    """For each system the share of questions whose score is in each tenth from 0 to 1."""
    histograms = list(map(_histogram, scores.values()))
    highest = max(map(max, histograms), default=0.0) or 1.0
    slot = (_WIDTH - _LEFT - _MARGIN) / _BINS  # all systems' bars of one bin
    width = (slot - 6) / max(len(histograms), 1)
    parts = []
    for column, name in enumerate(scores):
        for number, share in enumerate(histograms[column]):
            length = (_BASE - _TOP) * share / highest
            x = _LEFT + number * slot + column * width
            scored = f"{share:.1%} of the questions score {_bin_name(number)}"
            hover = text("title", f"{name}: {scored}")
            bar = _box(x, _BASE - length, width * 0.9, length)
            parts.append(tag("g", hover, bar, class_=_colour(column)))
    for number in range(0, _BINS, 3):
        x = _LEFT + (number + 0.5) * slot - 3
        parts.append(_label(_bin_name(number), x, _BASE + 20, "middle"))
    parts.append(_label(f"{highest:.0%}", _LEFT - 6, _TOP + 10, "end"))
    parts.append(_line(_LEFT, _WIDTH - _MARGIN, _BASE, _BASE, "axis"))
    return svg(_WIDTH, _BASE + 30, parts, "Distribution of the questions' scores")


def _histogram(values: Sequence[float]) -> list[float]:
    """The share of values in each bin of [0, 1]; values outside count in the first or last bin."""
    counts = [0] * _BINS
    for value in values:
        number = min(_BINS - 1, max(0, int(value * _BINS)))
        counts[number] += 1
    total = max(len(values), 1)
    return [count / total for count in counts]


def _bin_name(number: int) -> str:
    low = number / _BINS
    high = (number + 1) / _BINS
    return f"{low:.1f}–{high:.1f}"


def _colour(column: int) -> str:
    """The class of a system's colour; more systems than colours begin again."""
    return f"s{column % COLOURS}"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _title(content: str, y: float, size: int = 14) -> str:
    return text(
        "text", content, x=0, y=y, font_size=size, font_weight=600, class_="ink"
    )


def _label(content: str, x: float, y: float, anchor: str = "start") -> str:
    """Text that starts, ends or has its middle at x."""
    return text("text", content, x=x, y=y, text_anchor=anchor)


def _line(x1: float, x2: float, y1: float, y2: float, kind: str | None = None) -> str:
    return tag("line", class_=kind, x1=x1, x2=x2, y1=y1, y2=y2)


def _box(x: float, y: float, width: float, height: float) -> str:
    return tag("rect", x=x, y=y, width=width, height=height)
