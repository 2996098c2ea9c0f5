"""The words of a question and of all its rewrites side by side: which are new, and which differ between rewrites."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import cached_property

_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
_MONTH += r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:,? \d{4})"
DATE = re.compile(
    rf"\b(?:{_MONTH} {_DAY}{_YEAR}?|{_DAY} {_MONTH}{_YEAR}?|{_MONTH}{_YEAR})(?!\w)",
    re.IGNORECASE,
)
# A date and a number with commas are one word, and so is "mid-1990s" or "AT&T".
_WORD = re.compile(
    rf"{DATE.pattern}|\b(?:Jr|Sr)\.|\d{{1,3}}(?:,\d{{3}})+|[^\W_]+(?:['’.\-–/&][^\W_]+)*|[^\w\s]",
    re.IGNORECASE,
)
_YEARS = re.compile(r"(?:1\d|20)\d\d(?:s|[-–](?:\d{2}|\d{4}|present))?$", re.IGNORECASE)
_ORDINAL = re.compile(
    r"(?:\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)$",
    re.IGNORECASE,
)
_LONGEST = 120  # words of a rewrite that are looked at


class Kind(Enum):
    """What kind of word it is, by its form alone."""

    MARK = "mark"
    ARTICLE = "article"
    PREPOSITION = "preposition"
    AUXILIARY = "auxiliary"
    WH = "wh"
    CONJUNCTION = "conjunction"
    PRONOUN = "pronoun"
    DATE = "date"
    YEAR = "year"
    ORDINAL = "ordinal"
    NUMBER = "number"
    NAME = "name"
    ING = "ing"
    ED = "ed"
    LY = "ly"
    WORD = "word"


_CLOSED = {
    Kind.ARTICLE: "a an the",
    Kind.PREPOSITION: "of in on at to for from by with during as under over after before since until between against"
    " about into through per within throughout without above below near outside inside around behind beyond across"
    " along among despite off",
    Kind.AUXILIARY: "is are was were be been being do does did has have had will would can could may might",
    Kind.WH: "who whom whose which what when where why how",
    Kind.CONJUNCTION: "and or but that than",
    Kind.PRONOUN: "it its he she they his her their them him this these those there",
}
_KIND_OF = {word: kind for kind, text in _CLOSED.items() for word in text.split()}
FUNCTION_KINDS = frozenset({Kind.MARK, *_CLOSED})
# The first that matches.
_FORMS = (
    (Kind.DATE, re.compile(rf"(?:{DATE.pattern})$", re.IGNORECASE)),
    (Kind.YEAR, _YEARS),
    (Kind.ORDINAL, _ORDINAL),
    (Kind.NUMBER, re.compile(r"\d")),
    (Kind.NAME, re.compile(r"[^\W\d_]")),
    (Kind.ING, re.compile(r".*ing$")),
    (Kind.ED, re.compile(r".*ed$")),
    (Kind.LY, re.compile(r".*ly$")),
)


def kind_of(word: str) -> Kind:
    """
    >>> [kind_of(word).value for word in ("the", "2017-18", "May 5, 2017", "7th", "Rome", "filmed", "?")]
    ['article', 'year', 'date', 'ordinal', 'name', 'ed', 'mark']
    """
    lower = word.lower()
    if not word[0].isalnum():
        return Kind.MARK
    if lower in _KIND_OF:
        return _KIND_OF[lower]
    for kind, form in _FORMS:
        if form.match(word) and (kind is not Kind.NAME or word[0].isupper()):
            return kind
    return Kind.WORD


@dataclass(frozen=True)
class Words:
    """A text in words, each with its place in the text, its bare form and its kind."""

    text: str
    places: tuple[tuple[int, int], ...]
    bare: tuple[str, ...]
    """In lower case, without a possessive's ending."""
    kinds: tuple[Kind, ...]

    def __len__(self) -> int:
        return len(self.places)

    def span(self, start: int, end: int) -> str:
        """The text of the words from `start` up to `end`."""
        return self.text[self.places[start][0] : self.places[end - 1][1]]

    def word(self, place: int) -> str:
        return self.span(place, place + 1)


def split_words(text: str) -> Words:
    """
    >>> split_words("Who won on July 4, 1776?").bare
    ('who', 'won', 'on', 'july 4, 1776')
    """
    text = " ".join(text.split())
    matches = list(_WORD.finditer(text))[:_LONGEST]
    while matches and matches[-1].group() in "?.!":
        matches.pop()
    bare = []
    kinds = []
    for match in matches:
        word = match.group()
        bare.append(word.lower().replace("’", "'").removesuffix("'s"))
        kinds.append(kind_of(word))
    if kinds and kinds[0] is Kind.NAME:
        kinds[0] = Kind.WORD  # a capital that begins a sentence says nothing
    places = tuple((match.start(), match.end()) for match in matches)
    return Words(text, places, tuple(bare), tuple(kinds))


@dataclass(frozen=True)
class AlignedRewrite:
    """A rewrite with, for each of its words, whether the question has it and how many other rewrites lack it."""

    words: Words
    new: tuple[bool, ...]
    """Whether the question lacks the word, in the best alignment of both."""
    varies: tuple[float, ...]
    """The share of the other rewrites that lack it."""
    others: tuple[str, ...] = ()
    """The other rewrites as bare words, each between two spaces."""

    @cached_property
    def is_content(self) -> tuple[bool, ...]:
        return tuple(kind not in FUNCTION_KINDS for kind in self.words.kinds)

    @cached_property
    def is_core(self) -> tuple[bool, ...]:
        """The words that an option is about: content words that differ between rewrites; where there is none, any
        word that differs; then what is new; then all content."""
        count = range(len(self.words))
        differing = [self.varies[i] > 0 for i in count]
        marked = [kind is Kind.MARK for kind in self.words.kinds]
        choices = (
            [differing[i] and self.is_content[i] for i in count],
            [differing[i] and not marked[i] for i in count],
            [self.new[i] and self.is_content[i] for i in count],
            list(self.is_content),
        )
        for choice in choices:
            if any(choice):
                return tuple(choice)
        return (True,) * len(self.words)


def align(question: str, rewrites: Sequence[str]) -> list[AlignedRewrite]:
    """The rewrites with what each of their words shares with the question and with the other rewrites.

    >>> film, book = align("Who wrote Dune?", ["Who wrote the film Dune?", "Who wrote the book Dune?"])
    >>> [film.words.bare[i] for i in range(len(film.words)) if film.is_core[i]]
    ['film']
    """
    asked = split_words(question)
    every = [split_words(rewrite) for rewrite in rewrites]
    aligned = []
    for number, words in enumerate(every):
        shared_with_question = _shared(asked, words)
        new = tuple(not shared for shared in shared_with_question)
        others = [other for place, other in enumerate(every) if place != number]
        lacking = [0] * len(words)
        for other in others:
            for place, shared in enumerate(_shared(other, words)):
                lacking[place] += not shared
        if others:
            varies = tuple(count / len(others) for count in lacking)
        else:
            varies = tuple(map(float, new))
        texts = tuple(f" {' '.join(other.bare)} " for other in others)
        aligned.append(AlignedRewrite(words, new, varies, texts))
    return aligned


def _shared(other: Words, words: Words) -> list[bool]:
    """Which of the words the other text has, too, in the same order."""
    shared = [False] * len(words)
    matcher = SequenceMatcher(None, other.bare, words.bare, autojunk=False)
    for _, start, size in matcher.get_matching_blocks():
        shared[start : start + size] = [True] * size
    return shared
