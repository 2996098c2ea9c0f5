"""Texts as BERT's uncased word pieces, each with where it stands in the text: an answer is cut out of the original."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from whichsense.models.wordpiece import placed_pieces

PAD, UNKNOWN, BEGIN, END = 0, 100, 101, 102
# What BERT parts words at. Python's \s also holds control characters, which BERT takes out without parting words.
_WORD = re.compile(
    r"[^\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)
_REMEMBERED = 2**17


@dataclass(frozen=True, slots=True)
class Pieces:
    """The tokens of a text and the characters that each stands for: `text[starts[i]:ends[i]]`."""

    ids: list[int]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Tokenizer:
    """Remembers the words that it has seen: text is mostly made of the same ones."""

    vocabulary: Mapping[str, int]
    _known: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

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
        found = self._known.get(word)
        if found is None:
            found = placed_pieces(word, self.vocabulary)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[word] = found
        return found


def joined(tokens: Sequence[str]) -> str:
    """Word pieces as text, in lower case, as they were taken apart: "st . john ##s" → "st . johns".

    >>> joined(["who", "wrote", "dub", "##liners", "?"])
    'who wrote dubliners ?'
    """
    return " ".join(tokens).replace(" ##", "")
