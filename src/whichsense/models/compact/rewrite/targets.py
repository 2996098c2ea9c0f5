"""Locates answers in the passages: the token spans that a rewrite's windows and support are taken from."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.reader.candidates import Mention
from whichsense.models.compact.rewrite.support import Places, Target
from whichsense.models.compact.scene import Scene
from whichsense.text.answers import same_answer
from whichsense.types import Candidate, Span

_LEAST_PROBABLE = (
    0.05  # in its passage: less probable mentions add no spelling of the answer
)
_MOST_MARKED = 12  # spans of a passage
_LEAST_MASS = 0.02  # of the best mention's: weaker ones only share the answer's words


def telling(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The best of an answer's spans, and the others that are not much weaker."""
    strong = list(spans[:1])
    for span in spans[1:]:
        if span.score >= _LEAST_MASS * spans[0].score:
            strong.append(span)
    return tuple(strong)


def locate(scene: Scene, candidate: Candidate, *, told: bool = False) -> Target:
    """Every span of every passage that has the tokens of an answer or of a string like it. If `told`, only spans that
    the reader proposes, as long as there are any."""
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
    """The tokens of an answer, of its spans and of its probable mentions."""
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
    """The marked spans that overlap a mention which is not much weaker than the best. A title that is the answer counts
    for all spans of its passage."""
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
    """The spans of a row of tokens in a pair's title and text, as whole words."""
    wanted = list(tokens)
    spans = []
    for first, last in (pair.title, pair.text):
        for start in range(first, last - len(wanted) + 1):
            end = start + len(wanted)
            # The first token is compared alone: a slice for every place would be slow.
            if pair.ids[start] != wanted[0] or pair.ids[start:end] != wanted:
                continue
            if end < last and vocabulary[pair.ids[end]].startswith("##"):
                continue  # it goes on within a word
            spans.append((start, end))
    return spans
