"""The phrase that each rewrite is offered by, no two alike where that can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from whichsense.models.compact.clarification.alignment import AlignedRewrite, Kind
from whichsense.models.compact.clarification.phrase_features import phrase_features
from whichsense.models.compact.clarification.phrases import (
    Phrase,
    follows_which,
    list_phrases,
    phrase_text,
)
from whichsense.models.compact.clarification.ranking import Ranker, by_expectation
from whichsense.models.compact.clarification.word_sets import MEANINGFUL_PREPOSITIONS

_LONGEST_MOVE = (
    0.25  # of expected overlap, that is given up so that no phrase is part of another
)
_Filter = Callable[[AlignedRewrite, Phrase], bool]


def always(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    """Let every phrase through."""
    return True


def choose_phrases(
    rewrites: Sequence[AlignedRewrite], ranker: Ranker, keep: _Filter = always
) -> list[Phrase]:
    """One phrase for each rewrite, among those that `keep` lets through where there are such. Where two say the same,
    or one says less than another, the one that loses least by another phrase takes it."""
    ranked = [rank_phrases(rewrite, ranker, keep) for rewrite in rewrites]
    return distinct_phrases(rewrites, ranked)


def rank_phrases(
    rewrite: AlignedRewrite, ranker: Ranker, keep: _Filter = always
) -> list[tuple[Phrase, float]]:
    """The best phrases of a rewrite with how good each is expected to be, best first."""
    phrases = list_phrases(rewrite)
    phrases = [one for one in phrases if keep(rewrite, one)] or phrases
    texts = [phrase_text(rewrite, phrase) for phrase in phrases]
    scores = [ranker.score(phrase_features(rewrite, phrase)) for phrase in phrases]
    expected = by_expectation(texts, scores)
    return [(phrases[place], value) for place, value in expected]


def distinct_phrases(
    rewrites: Sequence[AlignedRewrite], ranked: Sequence[Sequence[tuple[Phrase, float]]]
) -> list[Phrase]:
    """The best phrase of each, moved on to another one where it is equal to, or part of, what another one says."""
    contents = []  # of each rewrite, the content of each phrase
    for rewrite, own in zip(rewrites, ranked, strict=True):
        contents.append([_content(rewrite, phrase) for phrase, _ in own])
    chosen = [0] * len(rewrites)
    for _ in range(len(rewrites)):
        moves = []
        for number, rank in enumerate(chosen):
            others = _others(contents, chosen, number)
            content = contents[number][rank]
            if not any(content <= other for other in others):
                continue
            most = _LONGEST_MOVE if content not in others else float("inf")
            for other in range(rank + 1, len(ranked[number])):
                loss = ranked[number][rank][1] - ranked[number][other][1]
                apart = not any(contents[number][other] <= one for one in others)
                if apart and loss <= most:
                    moves.append((loss, number, other))
                    break
        if not moves:
            break
        _, number, other = min(moves)
        chosen[number] = other
    phrases = [ranked[number][rank][0] for number, rank in enumerate(chosen)]
    return _with_articles(rewrites, phrases)


def _others(
    contents: Sequence[Sequence[frozenset[str]]], chosen: Sequence[int], number: int
) -> list[frozenset[str]]:
    """What the other rewrites' phrases say."""
    said = []
    for other, rank in enumerate(chosen):
        if other != number:
            said.append(contents[other][rank])
    return said


def _content(rewrite: AlignedRewrite, phrase: Phrase) -> frozenset[str]:
    """The words by which a person tells a phrase from others: those that differ between rewrites, and prepositions
    such as "since"; all of them where there are none."""
    bare = rewrite.words.bare
    telling = []
    for place in phrase.places:
        is_core = rewrite.is_core[place] and rewrite.is_content[place]
        if is_core or bare[place] in MEANINGFUL_PREPOSITIONS:
            telling.append(bare[place])
    return frozenset(telling or [bare[place] for place in phrase.places])


def _with_articles(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> list[Phrase]:
    """Where some phrases begin with an article, bare nouns get theirs, too: "the lead vocal", "the band"."""
    pairs = list(zip(rewrites, phrases, strict=True))
    if not any(_has_article(rewrite, phrase) for rewrite, phrase in pairs):
        return list(phrases)
    return [_with_article(rewrite, phrase) for rewrite, phrase in pairs]


def _with_article(rewrite: AlignedRewrite, phrase: Phrase) -> Phrase:
    kinds = rewrite.words.kinds
    start = phrase.start
    if kinds[start] is not Kind.WORD or phrase.article or not start:
        return phrase
    if kinds[start - 1] is Kind.ARTICLE:
        (_, end), *others = phrase.spans
        return Phrase(((start - 1, end), *others))
    return Phrase(phrase.spans, article=follows_which(rewrite, start))


def _has_article(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    return phrase.article or rewrite.words.kinds[phrase.start] is Kind.ARTICLE
