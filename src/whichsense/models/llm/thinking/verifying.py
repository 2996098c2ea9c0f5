"""Verifies readings: the rewrite is asked again, and the model chooses among all listed answers."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from whichsense.models.compact.people.readings import split_probable
from whichsense.models.compact.scene import Compact
from whichsense.models.llm.exchange import Reply
from whichsense.models.llm.fences import clean
from whichsense.models.llm.replies import choice_probability
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.thinking.checks import weigh
from whichsense.models.llm.windows import answer_lines, fence_lines
from whichsense.types import Candidate, Case, Reading

_MOST_TOKENS = 4
_TOP = 12  # letters that may be among a token's alternatives
_UNSURE = 0.2  # that a bare choice, without log probabilities, is wrong
_LEAST = 0.02  # of a letter's probability
_TRUE_OVER = 0.5  # a rewrite that is probably false is not given
_MOST_ANSWERS = len(string.ascii_uppercase) - 1
Shares = Mapping[str, float]
"""The probability of each letter."""


def verify_readings(talk: Talk, case: Case, compact: Compact) -> Case:
    """The case with what is probable split from what is merely possible. For benchmarks, readings whose rewrite calls
    for another answer go; the best one stays in any case."""
    scene = compact.scene_of(case)
    readings = list(case.readings)
    if 1 < len(readings) <= _MOST_ANSWERS:
        readings = _ask_again(talk, case)
    if case.policy.careful:
        probable, possible = split_probable(scene, readings, case.policy)
    else:
        probable = sorted(readings, key=lambda reading: -reading.confidence)
        least = 0.5 * max((one.confidence for one in probable), default=0.0)
        probable = [one for one in probable if one.confidence >= least]
        possible = []
    return replace(
        case, readings=tuple(probable), possible=tuple(possible), scratch=scene
    )


def _ask_again(talk: Talk, case: Case) -> list[Reading]:
    """The readings after what the model chose. One without a rewrite stays as it is.

    The question as it was asked is put to the model, too: what it chooses there is its habit, such as the first
    letter, and counts for nothing.
    """
    letters = string.ascii_uppercase[: len(case.readings) + 1]
    # For people the question as it was asked tells nothing of a reading without a rewrite.
    asked = []
    for one in case.readings:
        if one.question != case.question or not case.policy.careful:
            asked.append(one)
    questions = [case.question, *(one.question for one in asked)]
    table = _answer_table(case.readings, letters)
    requests = []
    for question in questions:
        requests.append(
            talk.request(
                "verify",
                _MOST_TOKENS,
                top_logprobs=_TOP,
                answers=table,
                question=clean(question),
            )
        )
    choose = partial(_understand, letters=letters)
    habit, *choices = talk.ask(requests, choose)
    weighed = {}
    for reading, chosen in zip(asked, choices, strict=True):
        letter = letters[case.readings.index(reading)]
        if chosen is not None:
            own = _against_habit(chosen, habit, letter, letters[:-1])
            trust = talk.endpoint.settings.trust
            weighed[reading] = _weigh_reading(case, reading, own, trust)
    return [weighed.get(reading, reading) for reading in case.readings]


def _answer_table(readings: Sequence[Reading], letters: str) -> str:
    candidates = [Candidate(one.answer, 0.0, one.evidence) for one in readings]
    lines = answer_lines(candidates, letters[:-1])
    return fence_lines([*lines, f"{letters[-1]}. none of these"], "answers")


def _understand(reply: Reply, letters: str) -> Shares | None:
    shares = choice_probability(reply, tuple(letters))
    if shares and not reply.tokens:
        others = _UNSURE / (len(letters) - 1)
        for letter, share in shares.items():
            shares[letter] = 1 - _UNSURE if share else others
    return shares or None


def _against_habit(
    chosen: Shares, habit: Shares | None, own: str, letters: str
) -> float:
    """How much a choice speaks for an answer: 0.5 where it says no more than the habit does, or than chance.

    >>> same = {"A": 0.9, "B": 0.1}
    >>> round(_against_habit(same, same, "B", "AB"), 2), round(_against_habit({"A": 0.5, "B": 0.5}, same, "B", "AB"), 2)
    (0.5, 0.9)
    """
    weights = {}
    for letter in letters:
        usual = 1.0 if habit is None else max(habit[letter], _LEAST)
        weights[letter] = max(chosen[letter], _LEAST) / usual
    others = [weights[letter] for letter in letters if letter != own]
    # Beside the mean of the others: with any number of answers, no difference is 0.5.
    mean = sum(others) / len(others)
    return weights[own] / (weights[own] + mean)


def _weigh_reading(case: Case, reading: Reading, own: float, trust: float) -> Reading:
    """A reading whose rewrite was asked again. For people it loses a rewrite that is probably false by what the encoder
    and the model chose; for benchmarks its confidence counts the model's choice."""
    if not case.policy.careful:
        return replace(reading, confidence=reading.confidence * weigh(1.0, own, trust))
    if weigh(_encoder_choice(reading), own, trust) >= _TRUE_OVER:
        return reading
    titles = [span.passage.title for span in reading.evidence]
    source = titles[0] if titles else ""
    return replace(reading, question=case.question, source=source, asked_again=None)


def _encoder_choice(reading: Reading) -> float:
    """How probable the encoder finds the answer of a rewrite beside the likeliest other one; at least as probable as
    not, for it gives no other rewrite."""
    again = reading.asked_again
    if again is None or not again.own:
        return _TRUE_OVER
    return max(_TRUE_OVER, again.own / (again.own + again.other))
