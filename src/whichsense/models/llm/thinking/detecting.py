"""Detects ambiguity: with the answers that were found, is the question meant in several ways?"""

from __future__ import annotations

from dataclasses import replace

from whichsense.models.llm.exchange import Reply
from whichsense.models.llm.fences import clean
from whichsense.models.llm.replies import choice_probability
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.windows import numbered_answers
from whichsense.types import Case

_MOST_TOKENS = 4
_TOP = 8


def detect_ambiguity(talk: Talk, case: Case, threshold: float = 0.5) -> Case:
    """The case with the probability that it is ambiguous. With less than two answers there is nothing to ask."""
    if len(case.answers) < 2:
        return replace(case, is_ambiguous=False)
    request = talk.request(
        "detect",
        _MOST_TOKENS,
        top_logprobs=_TOP,
        question=clean(case.question),
        answers=numbered_answers(case.answers),
    )
    (probability,) = talk.ask([request], _understand)
    if probability is None:
        return case
    return replace(case, ambiguous=probability, is_ambiguous=probability >= threshold)


def _understand(reply: Reply) -> float | None:
    return choice_probability(reply, ("yes", "no")).get("yes")
