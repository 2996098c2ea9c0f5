"""Dates and numbers inside answers, whichever way they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTHS = (
    "january february march april may june july august september october november december"
).split()
_MONTH_OF = {name: place for place, name in enumerate(_MONTHS, 1)} | {
    name[:3]: place for place, name in enumerate(_MONTHS, 1)
}
_MONTH_OF["sept"] = 9
_MONTH = r"(?P<month>" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{3,4})(?:\s*(?:ad|ce))?"
_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+)?"
_DATES = [
    re.compile(rf"(?:on |in )?{_WEEKDAY}(?:the )?{pattern}", re.IGNORECASE)
    for pattern in (
        rf"{_MONTH}\s+{_DAY}(?:\s*,?\s+{_YEAR})?",
        rf"{_DAY}(?:\s+of)?\s+{_MONTH}(?:\s*,?\s+{_YEAR})?",
        rf"{_MONTH}(?:\s*,|\s+of)?\s+{_YEAR}",
        r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})",
        r"(?:the year )?(?P<year>\d{4})(?:\s*(?:ad|ce))?",
        _MONTH,
    )
]
_NAMES = "|".join(name.capitalize() for name in _MONTHS)  # "may" is a word, too
_MONTH_BEFORE, _MONTH_BEHIND = (
    re.compile(rf"\b(?:{_NAMES})\s+$"),
    re.compile(rf"\s+(?:{_NAMES})\b"),
)
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = {name: value for value, name in enumerate(_UNITS)} | {
    name: 10 * n for n, name in enumerate(_TENS, 2)
}
_LARGE = {
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_ORDINAL = {name: value for value, name in enumerate(_ORDINALS, 1)}
_FIGURE = re.compile(r"[-−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)")
_SIGN = r"(?:(?<!\S)[-−])?"  # before a number that it does not join to another one


@dataclass(frozen=True, slots=True)
class Date:
    """A date as far as it is told."""

    year: int | None
    month: int | None
    day: int | None

    def fits(self, other: Date) -> bool:
        """Both tell something in common, and nothing that contradicts.

        >>> year, may = Date(1997, None, None), Date(1997, 5, None)
        >>> may.fits(year), may.fits(Date(1997, 6, None)), Date(None, 5, 1).fits(year)
        (True, False, False)
        """
        pairs = [
            (self.year, other.year),
            (self.month, other.month),
            (self.day, other.day),
        ]
        told = [
            (mine, its) for mine, its in pairs if mine is not None and its is not None
        ]
        return bool(told) and all(mine == its for mine, its in told)

    @property
    def told(self) -> int:
        return sum(part is not None for part in (self.year, self.month, self.day))


def date(text: str) -> Date | None:
    """The date that a text is, if it is one and nothing more.

    >>> date("July 4, 1776") == date("4th of July 1776") == date("1776-07-04") == Date(1776, 7, 4)
    True
    >>> date("1997"), date("in May 1997"), date("12"), date("1997 votes")
    (Date(year=1997, month=None, day=None), Date(year=1997, month=5, day=None), None, None)
    """
    plain = " ".join(text.strip(" .,").split())
    for pattern in _DATES:
        if found := pattern.fullmatch(plain):
            parts = found.groupdict()
            day = int(parts["day"]) if parts.get("day") else None
            month = _month(parts["month"]) if parts.get("month") else None
            if (day is None or 1 <= day <= 31) and (month is None or 1 <= month <= 12):
                return Date(
                    int(parts["year"]) if parts.get("year") else None, month, day
                )
    return None


def _month(name: str) -> int:
    return int(name) if name.isdigit() else _MONTH_OF[name.lower()]


def numbers(text: str) -> tuple[list[tuple[float, bool]], list[str]]:
    """The numbers in a text, each with whether it is an ordinal ("12th", "third"), and the words between them.

    >>> numbers("about 1.5 million people"), numbers("twenty-one")
    (([(1500000.0, False)], ['about', 'people']), ([(21.0, False)], []))
    >>> numbers("-38.8 °C")[0], numbers("a score of 2-1")[0]
    ([(-38.8, False)], [(2.0, False), (1.0, False)])
    >>> numbers("1,500,000")[0] == numbers("one million five hundred thousand")[0], numbers("the 12th of 3")
    (True, ([(12.0, True), (3.0, False)], ['the', 'of']))
    """
    found: list[tuple[float, bool]] = []
    rest: list[str] = []
    run: list[str] = []
    for word in _words(text):
        if (
            word in _SMALL
            or word in _LARGE
            or _FIGURE.fullmatch(word)
            or (word == "and" and run)
        ):
            run.append(word)
            continue
        _close(run, found, rest)
        if word in _ORDINAL:
            found.append((float(_ORDINAL[word]), True))
        elif ordinal := re.fullmatch(r"(\d+)(?:st|nd|rd|th)", word):
            found.append((float(ordinal[1]), True))
        else:
            rest.append(word)
    _close(run, found, rest)
    return found, rest


def _words(text: str) -> list[str]:
    lowered = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text.lower())
    figures = rf"{_SIGN}(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+\.\d+|\d+(?:st|nd|rd|th)?(?![\w]))"
    return re.findall(rf"{figures}|\w+", lowered)


def _close(run: list[str], found: list[tuple[float, bool]], rest: list[str]) -> None:
    """Work out the number words gathered so far: "one million five hundred". Figures side by side are apart."""
    total, current, open_ = 0.0, 0.0, False
    ended_in_and = bool(run) and run[-1] == "and"
    for word in run:
        if word == "and":
            continue
        figure = _FIGURE.fullmatch(word)
        if open_ and (
            figure or (word in _SMALL and not _continues(current, _SMALL[word]))
        ):
            found.append((total + current, False))
            total, current = 0.0, 0.0
        if figure:
            current = float(word.replace(",", "").replace("−", "-"))
        elif word in _SMALL:
            current += _SMALL[word]
        elif _LARGE[word] == 100 or word == "dozen":
            current = (current or 1) * _LARGE[word]
        else:
            total, current = total + (current or 1) * _LARGE[word], 0.0
        open_ = True
    if open_:
        found.append((total + current, False))
    if ended_in_and:
        rest.append("and")
    run.clear()


def _continues(current: float, small: int) -> bool:
    """Whether "twenty" may be followed by "one", "hundred" by "five", and a large number by anything."""
    if current == 0:
        return True
    if current % 100 == 0:
        return True
    return current % 10 == 0 and 0 < small < 10 and current % 100 >= 20


def signed(text: str, start: int) -> int:
    """Where a span begins, with the minus before its number if there is one: not that of 1939 -1945.

    >>> [signed(text, text.index("5")) for text in ("to -5 °C", "from 2 -5", "2-5", "5 °C")]
    [3, 8, 2, 0]
    """
    before = text[: max(start - 1, 0)]
    is_sign = (
        start > 0 and text[start - 1] in "-−" and text[start : start + 1].isdigit()
    )
    return (
        start - 1
        if is_sign
        and before[-1:] in ("", " ", "(")
        and not before.rstrip()[-1:].isdigit()
        else start
    )


def is_day(text: str, start: int, end: int) -> bool:
    """Whether a span is the day of a date and nothing else: the 16 of "16 May".

    >>> text = "On 16 May 2013, 16 films"
    >>> is_day(text, 3, 5), is_day(text, 3, 9), is_day(text, 16, 18)
    (True, False, False)
    """
    beside = _MONTH_BEFORE.search(
        text, max(start - 12, 0), start
    ) or _MONTH_BEHIND.match(text, end)
    return bool(beside) and text[start:end].isdigit() and end - start <= 2
