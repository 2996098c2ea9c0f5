"""Answers that mean the same, and the dates that they hold."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from whichsense.text.words import ARTICLES, NAME_LINKS, ORDINAL_WORDS, TENS, UNITS

# Parse dates and numbers in answers, whichever way they are written.

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
_SMALL = dict(zip(UNITS, range(20), strict=True))
_SMALL.update(zip(TENS, range(20, 100, 10), strict=True))
_LARGE = {
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
_ORDINAL = dict(zip(ORDINAL_WORDS, range(1, 21), strict=True))
_ORDINAL_FIGURE = re.compile(r"(\d+)(?:st|nd|rd|th)")
_FIGURE = re.compile(r"[-−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)")
_SIGN = r"(?:(?<!\S)[-−])?"  # before a number that it does not join to another one
_FIGURES = rf"{_SIGN}(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+\.\d+|\d+(?:st|nd|rd|th)?(?![\w]))"
_TOKEN = re.compile(rf"{_FIGURES}|\w+")


@dataclass(frozen=True, slots=True)
class Date:
    """A date; parts that a text leaves out are None."""

    year: int | None
    month: int | None
    day: int | None

    def fits(self, other: Date) -> bool:
        """Tell whether both have a part in common and no part contradicts.

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
    """Return the date that a text is; None where it is anything else or more than a date.

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
    """Return the numbers in a text, each with whether it is an ordinal ("12th", "third"), and the words between them.

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


def _starts_anew(word: str, current: float) -> bool:
    """Tell whether a word begins another value."""
    if word in _SMALL:
        return not _can_follow(current, _SMALL[word])
    return _FIGURE.fullmatch(word) is not None


def _evaluate_run(run: list[str]) -> list[float]:
    """Return the values of number words in a row: "one million five hundred" is one, figures side by side are
    several.
    """
    values = []
    total = 0.0  # of the thousands and above
    current = 0.0  # below the next thousand
    started = False
    for word in run:
        if word == "and":
            continue
        figure = _FIGURE.fullmatch(word)
        if started and _starts_anew(word, current):
            values.append(total + current)
            total = current = 0.0
        base = current or 1
        if figure:
            current = float(word.replace(",", "").replace("−", "-"))
        elif word in _SMALL:
            current += _SMALL[word]
        elif word in ("hundred", "dozen"):
            current = base * _LARGE[word]
        else:
            total += base * _LARGE[word]
            current = 0.0
        started = True
    if started:
        values.append(total + current)
    return values


def _can_follow(current: float, small: int) -> bool:
    """Tell whether a small number continues one: "one" after "twenty", "five" after "hundred", any after large ones."""
    if current % 100 == 0:
        return True
    return current % 10 == 0 and 0 < small < 10 and current % 100 >= 20


def include_sign(text: str, start: int) -> int:
    """Return the start of a span, moved to the minus before its number if there is one: not that of 1939 -1945.

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
    """Tell whether a span is the day of a date and nothing else: the 16 of "16 May".

    >>> text = "On 16 May 2013, 16 films"
    >>> is_day(text, 3, 5), is_day(text, 3, 9), is_day(text, 16, 18)
    (True, False, False)
    """
    if end - start > 2 or not text[start:end].isdigit():
        return False
    # 12 characters hold the longest month and the space behind it
    before = _MONTH_BEFORE.search(text, max(start - 12, 0), start)
    return bool(before or _MONTH_BEHIND.match(text, end))


# Compare answers: those that mean the same however they are written, and those that contradict each
# other.

# Words that make another thing of a name: not York but New York, not Korea but South Korea, not the father but the son.
_QUALIFIERS = frozenset(
    "new north south east west northern southern eastern western upper lower old jr sr junior senior".split()
)
_POSSESSIVE = re.compile(r"[’']s\b")
_INITIAL_DOT = re.compile(r"\b([A-Za-z])\.(?=[A-Za-z]\b|\W|$)")
_THOUSANDS_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
# Roman numerals of two letters and more, up to XXXIX.
_ROMAN = {
    ten * "X" + one: float(10 * ten + number)
    for ten in range(4)
    for number, one in enumerate(" I II III IV V VI VII VIII IX".split(" "))
    if ten + len(one) > 1
}


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The parts of an answer that are compared."""

    date: Date | None
    numbers: tuple[tuple[float, bool], ...]
    """Each with whether it is an ordinal."""
    words: tuple[str, ...]
    """Lower-cased, without accents, articles and punctuation; of a number, the words beside it."""
    capitals: tuple[bool, ...]
    """Which of the words began with a capital."""
    letters: str
    """The letters of an answer that may be an abbreviation; otherwise empty."""
    commas: int = 0


