"""Is the confidence of answers true? A reliability plot of a prediction file, as an SVG.

    python benchmarks/reliability.py ambignq/dev predictions.json --out docs/images/reliability.svg

Answers are put into ten bins by their confidence; a point is a bin's mean confidence and the share of its answers that
is in the gold (of any annotation, in the official normal form). On the diagonal confidence is true. The figure in the
corner is the expected calibration error.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from whichsense.errors import BadInput
from whichsense.lab.datasets import load_questions
from whichsense.lab.evaluation.results import read_predictions
from whichsense.lab.metrics.exact_match import normal_form

SIZE, EDGE, BINS = 360, 46, 10
Point = tuple[float, float, int]


def outcomes(gold: str, predicted: Path) -> tuple[list[float], list[float]]:
    """Confidence of each answer, and whether it is right."""
    given, right = [], []
    found = read_predictions(predicted)
    for question in load_questions(gold)[0]:
        names = {
            normal_form(name)
            for one in question.annotations
            for pair in one.pairs
            for name in pair.answers
        }
        for pair in found.get(question.id, []):
            if not isinstance(pair, dict) or "confidence" not in pair:
                raise BadInput(
                    f"'{predicted}' does not say how probable its answers are: see question {question.id}."
                )
            given.append(float(pair["confidence"]))
            right.append(float(normal_form(pair["answer"]) in names))
    if not given:
        raise BadInput(f"'{predicted}' has no answer to any question of '{gold}'.")
    return given, right


def points(given: Sequence[float], right: Sequence[float]) -> list[Point]:
    """Mean confidence, share of right answers and their number, for each bin that has any."""
    found = []
    for number in range(BINS):
        own = [
            place for place, value in enumerate(given) if min(int(value * BINS), BINS - 1) == number
        ]
        if own:
            mean, share = (
                sum(values[place] for place in own) / len(own) for values in (given, right)
            )
            found.append((mean, share, len(own)))
    return found


def drawing(found: Sequence[Point], error: float) -> str:
    inner = SIZE - 2 * EDGE

    def at(x: float, y: float) -> str:
        return f"{EDGE + inner * x:.1f},{SIZE - EDGE - inner * y:.1f}"

    most = max(count for *_, count in found)
    dots = "".join(
        f'<circle cx="{at(x, y).split(",")[0]}" cy="{at(x, y).split(",")[1]}" r="{2 + 7 * (n / most) ** 0.5:.1f}" '
        f'fill="#2a6f97" fill-opacity="0.75"><title>{n} answers</title></circle>'
        for x, y, n in found
    )
    line = " ".join(at(x, y) for x, y, _ in found)
    marks = "".join(
        f'<text x="{at(v, 0).split(",")[0]}" y="{SIZE - EDGE + 16}" text-anchor="middle">{v:g}</text>'
        f'<text x="{EDGE - 8}" y="{float(at(0, v).split(",")[1]) + 4:.1f}" text-anchor="end">{v:g}</text>'
        for v in (0, 0.25, 0.5, 0.75, 1)
    )
    font = 'font-family="sans-serif" font-size="11"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" {font}>
<rect width="{SIZE}" height="{SIZE}" fill="white"/>
<polyline points="{at(0, 0)} {at(1, 1)}" stroke="#bbb" stroke-dasharray="4 3" fill="none"/>
<polyline points="{at(0, 1)} {at(0, 0)} {at(1, 0)}" stroke="#333" fill="none"/>
<polyline points="{line}" stroke="#2a6f97" fill="none"/>{dots}{marks}
<text x="{SIZE / 2}" y="{SIZE - 8}" text-anchor="middle">confidence</text>
<text x="14" y="{SIZE / 2}" text-anchor="middle" transform="rotate(-90 14 {SIZE / 2})">right</text>
<text x="{EDGE + 10}" y="{EDGE + 4}">expected calibration error {error:.3f}</text>
</svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("gold", help="a dataset's name or file")
    parser.add_argument("predictions", type=Path, help="as `whichsense predict` writes it")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    given, right = outcomes(options.gold, options.predictions)
    found = points(given, right)
    gaps = [count * abs(mean - share) for mean, share, count in found]
    error = sum(gaps) / max(len(given), 1)
    for mean, share, count in found:
        print(f"confidence {mean:.2f}: right {share:.2f} of {count}")
    print(f"{len(given)} answers, expected calibration error {error:.3f}")
    if options.out:
        options.out.write_text(drawing(found, error), encoding="utf-8")


if __name__ == "__main__":
    main()
