"""The phrase that each rewrite is offered by, no two alike where that can be."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.clarification.alignment import AlignedRewrite, Kind
from whichsense.models.compact.clarification.phrase_features import phrase_features
from whichsense.models.compact.clarification.phrases import (
    Phrase,
    list_phrases,
    phrase_text,
)
from whichsense.models.compact.clarification.ranking import Ranker, by_expectation


def choose_phrases(
    rewrites: Sequence[AlignedRewrite], ranker: Ranker, longest: int | None = None
) -> list[Phrase]:
    """One phrase for each rewrite, of at most `longest` characters where there is such a one. Where two say the same,
    the one that loses least by another phrase takes it."""
    ranked = [rank_phrases(rewrite, ranker, longest) for rewrite in rewrites]
    return distinct_phrases(rewrites, ranked)


def rank_phrases(
    rewrite: AlignedRewrite, ranker: Ranker, longest: int | None = None
) -> list[tuple[Phrase, float]]:
    """The best phrases of a rewrite with how good each is expected to be, best first."""
    phrases = list_phrases(rewrite)
    if longest is not None:
        short = [one for one in phrases if len(phrase_text(rewrite, one)) <= longest]
        phrases = short or phrases
    texts = [phrase_text(rewrite, phrase) for phrase in phrases]
    scores = [ranker.score(phrase_features(rewrite, phrase)) for phrase in phrases]
    expected = by_expectation(texts, scores)
    return [(phrases[place], value) for place, value in expected]


def distinct_phrases(
    rewrites: Sequence[AlignedRewrite], ranked: Sequence[Sequence[tuple[Phrase, float]]]
) -> list[Phrase]:
    chosen = [0] * len(rewrites)

    def said(number: int, rank: int) -> str:
        return phrase_text(rewrites[number], ranked[number][rank][0]).lower()

    for _ in range(len(rewrites)):
        texts = [said(number, rank) for number, rank in enumerate(chosen)]
        moves = []
        for number, rank in enumerate(chosen):
            if texts.count(texts[number]) < 2:
                continue
            for other in range(rank + 1, len(ranked[number])):
                if said(number, other) not in texts:
                    loss = ranked[number][rank][1] - ranked[number][other][1]
                    moves.append((loss, number, other))
                    break
        if not moves:
            break
        _, number, other = min(moves)
        chosen[number] = other
    phrases = [ranked[number][rank][0] for number, rank in enumerate(chosen)]
    return _with_articles(rewrites, phrases)


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
    return Phrase(phrase.spans, article=kinds[start - 1] is Kind.WH)


def _has_article(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    return phrase.article or rewrite.words.kinds[phrase.start] is Kind.ARTICLE
