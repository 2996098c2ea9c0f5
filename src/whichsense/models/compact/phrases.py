"""The phrases that tell rewrites apart: rewrites aligned with their question, and a ranker of what they add."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import cache, cached_property
from operator import and_
from pathlib import Path

# The words of a question and of all its rewrites side by side: which are new, and which differ
# between rewrites.

_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
_MONTH += r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:,? \d{4})"
DATE = re.compile(
    rf"\b(?:{_MONTH} {_DAY}{_YEAR}?|{_DAY} {_MONTH}{_YEAR}?|{_MONTH}{_YEAR})(?!\w)", re.IGNORECASE
)
# A date and a number with commas are one word, and so is "mid-1990s" or "AT&T".
_WORD = re.compile(
    rf"{DATE.pattern}|\b(?:Jr|Sr)\.|\d{{1,3}}(?:,\d{{3}})+|[^\W_]+(?:['’.\-–/&][^\W_]+)*|[^\w\s]",
    re.IGNORECASE,
)
_YEARS = re.compile(r"(?:1\d|20)\d\d(?:s|[-–](?:\d{2}|\d{4}|present))?", re.IGNORECASE)
_ORDINAL = re.compile(
    r"(?:\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)",
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
_ENDINGS = {"ing": Kind.ING, "ed": Kind.ED, "ly": Kind.LY}


def kind_of(word: str) -> Kind:
    """Return what kind of word it is.

    >>> [kind_of(word).value for word in ("the", "2017-18", "May 5, 2017", "7th", "Rome", "filmed", "?")]
    ['article', 'year', 'date', 'ordinal', 'name', 'ed', 'mark']
    """
    if not word[0].isalnum():
        return Kind.MARK
    if word.lower() in _KIND_OF:
        return _KIND_OF[word.lower()]
    for kind, form in ((Kind.DATE, DATE), (Kind.YEAR, _YEARS), (Kind.ORDINAL, _ORDINAL)):
        if form.fullmatch(word):
            return kind
    if word[0].isdecimal():
        return Kind.NUMBER
    if word[0].isupper():
        return Kind.NAME
    endings = (kind for ending, kind in _ENDINGS.items() if word.endswith(ending))
    return next(endings, Kind.WORD)


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
        """Return the text of the words from `start` up to `end`."""
        return self.text[self.places[start][0] : self.places[end - 1][1]]

    def word(self, place: int) -> str:
        return self.span(place, place + 1)


def split_words(text: str) -> Words:
    """Return the words of a text, without the marks that it ends with.

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
        differing = [share > 0 for share in self.varies]
        spoken = [kind is not Kind.MARK for kind in self.words.kinds]
        pairs = ((differing, self.is_content), (differing, spoken), (self.new, self.is_content))
        choices = [tuple(map(and_, *pair)) for pair in pairs]
        choices.append(self.is_content)
        return next(filter(any, choices), (True,) * len(self.words))


def align(question: str, rewrites: Sequence[str]) -> list[AlignedRewrite]:
    """Return the rewrites with what each of their words shares with the question and with the other rewrites.

    >>> film, book = align("Who wrote Dune?", ["Who wrote the film Dune?", "Who wrote the book Dune?"])
    >>> [film.words.bare[i] for i in range(len(film.words)) if film.is_core[i]]
    ['film']
    """
    asked = split_words(question)
    every = [split_words(rewrite) for rewrite in rewrites]
    aligned = []
    for number, words in enumerate(every):
        new = tuple(not shared for shared in _shared(asked, words))
        others = every[:number] + every[number + 1 :]
        varies = tuple(map(float, new))
        if others:
            columns = zip(*(_shared(other, words) for other in others), strict=True)
            varies = tuple(column.count(False) / len(others) for column in columns)
        texts = tuple(f" {' '.join(other.bare)} " for other in others)
        aligned.append(AlignedRewrite(words, new, varies, texts))
    return aligned


def _shared(other: Words, words: Words) -> list[bool]:
    """Return which of the words the other text has, too, in the same order."""
    shared = [False] * len(words)
    matcher = SequenceMatcher(None, other.bare, words.bare, autojunk=False)
    for _, start, size in matcher.get_matching_blocks():
        shared[start : start + size] = [True] * size
    return shared


