"""Phrases for people: whole names and noun phrases, with the articles and prepositions that belong to them."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.clarification.alignment import AlignedRewrite, Kind
from whichsense.models.compact.clarification.labels import LONGEST_LABEL
from whichsense.models.compact.clarification.phrases import Phrase, phrase_text
from whichsense.models.compact.clarification.word_sets import (
    MEANINGFUL_PREPOSITIONS,
    category_noun,
)

# Kept where every option has it: "by area, or by population".
_SHARED = frozenset("by for with to under".split())
_NUMBERS = (Kind.YEAR, Kind.DATE, Kind.NUMBER, Kind.ORDINAL)
_IN_NAMES = (Kind.NAME, Kind.NUMBER)


def suits_people(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    """Whether a phrase fits a label and could stand alone: no clause that begins with a wh-word, and no words joined
    that have lost the preposition between them, numbers aside."""
    if len(phrase_text(rewrite, phrase)) > LONGEST_LABEL:
        return False
    kinds = rewrite.words.kinds
    if kinds[phrase.start] is Kind.WH and len(phrase.places) > 1:
        return False
    if len(phrase.spans) == 1:
        return True
    start, _ = phrase.spans[-1]
    if kinds[start - 1] in (Kind.PREPOSITION, Kind.ARTICLE):
        return kinds[start] in (Kind.YEAR, Kind.DATE)
    return not (kinds[start - 1] is Kind.NAME and kinds[start] in _IN_NAMES)


def polish(rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]) -> list[str]:
    """The labels of phrases, with what belongs to them where a label stays short enough."""
    shared_noun = noun_behind(rewrites, phrases)
    together = _shared_preposition(rewrites, phrases)
    longer = []
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        whole = _with_whole_names(rewrite, phrase)
        if not shared_noun:
            whole = _with_noun(rewrite, whole)
        whole = _with_opening(rewrite, whole, together)
        longer.append(_if_short(rewrite, whole, phrase))
    longer = _with_prepositions(rewrites, longer)
    return _as_labels(rewrites, longer)


def _if_short(rewrite: AlignedRewrite, longer: Phrase, phrase: Phrase) -> Phrase:
    return longer if len(phrase_text(rewrite, longer)) <= LONGEST_LABEL else phrase


def _with_prepositions(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> list[Phrase]:
    """Where some begin with a preposition, the others get theirs, too: "in London, or at the Majestic Theatre"."""
    pairs = list(zip(rewrites, phrases, strict=True))
    kinds = [rewrite.words.kinds[phrase.start] for rewrite, phrase in pairs]
    if Kind.PREPOSITION not in kinds:
        return list(phrases)
    completed = []
    for (rewrite, phrase), kind in zip(pairs, kinds, strict=True):
        before = phrase.start - 1
        words = rewrite.words
        has_one = before >= 0 and words.kinds[before] is Kind.PREPOSITION
        if has_one and kind is not Kind.PREPOSITION and words.bare[before] != "of":
            longer = _resized(phrase, before, phrase.end)
            completed.append(_if_short(rewrite, longer, phrase))
        else:
            completed.append(phrase)
    return completed


def _as_labels(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> list[str]:
    """The texts; a year with an article, among options that are no years, becomes "the 1943 one"."""
    labels = []
    are_numbers = []
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        text = phrase_text(rewrite, phrase)
        if rewrite.words.kinds[phrase.start] is Kind.ARTICLE:
            text = text[0].lower() + text[1:]
        labels.append(text)
        are_numbers.append(_is_number(rewrite, phrase))
    if all(are_numbers):
        return labels
    for number, (rewrite, phrase) in enumerate(zip(rewrites, phrases, strict=True)):
        start = phrase.start
        kinds = rewrite.words.kinds
        with_article = start > 0 and kinds[start - 1] is Kind.ARTICLE
        if are_numbers[number] and kinds[start] is Kind.YEAR and with_article:
            labels[number] = f"the {labels[number]} one"
    return labels


def _is_number(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    return len(phrase.places) == 1 and rewrite.words.kinds[phrase.start] in _NUMBERS


def noun_behind(rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]) -> str:
    """The noun that stands behind every phrase: "the British | version"; nothing where they differ."""
    nouns = set()
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        nouns.add(_head_behind(rewrite, phrase.end))
    return nouns.pop() if len(nouns) == 1 else ""


def _head_behind(rewrite: AlignedRewrite, place: int) -> str:
    """The last noun of those right behind a phrase: "men's | world record"."""
    words = rewrite.words
    head = ""
    while place < len(words) and words.kinds[place] is Kind.WORD:
        head = category_noun(words.bare[place])
        place += 1
        if head:
            break
    return head


def _with_whole_names(rewrite: AlignedRewrite, phrase: Phrase) -> Phrase:
    kinds = rewrite.words.kinds
    start, end = phrase.start, phrase.end
    if kinds[start] in _IN_NAMES:
        while start > 0 and kinds[start - 1] is Kind.NAME:
            start -= 1
    if kinds[end - 1] is Kind.NAME:
        while end < len(kinds) and kinds[end] in _IN_NAMES:
            end += 1
    return _resized(phrase, start, end)


def _with_noun(rewrite: AlignedRewrite, phrase: Phrase) -> Phrase:
    """A noun right behind, which completes what begins with an adjective or a year: "the 1976 | film"."""
    end = phrase.end
    is_noun = end < len(rewrite.words) and category_noun(rewrite.words.bare[end])
    ends_in_noun = category_noun(rewrite.words.bare[end - 1])
    return _resized(phrase, phrase.start, end + bool(is_noun and not ends_in_noun))


def _with_opening(rewrite: AlignedRewrite, phrase: Phrase, together: bool) -> Phrase:
    """With the article before it, and the preposition before that where it means something."""
    words = rewrite.words
    start = phrase.start
    is_number = _is_number(rewrite, phrase)
    article = start > 0 and words.kinds[start - 1] is Kind.ARTICLE
    if article and not is_number and not phrase.article:
        start -= 1
    before = words.bare[start - 1] if start > 0 else ""
    if before in MEANINGFUL_PREPOSITIONS or (together and not is_number):
        start -= 1
    return _resized(phrase, start, phrase.end)


def _shared_preposition(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> bool:
    """Whether all phrases, with their articles, follow one preposition of those that are kept then."""
    found = set()
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        place = phrase.start - 1
        if place >= 0 and rewrite.words.kinds[place] is Kind.ARTICLE:
            place -= 1
        found.add(rewrite.words.bare[place] if place >= 0 else "")
    return len(found) == 1 and found <= _SHARED


def _resized(phrase: Phrase, start: int, end: int) -> Phrase:
    first = (start, phrase.spans[0][1])
    spans = (first, *phrase.spans[1:])
    last = (spans[-1][0], end)
    return Phrase((*spans[:-1], last), phrase.article and start == phrase.start)
