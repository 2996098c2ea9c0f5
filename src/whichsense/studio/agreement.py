"""How much annotators agree: between two values of a kind, and over a project."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from whichsense.lab.metrics.ambignq import f1_answers
from whichsense.lab.metrics.asqa import rouge_l
from whichsense.studio.checks import Value, answers_of
from whichsense.studio.kinds import Kind
from whichsense.text.words import normalize


def similarity(kind: Kind, item: Value, one: Value, other: Value) -> float:
    """How alike two annotations of an item are, from 0 to 1."""
    if kind.measure == "answers":
        return answer_agreement(
            resolved_answers(item, one), resolved_answers(item, other)
        )
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
            marks += [own.get(name) for name in ("answer", "true", "apart", "fluent")]
        return marks
    return value.get(kind.label)


def resolved_answers(item: Value, value: Value) -> list[list[str]]:
    """The answers that an annotation stands for: a verdict stands for those that it accepts."""
    verdict = value.get("verdict")
    if verdict in ("same", "better"):
        number = value.get("better") if verdict == "better" else 0
        return answers_of(item["annotations"][number or 0])
    return answers_of(value)


def answer_agreement(
    one: Sequence[Sequence[str]], other: Sequence[Sequence[str]]
) -> float:
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
    return frozenset(
        normalize(option.get("text", "")) for option in value.get("options", ())
    )


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
