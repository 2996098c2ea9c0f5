"""One self-contained HTML page from saved results: tables, plots, and the questions where two systems differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import combinations
from typing import Any

from whichsense.errors import BadInput
from whichsense.evaluation.report.plots import COLOURS, interval_plot, spread_plot
from whichsense.evaluation.scoring.compare import Comparison, compare
from whichsense.evaluation.scoring.result import Result

MAIN = {"ambignq": "f1_ans", "nq": "em", "cambignq": "option_f1", "asqa": "rouge_l"}
"""The metric by which questions are ranked where two systems differ."""

_PAIRS = 6
"""How many pairs of systems are compared at most: a page that nobody reads to the end helps nobody."""


def build_page(
    results: Sequence[Result], title: str = "Results", differences: int = 50
) -> str:
    """The page, with at most `differences` questions for each pair of systems."""
    if not results:
        raise BadInput("A report needs at least one result.")
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.dataset, []).append(result)
    body = "".join(
        _section(dataset, group, differences) for dataset, group in groups.items()
    )
    style = (
        files("whichsense.evaluation.report")
        .joinpath("page.css")
        .read_text(encoding="utf-8")
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        f"<body><h1>{escape(title)}</h1>"
        f"<p>{len(results)} results. In brackets: 95% bootstrap intervals over questions.</p>{body}</body></html>\n"
    )


def _section(dataset: str, results: Sequence[Result], differences: int) -> str:
    names = _names(results)
    shown = [
        metric
        for metric in results[0].metrics
        if any(one.metrics.get(metric) is not None for one in results)
    ]
    plotted = [
        metric
        for metric in shown
        if any(
            metric in one.intervals and one.intervals[metric][1] <= 1 for one in results
        )
    ]
    counts = ", ".join(
        f"{name} = {count:,}" for name, count in results[0].counts.items()
    )
    parts = [
        f"<section><h2>{escape(dataset)}</h2><p>{escape(counts)}</p>",
        _table(results, names, shown),
        _key(names),
        interval_plot(results, names, plotted),
        _spread(dataset, results, names),
        _notes(results),
    ]
    with_questions = [
        (name, one) for name, one in zip(names, results, strict=True) if one.questions
    ]
    for first, second in list(combinations(with_questions, 2))[:_PAIRS]:
        parts.append(_pair(first, second, differences))
    return "".join(parts) + "</section>"


def _names(results: Sequence[Result]) -> list[str]:
    """Each system's name, told apart by a number where two share one."""
    names: list[str] = []
    for result in results:
        same = sum(one.name == result.name for one in results)
        seen = sum(
            name == result.name or name.startswith(f"{result.name} (") for name in names
        )
        names.append(f"{result.name} ({seen + 1})" if same > 1 else result.name)
    return names


