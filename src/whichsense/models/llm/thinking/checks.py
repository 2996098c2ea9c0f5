"""The embedded encoder's word beside the language model's: how probable an answer is by both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from whichsense.models.compact.people import features
from whichsense.models.compact.people.asking import Panel, log_odds
from whichsense.models.compact.people.joining import (
    include_currency,
    join_named_together,
)
from whichsense.models.compact.rewrite.resolving import candidates_of
from whichsense.models.compact.rewrite.targets import locate
from whichsense.models.compact.scene import Scene
from whichsense.text.answers import fullest_form, same_answer
from whichsense.text.words import words
from whichsense.types import Candidate, Policy, Span

_JUDGED = 8  # candidates of the encoder
_MOST = 6  # answers
_CONSIDERED_OVER = 0.15
SAYS_NOTHING = 0.5
"""What the language model says of an answer in passages that it did not read."""
_UNPROPOSED = 0.05  # the most that the encoder believes in an answer that it did not propose itself
_SUREST = 0.9  # a language model is never surer than this: small ones say yes to much
_LEAST = 0.01  # the encoder is never surer of the contrary


def weigh(probability: float, said: float, trust: float) -> float:
    """The encoder's probability after what the language model says: its log odds are added, as far as it is trusted.
    What it says with 0.5 changes nothing.

    >>> [round(weigh(0.8, said, 0.5), 2) for said in (0.1, 0.5, 0.99)]
    [0.57, 0.8, 0.92]
    """
    inside = min(max(said, 1 - _SUREST), _SUREST)
    odds = log_odds(probability, _LEAST) + trust * log_odds(inside)
    return 1 / (1 + math.exp(-odds))


def check_answers(
    scene: Scene,
    given: Sequence[Candidate],
    unnamed: Mapping[str, float],
    trust: float,
    policy: Policy,
) -> list[Candidate]:
    """The answers that are probable enough to be rewritten, most probable first: the language model's, and those that
    the encoder alone is sure of. None where both hardly believe that there is an answer.

    `unnamed` has, for each passage that the language model read, by id, what its reply says of answers that it did not
    name; `trust` is how much its word counts.
    """
    candidates, said = _merge(scene, given, unnamed)
    if not candidates:
        return []
    chances, answerable = _encoder_probabilities(scene, candidates)
    judged = []
    for candidate, own, chance in zip(candidates, said, chances, strict=True):
        score = weigh(chance, own, trust)
        judged.append(replace(include_currency(candidate), score=score))
    judged.sort(key=lambda candidate: -candidate.score)
    standard = scene.compact.trust.in_large
    if scene.is_small:
        standard = scene.compact.trust.in_small
    there = weigh(answerable, max(said), trust)
    if there < standard.answerable_over or judged[0].score < standard.only_over:
        return []
    least = min(_CONSIDERED_OVER, policy.threshold or _CONSIDERED_OVER)
    considered = [one for one in judged if one.score >= least][:_MOST]
    return join_named_together(considered) or judged[:1]


def _merge(
    scene: Scene, given: Sequence[Candidate], unnamed: Mapping[str, float]
) -> tuple[list[Candidate], list[float]]:
    """The encoder's candidates and those that only the language model gives, with the latter's probabilities. Where
    both mean the same, the answer is written as the language model wrote it."""
    asked = set(words(scene.evidence.question))
    places = []
    for place in scene.apart:
        says_more = not asked.issuperset(words(scene.answers[place].text))
        if says_more or "or" in asked:
            places.append(place)
    candidates: list[Candidate] = []
    said: list[float] = []
    left = list(given)
    for candidate in candidates_of(scene, places[:_JUDGED]):
        same = [one for one in left if same_answer(one.answer, candidate.answer)]
        if same:
            left = [one for one in left if one not in same]
            text = fullest_form([same[0].answer, candidate.answer], [1.0, 1.0])
            spans = _join_spans(candidate, same[0])
            candidates.append(replace(candidate, answer=text, spans=spans))
            said.append(max(one.score for one in same))
        else:
            candidates.append(candidate)
            passages = [span.passage.id for span in candidate.spans]
            read = [unnamed[one] for one in passages if one in unnamed]
            said.append(max(read, default=SAYS_NOTHING))
    for one in left:
        candidates.append(one)
        said.append(one.score)
    return candidates, said


def _join_spans(encoded: Candidate, said: Candidate) -> tuple[Span, ...]:
    """The encoder's spans, best first, then the language model's in other passages, as much weaker ones."""
    spans = list(encoded.spans)
    known = {span.passage.id for span in spans}
    weakest = min((span.score for span in spans), default=1.0)
    for span in said.spans:
        if span.passage.id not in known:
            spans.append(replace(span, score=weakest * span.score))
    return tuple(spans)


def _encoder_probabilities(
    scene: Scene, candidates: Sequence[Candidate]
) -> tuple[list[float], float]:
    """How probable each candidate is by the verifier, and that there is an answer at all."""
    targets = [locate(scene, candidate, told=True) for candidate in candidates]
    (asked,) = Panel.of(scene, targets).ask([scene.evidence.question])
    trust = scene.compact.trust
    standard = trust.in_small if scene.is_small else trust.in_large
    chances = []
    answerable = 0.0
    for number, candidate in enumerate(candidates):
        place = _place_of(scene, candidate)
        if place is None:
            # The verdict on where it stands is no probability: it was fitted on what the encoder proposes.
            verdict = 1 / (1 + math.exp(-float(asked.verdict[number])))
            chances.append(min(verdict, _UNPROPOSED))
            continue
        row = features.of_answer(scene, place, number, asked)
        chances.append(standard.answer.probabilities([row])[0])
        own = trust.answerable.probabilities([row])[0]
        answerable = max(answerable, own)
    return chances, answerable


def _place_of(scene: Scene, candidate: Candidate) -> int | None:
    for place, answer in enumerate(scene.answers):
        if same_answer(answer.text, candidate.answer):
            return place
    return None
