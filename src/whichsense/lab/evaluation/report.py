"""Tables, charts and pages of results and datasets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from importlib.resources import files
from itertools import combinations
from typing import Any

from whichsense.errors import BadInput
from whichsense.lab.evaluation.results import Comparison, Result, compare

# The parts of a dataset's statistics: tables to print and bars to draw.

Cell = str | int | float | None
"""None is a cell without a number: the paper does not print it, or the data cannot tell."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a paper would print it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart: what, how much."""

    title: str
    bars: tuple[tuple[str, float], ...]
    unit: str = "%"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is counted in a dataset."""

    name: str
    release: str
    """Which release the file is: the numbers of a part differ from those of the whole."""
    tables: tuple[Table, ...]
    charts: tuple[Bars, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def mean(values: Iterable[float]) -> float:
    """The average; 0 where there are no values."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def percent(part: float, whole: float) -> float:
    """
    >>> percent(1, 8)
    12.5
    """
    return 100 * part / whole if whole else 0.0


def shares(counts: Sequence[int]) -> tuple[float, ...]:
    """Counts as percentages of their sum."""
    return tuple(percent(count, sum(counts)) for count in counts)


def format_cell(value: Cell) -> str:
    """A cell as people read it.

    >>> [format_cell(value) for value in (1003, 12.5, 0.8312, None, "dev")]
    ['1,003', '12.5', '0.83', '–', 'dev']
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1:
        return f"{value:,.2f}"
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}"


# HTML and SVG elements, and a page that needs no other file.

_VOID = ("input", "meta")  # elements without content and without an end tag


def tag(name: str, /, *content: str, **attributes: object) -> str:
    """An element. Content is markup already; attribute values are escaped, floats rounded to a tenth.

    In attribute names "_" stands for "-", and a trailing "_" is dropped. An attribute that is None is left out.

    >>> tag("text", "a &lt; b", x=1.25, text_anchor="end", class_="ink")
    '<text x="1.2" text-anchor="end" class="ink">a &lt; b</text>'
    >>> tag("rect", width=3)
    '<rect width="3"></rect>'
    >>> tag("input", type="radio")
    '<input type="radio">'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None:
            continue
        # A tenth of a unit is finer than a screen's pixel.
        shown = f"{value:.1f}" if isinstance(value, float) else str(value)
        attribute = key.removesuffix("_").replace("_", "-")
        parts.append(f'{attribute}="{escape(shown)}"')
    start = f"<{' '.join(parts)}>"
    return start if name in _VOID else f"{start}{''.join(content)}</{name}>"


def text(name: str, content: object, /, **attributes: object) -> str:
    """An element that holds plain text.

    >>> text("b", "a < b")
    '<b>a &lt; b</b>'
    """
    return tag(name, escape(str(content)), **attributes)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = ""
) -> str:
    """A table. Column names are plain text; rows hold `td` elements."""
    head = [text("th", column, scope="col") for column in columns]
    body = [tag("tr", *row) for row in rows]
    top = text("caption", caption) if caption else ""
    content = tag("table", top, tag("tr", *head), *body)
    # A wide table scrolls by itself.
    return tag("div", content, class_="scroll")


def svg(width: int, height: float, parts: Sequence[str], label: str) -> str:
    """A drawing, with a label for those who cannot see it."""
    return tag(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
    )


def style() -> str:
    """The style sheet of pages and drawings, as an element."""
    sheet = files("whichsense.lab.evaluation").joinpath("report", "style.css")
    return tag("style", sheet.read_text(encoding="utf-8"))


def page(title: str, *body: str, head: str = "") -> str:
    """A whole page under a heading. `head` is added to what every page has in its head."""
    screen = "width=device-width, initial-scale=1"
    parts = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content=screen),
        text("title", title),
        style(),
        head,
    ]
    html = tag(
        "html", tag("head", *parts), tag("body", text("h1", title), *body), lang="en"
    )
    return f"<!doctype html>{html}\n"