# What an option may say: phrases of a rewrite that hold something of what differs.

Phrase = tuple[int, int]
"""The first word of a phrase, and the one after its last."""
_PHRASES_LONGEST = 14  # words
_OPENING = frozenset("\"“('‘")
_CLOSING = frozenset("\"”)'’.")
# What a phrase of good English does not begin or end with.
NEVER_FIRST = (Kind.CONJUNCTION, Kind.AUXILIARY)
NEVER_LAST = (Kind.ARTICLE, Kind.PREPOSITION, Kind.CONJUNCTION, Kind.AUXILIARY, Kind.WH)
_NAME_LINKS = ("of", "the")


def phrase_text(rewrite: AlignedRewrite, phrase: Phrase) -> str:
    """Return what a phrase says; a function word that began the rewrite is written in lower case."""
    start, end = phrase
    text = rewrite.words.span(start, end)
    if rewrite.words.kinds[start] is Kind.ARTICLE or (start == 0 and not rewrite.is_content[0]):
        return text[0].lower() + text[1:]
    return text


def without_commas(text: str) -> str:
    """Write an option as annotators do: a comma would part it into two.

    >>> without_commas("on January 22, 2015, in Rome, Italy")
    'on January 22 of 2015 in Rome Italy'
    """
    text = DATE.sub(lambda date: date[0].replace(", ", " of "), text)
    return " ".join(text.replace(",", " ").split())


def list_phrases(rewrite: AlignedRewrite) -> list[Phrase]:
    """Return every phrase that an option may be made of."""
    count = len(rewrite.words)
    phrases = []
    for start in range(count):
        if _is_mark(rewrite.words, start, but=_OPENING):
            continue
        for end in range(start + 1, min(count, start + _PHRASES_LONGEST) + 1):
            is_closed = not _is_mark(rewrite.words, end - 1, but=_CLOSING)
            if is_closed and any(rewrite.is_core[start:end]) and _is_whole(rewrite, start, end):
                phrases.append((start, end))
    if not phrases and count:
        phrases.append((0, min(count, _PHRASES_LONGEST)))
    return phrases


def _is_mark(words: Words, place: int, but: frozenset[str]) -> bool:
    return words.kinds[place] is Kind.MARK and words.word(place) not in but


def _is_whole(rewrite: AlignedRewrite, start: int, end: int) -> bool:
    """Return whether a span could be a phrase: it has content, no loose function word at an end, and cuts no name that
    differs from rewrite to rewrite."""
    kinds = rewrite.words.kinds
    if _differs_in_wh(rewrite):
        # "When was …", "Where was …": nothing else tells them apart.
        return all(rewrite.is_core[start:end])
    if not any(rewrite.is_content[start:end]):
        return False
    if kinds[start] in NEVER_FIRST or kinds[end - 1] in NEVER_LAST:
        return False
    if rewrite.words.bare[start] == "of":
        return False
    return not (_cuts_name(rewrite, start) or _cuts_name(rewrite, end))


def _differs_in_wh(rewrite: AlignedRewrite) -> bool:
    """Return whether only function words differ, and a wh-word is one of them."""
    core = []
    for kind, is_core in zip(rewrite.words.kinds, rewrite.is_core, strict=True):
        if is_core:
            core.append(kind)
    return Kind.WH in core and FUNCTION_KINDS.issuperset(core)


def _cuts_name(rewrite: AlignedRewrite, place: int) -> bool:
    """Return whether the words on both sides of a place belong to one name: "House of | Commons", "New | York"."""
    kinds = rewrite.words.kinds
    bare = rewrite.words.bare
    before, behind = place - 1, place
    while before > 0 and bare[before] in _NAME_LINKS:
        before -= 1
    while behind < len(bare) - 1 and bare[behind] in _NAME_LINKS:
        behind += 1
    if not 0 <= before < behind < len(bare):
        return False
    if kinds[before] is not Kind.NAME or kinds[behind] is not Kind.NAME:
        return False
    links = bare[before + 1 : behind]
    return "of" in links or (not links and rewrite.varies[before] > 0)


# Features of a phrase, for the ranker that chooses what an option says.

Features = dict[str, float]


