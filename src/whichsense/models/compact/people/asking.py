"""Asks a question again: reads it, in the place of the original one, with the passages of all listed answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whichsense.models.compact.encoder.inputs import LONGEST_QUESTION, Pair, pair
from whichsense.models.compact.encoder.runtime import Floats, Late
from whichsense.models.compact.reader.candidates import passage_probabilities
from whichsense.models.compact.reader.spans import edge_probabilities, free_tokens
from whichsense.models.compact.rewrite.support import Target
from whichsense.models.compact.scene import Scene

_PASSAGES_OF_ANSWER = 2
_MOST_PASSAGES = 6
_LONGEST_PAIR = 176  # tokens; the verifier learnt from pairs of 160
_NO_VERDICT = -12.0  # of an answer that stands in none of the passages


@dataclass(frozen=True)
class Asked:
    """What a question gives over a panel's passages, for each of its answers."""

    mass: Floats
    """The probability of each answer."""
    verdict: Floats
    """The best logit of each answer's spans to be an answer."""
    null: float
    """The probability that no passage answers."""

    def own(self, number: int) -> float:
        return float(self.mass[number])

    def other(self, number: int) -> float:
        """The probability of the likeliest other answer."""
        others = np.delete(self.mass, number)
        return float(others.max()) if len(others) else 0.0


@dataclass(frozen=True)
class Panel:
    """Answers, and the passages over which questions for them are asked again: the best ones of every answer."""

    scene: Scene
    targets: tuple[Target, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, scene: Scene, targets: Sequence[Target]) -> Panel:
        places: dict[int, None] = {}
        # Every answer's best passage first, then every answer's second.
        for rank in range(_PASSAGES_OF_ANSWER):
            for target in targets:
                own = list(target.marked)
                if rank < len(own):
                    places[own[rank]] = None
        most = max(_MOST_PASSAGES, len(targets))
        return cls(scene, tuple(targets), tuple(places)[:most])

    def ask(self, questions: Sequence[str]) -> list[Asked]:
        """Ask each question. All pairs are encoded in one call, which fills all cores."""
        if not self.places:
            nothing = np.zeros(len(self.targets), np.float32)
            return [Asked(nothing, nothing + _NO_VERDICT, 1.0) for _ in questions]
        pairs: list[Pair] = []
        for question in questions:
            pairs += self._pairs(question)
        outputs = self.scene.compact.model.verify(pairs)
        asked = []
        size = len(self.places)
        for start in range(0, len(pairs), size):
            part = slice(start, start + size)
            asked.append(self._gather(pairs[part], outputs[part]))
        return asked

    def _pairs(self, question: str) -> list[Pair]:
        tokenizer = self.scene.compact.model.tokenizer
        ids = tokenizer.ids(question, LONGEST_QUESTION)
        pairs = []
        for place in self.places:
            passage = self.scene.evidence.passages[place]
            built = pair(tokenizer, ids, passage.title, passage.text, _LONGEST_PAIR)
            pairs.append(built)
        return pairs

    def _gather(self, pairs: Sequence[Pair], outputs: Sequence[Late]) -> Asked:
        shares, null = passage_probabilities(outputs)
        mass = np.zeros(len(self.targets), np.float32)
        verdict = np.full(len(self.targets), _NO_VERDICT, np.float32)
        for place, own, output, share in zip(
            self.places, pairs, outputs, shares.tolist(), strict=True
        ):
            edges = edge_probabilities(output.span, free_tokens(own))
            for number, target in enumerate(self.targets):
                spans = self._spans(target, place, own)
                if not spans:
                    continue
                first, last = np.array(spans).T
                # A span's probability: of its first token times of its last.
                probability = edges[first, 0] * edges[last, 1]
                mass[number] += share * float(min(1.0, probability.sum()))
                states = output.states[np.stack([first * 0, first, last], axis=1)]
                logits = self.scene.compact.model.verifier_verdicts(states)
                verdict[number] = max(verdict[number], float(logits.max()))
        return Asked(mass, verdict, null)

    def _spans(self, target: Target, place: int, own: Pair) -> list[tuple[int, int]]:
        """First and last tokens of an answer's spans in a pair that has another question than the scene's."""
        shift = own.title[0] - self.scene.evidence.pairs[place].title[0]
        spans = []
        for first, end in target.marked.get(place, ()):
            # The text may be cut earlier than before.
            if end + shift < len(own):
                spans.append((first + shift, end - 1 + shift))
        return spans


def judge_fluency(scene: Scene, rewrites: Sequence[str]) -> list[float]:
    """The logit of each rewrite to be one that a person could have written. It is read beside the question."""
    model = scene.compact.model
    pairs = []
    for rewrite in rewrites:
        ids = model.tokenizer.ids(rewrite, LONGEST_QUESTION)
        pairs.append(pair(model.tokenizer, ids, scene.evidence.question, ""))
    return [output.ambiguity for output in model.verify(pairs)]


def log_odds(probability: float, least: float = 1e-4) -> float:
    """The logit of a probability, away from 0 and 1.

    >>> log_odds(0.5), round(log_odds(0.0), 2), round(log_odds(1.0), 2)
    (0.0, -9.21, 9.21)
    """
    inside = min(max(probability, least), 1 - least)
    return math.log(inside / (1 - inside))