# Charts as SVG: bars, scores with their intervals, and the distribution of questions' scores.

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


# One HTML page from saved results: tables, charts, and the questions where two systems differ.

# The metric by which questions are ranked where two systems differ.
_MAIN = {"ambignq": "f1_ans", "nq": "em", "cambignq": "option_f1", "asqa": "rouge_l"}
_MOST_PAIRS = 6  # of systems that one page compares
_EQUAL = 1e-12  # scores that differ less are equal


def build_page(
    results: Sequence[Result], title: str = "Results", differences: int = 50
) -> str:
    """The page, with at most `differences` questions for each pair of systems."""
    if not results:
        raise BadInput("A report needs at least one result.")
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.dataset, []).append(result)
    count = (
        f"{len(results)} results. In brackets: 95% bootstrap intervals over questions."
    )
    body = [text("p", count)]
    for dataset, group in groups.items():
        body.append(_section(dataset, group, differences))
    return page(title, *body)


def _section(dataset: str, results: Sequence[Result], differences: int) -> str:
    names = _distinct_names(results)
    metrics = []
    plotted = []
    for metric in results[0].metrics:
        if set(_values(results, metric)) != {None}:
            metrics.append(metric)
            if _fits_axis(results, metric):
                plotted.append(metric)
    counts = []
    for name, count in results[0].counts.items():
        counts.append(f"{name} = {count:,}")
    parts = [
        text("h2", dataset),
        text("p", ", ".join(counts)),
        _score_table(results, names, metrics),
        _legend(names),
        interval_chart(results, names, plotted),
        _distribution(dataset, results, names),
        *_notes(results),
    ]
    # A pair of systems can be compared where both results hold their questions.
    comparable = []
    for name, result in zip(names, results, strict=True):
        if result.questions:
            comparable.append(replace(result, name=name))
    pairs = list(combinations(comparable, 2))
    for a, b in pairs[:_MOST_PAIRS]:
        parts.append(_pair(a, b, differences))
    return tag("section", *parts)


def _fits_axis(results: Sequence[Result], metric: str) -> bool:
    """Whether a metric has an interval on the axis from 0 to 1."""
    for result in results:
        _, high = result.intervals.get(metric, (0.0, math.inf))
        if high <= 1:
            return True
    return False


def _values(results: Sequence[Result], metric: str) -> list[float | None]:
    return [result.metrics.get(metric) for result in results]


def _distinct_names(results: Sequence[Result]) -> list[str]:
    """Each system's name, with a number where two share one."""
    all_names = [result.name for result in results]
    seen: dict[str, int] = {}
    names = []
    for name in all_names:
        seen[name] = seen.get(name, 0) + 1
        is_shared = all_names.count(name) > 1
        names.append(f"{name} ({seen[name]})" if is_shared else name)
    return names


def _score_table(
    results: Sequence[Result], names: Sequence[str], metrics: Sequence[str]
) -> str:
    rows = []
    for metric in metrics:
        values = _values(results, metric)
        best = max(value for value in values if value is not None)
        is_marked = len(results) > 1 and metric in _MAIN.values()
        labels: dict[str, None] = {}  # distinct, in order
        cells = []
        for result, value in zip(results, values, strict=True):
            if value is not None:
                labels[result.label(metric)] = None
            is_best = is_marked and value == best
            interval = result.intervals.get(metric)
            cells.append(_score_cell(value, interval, is_best))
        label = text("td", " / ".join(labels))
        rows.append([label, *cells])
    return table(["metric", *names], rows)


def _score_cell(
    value: float | None, interval: tuple[float, float] | None, is_best: bool
) -> str:
    if value is None:
        return tag("td", text("b", "–"))
    parts = [text("b", f"{value:.4f}")]
    if interval:
        low, high = interval
        parts.append(text("small", f"[{low:.4f}, {high:.4f}]"))
    return tag("td", *parts, class_="best" if is_best else None)


