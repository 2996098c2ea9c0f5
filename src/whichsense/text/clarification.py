"""A clarification question taken apart: "Which version: the film, the book, or the musical?"."""

from __future__ import annotations

import re

from whichsense.types import Clarification

_LEAD = re.compile(
    r"^(?:(?:for|in|on|at|by|of|from|to|with|under|during)\s+)?(?:which|what)\s+",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^.*?\b(?:which|what)\s+", re.IGNORECASE)
_MARK = re.compile(r":\s*|\?\s+(?=\S)")
_MONTH = "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
_MONTH += r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
# What holds a comma without being a list: a date, a number, a title, a quotation, something in brackets.
_WHOLE = re.compile(
    rf"{_MONTH} \d{{1,2}}, \d{{3,4}}|\d{{1,3}}(?:,\d{{3}})+|, (?:Jr|Sr|Inc|Ltd)\b\.?"
    r'|"[^"]*"|“[^”]*”|\([^)]*\)|\[[^\]]*\]'
)
_SERIAL_OR = re.compile(r"\s*,\s*or\s+", re.IGNORECASE)
_OR = re.compile(r"\s+or\s+", re.IGNORECASE)
_COMMA = re.compile(r"\s*,\s*")


def parse(question: str, expected: int | None = None) -> Clarification | None:
    """Category and options as a reader understands them; None where there is no list of options.

    A comma behind the last "or" belongs to the last option, unless the number of options is known to be otherwise.

    >>> parse("Which version: the 2002 film, the book, or the musical?")
    Clarification(category='version', options=('the 2002 film', 'the book', 'the musical'), readings=())
    >>> parse("Which one: film or book?").options
    ('film', 'book')
    >>> parse("Which date: July 4, 1776, or August 2, 1776?").options
    ('July 4, 1776', 'August 2, 1776')
    >>> parse("Which city: Rome, Paris, France?", expected=2).options
    ('Rome', 'Paris, France')
    >>> parse("Could you be more specific?") is None
    True
    """
    body = question.strip().rstrip("?. ").strip()
    mark = _MARK.search(body)
    if not mark or not _LEAD.match(body[: mark.start()] + " "):
        return None
    category = _LEAD.sub("", body[: mark.start()] + " ").strip() or "one"
    options = tuple(_options(body[mark.end() :], expected))
    return Clarification(category, options) if options else None


def category_of(heading: str) -> str:
    """The category in what stands before the options.

    >>> [category_of(heading) for heading in ("Which one", "As of which year", "version")]
    ['one', 'year', 'version']
    """
    return _HEADING.sub("", heading, count=1).strip()


def _options(text: str, expected: int | None) -> list[str]:
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    pieces = _pieces(_WHOLE.sub(keep, text), expected)
    restored = (
        re.sub(r"\x00(\d+)\x00", lambda match: kept[int(match[1])], piece)
        for piece in pieces
    )
    return [option for piece in restored if (option := piece.strip())]


def _pieces(masked: str, expected: int | None) -> list[str]:
    *heads, tail = _SERIAL_OR.split(masked)
    pieces = [piece for head in heads for piece in _COMMA.split(head)]
    pieces += [tail] if heads else _COMMA.split(tail)
    if not heads:  # "film or book", "a, b or c"
        pieces[-1:] = _OR.split(pieces[-1])
    if expected and heads and len(pieces) < expected:
        pieces[-1:] = _COMMA.split(pieces[-1])
    while expected and len(pieces) > expected:
        pieces[-2:] = [f"{pieces[-2]}, {pieces[-1]}"]
    return pieces
