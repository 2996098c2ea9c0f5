"""Replies and options as tokens: lower case, no accents, numbers as values, misspelt words corrected."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from whichsense.conversation.replies.vocabulary import CARDINALS, ORDINALS
from whichsense.text.porter import porter_stem

_TOKEN = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)+|[^\W_]+")
_ORDINAL_FIGURE = re.compile(r"(\d+)(?:st|nd|rd|th)")
_JOINED = (
    re.compile(r"([a-z]{1,2})(\d+)"),  # s3
    re.compile(r"(\d+)((?!st\b|nd\b|rd\b|th\b)[a-z]{1,2})"),  # 12h
)
_ROMAN = {"ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9}
_SHORT_YEAR = re.compile(r"['’‘](\d\d)\b")
_US = re.compile(r"\bU\.S\.(?:A\.)?|\bUS\b")
_DOTTED = re.compile(r"\b(?:[a-z]\.){2,}")  # u.k.
_CENTURY_WORDS = {"seventeen": 1700, "eighteen": 1800, "nineteen": 1900, "twenty": 2000}
_TEN_WORDS = "ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_TENS = {word: 10 * number for number, word in enumerate(_TEN_WORDS, 1)}
_SPOKEN_YEAR = re.compile(
    rf"\b({'|'.join(_CENTURY_WORDS)})[ -]({'|'.join(_TENS)})(?:[ -]({'|'.join(CARDINALS)}))?\b"
)
# Where a word without its apostrophe would be another one: we're, I'll, what's; of others "'s" is no part.
_CONTRACTIONS = (
    (re.compile(r"(?<=\w)'re\b"), " are"),
    (re.compile(r"(?<=\w)'ll\b"), " will"),
    (re.compile(r"\b(what|who|where|how|which|that|it|there|here)'s\b"), r"\1 is"),
    (re.compile(r"\b(what|who|where|how)s\b"), r"\1 is"),
    (re.compile(r"(?<=\w)'s\b"), ""),
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a reply or of an option."""

    text: str
    stem: str
    number: float | None = None
    is_ordinal: bool = False
    is_short_year: bool = False
    """Written '78: the last two figures of a year."""


def plain(text: str) -> str:
    """Lower case without accents; contractions are written out, spoken years are figures.

    >>> plain("Café? We're; I don't know; nineteen seventy-eight or '99")
    'cafe? we are; i dont know; 1978 or `99'
    """
    text = _US.sub("usa", text)  # before it becomes a pronoun
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(c for c in decomposed if unicodedata.category(c) != "Mn").lower()
    bare = _DOTTED.sub(lambda match: match[0].replace(".", ""), bare)
    bare = _SHORT_YEAR.sub(r"`\1", bare).replace("’", "'").replace("‘", "'")
    for pattern, full in _CONTRACTIONS:
        bare = pattern.sub(full, bare)
    bare = re.sub(r"(?<=\w)'(?=\w)", "", bare)
    return _SPOKEN_YEAR.sub(_year_figures, bare)


def _year_figures(match: re.Match[str]) -> str:
    unit = CARDINALS.get(match[3] or "", 0)
    return str(_CENTURY_WORDS[match[1]] + _TENS[match[2]] + unit)


def tokenize(text: str) -> list[Token]:
    """The tokens of a plain text.

    >>> [token.text for token in tokenize("the 2nd one, s3 and 114,394")]
    ['the', '2nd', 'one', 's', '3', 'and', '114,394']
    >>> [token.number for token in tokenize("2nd second ii 114,394 one")]
    [2.0, 2.0, 2.0, 114394.0, None]
    """
    tokens = []
    for match in _TOKEN.finditer(text):
        parts: tuple[str, ...] = (match[0],)
        for pattern in _JOINED:
            joined = pattern.fullmatch(match[0])
            parts = joined.groups() if joined else parts
        short_year = match.start() > 0 and text[match.start() - 1] == "`"
        for part in parts:
            tokens.append(_token(part, short_year))
    return tokens


def _token(word: str, is_short_year: bool = False) -> Token:
    ordinal = _ORDINAL_FIGURE.fullmatch(word)
    if ordinal:
        return Token(word, word, float(ordinal[1]), is_ordinal=True)
    if word in ORDINALS:
        return Token(word, word, float(ORDINALS[word]), is_ordinal=True)
    figure = word.replace(",", "")
    if figure.isascii() and re.fullmatch(r"\d+(?:\.\d+)?", figure):
        return Token(word, word, float(figure), is_short_year=is_short_year)
    if word in _ROMAN:
        return Token(word, word, float(_ROMAN[word]))
    if word in CARDINALS and word != "one":
        return Token(word, word, float(CARDINALS[word]))
    return Token(word, porter_stem(word))


def squeezed(text: str) -> str:
    """Letters and figures alone, without articles: "The T-200 X" is "t200x"."""
    words = [token.text for token in tokenize(text)]
    return "".join(word for word in words if word not in ("the", "a", "an"))


def corrected(
    tokens: Iterable[Token], is_word: Callable[[str], bool], *known: Iterable[str]
) -> list[Token]:
    """The tokens, each misspelt one replaced by the nearest known word; the first group of known words that has one
    wins."""
    groups = [sorted(set(group)) for group in known]
    result = []
    for token in tokens:
        nearest = ""
        if token.number is None and not is_word(token.text):
            for group in groups:
                nearest = nearest or nearest_word(token.text, group)
        result.append(_token(nearest) if nearest else token)
    return result


def nearest_word(word: str, known: Iterable[str]) -> str:
    """The known word that is one edit away from a word of four letters, or two from one of eight; else ''.

    >>> nearest_word("thrid", ["third", "first"]), nearest_word("bat", ["cat"])
    ('third', '')
    """
    best = ""
    least = _allowed_edits(word) + 1
    for other in known:
        if abs(len(other) - len(word)) >= least or len(other) < 3:
            continue
        edits = edit_distance(word, other, least)
        if edits < least:
            best, least = other, edits
    return best


def _allowed_edits(word: str) -> int:
    if len(word) >= 8:
        return 2
    return 1 if len(word) >= 4 else 0


def edit_distance(one: str, other: str, most: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours, up to `most`.

    >>> edit_distance("flim", "film", 3), edit_distance("kitten", "sitting", 9)
    (1, 3)
    """
    if len(one) > 64 or len(other) > 64:
        return most
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, mine in enumerate(one, 1):
        current = [i]
        for j, theirs in enumerate(other, 1):
            cost = min(row[j] + 1, current[-1] + 1, row[j - 1] + (mine != theirs))
            swapped = i > 1 and j > 1 and one[i - 2 : i] == theirs + other[j - 2]
            if swapped:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        before, row = row, current
    return min(row[-1], most)
