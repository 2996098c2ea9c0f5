"""BERT's uncased word pieces with their character offsets, so that answers are cut out of the original text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from whichsense.models.wordpiece import placed_pieces

PAD = 0
UNKNOWN = 100
BEGIN = 101
END = 102
# BERT splits words at these characters. Python's \s also holds control characters, which BERT drops without splitting.
_WORD = re.compile(
    r"[^\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)
_CACHE_SIZE = 2**17  # words


@dataclass(frozen=True, slots=True)
class Pieces:
    """The tokens of a text. Token i covers `text[starts[i]:ends[i]]`."""

    ids: list[int]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Tokenizer:
    """Caches the pieces of words: texts mostly repeat the same ones."""

    vocabulary: Mapping[str, int]
    _cache: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

    def pieces(self, text: str, most: int | None = None) -> Pieces:
        """The tokens of a text, or its first `most`."""
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        for match in _WORD.finditer(text):
            if most is not None and len(ids) >= most:
                break
            place = match.start()
            for number, start, end in self._word(match.group()):
                ids.append(number)
                starts.append(place + start)
                ends.append(place + end)
        return Pieces(ids[:most], starts[:most], ends[:most])

    def ids(self, text: str, most: int | None = None) -> list[int]:
        return self.pieces(text, most).ids

    def _word(self, word: str) -> list[tuple[int, int, int]]:
        """The pieces of a word: (token, start, end) each."""
        pieces = self._cache.get(word)
        if pieces is None:
            pieces = placed_pieces(word, self.vocabulary)
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[word] = pieces
        return pieces


def joined(tokens: Sequence[str]) -> str:
    """Word pieces as lower-case text: "st . john ##s" → "st . johns".

    >>> joined(["who", "wrote", "dub", "##liners", "?"])
    'who wrote dubliners ?'
    """
    return " ".join(tokens).replace(" ##", "")
