"""Verifies readings: the rewrite is asked again, and the model chooses among all listed answers."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import replace

from whichsense.models.compact.people.readings import split_probable
from whichsense.models.compact.scene import Compact
from whichsense.models.llm.exchange import Reply
from whichsense.models.llm.fences import clean
from whichsense.models.llm.replies import choice_probability
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.thinking.checks import blend
from whichsense.models.llm.windows import fence_lines, numbered_answers
from whichsense.types import Candidate, Case, Reading

_MOST_TOKENS = 4
_TOP = 12  # letters that may be among a token's alternatives
_UNSURE = 0.15  # that a bare choice, without log probabilities, is wrong
_MOST_ANSWERS = len(string.ascii_uppercase) - 1


def verify_readings(talk: Talk, case: Case, compact: Compact) -> Case:
    """The case with what is probable split from what is merely possible. For benchmarks, readings whose rewrite calls
    for another answer go; the best one stays in any case."""
    scene = compact.scene_of(case)
    readings = list(case.readings)
    asked = [one for one in readings if not one.source]
    if len(readings) > 1 and len(readings) <= _MOST_ANSWERS:
        owns = _own_probabilities(talk, readings, asked)
        trust = talk.endpoint.settings.trust
        scores = {answer.answer: answer.score for answer in case.answers}
        for reading, own in zip(asked, owns, strict=True):
            place = readings.index(reading)
            readings[place] = _weigh(reading, own, scores, trust)
    if case.policy.careful:
        probable, possible = split_probable(scene, readings, case.answers, case.policy)
    else:
        ordered = sorted(readings, key=lambda reading: -reading.confidence)
        sure = [one for one in ordered if one.confidence >= 0.5 * ordered[0].confidence]
        probable, possible = sure, []
    return replace(
        case, readings=tuple(probable), possible=tuple(possible), scratch=scene
    )


def _own_probabilities(
    talk: Talk, readings: Sequence[Reading], asked: Sequence[Reading]
) -> list[float | None]:
    """The probability that each rewrite calls for its own answer; None where the reply cannot be used."""
    letters = string.ascii_uppercase[: len(readings) + 1]
    candidates = [Candidate(one.answer, 0.0, one.evidence) for one in readings]
    listed = numbered_answers(candidates, letters[:-1])
    none = fence_lines([f"{letters[-1]}. none of these"], "answers").splitlines()[1]
    *lines, closing = listed.splitlines()
    table = "\n".join([*lines, none, closing])
    requests = []
    for reading in asked:
        requests.append(
            talk.request(
                "verify",
                _MOST_TOKENS,
                top_logprobs=_TOP,
                answers=table,
                question=clean(reading.question),
            )
        )

    def choose(reply: Reply) -> Mapping[str, float] | None:
        shares = choice_probability(reply, tuple(letters))
        if shares and not reply.tokens:
            return {letter: abs(share - _UNSURE) for letter, share in shares.items()}
        return shares or None

    chosen = talk.ask(requests, choose)
    owns: list[float | None] = []
    for reading, shares in zip(asked, chosen, strict=True):
        letter = letters[list(readings).index(reading)]
        owns.append(None if shares is None else shares[letter])
    return owns


def _weigh(
    reading: Reading, own: float | None, scores: Mapping[str, float], trust: float
) -> Reading:
    """A reading whose confidence counts both: what the encoder says of the rewrite, and what the model chose."""
    answer = scores.get(reading.answer, 1.0)
    if own is None or answer <= 0:
        return reading
    true = min(1.0, reading.confidence / answer)
    return replace(reading, confidence=answer * blend(own, true, trust))
