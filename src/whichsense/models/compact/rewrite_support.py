"""What a rewrite may say: the places of its answer, and what the evidence says there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from whichsense.models.compact.candidates import Mention
from whichsense.models.compact.encoder import Pair
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.writer import KINDS_OF_WORKS, Ints
from whichsense.text.answers import same_answer
from whichsense.text.words import NEUTRAL_WORDS, SMALL_WORDS, porter_stem, sentence_spans, words
from whichsense.types import Candidate, Policy, Span

# What a rewrite may say: only what the evidence says of its own answer, and words that state no fact.

Places = dict[int, list[tuple[int, int]]]
"""Passage → (first, last + 1) of its pair's tokens."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# "(May 2, 1895 – November 22, 1943)", "(born 2 May 1895)": full dates, since bare years may be those of a series.
_LIFE = re.compile(r"\((?:[^()]*\bborn\b[^()]*|[^()]*[^\W\d][^()]*\d{4}\s*[–-]\s*[^()]*\d{4})\)")


@dataclass(frozen=True, slots=True)
class Target:
    """An answer to write a rewrite for, and its token spans, best passages first."""

    answer: str
    marked: Places


@dataclass(frozen=True)
class Support:
    """What a rewrite for an answer may insert, by stems: "played" supports "plays"."""

    answer: str
    stems: frozenset[str]
    pieces: Ints
    """Word pieces that the writer may write."""
    neighbours: frozenset[tuple[str, str]] = frozenset()
    """Pairs of adjacent stems: South Korea and New Zealand do not support South Zealand."""
    numbers: frozenset[str] = frozenset()
    """Whole numbers: 2,022,044 does not support 044."""

    def holds(self, inserted: str) -> bool:
        """Return whether an insertion is supported and does not give the answer away."""
        if inserted and same_answer(inserted, self.answer):
            return False
        new = words(inserted)
        for head in _heads(self.answer):
            if _contains(new, head):
                return False
        if not _name_pairs(inserted) <= self.neighbours:
            return False
        if not _numbers(inserted) <= self.numbers:
            return False
        return all(self._says(word) for word in new)

    def tells_apart(self, rewrite: str, others: Sequence[Support]) -> bool:
        """Return whether a rewrite has a word that the evidence of no other answer has."""
        for word in words(rewrite):
            if not any(other._says(word) for other in others):
                return True
        return False

    def _says(self, word: str) -> bool:
        return word in SMALL_WORDS or porter_stem(word) in self.stems


def support(scene: Scene, target: Target, *, policy: Policy) -> Support:
    """Collect the support of an answer: from the titles and sentences that hold it, or, under a policy that is not
    careful, from the whole passages that hold it; from all passages if none does."""
    texts = _supporting_texts(scene, target, policy=policy)
    stems: set[str] = set()
    neighbours: set[tuple[str, str]] = set()
    numbers: set[str] = set()
    said: set[str] = set()
    for text in (scene.evidence.question, *texts):
        row = words(text)
        row_stems = [porter_stem(word) for word in row]
        said.update(row)
        stems.update(row_stems)
        neighbours.update(itertools.pairwise(row_stems))
        numbers.update(_numbers(text))
    free = _neutral(said)
    stems.update(map(porter_stem, free))
    tokenizer = scene.compact.model.tokenizer
    # The writer has the question's pieces anyway: they are not counted here.
    pieces: set[int] = set()
    for text in (*texts, *free, *SMALL_WORDS):
        pieces.update(tokenizer.ids(text))
    return Support(
        target.answer,
        frozenset(stems),
        np.array(sorted(pieces), dtype=np.int64),
        frozenset(neighbours),
        frozenset(numbers),
    )


def _supporting_texts(scene: Scene, target: Target, *, policy: Policy) -> list[str]:
    texts: list[str] = []
    for around in beside(scene, target):
        texts += around
    if policy.careful:
        texts = list(map(_without_lives, texts))
    else:
        for place in target.marked:
            texts.append(scene.evidence.passages[place].text)
    if not texts:
        for passage in scene.evidence.passages:
            texts += [passage.title, passage.text]
    return texts


