"""Years, decades and dates in replies and options."""

from __future__ import annotations

import re
from dataclasses import dataclass

from whichsense.conversation.replies.tokens import plain
from whichsense.conversation.replies.vocabulary import DECADES
from whichsense.text.dates import parse_date

_YEAR = r"(1\d{3}|20\d\d)"
_YEARS = re.compile(rf"\b{_YEAR}(s?)\b")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]*\.? (?:\d{{1,2}}, )?{_YEAR}\b")
_DECADE = re.compile(rf"\b(?:(\d\d)s|{'|'.join(DECADES)})\b")
_CLOCK = re.compile(r"\b(\d{1,2}):(\d\d)\b")
_FUTURE = 9999
# How a reply limits years; each pattern has one year or two.
_LIMITS = (
    (
        re.compile(rf"\b(?:between|from) {_YEAR} (?:and|to|until|till) {_YEAR}\b"),
        "within",
    ),
    (re.compile(rf"\b(?:before|prior to|earlier than|older than) {_YEAR}\b"), "before"),
    (re.compile(rf"\b(?:until|till|up to) {_YEAR}\b"), "until"),
    (re.compile(rf"\b(?:after|later than|newer than|past) {_YEAR}\b"), "after"),
    (
        re.compile(rf"\b(?:since|from) {_YEAR} ?(?:on|onwards|onward|and later)\b"),
        "since",
    ),
    (re.compile(rf"\bsince {_YEAR}\b"), "since"),
)


@dataclass(frozen=True, slots=True)
class Period:
    """Years from the first to the last; for "the sixties", of any century."""

    first: int
    last: int
    any_century: bool = False

    def contains(self, year: int) -> bool:
        """
        >>> Period(60, 69, any_century=True).contains(1966), Period(1990, 1999).contains(1966)
        (True, False)
        """
        if self.any_century:
            return self.first <= year % 100 <= self.last
        return self.first <= year <= self.last


def find_limit(text: str) -> tuple[Period, str] | None:
    """The period that a plain text names, and the text without it; None where it names none.

    >>> find_limit("the film before 1975")
    (Period(first=0, last=1974, any_century=False), 'the film ')
    >>> find_limit("in the 90s")
    (Period(first=90, last=99, any_century=True), 'in the ')
    """
    for pattern, kind in _LIMITS:
        match = pattern.search(text)
        if match:
            years = [int(year) for year in match.groups()]
            return _period(kind, years), text[: match.start()] + text[match.end() :]
    decade = _DECADE.search(text)
    if decade:
        first = int(decade[1]) if decade[1] else DECADES[decade[0]]
        rest = text[: decade.start()] + text[decade.end() :]
        return Period(first, first + 9, any_century=True), rest
    years_match = _YEARS.search(text)
    if years_match and years_match[2]:
        first = int(years_match[1])
        rest = text[: years_match.start()] + text[years_match.end() :]
        return Period(first, first + 9), rest
    return None


def _period(kind: str, years: list[int]) -> Period:
    first = years[0]
    if kind == "within":
        return Period(first, years[1])
    if kind in ("before", "until"):
        return Period(0, first - (kind == "before"))
    return Period(first + (kind == "after"), _FUTURE)


def years_in(text: str) -> list[int]:
    """Years that a text names; a decade by its first.

    >>> years_in("Batman (1960s series), shown again in 1989")
    [1960, 1989]
    """
    return [int(match[1]) for match in _YEARS.finditer(plain(text))]


def time_key(text: str) -> tuple[int, int, int] | None:
    """(year, month, day) of the first date in a text, with 0 for what it leaves out; (0, 0, minutes) of a time of day.

    >>> time_key("August 2, 1776"), time_key("general election, May 2016"), time_key("1 March"), time_key("film")
    ((1776, 8, 2), (2016, 5, 0), (0, 3, 1), None)
    >>> time_key("at 15:30")
    (0, 0, 930)
    """
    date = parse_date(text)
    if date is not None:
        return (date.year or 0, date.month or 0, date.day or 0)
    bare = plain(text)
    month = _MONTH.search(bare)
    if month:
        return (int(month[2]), _MONTHS.index(month[1]) + 1, 0)
    years = years_in(bare)
    if years:
        return (years[0], 0, 0)
    clock = _CLOCK.search(bare)
    return (0, 0, 60 * int(clock[1]) + int(clock[2])) if clock else None
