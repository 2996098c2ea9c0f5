"""What the writer is told of the evidence: windows of passages in which an answer stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whichsense.models.compact.encoder.inputs import LONGEST_QUESTION
from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.rewrite.support import Target
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.writer import search
from whichsense.models.compact.writer.prompts import Window, answering

_OF_EACH = 2  # windows of the evidence that a rewrite is told
_TOGETHER = 4  # windows that an answer is looked for in: all of the writer's prompt is read for every question


def windows(scene: Scene, target: Target) -> list[Window]:
    """Of the answer's own passages first, then of the best of the others."""
    rest = [
        place for place in range(len(scene.evidence.hits)) if place not in target.marked
    ]
    return [
        _window(scene, place, target) for place in [*target.marked, *rest][:_OF_EACH]
    ]


def _window(scene: Scene, place: int, target: Target) -> Window:
    pair = scene.evidence.pairs[place]
    (title, title_end), (text, text_end) = pair.title, pair.text
    inside = [span for span in target.marked.get(place, ()) if span[0] >= text]
    first, end = inside[0] if inside else (text, text)
    return Window(
        pair.ids[title:title_end], pair.ids[text:text_end], first - text, end - text
    )


def likelihoods(
    scene: Scene, questions: Sequence[str], targets: Sequence[Target]
) -> Floats:
    """How likely each answer is to each question beside what the evidence says of all of them (questions × answers):
    REFUEL's verification score."""
    told = [windows(scene, target)[:1] for target in targets]
    together = [window for own in told for window in own][:_TOGETHER]
    tokenizer = scene.compact.model.tokenizer
    prompts = [
        answering(tokenizer.ids(question, LONGEST_QUESTION), together)
        for question in questions
    ]
    outputs = [scene.tokens(target.answer) for target in targets]
    frequent = scene.compact.model.config.get("frequent", ())
    return np.array(
        search.likelihoods(scene.compact.writer, prompts, outputs, frequent),
        dtype=np.float32,
    )
