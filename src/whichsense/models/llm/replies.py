"""JSON out of a reply: as it should be, between fences or prose, with small faults, or cut off in the middle."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from whichsense.models.llm.exchange import Reply, Token

LONGEST = 200_000
"""Characters of a reply that are looked at; no prompt asks for more."""
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_PYTHON_WORDS = {"None": "null", "True": "true", "False": "false"}
_PYTHON_WORD = re.compile(r"\b(?:None|True|False)\b(?=\s*[,}\]])")
_CLOSERS = {"{": "}", "[": "]"}
_WHOLE_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STRING_OR_CHARACTER = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|.', re.DOTALL)
_KEY_WITHOUT_VALUE = re.compile(r'[,\s]+$|(?:(?<=\{)|,)\s*"[^"]*"\s*:\s*$')
_MOST_STARTS = 20  # brackets at which a value may begin
_AROUND = " \t\n\"'`*().:{}[]▁Ġ"  # what may stand around a choice
_LONGEST_CHOICE = 8  # words of a reply that is a choice


def parse_object(text: str) -> dict[str, Any] | None:
    """The first JSON object of a reply; None where there is none.

    >>> parse_object('Sure! ```json\\n{"answers": ["a", "b",],}\\n```')
    {'answers': ['a', 'b']}
    >>> parse_object('{"answered": "yes", "answers": ["Frank Her')
    {'answered': 'yes', 'answers': ['Frank Her']}
    >>> parse_object("I cannot help with that.") is None
    True
    """
    body = without_thoughts(text)[:LONGEST]
    starts = [match.start() for match in re.finditer(r"\{", body)]
    for start in starts[:_MOST_STARTS]:
        value = _decode(body[start:])
        if isinstance(value, dict):
            return value
    return None


def without_thoughts(text: str) -> str:
    """A reply without what a reasoning model thinks aloud.

    >>> without_thoughts("<think>Hm, yes.</think>yes")
    'yes'
    """
    return _THOUGHTS.sub("", text).strip()


def _decode(text: str) -> Any:
    """The JSON value at the beginning of a text; None where not even a repaired one is there."""
    decoder = json.JSONDecoder()
    whole = _balanced(text)
    plain = _TRAILING_COMMA.sub("", whole)
    plain = _PYTHON_WORD.sub(lambda match: _PYTHON_WORDS[match[0]], plain)
    for attempt in (text, whole, plain):
        try:
            return decoder.raw_decode(attempt)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _balanced(text: str) -> str:
    """The text up to where its first bracket closes; where it never does, with what is open closed.

    >>> _balanced('{"a": [1, 2} ...'), _balanced('{"a": "b')
    ('{"a": [1, 2]}', '{"a": "b"}')
    """
    open_brackets: list[str] = []
    pieces: list[str] = []
    # Strings, the last of which may be cut off, and single characters.
    for part in _STRING_OR_CHARACTER.findall(text):
        if part in ("}", "]"):
            # A bracket that was forgotten is closed before one that is outside of it.
            while open_brackets and _CLOSERS[open_brackets[-1]] != part:
                pieces.append(_CLOSERS[open_brackets.pop()])
            if open_brackets:
                open_brackets.pop()
                pieces.append(part)
        else:
            pieces.append(part)
        if part in _CLOSERS:
            open_brackets.append(part)
        if not open_brackets:
            return "".join(pieces)
    return _closed(pieces) + "".join(_CLOSERS[one] for one in reversed(open_brackets))


def _closed(pieces: Sequence[str]) -> str:
    """A text that was cut off, up to its last whole value: a string that has begun ends, a key without a value goes."""
    text = "".join(pieces)
    last = pieces[-1] if pieces else ""
    if last.startswith('"') and not _WHOLE_STRING.fullmatch(last):
        # Half an escape sequence ends nothing.
        text = re.sub(r"\\(?:u[0-9a-fA-F]{0,3})?$", "", text) + '"'
    return _KEY_WITHOUT_VALUE.sub("", text)


def texts_of(value: Any) -> list[str]:
    """The strings of a value that should be a list of them: one string is a list of one, numbers are written out.

    >>> texts_of(["Dune ", 1965, None, {"answer": "Arrakis"}]), texts_of("Dune")
    (['Dune', '1965', 'Arrakis'], ['Dune'])
    """
    items = value if isinstance(value, list) else [value]
    texts = []
    for item in items:
        # Some models give [{"answer": "…"}, …].
        own = next(iter(item.values())) if isinstance(item, dict) and item else item
        if isinstance(own, str | int | float) and not isinstance(own, bool):
            text = " ".join(str(own).split())
            if text:
                texts.append(text)
    return texts


def choice_probability(reply: Reply, choices: tuple[str, ...]) -> dict[str, float]:
    """The probability of each choice at the first token of a reply that begins one; without log probabilities, 1 for
    the choice that the reply names. Empty where it names none.

    >>> choice_probability(Reply("Yes."), ("yes", "no"))
    {'yes': 1.0, 'no': 0.0}
    """
    names = {_choice_form(choice): choice for choice in choices}
    for token in reply.tokens:
        if _choice_form(token.text) in names:
            return _shares(token, names)
    said = re.findall(r"\w+", without_thoughts(reply.text))
    if len(said) > _LONGEST_CHOICE:
        return {}
    for word in said:
        if _choice_form(word) in names:
            return {one: float(one == names[_choice_form(word)]) for one in choices}
    return {}


def _choice_form(text: str) -> str:
    """What makes two choices the same. A single letter keeps its case: "a" is an article."""
    bare = text.strip(_AROUND)
    return bare if len(bare) == 1 else bare.lower()


def _shares(token: Token, names: Mapping[str, str]) -> dict[str, float]:
    """The probability of each choice among the alternatives of a token."""
    weights = dict.fromkeys(names.values(), 0.0)
    for text, logprob in {token.text: token.logprob, **token.alternatives}.items():
        choice = names.get(_choice_form(text))
        if choice is not None:
            weights[choice] += math.exp(min(0.0, logprob))
    total = sum(weights.values())
    return {choice: weight / total for choice, weight in weights.items()}