@lru_cache(maxsize=4096)
def parse_answer(answer: str) -> AnswerForm:
    """Take an answer apart."""
    decomposed = unicodedata.normalize("NFKD", answer)
    plain = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
    plain = _POSSESSIVE.sub("", plain.replace("&", " and ")).replace("’", "'")
    date = parse_date(plain)
    if date:
        is_bare_year = date.year is not None and date.known_parts == 1
        year = ((float(date.year or 0), False),) if is_bare_year else ()
        return AnswerForm(date, year, (), (), "")
    return _parse_words(plain)


def _romans(words: list[str]) -> list[tuple[float, bool]]:
    return [(_ROMAN[word], True) for word in words if word in _ROMAN]


def _parse_words(plain: str) -> AnswerForm:
    """Take an answer apart that is no date."""
    numbers, beside = parse_numbers(plain)
    undotted = _INITIAL_DOT.sub(r"\1", plain)  # U.S. → US, J. K. → J K
    unquoted = undotted.replace("'", "")
    raw = re.findall(r"\w+", _THOUSANDS_COMMA.sub("", unquoted))
    roman = _romans(raw[1:])
    content = [word for word in raw if word.lower() not in ARTICLES] or raw
    if numbers:
        content = [word for word in content if word.lower() in beside]
    return AnswerForm(
        date=None,
        numbers=tuple(sorted((*numbers, *roman))),
        words=tuple(map(str.lower, content)),
        capitals=tuple(word[:1].isupper() for word in content),
        letters=_abbreviation_letters(raw) if len(content) == 1 else "",
        commas=plain.count(", "),
    )


def _abbreviation_letters(words: list[str]) -> str:
    letters = "".join(words)
    is_short = 2 <= len(letters) <= 6
    return letters if is_short and letters.isupper() and letters.isalpha() else ""


def same_answer(one: str, other: str) -> bool:
    """Tell whether two answers mean the same, by their words: equal, written another way, or nested.

    >>> same_answer("4 July 1776", "July 4, 1776"), same_answer("twelve", "12"), same_answer("1.5 million", "1,500,000")
    (True, True, True)
    >>> same_answer("Tony Goldwyn", "actor Tony Goldwyn"), same_answer("Goldwyn", "Tony Goldwyn")
    (True, True)
    >>> same_answer("May 1997", "1997"), same_answer("-5", "5"), same_answer("-5 °C", "−5 °C")
    (True, False, True)
    >>> same_answer("1997", "1998"), same_answer("12", "112"), same_answer("York", "New York")
    (False, False, False)
    >>> same_answer("Henry VII", "Henry VIII")
    False
    """
    if one == other:
        return True
    forms = [parse_answer(one), parse_answer(other)]
    # The shorter first; the rest of the key makes the result independent of the order of the arguments.
    forms.sort(key=lambda form: (len(form.words), form.words, form.capitals))
    short, long = forms
    if short.date and long.date:
        return short.date.fits(long.date)
    same_numbers = short.numbers == long.numbers
    if short.date or long.date:  # a bare 1500 may be a year or a count
        return bool(short.numbers) and same_numbers and not long.words
    return same_numbers and _same_words(short, long)


def _same_words(short: AnswerForm, long: AnswerForm) -> bool:
    if short.words == long.words or _main_name(short) == _main_name(long):
        return True
    if short.numbers and not short.words:  # "12" and "12 episodes"
        return len(long.words) <= 3
    return (
        _same_when_joined(short, long)
        or _abbreviates(short, long)
        or _is_nested(short, long)
        or _same_person(short, long)
    )


@cache
def _main_names() -> dict[str, str]:
    """Return each name that has synonyms → one of them, from same_names.json."""
    path = Path(__file__).with_name("same_names.json")
    return {
        name: min(names) for names in json.loads(path.read_text(encoding="utf-8")) for name in names
    }


def _main_name(form: AnswerForm) -> str:
    name = " ".join(form.words)
    return _main_names().get(name, name)


def _same_when_joined(short: AnswerForm, long: AnswerForm) -> bool:
    """ "Spider-Man" and "Spiderman" are one. Answers without words are equal only if all else is."""
    mine = "".join(short.words)
    theirs = "".join(long.words)
    if not mine and not theirs:
        return short == long
    return mine == theirs


