"""One page from saved results: tables with intervals, tests, and the questions where two systems differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import combinations
from typing import Any

from whichsense.errors import BadInput
from whichsense.lab.evaluation.results import Comparison, Result, compare

# HTML elements, and a page that needs no other file.

_VOID = ("input", "meta")  # elements without content and without an end tag


def tag(name: str, /, *content: str, **attributes: object) -> str:
    """An element. Content is markup already; attribute values are escaped.

    A trailing "_" of an attribute's name is dropped. An attribute that is None is left out.

    >>> tag("td", "a &lt; b", class_="best", id=None)
    '<td class="best">a &lt; b</td>'
    >>> tag("input", type="radio")
    '<input type="radio">'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f'{key.removesuffix("_")}="{escape(str(value))}"')
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


def style() -> str:
    """The style sheet of pages, as an element."""
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


# One HTML page from saved results: tables, tests, and the questions where two systems differ.

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
    metrics = [
        metric
        for metric in results[0].metrics
        if set(_values(results, metric)) != {None}
    ]
    counts = [f"{name} = {count:,}" for name, count in results[0].counts.items()]
    parts = [
        text("h2", dataset),
        text("p", ", ".join(counts)),
        _score_table(results, names, metrics),
        *_notes(results),
    ]
    # A pair of systems can be compared where both results hold their questions.
    comparable = [
        replace(result, name=name)
        for name, result in zip(names, results, strict=True)
        if result.questions
    ]
    pairs = list(combinations(comparable, 2))
    for a, b in pairs[:_MOST_PAIRS]:
        parts.append(_pair(a, b, differences))
    return tag("section", *parts)


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
