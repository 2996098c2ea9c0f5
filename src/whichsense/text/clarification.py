"""Clarification questions as text, parsed and composed: "Which version: the film, the book, or the musical?"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.types import Clarification

_LEAD = re.compile(
    r"^(?:(?:for|in|on|at|by|of|from|to|with|under|during)\s+)?(?:which|what)\s+", re.IGNORECASE
)
_HEADING = re.compile(r"^.*?\b(?:which|what)\s+", re.IGNORECASE)
_MARK = re.compile(r":\s*|\?\s+(?=\S)")
_MONTH = "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
_MONTH += r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
# Text with a comma that does not separate options: a date, a number, a title, a quotation, something in brackets.
_WHOLE = re.compile(
    rf"{_MONTH} \d{{1,2}}, \d{{3,4}}|\d{{1,3}}(?:,\d{{3}})+|, (?:Jr|Sr|Inc|Ltd)\b\.?"
    r'|"[^"]*"|“[^”]*”|\([^)]*\)|\[[^\]]*\]'
)
_SERIAL_OR = re.compile(r"\s*,\s*or\s+", re.IGNORECASE)
_OR = re.compile(r"\s+or\s+", re.IGNORECASE)


def say_dependence(clarification: Clarification | None) -> str:
    """Say what the answer of an ambiguous question depends on: on the category of its clarification, if there is one.

    >>> say_dependence(Clarification("Year", "In which year: 1961, or 2021?", "year", ()))
    'This depends on the year.'
    >>> say_dependence(None)
    'This depends on what is meant.'
    """
    if clarification is None or clarification.category in ("", "one"):
        return "This depends on what is meant."
    return f"This depends on the {clarification.category}."


@dataclass(frozen=True, slots=True)
class ParsedClarification:
    """A clarification question taken apart."""

    category: str
    options: tuple[str, ...]


def parse_clarification(question: str, expected: int | None = None) -> ParsedClarification | None:
    """Return category and options as a reader understands them; None where there is no list of options.

    A comma behind the last "or" belongs to the last option, unless `expected` is another number of options.

    >>> parse_clarification("Which version: the 2002 film, the book, or the musical?")
    ParsedClarification(category='version', options=('the 2002 film', 'the book', 'the musical'))
    >>> parse_clarification("Which one: film or book?").options
    ('film', 'book')
    >>> parse_clarification("Which date: July 4, 1776, or August 2, 1776?").options
    ('July 4, 1776', 'August 2, 1776')
    >>> parse_clarification("Which city: Rome, Paris, France?", expected=2).options
    ('Rome', 'Paris, France')
    >>> parse_clarification("Could you be more specific?") is None
    True
    """
    body = question.strip().rstrip("?. ").strip()
    mark = _MARK.search(body)
    if not mark:
        return None
    heading = body[: mark.start()] + " "
    if not _LEAD.match(heading):
        return None
    category = _LEAD.sub("", heading).strip() or "one"
    options = _split_options(body[mark.end() :], expected)
    return ParsedClarification(category, tuple(options)) if options else None


def compose_question(lead: str, labels: Sequence[str]) -> str:
    """Return the question that lists all labels behind its lead.

    >>> compose_question("Which version", ["the film", "the book", "the musical"])
    'Which version: the film, the book, or the musical?'
    >>> compose_question("As of which year", ["2017", "2018"])
    'As of which year: 2017, or 2018?'
    """
    *first, last = labels
    listed = f"{', '.join(first)}, or {last}" if first else last
    return f"{lead}: {listed}?"


def category_of(heading: str) -> str:
    """Return the category in what stands before the options.

    >>> [category_of(heading) for heading in ("Which one", "As of which year", "version")]
    ['one', 'year', 'version']
    """
    return _HEADING.sub("", heading, count=1).strip()


def _split_options(text: str, expected: int | None) -> list[str]:
    masked_texts: list[str] = []

    def mask(match: re.Match[str]) -> str:
        masked_texts.append(match[0])
        return f"\x00{len(masked_texts) - 1}\x00"

    options = _split_masked(_WHOLE.sub(mask, text), expected)
    for number, whole in enumerate(masked_texts):
        options = [option.replace(f"\x00{number}\x00", whole) for option in options]
    return [option.strip() for option in options if option.strip()]


def _at_commas(text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",")]


def _split_masked(masked: str, expected: int | None) -> list[str]:
    """Split at commas and "or", in text whose other commas are masked."""
    *heads, tail = _SERIAL_OR.split(masked)
    pieces: list[str] = []
    for head in heads:
        pieces += _at_commas(head)
    if heads:
        pieces.append(tail)
    else:  # "film or book", "a, b or c"
        pieces += _at_commas(tail)
        pieces[-1:] = _OR.split(pieces[-1])
    if expected and heads and len(pieces) < expected:
        pieces[-1:] = _at_commas(pieces[-1])
    while expected and len(pieces) > expected:
        pieces[-2:] = [f"{pieces[-2]}, {pieces[-1]}"]
    return pieces
