"""How much annotators agree: between two values of a kind, and over a project."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from whichsense.lab.metrics.ambignq import f1_answers
from whichsense.lab.metrics.asqa import rouge_l
from whichsense.studio.checks import Value, answers_of
from whichsense.studio.items import Item
from whichsense.studio.kinds import MARKS, Kind
from whichsense.studio.reliability import (
    UNDEFINED,
    Statistic,
    Unit,
    cohen,
    fleiss,
    interval,
    krippendorff,
    mean_of,
    most_common_size,
)
from whichsense.text.words import normalize


def similarity(kind: Kind, item: Value, one: Value, other: Value) -> float:
    """How alike two annotations of an item are, from 0 to 1."""
    if kind.measure == "answers":
        return answer_agreement(resolved_answers(item, one), resolved_answers(item, other))
    if kind.measure == "options":
        return masi(option_set(one), option_set(other))
    if kind.measure == "text":
        return rouge_l(one.get("text", ""), other.get("text", ""))
    labels = [_label(kind, value) for value in (one, other)]
    if kind.measure == "marks":
        pairs = list(zip(*labels, strict=False))
        return sum(a == b for a, b in pairs) / len(pairs) if pairs else 1.0
    return float(labels[0] == labels[1])


def _label(kind: Kind, value: Value) -> Any:
    if kind.measure == "marks":
        marks: list[Hashable] = []
        for own in value.get("marks", ()):
            marks += [own.get(name) for name in MARKS]
        return marks
    return value.get(kind.label)


def resolved_answers(item: Value, value: Value) -> list[list[str]]:
    """The answers that an annotation stands for: a verdict stands for those that it accepts."""
    verdict = value.get("verdict")
    if verdict in ("same", "better"):
        number = value.get("better") if verdict == "better" else 0
        return answers_of(item["annotations"][number or 0])
    return answers_of(value)


def answer_agreement(one: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> float:
    """F1 over answers with each annotator once as the gold side, as the paper's generators are compared; two who found
    nothing agree.

    >>> answer_agreement([["a"], ["b"]], [["a"]])
    0.6666666666666666
    """
    if not one or not other:
        return float(not one and not other)
    there = f1_answers(one, [names[0] for names in other])
    back = f1_answers(other, [names[0] for names in one])
    return (there + back) / 2


def option_set(value: Value) -> frozenset[str]:
    """The options of a clarification question as they are compared; none where the question is not ambiguous."""
    if value.get("action") == "not ambiguous":
        return frozenset()
    return frozenset(normalize(option.get("text", "")) for option in value.get("options", ()))


def masi(one: frozenset[str], other: frozenset[str]) -> float:
    """How alike two sets are (Passonneau 2006): Jaccard, weighted by whether one holds the other.

    >>> masi(frozenset("ab"), frozenset("abc"))
    0.4444444444444444
    """
    if not one and not other:
        return 1.0
    shared = one & other
    jaccard = len(shared) / len(one | other)
    if one == other:
        return 1.0
    if shared in (one, other):
        return jaccard * 2 / 3 if shared else 0.0
    return jaccard / 3 if shared else 0.0


# Over a project: the measures with their intervals, and the table behind them.


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of agreement."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    units: int
    """Items that it is over."""
    says: str
    """What it means, or why it is undefined."""


_LABELS = {
    "generate": ("outcome",),
    "validate": ("verdict",),
    "clarification": ("action",),
    "preference": ("choice",),
    "compare": ("overall", "comprehensive", "fluent", "ambiguity"),
}
_SETS = {"answers": "answers", "options": "options"}
_SIMILARITY = {
    "answers": ("F1ans", "the mean F1 over answers, each annotator once as the gold"),
    "options": ("MASI", "the mean likeness of the sets of options"),
    "text": ("ROUGE-L", "the mean ROUGE-L between two long answers"),
    "choice": ("equal", "the share of equal answers"),
    "marks": ("equal", "the share of equal marks"),
}


def measure_all(kind: Kind, items: Sequence[Item]) -> list[Measure]:
    """Every measure that fits a kind of annotation."""
    several = [item for item in items if len(item.values) > 1]
    scores = [item_agreement(kind, item) for item in several]
    name, meaning = _SIMILARITY[kind.measure]
    measures = [_measure(name, mean_of(scores), len(several), f"{meaning}.")]
    if kind.measure in _SETS:
        units = [_sets(kind, item) for item in several]
        statistic = krippendorff(units, masi)
        called = f"Krippendorff's alpha, MASI over {_SETS[kind.measure]}"
        measures.append(_measure(called, statistic, len(units), labels=units))
    for label, units in _labelled(kind, several).items():
        measures.append(_measure(f"Cohen's kappa, {label}", cohen(units), len(units), labels=units))
        same = most_common_size(units)
        measures.append(_measure(f"Fleiss' kappa, {label}", fleiss(same), len(same), labels=same))
        measures.append(
            _measure(
                f"Krippendorff's alpha, {label}", krippendorff(units), len(units), labels=units
            )
        )
    return measures


def item_agreement(kind: Kind, item: Item) -> float:
    """The mean similarity between every two annotations of an item."""
    pairs = combinations(item.values.values(), 2)
    scores = [similarity(kind, item.body, one, other) for one, other in pairs]
    return sum(scores) / len(scores)


def difference(kind: Kind, item: Item) -> float:
    """Return how much the annotators of an item differ, from 0 to 1; 0 below two."""
    return 1 - item_agreement(kind, item) if len(item.values) > 1 else 0.0


def row(kind: Kind, item: Item) -> dict[str, Any]:
    """An item's line of the table: how far its annotators agree, and what that says."""
    count = len(item.values)
    agreement = item_agreement(kind, item) if count > 1 else None
    if agreement is None:
        says = "Undefined: agreement needs two annotations, and there is " + (
            "one." if count else "none."
        )
    elif agreement > 1 - 1e-9:
        says = f"All {count} agree."
    else:
        name = _SIMILARITY[kind.measure][0]
        degree = "have nothing in common" if agreement < 1e-9 else "agree in part"
        says = f"The {count} annotations {degree}: {name} {agreement:.2f}."
    said: dict[str, dict[str, str]] = {}
    for label, units in _labelled(kind, [item]).items():
        said[label] = {who: str(one) for who, one in units[0].items()} if units else {}
    return {
        "item": item.number,
        "question": item.body["question"],
        "annotations": count,
        "agreement": agreement,
        "labels": said,
        "says": says,
    }


