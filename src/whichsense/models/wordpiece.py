"""BERT's uncased WordPiece for single words, in plain Python.

Callers cache the pieces of each distinct word. The tokenizers library works on whole texts, cannot use such a cache,
and is not required here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

_LONGEST_WORD = 100
UNKNOWN = "[UNK]"
_CONTROL = ("Cc", "Cf", "Co", "Cs")
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


def pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the token numbers of a word without white space, as BERT's uncased tokenizer gives them.

    >>> vocabulary = {UNKNOWN: 0, "dub": 1, "##lin": 2, "'": 3, "s": 4}
    >>> pieces("Dublin's", vocabulary)
    [1, 2, 3, 4]
    >>> pieces("Xyz", vocabulary)
    [0]
    """
    return [number for number, _, _ in placed_pieces(word, vocabulary)]


def placed_pieces(word: str, vocabulary: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Return the same as (number, start, end), in characters of the word.

    >>> vocabulary = {UNKNOWN: 0, "cafe": 1, "##s": 2, ",": 3}
    >>> placed_pieces("Cafe\u0301s,", vocabulary)
    [(1, 0, 5), (2, 5, 6), (3, 6, 7)]
    """
    # Most words: no accents to remove, nowhere to split.
    if word.isascii() and word.isalnum():
        return _longest_first(word.lower(), vocabulary)
    return [
        (number, starts[first], ends[last - 1])
        for part, starts, ends in _parts(word)
        for number, first, last in _longest_first(part, vocabulary)
    ]


def _longest_first(part: str, vocabulary: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Return greedy longest-match-first pieces; one unknown token if a rest has no match."""
    unknown = [(vocabulary[UNKNOWN], 0, len(part))]
    if len(part) > _LONGEST_WORD:
        return unknown
    matches = []
    start = 0
    while start < len(part):
        prefix = "##" if start else ""
        for end in range(len(part), start, -1):
            token = vocabulary.get(prefix + part[start:end])
            if token is not None:
                matches.append((token, start, end))
                start = end
                break
        else:
            return unknown
    return matches


def _parts(word: str) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yield lower-case parts without accents and control characters, split at punctuation and around CJK characters.

    Each part comes with the start and end of each of its characters in the word.
    """
    current = ""
    starts: list[int] = []
    ends: list[int] = []
    for place, original in enumerate(word):
        for character in _plain(original):
            kind = unicodedata.category(character)
            is_space = kind[0] == "Z"
            if not (is_space or _stands_alone(character, kind)):
                current += character
                starts.append(place)
                ends.append(place + 1)
                continue
            if current:
                yield current, starts, ends
                current, starts, ends = "", [], []
            if not is_space:
                yield character, [place], [place + 1]
        # A combining accent belongs to the character before it.
        if ends and unicodedata.category(original) == "Mn":
            ends[-1] = place + 1
    if current:
        yield current, starts, ends


def _plain(character: str) -> str:
    """Return a character in lower case without accents; the empty string for an accent or a control character."""
    if unicodedata.category(character) in _CONTROL or character == "\ufffd":
        return ""
    bare = ""
    for part in unicodedata.normalize("NFD", character):
        if unicodedata.category(part) != "Mn":
            bare += part
    return bare.lower()


def _stands_alone(character: str, kind: str) -> bool:
    code = ord(character)
    if code < 128:
        return not character.isalnum()
    return kind[0] == "P" or any(first <= code <= last for first, last in _IDEOGRAPHS)
