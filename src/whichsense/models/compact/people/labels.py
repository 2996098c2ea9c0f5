"""Labels of a question's answers, which tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.label.labeller import Label
from whichsense.models.compact.people.asking import Asked
from whichsense.models.compact.scene import Scene
from whichsense.text.words import words
from whichsense.types import Candidate, Span

_SURE_OVER = 0.5  # a label that is less sure is none


def find_labels(
    scene: Scene, answers: Sequence[Candidate], asked: Asked
) -> list[Label | None]:
    """The label of each answer, in the best of its passages that the question was asked over; None where there is none,
    or where it says nothing that the question, the answer or another answer's label does not say."""
    if scene.compact.labeller is None:
        return [None] * len(answers)
    places = {
        passage.id: place for place, passage in enumerate(scene.evidence.passages)
    }
    labels = []
    for answer in answers:
        labels.append(_find_label(scene, answer, answers, asked, places))
    counts = Counter(_plain(label) for label in labels if label)
    return [one if one and counts[_plain(one)] == 1 else None for one in labels]


def _plain(label: Label) -> str:
    return " ".join(words(label.text))


def _find_label(
    scene: Scene,
    answer: Candidate,
    answers: Sequence[Candidate],
    asked: Asked,
    places: dict[str, int],
) -> Label | None:
    for span in answer.spans:
        read = asked.reads.get(places.get(span.passage.id, -1))
        own = read and _tokens(read.pair, span)
        if not read or not own:
            continue
        others = []
        for other in answers:
            for beside in other.spans if other is not answer else ():
                tokens = _tokens(read.pair, beside)
                if beside.passage.id == span.passage.id and tokens:
                    others.append(tokens)
        labeller = scene.compact.labeller
        assert labeller is not None
        label = labeller.find(span.passage, read.pair, read.states, own, others)
        if label is None or label.sure < _SURE_OVER:
            return None
        known = set(words(f"{scene.evidence.question} {answer.answer}"))
        return None if known.issuperset(words(label.text)) else label
    return None


def _tokens(pair: Pair, span: Span) -> tuple[int, int] | None:
    """The first and the last token of a span of the passage's text; None where the text was cut before it."""
    inside = [
        at
        for at in range(*pair.text)
        if pair.starts[at] < span.end and pair.ends[at] > span.start
    ]
    return (inside[0], inside[-1]) if inside else None