def _legend(names: Sequence[str]) -> str:
    items = []
    for number, name in enumerate(names):
        colour = f"s{number % COLOURS}"
        items.append(tag("li", text("span", name), class_=colour))
    return tag("ul", *items, class_="key")


def _distribution(dataset: str, results: Sequence[Result], names: Sequence[str]) -> str:
    metric = _MAIN.get(dataset, "")
    scores: dict[str, list[float]] = {}
    for name, result in zip(names, results, strict=True):
        scores[name] = []
        for question in result.questions.values():
            if question.get(metric) is not None:
                scores[name].append(float(question[metric]))
    if not any(scores.values()):
        return ""
    return text("h3", f"Questions by their {metric}") + distribution_chart(scores)


def _notes(results: Sequence[Result]) -> list[str]:
    notes: dict[str, None] = {}  # distinct, in order
    for result in results:
        notes |= dict.fromkeys(map(str, result.notes))
    return [text("p", note) for note in notes]


def _pair(a: Result, b: Result, differences: int) -> str:
    title = text("h3", f"{a.name} and {b.name}")
    try:
        comparison = compare(a, b)
    except BadInput as error:
        # For example different questions: the tables above are still right.
        return title + text("p", error)
    metric = _MAIN.get(a.dataset, "")
    if metric not in comparison.tests:
        metric = next(iter(comparison.tests))
    return title + _test_table(comparison) + _differences(a, b, metric, differences)


def _test_table(comparison: Comparison) -> str:
    difference = f"{comparison.b} − {comparison.a}"
    rows = []
    for metric, test in comparison.tests.items():
        interval = text("small", f"[{test.low:+.4f}, {test.high:+.4f}]")
        row = [
            text("td", metric),
            tag("td", f"{test.difference:+.4f}", interval),
            text("td", f"{test.p_permutation:.4f}"),
            text("td", f"{test.better:,} / {test.worse:,}"),
            text("td", comparison.verdict(metric)),
        ]
        rows.append(row)
    return table(["metric", difference, "p", "wins / losses", "verdict"], rows)


def _differences(a: Result, b: Result, metric: str, most: int) -> str:
    """The questions whose scores differ most, side by side."""
    gaps = []
    for key, scores in a.questions.items():
        if scores.get(metric) is None:
            continue
        other = b.questions[key][metric]
        gap = abs(scores[metric] - other)
        if gap > _EQUAL:
            gaps.append((gap, key))
    gaps.sort(key=lambda gap: -gap[0])
    head = f"They differ in {metric} on {len(gaps):,} questions"
    head += f"; the {most} largest differences:" if len(gaps) > most else ":"
    parts = [text("p", head)]
    for _, key in gaps[:most]:
        parts.append(_question_card(key, a, b, metric))
    return "".join(parts)


def _question_card(key: str, a: Result, b: Result, metric: str) -> str:
    first = a.questions[key]
    second = b.questions[key]
    gold = "; ".join(map(str, first.get("gold", [])))
    a_is_better = first[metric] > second[metric]
    sides = [
        _side(a.name, first, metric, a_is_better),
        _side(b.name, second, metric, not a_is_better),
    ]
    return tag(
        "article",
        text("h4", first.get("question") or key),
        text("p", f"gold: {gold}"),
        text("p", f"id {key}"),
        tag("div", *sides, class_="pair"),
    )


def _side(name: str, scores: Mapping[str, Any], metric: str, is_better: bool) -> str:
    predictions = scores.get("predicted") or ["–"]
    items = [text("li", prediction) for prediction in predictions]
    kind = "up" if is_better else "down"
    score = text("span", f"{scores[metric]:.3f}", class_=kind)
    heading = tag("h5", text("span", name), " ", score)
    return tag("div", heading, tag("ul", *items))


# A dataset's statistics as one drawing, or as a page with tables and charts.


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
