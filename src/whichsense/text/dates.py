"""Parse dates and numbers in answers, whichever way they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

MONTHS = (
    "January February March April May June July August September October November December"
).split()
# month name or abbreviation → its number
_MONTH_OF = {"sept": 9}
for _number, _name in enumerate(map(str.lower, MONTHS), 1):
    _MONTH_OF[_name] = _number
    _MONTH_OF[_name[:3]] = _number
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
# Capitalized months alone: "may" is a word, too.
_CAPITALIZED = "|".join(MONTHS)
_MONTH_BEFORE = re.compile(rf"\b(?:{_CAPITALIZED})\s+$")
_MONTH_BEHIND = re.compile(rf"\s+(?:{_CAPITALIZED})\b")
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = dict(zip(_UNITS, range(20), strict=True))
_SMALL.update(zip(_TENS, range(20, 100, 10), strict=True))
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
_ORDINAL = dict(zip(_ORDINALS, range(1, 21), strict=True))
_ORDINAL_FIGURE = re.compile(r"(\d+)(?:st|nd|rd|th)")
_FIGURE = re.compile(r"[-−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)")
_SIGN = r"(?:(?<!\S)[-−])?"  # before a number that it does not join to another one
_FIGURES = (
    rf"{_SIGN}(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+\.\d+|\d+(?:st|nd|rd|th)?(?![\w]))"
)
_TOKEN = re.compile(rf"{_FIGURES}|\w+")


@dataclass(frozen=True, slots=True)
class Date:
    """A date; parts that a text leaves out are None."""

    year: int | None
    month: int | None
    day: int | None

    def fits(self, other: Date) -> bool:
        """Whether both have a part in common and no part contradicts.

        >>> year, may = Date(1997, None, None), Date(1997, 5, None)
        >>> may.fits(year), may.fits(Date(1997, 6, None)), Date(None, 5, 1).fits(year)
        (True, False, False)
        """
        compared = False
        for mine, theirs in (
            (self.year, other.year),
            (self.month, other.month),
            (self.day, other.day),
        ):
            if mine is None or theirs is None:
                continue
            if mine != theirs:
                return False
            compared = True
        return compared

    @property
    def known_parts(self) -> int:
        """How many of year, month and day are known."""
        return sum(part is not None for part in (self.year, self.month, self.day))


def parse_date(text: str) -> Date | None:
    """The date that a text is; None where it is anything else or more than a date.

    >>> parse_date("July 4, 1776") == parse_date("4th of July 1776") == parse_date("1776-07-04") == Date(1776, 7, 4)
    True
    >>> parse_date("1997"), parse_date("in May 1997"), parse_date("12"), parse_date("1997 votes")
    (Date(year=1997, month=None, day=None), Date(year=1997, month=5, day=None), None, None)
    """
    plain = " ".join(text.strip(" .,").split())
    for pattern in _DATES:
        match = pattern.fullmatch(plain)
        if not match:
            continue
        parts = match.groupdict()
        year = int(parts["year"]) if parts.get("year") else None
        month = _month_number(parts["month"]) if parts.get("month") else None
        day = int(parts["day"]) if parts.get("day") else None
        if (day is None or 1 <= day <= 31) and (month is None or 1 <= month <= 12):
            return Date(year, month, day)
    return None


def _month_number(name: str) -> int:
    return int(name) if name.isdigit() else _MONTH_OF[name.lower()]


def parse_numbers(text: str) -> tuple[list[tuple[float, bool]], list[str]]:
    """The numbers in a text, each with whether it is an ordinal ("12th", "third"), and the words between them.

    >>> parse_numbers("about 1.5 million people"), parse_numbers("twenty-one")
    (([(1500000.0, False)], ['about', 'people']), ([(21.0, False)], []))
    >>> parse_numbers("-38.8 °C")[0], parse_numbers("a score of 2-1")[0]
    ([(-38.8, False)], [(2.0, False), (1.0, False)])
    >>> parse_numbers("1,500,000")[0] == parse_numbers("one million five hundred thousand")[0]
    True
    >>> parse_numbers("the 12th of 3")
    ([(12.0, True), (3.0, False)], ['the', 'of'])
    """
    numbers: list[tuple[float, bool]] = []
    others: list[str] = []
    run: list[str] = []  # number words in a row, with "and" between them

    def end_run() -> None:
        numbers.extend((value, False) for value in _evaluate_run(run))
        if run and run[-1] == "and":
            others.append("and")
        run.clear()

    lowered = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text.lower())
    for word in _TOKEN.findall(lowered):
        if _is_number_word(word) or (word == "and" and run):
            run.append(word)
            continue
        end_run()
        ordinal = _ORDINAL_FIGURE.fullmatch(word)
        if word in _ORDINAL:
            numbers.append((float(_ORDINAL[word]), True))
        elif ordinal:
            numbers.append((float(ordinal[1]), True))
        else:
            others.append(word)
    end_run()
    return numbers, others


def _is_number_word(word: str) -> bool:
    return word in _SMALL or word in _LARGE or bool(_FIGURE.fullmatch(word))


def _evaluate_run(run: list[str]) -> list[float]:
    """The values of number words in a row: "one million five hundred" is one, figures side by side are several."""
    values = []
    total = 0.0  # of the thousands and above
    current = 0.0  # below the next thousand
    started = False
    for word in run:
        if word == "and":
            continue
        figure = _FIGURE.fullmatch(word)
        starts_anew = figure or (
            word in _SMALL and not _can_follow(current, _SMALL[word])
        )
        if started and starts_anew:
            values.append(total + current)
            total = current = 0.0
        if figure:
            current = float(word.replace(",", "").replace("−", "-"))
        elif word in _SMALL:
            current += _SMALL[word]
        elif word in ("hundred", "dozen"):
            current = (current or 1) * _LARGE[word]
        else:
            total += (current or 1) * _LARGE[word]
            current = 0.0
        started = True
    if started:
        values.append(total + current)
    return values


def _can_follow(current: float, small: int) -> bool:
    """Whether a small number continues one: "one" after "twenty", "five" after "hundred", any after a large one."""
    if current % 100 == 0:
        return True
    return current % 10 == 0 and 0 < small < 10 and current % 100 >= 20


def include_sign(text: str, start: int) -> int:
    """The start of a span, moved to the minus before its number if there is one: not that of 1939 -1945.

    >>> [include_sign(text, text.index("5")) for text in ("to -5 °C", "from 2 -5", "2-5", "5 °C")]
    [3, 8, 2, 0]
    """
    if start == 0 or text[start - 1] not in "-−":
        return start
    if not text[start : start + 1].isdigit():
        return start
    before = text[: start - 1]
    follows_number = before.rstrip()[-1:].isdigit()
    if before[-1:] in ("", " ", "(") and not follows_number:
        return start - 1
    return start


def is_day(text: str, start: int, end: int) -> bool:
    """Whether a span is the day of a date and nothing else: the 16 of "16 May".

    >>> text = "On 16 May 2013, 16 films"
    >>> is_day(text, 3, 5), is_day(text, 3, 9), is_day(text, 16, 18)
    (True, False, False)
    """
    if end - start > 2 or not text[start:end].isdigit():
        return False
    # 12 characters hold the longest month and the space behind it
    before = _MONTH_BEFORE.search(text, max(start - 12, 0), start)
    return bool(before or _MONTH_BEHIND.match(text, end))
