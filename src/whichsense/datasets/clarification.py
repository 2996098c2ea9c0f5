"""A clarification question taken apart: "Which version: the film, the book, or the musical?"."""

from __future__ import annotations

import re

_LEAD = re.compile(r"^(?:(?:for|in|on|at|by|of|from|to|with|under|during)\s+)?(?:which|what)\s+", re.IGNORECASE)
_OR = re.compile(r",\s*or\s+", re.IGNORECASE)
_COMMA = re.compile(r",\s+")
_BARE_OR = re.compile(r"\s+or\s+", re.IGNORECASE)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAY = re.compile(rf"\b(?:{_MONTHS})\s+\d{{1,2}}$", re.IGNORECASE)


def parse(question: str, expected: int | None = None) -> tuple[str, tuple[str, ...]]:
    """The category and the options. Where the number of options is known, it settles what a comma means.

    >>> parse("Which version: the 2002 film, the book, or the musical?")
    ('version', ('the 2002 film', 'the book', 'the musical'))
    >>> parse("Which one: film or book?")
    ('one', ('film', 'book'))
    >>> parse("Which day: July 4, 1776, or August 2, 1776?", expected=2)
    ('day', ('July 4, 1776', 'August 2, 1776'))
    >>> parse("For which year? 2010, 2007, or plans?")
    ('year', ('2010', '2007', 'plans'))
    >>> parse("Do you mean the film?")
    ('', ())
    """
    body = question.strip().rstrip("?").strip()
    parts = re.split(r":\s*|\?\s+", body, maxsplit=1)
    if len(parts) < 2 or not _LEAD.match(parts[0]):
        return "", ()
    return _LEAD.sub("", parts[0]).strip(), _options(parts[1], expected)


def _options(body: str, expected: int | None) -> tuple[str, ...]:
    """Commas and the last "or" separate options; a comma after the last "or" belongs to the last option."""
    *heads, tail = _OR.split(body)
    pieces = [piece for head in heads for piece in _COMMA.split(head)]
    pieces += [tail] if heads else _COMMA.split(tail)
    if not heads and _BARE_OR.search(pieces[-1]):  # "film or book", "a, b or c"
        pieces[-1:] = _BARE_OR.split(pieces[-1])
    pieces = _dates(pieces)
    if expected and len(pieces) < expected and heads:
        pieces = [*pieces[:-1], *_COMMA.split(pieces[-1])]
    while expected and len(pieces) > expected > 0:
        pieces = _join(pieces, len(pieces) - 1)
    return tuple(piece.strip() for piece in pieces if piece.strip())


def _dates(pieces: list[str]) -> list[str]:
    """ "July 4", "1776" is one date."""
    at = 1
    while at < len(pieces):
        if _DAY.search(pieces[at - 1]) and re.match(r"\d{4}\b", pieces[at]):
            pieces = _join(pieces, at)
        else:
            at += 1
    return pieces


def _join(pieces: list[str], at: int) -> list[str]:
    return [*pieces[: at - 1], f"{pieces[at - 1]}, {pieces[at]}", *pieces[at + 1 :]]