def phrase_features(rewrite: AlignedRewrite, phrase: Phrase) -> Features:
    """Return what is inside, what is left out, and the words at both ends; features that are 0 are left out."""
    features = {**_counts(rewrite, phrase), **_edges(rewrite, phrase)}
    return {name: float(value) for name, value in features.items() if value}


def _counts(rewrite: AlignedRewrite, phrase: Phrase) -> Features:
    places = range(*phrase)
    content = [place for place in places if rewrite.is_content[place]]
    new = [place for place in content if rewrite.new[place]]
    old = [place for place in content if not rewrite.new[place]]
    kinds = rewrite.words.kinds[phrase[0] : phrase[1]]
    size = len(places)
    said = " ".join(rewrite.words.bare[phrase[0] : phrase[1]])
    repeats = sum(f" {said} " in other for other in rewrite.others)
    old_shared = sum(rewrite.varies[place] == 0 for place in old)
    return {
        **_core_counts(rewrite, set(places)),
        "in other rewrites": repeats / max(len(rewrite.others), 1),
        "in some other rewrite": repeats > 0,
        "old shared inside": old_shared,
        "old varied inside": len(old) - old_shared,
        "new shared inside": sum(rewrite.varies[place] == 0 for place in new),
        "function words": size - len(content),
        "size": min(size, 10),
        "one word": size == 1,
        "two words": size == 2,
        "over six words": size > 6,
        "content words": min(len(content), 6),
        "no content": not content,
        "has wh": Kind.WH in kinds,
        "has auxiliary": Kind.AUXILIARY in kinds,
    }


def _core_counts(rewrite: AlignedRewrite, inside: set[int]) -> Features:
    core = {place for place, is_core in enumerate(rewrite.is_core) if is_core}
    left_out = core - inside
    new_core = {place for place in core if rewrite.new[place]}
    return {
        "core left out": min(len(left_out), 6),
        "core share": len(core & inside) / max(len(core), 1),
        "all core": not left_out,
        "new core left out": len(new_core - inside),
        "new core inside": len(new_core & inside),
        "some new core": bool(new_core & inside) or not new_core,
    }


def _edges(rewrite: AlignedRewrite, phrase: Phrase) -> Features:
    start, end = phrase
    bare = rewrite.words.bare
    count = len(bare)
    first, before = _token(rewrite, start), _token(rewrite, start - 1)
    last, behind = _token(rewrite, end - 1), _token(rewrite, end)
    inner = [_token(rewrite, place) for place in range(start, end)]
    second = inner[1] if len(inner) > 1 else "-"
    features: Features = {}
    for name, token, place in (
        ("first", first, start),
        ("before", before, start - 1),
        ("last", last, end - 1),
        ("behind", behind, end),
    ):
        features[f"{name} {token}"] = 1
        features[f"{name} {token} {_state(rewrite, place)}"] = 1
        word = bare[place] if 0 <= place < count else ""
        features[f"{name} = {word}"] = 1
    features |= {
        f"start {before} | {first}": 1,
        f"end {last} | {behind}": 1,
        f"start {_state(rewrite, start - 1)} | {_state(rewrite, start)}": 1,
        f"end {_state(rewrite, end - 1)} | {_state(rewrite, end)}": 1,
        f"before two {_token(rewrite, start - 2)} {before}": 1,
        f"first two {first} {second}": 1,
        "from the start": start == 0,
        "to the end": end == count,
    }
    if len(inner) <= 3:
        features[f"all {' '.join(inner)}"] = 1
    return features


def _token(rewrite: AlignedRewrite, place: int) -> str:
    """Return a function word as it is, another by its kind; "^" and "$" beyond the ends."""
    if place < 0:
        return "^"
    if place >= len(rewrite.words):
        return "$"
    kind = rewrite.words.kinds[place]
    return rewrite.words.bare[place] if kind in FUNCTION_KINDS else kind.value


def _state(rewrite: AlignedRewrite, place: int) -> str:
    """New or old beside the question, varied or shared among the rewrites."""
    if not 0 <= place < len(rewrite.words):
        return "X"
    age = "N" if rewrite.new[place] else "O"
    return age + ("V" if rewrite.varies[place] > 0 else "S")


# A linear ranker over sparse features, and the choice that is best on average over what it finds
# probable.