def _abbreviates(short: AnswerForm, long: AnswerForm) -> bool:
    for letters, words in ((short.letters, long.words), (long.letters, short.words)):
        if letters and len(words) > 1:
            initials = ""
            main_initials = ""  # without those of "of", "the" …
            for word in words:
                initials += word[0]
                if word not in NAME_LINKS:
                    main_initials += word[0]
            if letters.lower() in (initials, main_initials):
                return True
    return False


def _is_nested(short: AnswerForm, long: AnswerForm) -> bool:
    """Tell whether the words of one are in a row within the other, and no other word makes another thing of it."""
    count = len(short.words)
    start = _find_words(short.words, long.words)
    if start is None or not 0 < count < len(long.words):
        return False
    beside = (*long.words[:start], *long.words[start + count :])
    is_list = long.commas > short.commas + 1
    if is_list or not {"and", *_QUALIFIERS}.isdisjoint(beside):
        return False
    if not any((*long.capitals[:start], *long.capitals[start + count :])):
        # actor Tony Goldwyn; but not every word of a description
        return any(short.capitals) or count > 1 or len(beside) <= 2
    # One word of a name: the last of a person's, or the first of a place's.
    return count > 1 or (_is_name(long) and short.capitals[0])


def _is_name(form: AnswerForm) -> bool:
    """Tell whether these may be the words of a name."""
    is_short = len(form.words) <= 3 and NAME_LINKS.isdisjoint(form.words)
    return is_short and all(form.capitals)


def _find_words(words: tuple[str, ...], within: tuple[str, ...]) -> int | None:
    """Return the first position of `words` in a row."""
    for start in range(len(within) - len(words) + 1):
        if within[start : start + len(words)] == words:
            return start
    return None


def _same_person(one: AnswerForm, other: AnswerForm) -> bool:
    """John F. Kennedy, John Fitzgerald Kennedy, John Kennedy; but not George W. Bush and George H. W. Bush."""
    mine, theirs = one.words, other.words
    if min(len(mine), len(theirs)) < 2 or mine[-1] != theirs[-1]:
        return False
    if not (all(one.capitals) and all(other.capitals)):
        return False
    if _QUALIFIERS.intersection(mine) != _QUALIFIERS.intersection(theirs):
        return False
    if not _same_given_name(mine[0], theirs[0]):
        return False
    middle, other_middle = mine[1:-1], theirs[1:-1]
    if not middle or not other_middle:
        return True
    same_length = len(middle) == len(other_middle)
    return same_length and all(map(_same_given_name, middle, other_middle))


def _same_given_name(one: str, other: str) -> bool:
    """Tell whether two names are the same, or one is the initial of the other."""
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) == 1 and long.startswith(short))


def group_answers(answers: Sequence[str], weights: Sequence[float]) -> list[list[int]]:
    """Group answers by meaning: positions, the heaviest group first, and the heaviest member of each first.

    An answer joins the heaviest group of which it contradicts no member, so that a bare "1997" never connects
    "May 1997" and "June 1997".

    >>> group_answers(["May 1997", "1997", "June 1997", "Goldwyn"], [0.4, 0.3, 0.2, 0.1])
    [[0, 1], [2], [3]]
    """
    groups: list[list[int]] = []
    for position in sorted(range(len(answers)), key=lambda i: -weights[i]):
        answer = answers[position]
        for group in groups:
            if all(same_answer(answer, answers[member]) for member in group):
                group.append(position)
                break
        else:
            groups.append([position])
    return sorted(groups, key=lambda group: -sum(weights[i] for i in group))


def fullest_form(answers: Sequence[str], weights: Sequence[float], share: float = 0.5) -> str:
    """Return the best form of one answer: the heaviest, or a fuller date that weighs at least `share` of it.

    >>> fullest_form(["1997", "May 5, 1997"], [0.3, 0.2]), fullest_form(["1997", "May 5, 1997"], [0.3, 0.1])
    ('May 5, 1997', '1997')
    """
    totals: dict[str, float] = {}
    for answer, weight in zip(answers, weights, strict=True):
        totals[answer] = totals.get(answer, 0.0) + weight
    least = share * max(totals.values())

    def rank(answer: str) -> tuple[int, float]:
        date = parse_answer(answer).date
        return (date.known_parts if date else 0, totals[answer])

    candidates = [answer for answer in totals if totals[answer] >= least]
    return max(candidates, key=rank)
