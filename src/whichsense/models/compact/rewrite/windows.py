"""Windows of passages around an answer: the evidence in the writer's prompts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whichsense.models.compact.encoder.inputs import LONGEST_QUESTION
from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.rewrite.support import Target
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.writer import search
from whichsense.models.compact.writer.prompts import Window, answering

_PER_REWRITE = 2  # windows in the prompt of a rewrite
_PER_QUESTION = 4  # windows in the prompt that answers are scored with: it is read again for every question


def order_passages(scene: Scene, target: Target) -> list[int]:
    """Places of the passages that hold the answer, then of the others, best first."""
    passages = range(len(scene.evidence.hits))
    others = [place for place in passages if place not in target.marked]
    return [*target.marked, *others]


def windows(scene: Scene, target: Target) -> list[Window]:
    """The windows for a rewrite: of the answer's own passages first, then of the best of the others."""
    places = order_passages(scene, target)[:_PER_REWRITE]
    return [_window(scene, place, target) for place in places]


def _window(scene: Scene, place: int, target: Target) -> Window:
    pair = scene.evidence.pairs[place]
    (title, title_end), (text, text_end) = pair.title, pair.text
    # The answer's first span in the text; (0, 0) relative to the text if there is none.
    first = text
    end = text
    for span in target.marked.get(place, ()):
        if span[0] >= text:
            first, end = span
            break
    return Window(
        pair.ids[title:title_end], pair.ids[text:text_end], first - text, end - text
    )


def likelihoods(
    scene: Scene, questions: Sequence[str], targets: Sequence[Target]
) -> Floats:
    """The log probability of each answer to each question, given a window for each answer (questions × answers):
    REFUEL's verification score."""
    shared: list[Window] = []
    for target in targets:
        shared += windows(scene, target)[:1]
    model = scene.compact.model
    prompts = []
    for question in questions:
        ids = model.tokenizer.ids(question, LONGEST_QUESTION)
        prompts.append(answering(ids, shared[:_PER_QUESTION]))
    outputs = [scene.tokens(target.answer) for target in targets]
    frequent = model.config.get("frequent", ())
    scores = search.likelihoods(scene.compact.writer, prompts, outputs, frequent)
    return np.array(scores, dtype=np.float32)
