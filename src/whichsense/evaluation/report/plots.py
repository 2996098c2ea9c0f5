"""Two plots as inline SVG: scores with their intervals, and how the questions' scores are spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from whichsense.evaluation.scoring.result import Result

_WIDTH, _LEFT, _ROW = 640, 170, 16
COLOURS = 6
"""How many systems get a colour of their own; more begin again."""


def interval_plot(
    results: Sequence[Result], names: Sequence[str], metrics: Sequence[str]
) -> str:
    """A dot and a line for each system and metric: the score and its 95% interval, on an axis from 0 to 1."""
    block = _ROW * len(results) + 14
    height = block * len(metrics) + 30
    parts = [_axis(height - 22)]
    for row, metric in enumerate(metrics):
        top = row * block + 8
        middle = top + _ROW * len(results) / 2
        parts.append(
            f'<text x="{_LEFT - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(metric)}</text>'
        )
        for column, result in enumerate(results):
            value = result.metrics.get(metric)
            if value is not None:
                y = top + _ROW * (column + 0.5)
                parts.append(
                    _dot(
                        value,
                        result.intervals.get(metric),
                        y,
                        column,
                        f"{names[column]} {metric}",
                    )
                )
    return _svg(height, parts, "Scores with 95% intervals")


def _dot(
    value: float,
    interval: tuple[float, float] | None,
    y: float,
    column: int,
    title: str,
) -> str:
    low, high = interval or (value, value)
    kind = f"s{column % COLOURS}"
    hover = f"<title>{escape(title)}: {value:.4f} [{low:.4f}, {high:.4f}]</title>"
    line = f'<line x1="{_x(low):.1f}" x2="{_x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'<g class="{kind}">{hover}{line}<circle cx="{_x(value):.1f}" cy="{y:.1f}" r="4"/></g>'


def spread_plot(scores: Mapping[str, Sequence[float]], bins: int = 10) -> str:
    """For each system, which share of the questions got which score."""
    height, base, top = 200, 170, 12
    parts = []
    shares = [_shares(values, bins) for values in scores.values()]
    highest = max((share for one in shares for share in one), default=0.0) or 1.0
    slot = (_WIDTH - 56 - 16) / bins
    bar = (slot - 6) / max(len(shares), 1)
    for column, (name, one) in enumerate(zip(scores, shares, strict=True)):
        for i, share in enumerate(one):
            tall = (base - top) * share / highest
            x = 56 + i * slot + column * bar
            label = f"<title>{escape(name)}: {share:.1%} of the questions score {_range(i, bins)}</title>"
            box = f'x="{x:.1f}" y="{base - tall:.1f}" width="{bar * 0.9:.1f}" height="{tall:.1f}"'
            parts.append(f'<g class="s{column % COLOURS}">{label}<rect {box}/></g>')
    for i in range(0, bins, 3):
        x = 56 + (i + 0.5) * slot - 3
        parts.append(
            f'<text x="{x:.1f}" y="{base + 20}" text-anchor="middle">{_range(i, bins)}</text>'
        )
    parts.append(f'<text x="50" y="{top + 10}" text-anchor="end">{highest:.0%}</text>')
    parts.append(
        f'<line class="axis" x1="56" x2="{_WIDTH - 16}" y1="{base}" y2="{base}"/>'
    )
    return _svg(height, parts, "How the questions' scores are spread")


def _shares(values: Sequence[float], bins: int) -> list[float]:
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int(value * bins)))] += 1
    return [count / max(len(values), 1) for count in counts]


def _range(i: int, bins: int) -> str:
    return f"{i / bins:.1f}–{(i + 1) / bins:.1f}"


def _x(value: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - 16) * min(1.0, max(0.0, value))


def _axis(y: float) -> str:
    parts = []
    for tenth in range(0, 11, 2):
        x = _x(tenth / 10)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{y}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{tenth / 10:.1f}</text>'
        )
    return "".join(parts)


def _svg(height: float, parts: Sequence[str], label: str) -> str:
    head = (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">'
    )
    return f"{head}{''.join(parts)}</svg>"
