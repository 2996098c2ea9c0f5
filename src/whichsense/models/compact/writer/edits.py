"""Rewrites as edits of the question: what was changed, and how the question then reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from whichsense.models.compact.encoder.tokens import END, Pieces, joined

_LOOSE = re.compile(r" ([,;:])(?= )")
_QUOTED = re.compile(r'"\s*([^"]*?)\s*"')
_QUESTION_WORD = re.compile(
    r"(?<=[\w,] )(?:Who|What|When|Where|Which|How|Whose|Whom|Why)\b"
)
_NO_SPACE_BEFORE = frozenset(",.;:!?)]'’%")
_NO_SPACE_AFTER = frozenset("([$£€'’")
SMALL_WORDS = frozenset(
    """a an the and or but of in on at to for from by with without as into onto over under after before during since
    until between against about around within is are was were be been being has have had do does did will would can
    could that which who whom whose what when where how many much this these those it its he she they his her their
    not no only also than then s there some any if more most later including per""".split()
)
"""May be written whatever the evidence says, and in lower case."""
NEUTRAL_WORDS = frozenset(
    """film movie series show season episode song album book novel game version edition character actor actress single
    original originally first second third last final current currently former name named person people individual team
    play played plays playing sang sings sung sing write wrote written record recorded direct directed voice role lead
    make made release released date year time number total amount part end start begin began beginning according terms
    country city state world man men woman women group all each ever other another up out through time place event take
    took official officially full based air aired called used come came become became get tv musical main regular
    general generally overall specific specifically primarily typically known considered type
    kind form one two""".split()
)
"""Say what kind of thing is meant, but no fact: may be written too."""
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
"""Unless the evidence says that it is another kind: words of one kind stand together."""


@dataclass(frozen=True, slots=True)
class Edit:
    """At a gap: how many of the next words go, and the word pieces that come."""

    gap: int
    deleted: int
    inserted: tuple[int, ...]


def changes(
    question: Sequence[Sequence[int]], written: Sequence[int], vocabulary: Sequence[str]
) -> list[Edit]:
    """The edits that make of a question, whose words are given by their pieces, what was written.

    >>> tokens = ["who", "made", "dune", "##s", "in", "1984"]
    >>> changes([[0], [1], [2]], [0, 1, 2, 4, 5], tokens)
    [Edit(gap=3, deleted=0, inserted=(4, 5))]
    >>> changes([[0], [1], [2]], [0, 2, 3], tokens)
    [Edit(gap=1, deleted=2, inserted=(2, 3))]
    """
    flat = [piece for pieces in question for piece in pieces]
    blocks = SequenceMatcher(None, flat, written, autojunk=False).get_matching_blocks()
    place_of = {
        one + ahead: other + ahead
        for one, other, size in blocks
        for ahead in range(size)
    }
    kept: list[
        tuple[int, int, int]
    ] = []  # a word that stays, and where its pieces stand in what was written
    begin = 0
    for number, pieces in enumerate(question):
        places = [place_of.get(place) for place in range(begin, begin + len(pieces))]
        begin += len(pieces)
        first = places[0] if places else None
        if first is not None and places == list(range(first, first + len(pieces))):
            end = first + len(pieces)
            if end == len(written) or not vocabulary[written[end]].startswith("##"):
                kept.append((number, first, end))
    edits, word, at = [], 0, 0
    for number, first, end in [*kept, (len(question), len(written), len(written))]:
        if number > word or first > at:
            edits.append(Edit(word, number - word, tuple(written[at:first])))
        word, at = number + 1, end
    return edits


def applied(words: Sequence[str], edits: Sequence[tuple[Edit, str]]) -> str:
    """The question after its edits, each with what it inserts as text.

    >>> applied(["Who", "made", "Dune"], [(Edit(3, 0, ()), "in 1984"), (Edit(1, 1, ()), "directed")])
    'Who directed Dune in 1984?'
    """
    found: list[str] = []
    at = 0
    for edit, text in sorted(edits, key=lambda pair: pair[0].gap):
        found += [*words[at : edit.gap], text]
        at = max(at, edit.gap + edit.deleted)
    return _tidy(" ".join([*found, *words[at:]])) + "?"


def _tidy(text: str) -> str:
    """Single spaces, none inside quotes and before commas; a capital at the beginning, and none at a question word that
    stands later.

    >>> _tidy('in 1969 , Who sang " It "')
    'In 1969, who sang "It"'
    """
    text = _LOOSE.sub(r"\1", _QUOTED.sub(r'"\1"', " ".join(text.split())))
    text = _QUESTION_WORD.sub(lambda found: found[0].lower(), text)
    return text[:1].upper() + text[1:]


class Surfaces:
    """How word pieces are written in the evidence: in their case, with their accents, punctuation where it belongs."""

    def __init__(
        self, texts: Sequence[tuple[str, Pieces]], tokens: Sequence[str]
    ) -> None:
        self._texts, self._tokens = texts, tokens
        self._places: dict[int, list[tuple[int, int]]] = {}
        for number, (_, pieces) in enumerate(texts):
            for place, token in enumerate(pieces.ids):
                self._places.setdefault(token, []).append((number, place))

    def written(self, inserted: Sequence[int]) -> str:
        """Word pieces as text, taken from the evidence in runs as long as can be found there."""
        parts: list[str] = []
        at = 0
        while at < len(inserted):
            length, surface = self._longest(inserted, at)
            parts.append(surface)
            at += length
        return _spaced(parts)

    def _longest(self, inserted: Sequence[int], at: int) -> tuple[int, str]:
        """The longest run from a place on that stands in the evidence, as it is mostly written there."""
        places = self._places.get(inserted[at], [])
        length = 0
        while places and at + length < len(inserted):
            longer = [
                p for p in places if self._token(p, length) == inserted[at + length]
            ]
            if not longer:
                break
            places, length = longer, length + 1
        while (
            length
            and at + length < len(inserted)
            and self._tokens[inserted[at + length]].startswith("##")
        ):
            length -= 1  # a run ends where a word ends
        if not length:
            return self._plain(inserted, at)
        surface = Counter(self._surface(place, length) for place in places).most_common(
            1
        )[0][0]
        first = surface.split()[0]
        return length, surface[0].lower() + surface[
            1:
        ] if first.lower() in SMALL_WORDS else surface

    def _plain(self, inserted: Sequence[int], at: int) -> tuple[int, str]:
        length = 1
        while at + length < len(inserted) and self._tokens[
            inserted[at + length]
        ].startswith("##"):
            length += 1
        return length, joined(
            [self._tokens[token] for token in inserted[at : at + length]]
        ).removeprefix("##")

    def _token(self, place: tuple[int, int], ahead: int) -> int:
        ids = self._texts[place[0]][1].ids
        return ids[place[1] + ahead] if place[1] + ahead < len(ids) else END

    def _surface(self, place: tuple[int, int], length: int) -> str:
        text, pieces = self._texts[place[0]]
        return text[pieces.starts[place[1]] : pieces.ends[place[1] + length - 1]]


def _spaced(parts: Sequence[str]) -> str:
    """Parts with the spaces that English has between them."""
    text = ""
    for part in parts:
        tight = not text or part[0] in _NO_SPACE_BEFORE or text[-1] in _NO_SPACE_AFTER
        text += part if tight else f" {part}"
    return text
