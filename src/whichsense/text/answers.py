"""Answers that mean the same, whatever way they are written; and those that contradict each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from whichsense.text.dates import Date, date, numbers
from whichsense.text.function_words import NAME_LINKS

# Words that make another thing of a name: not York but New York, not Korea but South Korea, not the father but the son.
_TELLING = frozenset(
    "new north south east west northern southern eastern western upper lower old jr sr junior senior".split()
)
_ROMAN = re.compile(r"(?=[IVX]{2,})X{0,3}(?:IX|IV|V?I{0,3})$")
_SAME = (
    {"us", "usa", "united states", "united states of america"},
    {"uk", "united kingdom", "united kingdom of great britain and northern ireland"},
    {"uae", "united arab emirates"},
    {"ussr", "soviet union", "union of soviet socialist republics"},
)
_ALIAS = {name: min(group) for group in _SAME for name in group}


@dataclass(frozen=True, slots=True)
class Form:
    """What an answer is made of, for comparing."""

    date: Date | None
    numbers: tuple[tuple[float, bool], ...]
    words: tuple[str, ...]
    """Lower-cased, without accents, articles and punctuation; of a number, the words beside it."""
    capitals: tuple[bool, ...]
    """Which of the words began with a capital."""
    letters: str
    """If the answer may be an abbreviation, its letters."""
    commas: int = 0


@lru_cache(maxsize=4096)
def form(answer: str) -> Form:
    """Take an answer apart."""
    plain = "".join(
        c
        for c in unicodedata.normalize("NFKD", answer)
        if unicodedata.category(c) != "Mn"
    )
    plain = re.sub(r"[’']s\b", "", plain.replace("&", " and ")).replace("’", "'")
    told = date(plain)
    if told:
        bare = told.year is not None and told.told == 1
        return Form(told, ((float(told.year or 0), False),) if bare else (), (), (), "")
    dotted = re.sub(
        r"\b([A-Za-z])\.(?=[A-Za-z]\b|\W|$)", r"\1", plain
    )  # U.S. → US, J. K. → J K
    counted, beside = numbers(plain)
    raw = re.findall(r"\w+", re.sub(r"(?<=\d),(?=\d{3})", "", dotted.replace("'", "")))
    roman = tuple((float(_roman(word)), True) for word in raw[1:] if _ROMAN.match(word))
    kept = [word for word in raw if word.lower() not in ("the", "a", "an")] or raw
    kept = [word for word in kept if word.lower() in beside] if counted else kept
    words = tuple(word.lower() for word in kept)
    joined = "".join(raw)
    letters = (
        joined
        if 2 <= len(joined) <= 6
        and joined.isupper()
        and joined.isalpha()
        and len(words) == 1
        else ""
    )
    capitals = tuple(word[:1].isupper() for word in kept)
    return Form(
        None,
        tuple(sorted((*counted, *roman))),
        words,
        capitals,
        letters,
        plain.count(", "),
    )


def _roman(word: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10}[letter] for letter in word]
    return sum(
        -v if any(v < later for later in values[place + 1 : place + 2]) else v
        for place, v in enumerate(values)
    )


def same(one: str, other: str) -> bool:
    """Whether two answers mean the same, as far as their words tell: equal, written another way, or nested.

    >>> same("4 July 1776", "July 4, 1776"), same("twelve", "12"), same("1.5 million", "1,500,000")
    (True, True, True)
    >>> same("Tony Goldwyn", "actor Tony Goldwyn"), same("Goldwyn", "Tony Goldwyn"), same("May 1997", "1997")
    (True, True, True)
    >>> same("-5", "5"), same("-5 °C", "−5 °C")
    (False, True)
    >>> same("1997", "1998"), same("12", "112"), same("Henry VII", "Henry VIII"), same("York", "New York")
    (False, False, False, False)
    """
    if one == other:
        return True
    mine, its = sorted(
        (form(one), form(other)), key=lambda f: (len(f.words), f.words, f.capitals)
    )
    if mine.date and its.date:
        return mine.date.fits(its.date)
    if mine.date or its.date:  # a bare 1500 may be a year or a count
        return bool(mine.numbers) and mine.numbers == its.numbers and not its.words
    return mine.numbers == its.numbers and _same_words(mine, its)


def _same_words(mine: Form, its: Form) -> bool:
    if mine.words == its.words or _alias(mine.words) == _alias(its.words):
        return True
    if mine.numbers and not mine.words:  # "12" and "12 episodes"
        return len(its.words) <= 3
    return (
        _joined(mine) == _joined(its)
        or _abbreviates(mine, its)
        or _nested(mine, its)
        or _same_person(mine, its)
    )


def _alias(words: tuple[str, ...]) -> str:
    name = " ".join(words)
    return _ALIAS.get(name, name)


def _joined(form: Form) -> str:
    """ "Spider-Man" and "Spiderman" are one; an empty name is like nothing."""
    return "".join(form.words) or repr(form)


def _abbreviates(short: Form, long: Form) -> bool:
    for letters, words in ((short.letters, long.words), (long.letters, short.words)):
        if letters and len(words) > 1:
            first = "".join(word[0] for word in words if word not in NAME_LINKS)
            if letters.lower() in (first, "".join(word[0] for word in words)):
                return True
    return False


def _nested(short: Form, long: Form) -> bool:
    """The words of one in a row within the other, with nothing beside them that makes another thing of it."""
    count = len(short.words)
    places = [
        at
        for at in range(len(long.words) - count + 1)
        if long.words[at : at + count] == short.words
    ]
    if not count or not places or count == len(long.words):
        return False
    at = places[0]
    beside = [*range(at), *range(at + count, len(long.words))]
    listed = long.commas > short.commas + 1 or any(
        long.words[place] == "and" for place in beside
    )
    if listed or any(long.words[place] in _TELLING for place in beside):
        return False
    if not any(
        long.capitals[place] for place in beside
    ):  # actor Tony Goldwyn; but not every word of a description
        return any(short.capitals) or count > 1 or len(beside) <= 2
    if count > 1:
        return True
    # One word of a name: the last of a person's, or the first of a place's.
    return (
        len(long.words) <= 3
        and not set(long.words) & NAME_LINKS
        and all(long.capitals)
        and short.capitals[0]
    )


def _same_person(short: Form, long: Form) -> bool:
    """John F. Kennedy, John Fitzgerald Kennedy, John Kennedy; but not George W. Bush and George H. W. Bush."""
    mine, its = short.words, long.words
    if (
        min(len(mine), len(its)) < 2
        or mine[-1] != its[-1]
        or not (all(short.capitals) and all(long.capitals))
    ):
        return False
    if set(mine) & _TELLING != set(its) & _TELLING or not _fit(mine[0], its[0]):
        return False
    middle, other = mine[1:-1], its[1:-1]
    if not middle or not other:
        return True
    return len(middle) == len(other) and all(
        _fit(one, two) for one, two in zip(middle, other, strict=True)
    )


def _fit(one: str, other: str) -> bool:
    """The same given name, or one the initial of the other."""
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) == 1 and long.startswith(short))


def merged(answers: Sequence[str], weights: Sequence[float]) -> list[list[int]]:
    """Answers gathered by meaning: groups of places, heaviest group first, and the heaviest member of each first.

    An answer joins the heaviest group of which it contradicts no member, so a bare "1997" never brings "May 1997" and
    "June 1997" together.

    >>> merged(["May 1997", "1997", "June 1997", "Goldwyn"], [0.4, 0.3, 0.2, 0.1])
    [[0, 1], [2], [3]]
    """
    groups: list[list[int]] = []
    for place in sorted(range(len(answers)), key=lambda place: -weights[place]):
        for group in groups:
            if all(same(answers[place], answers[member]) for member in group):
                group.append(place)
                break
        else:
            groups.append([place])
    return sorted(groups, key=lambda group: -sum(weights[place] for place in group))


def fullest(
    answers: Sequence[str], weights: Sequence[float], share: float = 0.5
) -> str:
    """The best form of one answer: the heaviest, or a fuller date that weighs at least `share` of it.

    >>> fullest(["1997", "May 5, 1997"], [0.3, 0.2]), fullest(["1997", "May 5, 1997"], [0.3, 0.1])
    ('May 5, 1997', '1997')
    """
    totals: dict[str, float] = {}
    for answer, weight in zip(answers, weights, strict=True):
        totals[answer] = totals.get(answer, 0.0) + weight
    best = max(totals, key=lambda answer: totals[answer])

    def rank(answer: str) -> tuple[int, float]:
        told = form(answer).date
        return (told.told if told else 0, totals[answer])

    return max(
        (answer for answer in totals if totals[answer] >= share * totals[best]),
        key=rank,
    )
