"""What an option may say: phrases of a rewrite that hold something of what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from whichsense.models.compact.clarification.alignment import (
    DATE,
    FUNCTION_KINDS,
    AlignedRewrite,
    Kind,
)

_LONGEST = 14  # words
_MOST_RUNS = 4  # of core words, where phrases are joined
_OPENING = frozenset("\"“('‘")
_CLOSING = frozenset("\"”)'’.")
_DATE_COMMA = re.compile(r", (?=\d{4})")
_NEAR_FUNCTION = (Kind.ARTICLE, Kind.PREPOSITION)
# What a phrase of good English does not begin or end with.
_NEVER_FIRST = (Kind.CONJUNCTION, Kind.AUXILIARY)
_NEVER_LAST = (
    Kind.ARTICLE,
    Kind.PREPOSITION,
    Kind.CONJUNCTION,
    Kind.AUXILIARY,
    Kind.WH,
)
_NAME_LINKS = ("of", "the")


@dataclass(frozen=True, slots=True)
class Phrase:
    """One or two spans of a rewrite's words, written one after the other."""

    spans: tuple[tuple[int, int], ...]
    article: bool = False
    """Whether "the" is put before it: "What city …" → "the city"."""

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[-1][1]

    @property
    def places(self) -> list[int]:
        return [place for start, end in self.spans for place in range(start, end)]


def phrase_text(rewrite: AlignedRewrite, phrase: Phrase) -> str:
    """What a phrase says; a function word that began the rewrite is written in lower case."""
    words = rewrite.words
    text = " ".join(words.span(start, end) for start, end in phrase.spans)
    if phrase.article:
        return f"the {text}"
    if phrase.start == 0 and words.kinds[0] in FUNCTION_KINDS:
        return text[0].lower() + text[1:]
    return text


def without_commas(text: str) -> str:
    """As annotators write options: a comma would part one option into two.

    >>> without_commas("on January 22, 2015, in Rome, Italy")
    'on January 22 of 2015 in Rome Italy'
    """
    text = DATE.sub(lambda date: _DATE_COMMA.sub(" of ", date.group()), text)
    return " ".join(text.replace(",", " ").split())


def list_phrases(rewrite: AlignedRewrite) -> list[Phrase]:
    """Every phrase that an option may be made of, each once."""
    phrases: dict[Phrase, None] = {}
    for start, end in _spans(rewrite):
        phrases[Phrase(((start, end),))] = None
        kinds = rewrite.words.kinds
        is_noun = rewrite.is_content[start] and kinds[start] is not Kind.NAME
        if is_noun and follows_which(rewrite, start):
            phrases[Phrase(((start, end),), article=True)] = None
    for phrase in _joined(rewrite):
        phrases[phrase] = None
    if not phrases and len(rewrite.words):
        phrases[Phrase(((0, min(len(rewrite.words), _LONGEST)),))] = None
    return list(phrases)


def follows_which(rewrite: AlignedRewrite, place: int) -> bool:
    """Whether a noun is asked for at this place: "What city …". Behind "who" or "when" comes a verb."""
    return place > 0 and rewrite.words.bare[place - 1] in ("what", "which")


def _spans(rewrite: AlignedRewrite) -> Iterator[tuple[int, int]]:
    words = rewrite.words
    for start in range(len(words)):
        if words.kinds[start] is Kind.MARK and words.word(start) not in _OPENING:
            continue
        for end in range(start + 1, min(len(words), start + _LONGEST) + 1):
            last = end - 1
            if words.kinds[last] is Kind.MARK and words.word(last) not in _CLOSING:
                continue
            if any(rewrite.is_core[start:end]) and _is_whole(rewrite, start, end):
                yield start, end


def _is_whole(rewrite: AlignedRewrite, start: int, end: int) -> bool:
    """Whether a span could be a phrase: it has content, no loose function word at an end, and cuts no name that
    differs from rewrite to rewrite."""
    kinds = rewrite.words.kinds
    if _differs_in_wh(rewrite):
        # "When was …", "Where was …": nothing else tells them apart.
        return all(rewrite.is_core[start:end])
    if not any(rewrite.is_content[start:end]):
        return False
    if kinds[start] in _NEVER_FIRST or kinds[end - 1] in _NEVER_LAST:
        return False
    if rewrite.words.bare[start] == "of":
        return False
    return not (_cuts_name(rewrite, start) or _cuts_name(rewrite, end))


def _differs_in_wh(rewrite: AlignedRewrite) -> bool:
    """Whether only function words differ, and a wh-word is one of them."""
    core = []
    for kind, is_core in zip(rewrite.words.kinds, rewrite.is_core, strict=True):
        if is_core:
            core.append(kind)
    return Kind.WH in core and FUNCTION_KINDS.issuperset(core)


def _cuts_name(rewrite: AlignedRewrite, place: int) -> bool:
    """Whether the words on both sides of a place belong to one name: "House of | Commons", "New | York"."""
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


def _joined(rewrite: AlignedRewrite) -> Iterator[Phrase]:
    """Two runs of words that differ, without the shared words between them: "men's" + "class T42"."""
    runs = _core_runs(rewrite)[:_MOST_RUNS]
    kinds = rewrite.words.kinds
    for number, (start, end) in enumerate(runs):
        for later_start, later_end in runs[number + 1 :]:
            if later_end - later_start + end - start > _LONGEST:
                continue
            for first in _with_function_words(kinds, start, 1, lowest=0):
                for second in _with_function_words(kinds, later_start, 2, lowest=end):
                    spans = ((first, end), (second, later_end))
                    if second > end and all(_is_whole(rewrite, *one) for one in spans):
                        yield Phrase(spans)


def _core_runs(rewrite: AlignedRewrite) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for place, is_core in enumerate(rewrite.is_core):
        if not is_core:
            continue
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _with_function_words(
    kinds: tuple[Kind, ...], start: int, most: int, lowest: int
) -> list[int]:
    """Where a run may begin: at itself, or at articles and prepositions right before it."""
    starts = [start]
    for place in range(start - 1, max(lowest, start - most) - 1, -1):
        if kinds[place] not in _NEAR_FUNCTION:
            break
        starts.append(place)
    return starts