def beside(scene: Scene, target: Target) -> list[list[str]]:
    """Return for each passage with the answer its title and the sentences that hold the answer."""
    texts = []
    for place, spans in target.marked.items():
        pair = scene.evidence.pairs[place]
        passage = scene.evidence.passages[place]
        first_token, end_token = pair.text
        # Characters of the text at which the answer begins; spans in the title have none.
        starts = []
        for first, _ in spans:
            if first_token <= first < end_token:
                starts.append(pair.starts[first])
        texts.append([passage.title, *_sentences_at(passage.text, starts)])
    return texts


def _sentences_at(text: str, starts: Sequence[int]) -> list[str]:
    """Return the sentences that hold one of these characters."""
    sentences = []
    for begin, end in sentence_spans(text):
        if any(begin <= start < end for start in starts):
            sentences.append(text[begin:end])
    return sentences


def _without_lives(text: str) -> str:
    """Return a text without the dates of people's lives: the writer takes such a year for that of a work.

    >>> _without_lives("Hart (May 2, 1895 – November 22, 1943) wrote Cats (1931) and Dogs (1931–1934).")
    'Hart  wrote Cats (1931) and Dogs (1931–1934).'
    """
    return _LIFE.sub("", text)


def _neutral(said: Set[str]) -> frozenset[str]:
    """Return the neutral words that do not contradict what is said: a novel is not a film.

    >>> "film" in _neutral({"dune", "novel"}), "book" in _neutral({"dune", "novel"}), "film" in _neutral({"dune"})
    (False, True, True)
    """
    other_kinds = [kind for kind in KINDS_OF_WORKS if not kind & said]
    if len(other_kinds) == len(KINDS_OF_WORKS):
        return NEUTRAL_WORDS
    return NEUTRAL_WORDS.difference(*other_kinds)


def _heads(answer: str) -> list[list[str]]:
    """Return the words of an answer, and of a place those before its comma, which name it too. A date has no such
    part.

    >>> _heads("Stockholm, Sweden"), _heads("May 5, 1997")
    ([['stockholm', 'sweden'], ['stockholm']], [['may', '5', '1997']])
    """
    has_digit = any(map(str.isdigit, answer))
    if "," in answer and not has_digit:
        return [words(answer), words(answer.partition(",")[0])]
    return [words(answer)]


def _contains(row: Sequence[str], part: Sequence[str]) -> bool:
    """Return whether some words stand in a row among others. An empty part does not."""
    if not part:
        return False
    for first in range(len(row) - len(part) + 1):
        if row[first : first + len(part)] == part:
            return True
    return False


def _numbers(text: str) -> set[str]:
    """Return the numbers of a text, whole.

    >>> sorted(_numbers("At 7:30 p.m., 2,022,044 of 1990's."))
    ['1990', '2,022,044', '7:30']
    """
    return set(_NUMBER.findall(text))


def _name_pairs(text: str) -> set[tuple[str, str]]:
    """Return the stems of adjacent capitalized words.

    >>> sorted(_name_pairs("in the New Zealand of Sir Edmund Hillary"))
    [('edmund', 'hillari'), ('new', 'zealand'), ('sir', 'edmund')]
    """
    pairs = set()
    previous: tuple[bool, str] | None = None  # capitalized?, last stem
    for token in text.split():
        own = words(token)
        if not own:
            continue
        capital = token[:1].isupper()
        if previous is not None and previous[0] and capital:
            pairs.add((previous[1], porter_stem(own[0])))
        previous = (capital, porter_stem(own[-1]))
    return pairs


# Locates answers in the passages: the token spans that a rewrite's windows and support are taken
# from.

_LEAST_PROBABLE = 0.05  # in its passage: less probable mentions add no spelling of the answer
_MOST_MARKED = 12  # spans of a passage
_LEAST_MASS = 0.02  # of the best mention's: weaker ones only share the answer's words


