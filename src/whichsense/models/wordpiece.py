"""BERT's uncased WordPiece for single words, in plain Python.

A static encoder works each distinct word out once and then remembers it. The tokenizers library is built for whole
texts, gains nothing from that, and is not needed for it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

LONGEST_WORD = 100
UNKNOWN = "[UNK]"
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


def pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """The token numbers of a word that holds no white space, as BERT's uncased tokenizer gives them.

    >>> vocabulary = {UNKNOWN: 0, "dub": 1, "##lin": 2, "'": 3, "s": 4}
    >>> pieces("Dublin's", vocabulary)
    [1, 2, 3, 4]
    >>> pieces("Xyz", vocabulary)
    [0]
    """
    if word.isascii() and word.isalnum():  # most words: nothing to take off, nowhere to cut
        return _longest_first(word.lower(), vocabulary)
    found: list[int] = []
    for part in _parts(word):
        found += _longest_first(part, vocabulary)
    return found


def _longest_first(part: str, vocabulary: Mapping[str, int]) -> list[int]:
    unknown = [vocabulary[UNKNOWN]]
    if len(part) > LONGEST_WORD:
        return unknown
    found, start = [], 0
    while start < len(part):
        for end in range(len(part), start, -1):
            token = vocabulary.get(part[start:end] if start == 0 else "##" + part[start:end])
            if token is not None:
                found.append(token)
                start = end
                break
        else:
            return unknown
    return found


def _parts(word: str) -> Iterator[str]:
    """Lower case, accents and control characters off, cut at punctuation and around CJK characters."""
    current = ""
    for character in unicodedata.normalize("NFD", word.lower()):
        kind = unicodedata.category(character)
        if kind == "Mn" or kind[0] == "C" or character == "\ufffd":
            continue
        if kind[0] == "Z" or _stands_alone(character, kind):
            if current:
                yield current
                current = ""
            if kind[0] != "Z":
                yield character
        else:
            current += character
    if current:
        yield current


def _stands_alone(character: str, kind: str) -> bool:
    code = ord(character)
    if code < 128:
        return not character.isalnum()
    return kind[0] == "P" or any(first <= code <= last for first, last in _IDEOGRAPHS)
