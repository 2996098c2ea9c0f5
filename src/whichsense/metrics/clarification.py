"""Reading a clarification question: "Which one: party, leader, or faction?" has a category and three options."""

from __future__ import annotations

import re

from whichsense.types import Clarification

INVALID = "invalid form"

_MONTH = "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
_MONTH += r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
# What holds a comma without being a list: a date, a number, a title, a quotation, something in brackets.
_WHOLE = re.compile(
    rf"{_MONTH} \d{{1,2}}, \d{{3,4}}|\d{{1,3}}(?:,\d{{3}})+|, (?:Jr|Sr|Inc|Ltd)\b\.?"
    r'|"[^"]*"|“[^”]*”|\([^)]*\)|\[[^\]]*\]'
)
_SERIAL_OR = re.compile(r"\s*,\s*or\s+", re.IGNORECASE)
_OR = re.compile(r"\s+or\s+", re.IGNORECASE)
_HEAD = re.compile(r"\s*(?:for\s+|in\s+|by\s+)?which\b\s*", re.IGNORECASE)


def parse_released(question: str) -> tuple[str, list[str]]:
    """Category and options as the released scorer reads them, traps included.

    >>> parse_released("Which one: party, leader, or faction?")
    ('Which one', ['party', 'leader', 'faction'])
    >>> parse_released("Which one: film or book?")
    ('Which one', ['film or book'])
    >>> parse_released("Which herb: basil, oregano?")
    ('Which herb', ['basil', 'egano'])
    >>> parse_released("Could you be more specific?")
    ('invalid form', ['invalid form'])
    """
    category, colon, rest = question.partition(":")
    if not colon:
        return INVALID, [INVALID]
    return category, [option.strip(" ?") for part in rest.split(", or") for option in part.split(",")]


def parse(question: str) -> Clarification | None:
    """Category and options as a reader understands them; None where there is no list of options.

    >>> parse("Which one: film or book?").options
    ('film', 'book')
    >>> parse("Which date: July 4, 1776, or August 2, 1776?").options
    ('July 4, 1776', 'August 2, 1776')
    >>> parse("Which herb? basil, oregano, or thyme?")
    Clarification(category='herb', options=('basil', 'oregano', 'thyme'), readings=())
    >>> parse("Could you be more specific?") is None
    True
    """
    question = question.strip()
    mark = re.search(r":|\?(?=\s*\S)", question)
    if not mark:
        return None
    category = _HEAD.sub("", question[: mark.start()], count=1).strip() or "one"
    options = _options(re.sub(r"[\s?.]*\?\s*$", "", question[mark.end() :]))
    return Clarification(category, tuple(options)) if options else None


def _options(text: str) -> list[str]:
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    masked = _WHOLE.sub(keep, text)
    if _SERIAL_OR.search(masked):
        parts = [part for piece in _SERIAL_OR.split(masked) for part in piece.split(",")]
    else:  # "A, B or C": only the last part holds the word that joins the list
        *first, last = masked.split(",")
        parts = [*first, *_OR.split(last)]
    restored = (re.sub(r"\x00(\d+)\x00", lambda match: kept[int(match[1])], part) for part in parts)
    return [option for part in restored if (option := part.strip())]
