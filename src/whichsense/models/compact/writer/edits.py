"""Rewrites as edits of the question: find the edits, and apply them with the evidence's spelling."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from whichsense.models.compact.encoder.tokens import END, Pieces, joined
from whichsense.text.function_words import SMALL_WORDS

_LOOSE = re.compile(r" ([,;:])(?= )")
_QUOTED = re.compile(r'"\s*([^"]*?)\s*"')
_QUESTION_WORD = re.compile(
    r"(?<=[\w,] )(?:Who|What|When|Where|Which|How|Whose|Whom|Why)\b"
)
_NO_SPACE_BEFORE = frozenset(",.;:!?)]'’%")
_NO_SPACE_AFTER = frozenset("([$£€'’")
KINDS_OF_WORKS = tuple(
    frozenset(kind.split())
    for kind in (
        "film movie",
        "book novel",
        "series show tv season episode television miniseries",
        "song single album",
        "game",
        "musical",
    )
)
"""Neutral words that exclude each other, unless they are of one kind: a novel is not a film."""


@dataclass(frozen=True, slots=True)
class Edit:
    """At a gap between words: how many of the next words are deleted, and the word pieces that are inserted."""

    gap: int
    deleted: int
    inserted: tuple[int, ...]


def changes(
    question: Sequence[Sequence[int]], written: Sequence[int], vocabulary: Sequence[str]
) -> list[Edit]:
    """The edits from a question, given as the pieces of each word, to what was written.

    >>> tokens = ["who", "made", "dune", "##s", "in", "1984"]
    >>> changes([[0], [1], [2]], [0, 1, 2, 4, 5], tokens)
    [Edit(gap=3, deleted=0, inserted=(4, 5))]
    >>> changes([[0], [1], [2]], [0, 2, 3], tokens)
    [Edit(gap=1, deleted=2, inserted=(2, 3))]
    """
    edits = []
    word, at = 0, 0  # the next word of the question, the next piece that was written
    end_of_all = (len(question), len(written), len(written))
    for number, first, end in [*_kept_words(question, written, vocabulary), end_of_all]:
        if number > word or first > at:
            edits.append(Edit(word, number - word, tuple(written[at:first])))
        word = number + 1
        at = end
    return edits


def _kept_words(
    question: Sequence[Sequence[int]], written: Sequence[int], vocabulary: Sequence[str]
) -> Iterator[tuple[int, int, int]]:
    """The question's words that stay: number, and (first, last + 1) of the pieces among what was written."""
    target_of = _align(question, written)
    begin = 0
    for number, pieces in enumerate(question):
        targets = [target_of.get(begin + ahead) for ahead in range(len(pieces))]
        begin += len(pieces)
        if not targets or targets[0] is None:
            continue
        first = targets[0]
        end = first + len(pieces)
        in_a_row = targets == list(range(first, end))
        # The word must also end here: "dune" does not stay in "dune ##s".
        if in_a_row and not _continues(written, end, vocabulary):
            yield number, first, end


def _align(question: Sequence[Sequence[int]], written: Sequence[int]) -> dict[int, int]:
    """Place of a piece in the question → its place in what was written, for pieces that match."""
    flat = list(itertools.chain.from_iterable(question))
    matcher = SequenceMatcher(None, flat, written, autojunk=False)
    target_of: dict[int, int] = {}
    for source, target, size in matcher.get_matching_blocks():
        for ahead in range(size):
            target_of[source + ahead] = target + ahead
    return target_of


def _continues(pieces: Sequence[int], place: int, vocabulary: Sequence[str]) -> bool:
    """Whether the piece at a place continues a word."""
    return place < len(pieces) and vocabulary[pieces[place]].startswith("##")


def applied(words: Sequence[str], edits: Sequence[tuple[Edit, str]]) -> str:
    """The question after its edits, each given with the text that it inserts.

    >>> applied(["Who", "made", "Dune"], [(Edit(3, 0, ()), "in 1984"), (Edit(1, 1, ()), "directed")])
    'Who directed Dune in 1984?'
    """
    parts: list[str] = []
    at = 0
    for edit, text in sorted(edits, key=lambda pair: pair[0].gap):
        parts += words[at : edit.gap]
        parts.append(text)
        at = max(at, edit.gap + edit.deleted)
    parts += words[at:]
    return _tidy(" ".join(parts)) + "?"


def _tidy(text: str) -> str:
    """Single spaces, none inside quotes and before commas; a capital at the beginning, and none at a question word that
    stands later.

    >>> _tidy('in 1969 , Who sang " It "')
    'In 1969, who sang "It"'
    """
    text = " ".join(text.split())
    text = _QUOTED.sub(r'"\1"', text)
    text = _LOOSE.sub(r"\1", text)
    text = _QUESTION_WORD.sub(lambda match: match[0].lower(), text)
    return text[:1].upper() + text[1:]


class Surfaces:
    """The spelling of word pieces in the evidence: case, accents, punctuation."""

    def __init__(
        self, texts: Sequence[tuple[str, Pieces]], tokens: Sequence[str]
    ) -> None:
        self._texts = texts
        self._tokens = tokens
        # Token → (text, place among its pieces).
        self._places: dict[int, list[tuple[int, int]]] = {}
        for number, (_, pieces) in enumerate(texts):
            for place, token in enumerate(pieces.ids):
                self._places.setdefault(token, []).append((number, place))

    def written(self, inserted: Sequence[int]) -> str:
        """Word pieces as text, copied from the evidence in runs as long as possible."""
        parts: list[str] = []
        at = 0
        while at < len(inserted):
            length, surface = self._longest(inserted, at)
            parts.append(surface)
            at += length
        return _spaced(parts)

    def _longest(self, inserted: Sequence[int], at: int) -> tuple[int, str]:
        """The longest run from a place on that the evidence holds, in its most common spelling there."""
        places = self._places.get(inserted[at], [])
        length = 0
        while places and at + length < len(inserted):
            wanted = inserted[at + length]
            longer = [place for place in places if self._token(place, length) == wanted]
            if not longer:
                break
            places = longer
            length += 1
        # A run ends where a word ends.
        while length and _continues(inserted, at + length, self._tokens):
            length -= 1
        if not length:
            return self._plain(inserted, at)
        counts = Counter(self._surface(place, length) for place in places)
        surface = counts.most_common(1)[0][0]
        if surface.split()[0].lower() in SMALL_WORDS:
            surface = surface[0].lower() + surface[1:]
        return length, surface

    def _plain(self, inserted: Sequence[int], at: int) -> tuple[int, str]:
        """The word from a place on, in lower case: the evidence does not hold it."""
        end = at + 1
        while _continues(inserted, end, self._tokens):
            end += 1
        pieces = [self._tokens[token] for token in inserted[at:end]]
        return end - at, joined(pieces).removeprefix("##")

    def _token(self, place: tuple[int, int], ahead: int) -> int:
        number, first = place
        ids = self._texts[number][1].ids
        return ids[first + ahead] if first + ahead < len(ids) else END

    def _surface(self, place: tuple[int, int], length: int) -> str:
        number, first = place
        text, pieces = self._texts[number]
        return text[pieces.starts[first] : pieces.ends[first + length - 1]]


def _spaced(parts: Sequence[str]) -> str:
    """Join parts with the spaces that English has between them."""
    text = ""
    for part in parts:
        tight = not text or part[0] in _NO_SPACE_BEFORE or text[-1] in _NO_SPACE_AFTER
        text += part if tight else f" {part}"
    return text