WEIGHTS = Path(__file__).parent / "clarification" / "weights.json"
_CONSIDERED = 14  # most probable candidates that are compared with each other
_NEGLIGIBLE = 1e-3
_RECALL = 0.55  # how much missing words count, beside words too many
_SHARPNESS = 1.5  # chosen on CAmbigNQ's part_train by cross-validation


@dataclass(frozen=True)
class Ranker:
    """The score of a candidate is the sum of its features' weights; unknown features weigh nothing."""

    weights: Mapping[str, float]

    def score(self, features: Mapping[str, float]) -> float:
        weights = self.weights
        return sum(weights.get(name, 0.0) * value for name, value in features.items())


@cache
def load_ranker(name: str) -> Ranker:
    """One of the rankers that ship with the package: "options" or "leads"."""
    table = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return Ranker(table[name])


def by_expectation(texts: Sequence[str], scores: Sequence[float]) -> list[tuple[int, float]]:
    """Return the most probable texts, ordered by their expected overlap with the right one, which scores make more
    or less probable: (place, overlap).

    >>> places = by_expectation(["the film", "the 1961 film", "the 1961 film version"], [1.0, 0.9, 0.8])
    >>> [place for place, _ in places]
    [1, 2, 0]
    """
    order = sorted(range(len(texts)), key=lambda place: -scores[place])[:_CONSIDERED]
    chances = []
    for place in order:
        chances.append(math.exp(_SHARPNESS * (scores[place] - scores[order[0]])))
    total = sum(chances)
    expected = []
    for place in order:
        value = 0.0
        for other, chance in zip(order, chances, strict=True):
            if chance > _NEGLIGIBLE:
                value += chance / total * overlap(texts[place], texts[other])
        expected.append((place, value))
    return sorted(expected, key=lambda pair: -pair[1])


def overlap(text: str, right: str) -> float:
    """Return the longest common substring as a share of each text; what is missing counts a little more than what is
    too much.

    >>> overlap("the film", "film"), overlap("film", "the film")
    (0.775, 0.725)
    """
    if not text or not right:
        return 0.0
    matcher = SequenceMatcher(None, text, right, autojunk=False)
    size = matcher.find_longest_match(0, len(text), 0, len(right)).size
    return (1 - _RECALL) * size / len(text) + _RECALL * size / len(right)


# The phrase that each rewrite is offered by, no two alike where that can be.

_Filter = Callable[[AlignedRewrite, Phrase], bool]


def choose_phrases(
    rewrites: Sequence[AlignedRewrite], ranker: Ranker, keep: _Filter | None = None
) -> list[Phrase]:
    """Return one phrase of each rewrite, among those that `keep` lets through where there are such: the best one that
    says neither the same as nor a part of what another one says."""
    ranked = [_rank_phrases(rewrite, ranker, keep) for rewrite in rewrites]
    contents = []  # of each rewrite, what each of its phrases says
    for rewrite, own in zip(rewrites, ranked, strict=True):
        contents.append([_content(rewrite, phrase) for phrase in own])
    chosen = [0] * len(rewrites)
    for number, choices in enumerate(contents):
        others = [said[rank] for said, rank in zip(contents, chosen, strict=True)]
        del others[number]
        for rank, content in enumerate(choices):
            if not any(content <= other for other in others):
                chosen[number] = rank
                break
    return [own[rank] for own, rank in zip(ranked, chosen, strict=True)]


def _rank_phrases(rewrite: AlignedRewrite, ranker: Ranker, keep: _Filter | None) -> list[Phrase]:
    phrases = list_phrases(rewrite)
    if keep is not None:
        phrases = [one for one in phrases if keep(rewrite, one)] or phrases
    texts = [phrase_text(rewrite, phrase) for phrase in phrases]
    scores = [ranker.score(phrase_features(rewrite, phrase)) for phrase in phrases]
    return [phrases[place] for place, _ in by_expectation(texts, scores)]


def _content(rewrite: AlignedRewrite, phrase: Phrase) -> frozenset[str]:
    """Return the words by which a person tells a phrase from others: content that differs between rewrites; all of
    them where there is none."""
    bare = rewrite.words.bare
    telling = []
    for place in range(*phrase):
        if rewrite.is_core[place] and rewrite.is_content[place]:
            telling.append(bare[place])
    return frozenset(telling or bare[phrase[0] : phrase[1]])
