"""Features of an answer and of a rewrite after they were asked again: what trust is learnt from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.people.asking import Asked, log_odds
from whichsense.models.compact.reader.candidates import Answer
from whichsense.models.compact.rewrite.support import Support
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import change_features

_LEAST = 1e-4


def of_answer(scene: Scene, place: int, number: int, asked: Asked) -> dict[str, float]:
    """The features of a candidate. `place`: among the scene's candidates; `number`: among the panel's answers."""
    answer = scene.answers[place]
    probability = scene.probabilities[place]
    best = max(scene.probabilities)
    mass = asked.own(number)
    return {
        "probability": log_odds(probability),
        "beside_best": _log_ratio(probability, best),
        "answerable": log_odds(scene.answerable),
        "ambiguous": log_odds(scene.ambiguous),
        "mass": math.log(max(mass, _LEAST)),
        "verdict": float(asked.verdict[number]),
        "verdict_beside_best": float(asked.verdict[number] - asked.verdict.max()),
        "null": math.log(max(asked.null, _LEAST)),
        "rank": float(sum(other > mass for other in asked.mass.tolist())),
        "passages": math.log(_count_passages(answer)),
        "in_title": float(answer.mentions[0].in_title),
        "candidates": math.log(len(asked.mass)),
        "is_small": float(scene.is_small),
    }


def _count_passages(answer: Answer) -> int:
    return len({mention.passage for mention in answer.mentions})


@dataclass(frozen=True)
class RewriteView:
    """A rewrite of a question for the panel's answer of this number, and what is known of it."""

    question: str
    rewrite: str
    number: int
    asked: Asked
    before: Asked
    """What the question itself gives."""
    fluency: float
    """A logit."""
    supports: Sequence[Support]
    """Of all answers."""

    @property
    def features(self) -> dict[str, float]:
        number = self.number
        own = self.asked.own(number)
        other = self.asked.other(number)
        own_before = self.before.own(number)
        other_before = self.before.other(number)
        return {
            "own": log_odds(own),
            "margin": _log_ratio(own, other),
            "gain": _log_ratio(own, own_before),
            "lost": _log_ratio(other, other_before),
            "null": math.log(max(self.asked.null, _LEAST)),
            "verdict": float(self.asked.verdict[number]),
            "verdict_margin": _margin(self.asked, number),
            "fluency": self.fluency,
            "apart": float(self._tells_apart()),
            "answers": math.log(len(self.asked.mass)),
            **change_features(self.question, self.rewrite),
        }

    def _tells_apart(self) -> bool:
        others = []
        for place, beside in enumerate(self.supports):
            if place != self.number:
                others.append(beside)
        own = self.supports[self.number]
        return own.tells_apart(self.rewrite, others)


def _log_ratio(value: float, beside: float) -> float:
    return math.log(max(value, _LEAST) / max(beside, _LEAST))


def _margin(asked: Asked, number: int) -> float:
    """How much better the answer's verdict is than the best of the others."""
    others = [value for place, value in enumerate(asked.verdict) if place != number]
    return float(asked.verdict[number]) - float(max(others, default=-12.0))