def _sets(kind: Kind, item: Item) -> Unit:
    if kind.measure == "options":
        return {who: option_set(value) for who, value in item.values.items()}
    found = {}
    for who, value in item.values.items():
        answers = resolved_answers(item.body, value)
        found[who] = frozenset(normalize(names[0]) for names in answers if names)
    return found


def _labelled(kind: Kind, items: Sequence[Item]) -> dict[str, list[Unit]]:
    """What annotators said in each field of one label; each reading is a unit of its own."""
    if kind.measure != "marks":
        labels = _LABELS.get(kind.name, ())
        return {
            label: [{who: one.get(label) for who, one in item.values.items()} for item in items]
            for label in labels
        }
    units: dict[str, list[Unit]] = {mark: [] for mark in MARKS}
    for item in items:
        for number in range(len(item.body["readings"])):
            for mark in MARKS:
                units[mark].append(
                    {who: one["marks"][number].get(mark) for who, one in item.values.items()}
                )
    return units


def _measure(
    name: str, statistic: Statistic, count: int, meaning: str = "", labels: Sequence[Unit] = ()
) -> Measure:
    import numpy as np

    value = statistic(np.ones(count)) if count else UNDEFINED
    if math.isnan(value):
        return Measure(name, None, None, None, count, _why_undefined(count, labels))
    bounds = interval(statistic, count)
    low, high = bounds or (None, None)
    says = meaning[:1].upper() + meaning[1:] if meaning else _strength(value)
    if bounds is None:
        says += " Too few items for an interval."
    return Measure(name, value, low, high, count, says)


def _why_undefined(count: int, labels: Sequence[Unit]) -> str:
    if not count:
        return "Undefined: no item has two annotations yet."
    said = {label for unit in labels for label in unit.values()}
    if len(said) == 1:
        return "Undefined: every annotation says the same, and chance would agree as often."
    return "Undefined: no two annotators differ in what they say at all, so that chance cannot be told."


def _strength(value: float) -> str:
    if value >= 0.8:
        return "Reliable by the usual bound of .80."
    if value >= 2 / 3:
        return "Enough for tentative conclusions (.67 to .80)."
    if value > 0:
        return "Better than chance, and below .67: no conclusions by the usual bounds."
    return "No better than chance."
