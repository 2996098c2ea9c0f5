"""The terms of a text: what must be said in a passage that supports a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from whichsense.text.dates import parse_numbers
from whichsense.text.function_words import SMALL_WORDS
from whichsense.text.porter import porter_stem

Kind = Literal["number", "name", "word"]
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?(?!\w)|\w+(?:['’]\w+)?")
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n]['\"”’)\]]*\s+)[\"'“‘(\[]*$")
_BEFORE = 6  # characters before a word that tell whether a sentence begins with it
# BERT's vocabulary is sorted by frequency: the first words, and the last.
_MOST_FREQUENT = 1996
_RAREST = 30_522
_LEAST_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Term:
    """A content word, a name's word or a number, in the form in which it is compared."""

    form: str
    kind: Kind
    word: str
    """As it stands in the text, in lower case."""


def terms(text: str) -> list[Term]:
    """The terms of a text, in order. Function words are left out.

    >>> [(term.form, term.kind) for term in terms("In 1,990 the Beatles' five songs")]
    [('1990', 'number'), ('beatl', 'name'), ('5', 'number'), ('song', 'word')]
    """
    collected = []
    for match in _TOKEN.finditer(text):
        surface = match.group()
        word = surface.lower()
        if word in SMALL_WORDS:
            continue
        form, is_number = _form(word)
        kind: Kind = "number" if is_number else "word"
        if kind == "word" and surface[0].isupper():
            before = text[max(0, match.start() - _BEFORE) : match.start()]
            if not _SENTENCE_START.search(before):
                kind = "name"
        collected.append(Term(form, kind, word))
    return collected


@lru_cache(maxsize=2**16)
def _form(word: str) -> tuple[str, bool]:
    """The form of a word in lower case, and whether it is a number: figures without commas, else a stem.

    >>> _form("2,300"), _form("twelve"), _form("3rd"), _form("third"), _form("1890s")
    (('2300', True), ('12', True), ('3', True), ('3', True), ('1890s', True))
    """
    bare = re.sub(r"['’]s?$", "", word)
    if re.fullmatch(r"\d+s", bare):
        return bare, True
    # "second" is mostly a unit of time or an order, "one" mostly a pronoun: both are words here.
    if bare not in ("one", "second"):
        numbers, others = parse_numbers(bare)
        if len(numbers) == 1 and not others:
            return f"{numbers[0][0]:.12g}", True
    return porter_stem(bare), any(map(str.isdigit, bare))


def term_weight(term: Term, vocabulary: Mapping[str, int]) -> float:
    """How much it matters that a term is said: the rarer, the more; numbers and names more than other words."""
    rank = vocabulary.get(term.word, _RAREST)
    rarity = math.log(max(rank, _MOST_FREQUENT) / _MOST_FREQUENT)
    rarity /= math.log(_RAREST / _MOST_FREQUENT)
    weight = _LEAST_WEIGHT + (1 - _LEAST_WEIGHT) * min(rarity, 1.0)
    return weight if term.kind == "word" else 0.5 + weight