def _table(
    results: Sequence[Result], names: Sequence[str], metrics: Sequence[str]
) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for metric in metrics:
        values = [one.metrics.get(metric) for one in results]
        best = max(value for value in values if value is not None)
        mark = len(results) > 1 and metric in MAIN.values()
        cells = []
        for one, value in zip(results, values, strict=True):
            low_high = one.intervals.get(metric)
            span = (
                f"<small>[{low_high[0]:.4f}, {low_high[1]:.4f}]</small>"
                if low_high and value is not None
                else ""
            )
            kind = ' class="best"' if mark and value == best else ""
            cells.append(
                f"<td{kind}><b>{'–' if value is None else f'{value:.4f}'}</b>{span}</td>"
            )
        label = " / ".join(
            dict.fromkeys(
                one.label(metric)
                for one in results
                if one.metrics.get(metric) is not None
            )
        )
        rows.append(f"<tr><td>{escape(label)}</td>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table><tr><th>metric</th>{head}</tr>{"".join(rows)}</table></div>'


def _key(names: Sequence[str]) -> str:
    items = (
        f'<li class="s{i % COLOURS}"><span>{escape(name)}</span></li>'
        for i, name in enumerate(names)
    )
    return f'<ul class="key">{"".join(items)}</ul>'


def _spread(dataset: str, results: Sequence[Result], names: Sequence[str]) -> str:
    metric = MAIN.get(dataset, "")
    scores = {
        name: [
            float(question[metric])
            for question in one.questions.values()
            if question.get(metric) is not None
        ]
        for name, one in zip(names, results, strict=True)
    }
    if not any(scores.values()):
        return ""
    return f"<h3>Questions by their {escape(metric)}</h3>{spread_plot(scores)}"


def _notes(results: Sequence[Result]) -> str:
    lines = dict.fromkeys(note for one in results for note in one.notes)
    return "".join(f"<p>{escape(str(note))}</p>" for note in lines)


def _pair(
    first: tuple[str, Result], second: tuple[str, Result], differences: int
) -> str:
    (a, one), (b, other) = first, second
    title = f"<h3>{escape(a)} and {escape(b)}</h3>"
    try:
        found = compare(replace(one, name=a), replace(other, name=b))
    except (
        BadInput
    ) as error:  # for example different questions: the tables above still stand
        return f"{title}<p>{escape(str(error))}</p>"
    metric = MAIN.get(one.dataset, "")
    metric = metric if metric in found.tests else next(iter(found.tests))
    cards = _cards(one, other, (a, b), metric, differences)
    return f"{title}{_tests(found)}{cards}"


def _tests(found: Comparison) -> str:
    rows = []
    for name, test in found.tests.items():
        span = f"<small>[{test.low:+.4f}, {test.high:+.4f}]</small>"
        cells = (
            f"{test.difference:+.4f}{span}",
            f"{test.p_permutation:.4f}",
            f"{test.better:,} / {test.worse:,}",
        )
        inner = "".join(
            f"<td>{cell}</td>"
            for cell in (escape(name), *cells, escape(found.verdict(name)))
        )
        rows.append(f"<tr>{inner}</tr>")
    head = (
        f"<th>metric</th><th>{escape(found.b)} − {escape(found.a)}</th><th>p</th>"
        "<th>wins / losses</th><th>verdict</th>"
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _cards(
    one: Result, other: Result, names: tuple[str, str], metric: str, most: int
) -> str:
    gaps = []
    for key, mine in one.questions.items():
        theirs = other.questions[key]
        if mine.get(metric) is not None and abs(mine[metric] - theirs[metric]) > 1e-12:
            gaps.append((abs(mine[metric] - theirs[metric]), key))
    gaps.sort(key=lambda gap: -gap[0])
    head = f"<p>They differ in {escape(metric)} on {len(gaps):,} questions"
    head += f"; the {most} largest differences:</p>" if len(gaps) > most else ":</p>"
    return head + "".join(
        _card(key, one.questions[key], other.questions[key], names, metric)
        for _, key in gaps[:most]
    )


def _card(key: str, mine: Any, theirs: Any, names: tuple[str, str], metric: str) -> str:
    gold = "; ".join(str(answer) for answer in mine.get("gold", []))
    sides = []
    for name, side, against in ((names[0], mine, theirs), (names[1], theirs, mine)):
        kind = "up" if side[metric] > against[metric] else "down"
        items = (
            "".join(
                f"<li>{escape(str(text))}</li>" for text in side.get("predicted", [])
            )
            or "<li>–</li>"
        )
        score = f'<span class="{kind}">{side[metric]:.3f}</span>'
        sides.append(f"<div><h5>{escape(name)} {score}</h5><ul>{items}</ul></div>")
    question = escape(str(mine.get("question") or key))
    return (
        f"<article><h4>{question}</h4><p>gold: {escape(gold)}</p><p>id {escape(key)}</p>"
        f'<div class="pair">{"".join(sides)}</div></article>'
    )
