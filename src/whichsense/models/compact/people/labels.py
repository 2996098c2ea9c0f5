"""Labels of a question's answers, which tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.models.compact.label.labeller import Label
from whichsense.models.compact.scene import Scene
from whichsense.text.words import words
from whichsense.types import Candidate

# A label that is less sure is none: of those that are surer four in five overlap the written one, and three in four of
# all labels are.
_SURE_OVER = 0.7


def find_labels(scene: Scene, answers: Sequence[Candidate]) -> list[Label | None]:
    """The label of each answer, in the best of its passages; None where there is none, or where it says nothing that
    the question, the answer or another answer's label does not say."""
    labels: list[Label | None] = [None] * len(answers)
    if scene.compact.labeller is None:
        return labels
    question = scene.evidence.question
    places = [number for number, answer in enumerate(answers) if answer.spans]
    spans = [answers[number].spans[0] for number in places]
    found = scene.compact.labeller.find(question, spans)
    for number, label in zip(places, found, strict=True):
        known = set(words(f"{question} {answers[number].answer}"))
        if label is not None and label.sure >= _SURE_OVER:
            if not known.issuperset(words(label.text)):
                labels[number] = label
    counts = Counter(_plain(label) for label in labels if label)
    return [one if one and counts[_plain(one)] == 1 else None for one in labels]


def _plain(label: Label) -> str:
    return " ".join(words(label.text))
