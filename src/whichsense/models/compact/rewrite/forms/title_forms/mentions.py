"""Where a question mentions the name of a title, and what stands beside the mention."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses.vocabulary import PARTICIPLES
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    AUXILIARIES,
    COPULAS,
    MAKING_VERBS,
    NOUN_ENDINGS,
    ORDER_WORDS,
    PHRASE_ENDS,
    PREPOSITIONS,
    VERBS_LIKE_NOUNS,
    VERSION_NOUNS,
)

_WORD = re.compile(r"\w+|&")
_ARTICLES = ("the", "a", "an")
_QUOTES = "\"“”'‘«"
_SHORTEST_PLURAL = 4


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text: its normal form and where it stands."""

    form: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mention:
    """A run of a question's words: `question[start:end]`."""

    question: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """The mention as the question writes it."""
        return self.question[self.start : self.end]

    @property
    def left(self) -> str:
        """The question before the mention and an opening quote."""
        return self.question[: self.start].rstrip().rstrip(_QUOTES).rstrip()

    @property
    def right(self) -> str:
        """The question behind the mention."""
        return self.question[self.end :]

    @property
    def previous(self) -> str:
        """The word before the mention, in lower case; empty at the beginning."""
        before = self.left.split()
        return before[-1].lower() if before else ""

    @property
    def following(self) -> str:
        """The word behind the mention, in lower case; empty at the end."""
        match = re.match(r"[\"”’']?\s+([\w-]+)", self.right)
        return match[1].lower() if match else ""

    @property
    def is_possessive(self) -> bool:
        """Whether the mention owns what follows: Batman's."""
        return re.match(r"[’']s?\s+\w", self.right) is not None and not self.is_quoted

    @property
    def is_quoted(self) -> bool:
        """Whether the mention stands in quotation marks."""
        before = self.question[: self.start].rstrip()
        return before[-1:] in _QUOTES and before != ""

    @property
    def is_inside_name(self) -> bool:
        """Whether the mention is the end of a longer name: Wonka in Willy Wonka."""
        before = self.left.split()
        return len(before) > 1 and before[-1][0].isupper()

    @property
    def is_complete(self) -> bool:
        """Whether the noun phrase ends with the mention: no other noun follows, as in "the Batman villain"."""
        if self.is_quoted or not self.following or self.right[:1] in ",;:?":
            return True
        if self.following in PHRASE_ENDS or self.following.endswith("ly"):
            return True
        if _is_noun(self.following) or re.match(r"\s+[A-Z]", self.right):
            return False
        left = self.left.lower().split()
        if self.following in MAKING_VERBS and left and left[-1] in PREPOSITIONS:
            return True
        while left and left[-1] in ORDER_WORDS.union(_ARTICLES):
            left.pop()
        if not left or left[-1] not in AUXILIARIES:
            return False
        is_participle = self.following.endswith("ed") or self.following in PARTICIPLES
        return is_participle or left[-1] not in COPULAS

    @property
    def last_word_as_written(self) -> str:
        """The last word of the mention."""
        return self.text.rsplit(maxsplit=1)[-1]

    @property
    def last_word(self) -> str:
        """The last word of the mention in lower case."""
        return self.last_word_as_written.lower()

    def widen(self, start: int) -> Mention:
        """The mention with what stands before it from a character on."""
        return Mention(self.question, start, self.end)


def _is_noun(word: str) -> bool:
    """Whether a word behind a name is a noun or a number by its form, so that the phrase goes on."""
    if word in VERSION_NOUNS or re.fullmatch(r"[ivx]+|\d+", word):
        return True
    return word.endswith(NOUN_ENDINGS) and word not in VERBS_LIKE_NOUNS


def split_words(text: str) -> list[Word]:
    """The words of a text in normal form."""
    found = []
    for match in _WORD.finditer(text):
        found.append(Word(_normal_form(match[0]), match.start(), match.end()))
    return found


def _normal_form(word: str) -> str:
    """Lower case, without accents.

    >>> _normal_form("Misérables"), _normal_form("&")
    ('miserables', 'and')
    """
    if word == "&":
        return "and"
    decomposed = unicodedata.normalize("NFKD", word.lower())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def is_same_word(first: str, second: str) -> bool:
    """Whether two normal forms are equal but for a plural's ending.

    >>> is_same_word("banks", "bank"), is_same_word("his", "hi")
    (True, False)
    """
    if first == second:
        return True
    shorter, longer = sorted((first, second), key=len)
    return len(shorter) >= _SHORTEST_PLURAL and longer in (
        f"{shorter}s",
        f"{shorter}es",
    )


def find_mention(name: str, question: str) -> Mention | None:
    """Where a question has a whole name, with or without its article; None if it does not.

    >>> find_mention("The Kiss", "who made the kiss").text
    'the kiss'
    """
    wanted = split_words(name)
    with_article = bool(wanted) and wanted[0].form in _ARTICLES
    if with_article and len(wanted) > 1:
        wanted = wanted[1:]
    words = split_words(question)
    for first in range(len(words) - len(wanted) + 1):
        run = words[first : first + len(wanted)]
        pairs = zip(run, wanted, strict=True)
        if not wanted or not all(is_same_word(a.form, b.form) for a, b in pairs):
            continue
        start = run[0].start
        if with_article and first > 0 and words[first - 1].form in _ARTICLES:
            start = words[first - 1].start
        return Mention(question, start, run[-1].end)
    return None
