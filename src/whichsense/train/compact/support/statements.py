"""Statements: a question and its answer as one sentence, by rules. It need not be elegant, but it must say the same."""

from __future__ import annotations

import re

_BE = "is|are|was|were"
_HELPERS = f"{_BE}|do|does|did|has|have|had|can|could|will|would|should|may|might"
_WH = r"(?:in |on |at |for |from |by |to |with |of )?(?:who|whom|what|which|when|where|why|how|whose)"
_BE_QUESTION = re.compile(rf"^(?:who|what) (?P<be>{_BE}) (?P<rest>.+)$", re.I)
_NOUN_BE = re.compile(
    rf"^(?:what|which) (?P<noun>[\w' -]+?) (?P<be>{_BE}) (?P<rest>.+)$", re.I
)
_SUBJECT = re.compile(rf"^who (?!(?:{_HELPERS})\b)(?P<rest>\w+ .+)$", re.I)
_NOUN_SUBJECT = re.compile(
    rf"^(?:what|which) \w+ (?!(?:{_HELPERS})\b)(?P<rest>\w+(?:ed|s|won|made|wrote|began|became|held|has|had) .+)$",
    re.I,
)
_HELPER = re.compile(rf"^(?P<wh>{_WH}[\w' -]*?) (?:{_HELPERS}) (?P<rest>.+)$", re.I)
_PREPOSITIONS = ("in", "on", "at", "for", "from", "by", "to", "with", "of")


def state(question: str, answer: str) -> str:
    """The statement that an answer makes of a question.

    >>> state("Who wrote Dubliners?", "James Joyce")
    'James Joyce wrote Dubliners.'
    >>> state("what is the capital of Peru", "Lima")
    'Lima is the capital of Peru.'
    >>> state("When did the siege of Vienna end?", "12 September 1683")
    'The siege of Vienna end in 12 September 1683.'
    >>> state("How many moons does Mars have?", "two")
    'How many moons Mars have: two.'
    """
    asked = question.strip().rstrip("?. ")
    reply = answer.strip().rstrip(".")
    for pattern in (_BE_QUESTION, _NOUN_BE, _SUBJECT, _NOUN_SUBJECT):
        match = pattern.match(asked)
        if not match:
            continue
        parts = match.groupdict()
        between = f" {parts['be']} " if parts.get("be") else " "
        return _capitalize(f"{reply}{between}{parts['rest']}.")
    match = _HELPER.match(asked)
    if not match:
        return f"{_capitalize(asked)}: {reply}."
    wh, rest = match["wh"].lower(), match["rest"]
    first = wh.split()[0]
    if first in _PREPOSITIONS:
        return _capitalize(f"{rest} {first} {reply}.")
    if wh == "when" or wh.endswith((" year", " date", " day")):
        return _capitalize(f"{rest} in {reply}.")
    if wh in ("where", "who", "whom", "what", "why"):
        joint = (
            " in " if wh == "where" and not reply.startswith(("in ", "at ")) else " "
        )
        return _capitalize(f"{rest}{joint}{reply}.")
    return _capitalize(f"{match['wh']} {rest}: {reply}.")


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