def telling(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return the best of an answer's spans, and the others that are not much weaker."""
    strong = list(spans[:1])
    for span in spans[1:]:
        if span.score >= _LEAST_MASS * spans[0].score:
            strong.append(span)
    return tuple(strong)


def locate(scene: Scene, candidate: Candidate, *, told: bool = False) -> Target:
    """Find every span of every passage that has the tokens of an answer or of a string like it. If `told`, only spans
    that the reader proposes, as long as there are any."""
    mentions: list[Mention] = []
    for answer in scene.answers:
        if same_answer(answer.text, candidate.answer):
            mentions += answer.mentions
    spellings = _token_spellings(scene, candidate, mentions)
    vocabulary = scene.compact.model.words.vocabulary
    marked: Places = {}
    for place, pair in enumerate(scene.evidence.pairs):
        spans: set[tuple[int, int]] = set()
        for tokens in spellings:
            spans.update(_spans_of(pair, tokens, vocabulary))
        if spans:
            marked[place] = sorted(spans)[:_MOST_MARKED]
    if told:
        marked = places_read(marked, mentions) or marked
    # Mentions come by support: of a passage's the first, and best, is written last.
    mass_of = {mention.passage: mention.mass for mention in reversed(mentions)}
    order = sorted(marked, key=lambda place: (-mass_of.get(place, 0.0), place))
    ordered: Places = {}
    for place in order:
        ordered[place] = marked[place]
    return Target(candidate.answer, ordered)


def _token_spellings(
    scene: Scene, candidate: Candidate, mentions: Sequence[Mention]
) -> list[list[int]]:
    """Return the tokens of an answer, of its spans and of its probable mentions."""
    texts = {candidate.answer}
    for span in candidate.spans:
        texts.add(span.passage.text[span.start : span.end])
    for mention in mentions:
        if mention.probability > _LEAST_PROBABLE:
            texts.add(mention.surface)
    texts.discard("")
    spellings = []
    for text in texts:
        tokens = scene.tokens(text)
        if tokens:
            spellings.append(tokens)
    return spellings


def places_read(marked: Places, mentions: Sequence[Mention]) -> Places:
    """Return the marked spans that overlap a mention which is not much weaker than the best. A title that is the answer
    counts for all spans of its passage."""
    best = max((mention.mass for mention in mentions), default=0.0)
    read: dict[int, set[tuple[int, int]]] = {}
    for mention in mentions:
        if mention.mass < _LEAST_MASS * best:
            continue
        first, end = mention.tokens
        for span in marked.get(mention.passage, ()):
            overlaps = span[0] < end and first < span[1]
            if mention.in_title or overlaps:
                read.setdefault(mention.passage, set()).add(span)
    places: Places = {}
    for place, spans in read.items():
        places[place] = sorted(spans)
    return places


def _spans_of(
    pair: Pair, tokens: Sequence[int], vocabulary: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the spans of a row of tokens in a pair's title and text, as whole words."""
    spans = []
    for begin, end in (pair.title, pair.text):
        for first, last in find_tokens(pair.ids[begin:end], tokens, vocabulary):
            spans.append((begin + first, begin + last))
    return spans


def find_tokens(
    row: Sequence[int], wanted: Sequence[int], vocabulary: Sequence[str]
) -> list[tuple[int, int]]:
    """Return where some tokens stand in a row as whole words: (first, last + 1).

    >>> find_tokens([1, 2, 1, 1], [1], ["the", "art", "##ist"])
    [(2, 3), (3, 4)]
    """
    row, wanted = list(row), list(wanted)
    spans = []
    for start, token in enumerate(row):
        end = start + len(wanted)
        # The first token is compared alone: a slice for every place would be slow.
        if token == wanted[0] and row[start:end] == wanted:
            # "art" does not stand in "art ##ist".
            if end == len(row) or not vocabulary[row[end]].startswith("##"):
                spans.append((start, end))
    return spans
