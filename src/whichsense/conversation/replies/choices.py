"""Which options a choice names: by position, by order, by period, by words; several of them, or all but some."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.conversation.replies.matching import Matcher
from whichsense.conversation.replies.periods import Period, find_limit
from whichsense.conversation.replies.positions import is_place_word, pick
from whichsense.conversation.replies.profiles import size_order, time_order
from whichsense.conversation.replies.tokens import Token
from whichsense.conversation.replies.vocabulary import (
    ALL_WORDS,
    CARDINALS,
    POINTERS,
    PRICE_ORDER,
    SIZE_ORDER,
    TIME_ORDER,
)

_EXCEPT = (
    r"\b(?:(?:all|any|anything|everything|every one|any one|everyone|anyone)"
    r"(?: of (?:them|these|those))? (?:but|except(?: for)?|other than|besides|apart from|excluding|without|save)"
    r"|except(?: for)?|excluding|other than|apart from|but not|and not|not|neither|without|rather than|instead of"
    r"|dont (?:mean|want)|didnt mean|do not (?:mean|want)|did not mean|no)\b"
)
_NEGATION = re.compile(_EXCEPT)
_SEPARATOR = re.compile(
    r",(?!\d{3}\b)|;|&|\+|/|\b(?:and|or|nor|plus|but|as well as|along with)\b"
)
_JOINING = ("and", "or", "nor", "&", "+")  # a negation goes on behind these
_RANGE = re.compile(r"\b(\d) ?(?:-|–|to|through|thru|till|until) ?(\d)\b")
_COUNT = re.compile(
    r"\b(first|top|last|bottom|final|oldest|newest|latest|earliest|biggest|largest|smallest|longest|shortest)"
    rf" ({'|'.join(CARDINALS)}|\d)\b"
    rf"|\b({'|'.join(CARDINALS)}|\d) (oldest|newest|latest|earliest|biggest|largest|smallest|longest|shortest)\b"
)
_FROM_END = re.compile(
    r"\b(?:second|next) (?:to|from) (?:the )?last\b|\bpenultimate\b|\blast but one\b"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Options that a part of a reply names."""

    ids: tuple[str, ...]
    score: float
    by_label: bool = False
    """Whether a number in it was a part of labels ("season 2") and no position."""


NOTHING = Selection((), 0.0)


def select(text: str, matcher: Matcher) -> Selection:
    """The options that a plain text chooses, in the order of the options."""
    whole = matcher.labelled(text)
    if whole:
        return Selection((whole,), 1.0)
    named: set[str] = set()
    excluded: set[str] = set()
    scores = []
    is_negated = False
    noun = ""
    for separator, clause in _clauses(text, matcher):
        before, negation, behind = _split_negation(clause)
        named.update(_resolve(before, matcher).ids)
        if negation:
            is_negated = True
        elif separator not in _JOINING:
            is_negated = False
        selection = _resolve(behind, matcher)
        if behind.strip().isdigit() and noun:
            # "seasons 1 and 2": the noun stands once.
            joined = _resolve(f"{noun} {behind}", matcher)
            selection = joined if joined.by_label else selection
        if selection.by_label:
            noun = re.sub(r"\d+", "", behind).strip()
        if selection.ids:
            (excluded if is_negated else named).update(selection.ids)
            scores.append(selection.score)
    if not scores:
        return NOTHING
    kept = named - excluded if named else set(matcher.ids) - excluded
    ids = tuple(one for one in matcher.ids if one in kept)
    return Selection(ids, min(scores))


def _split_negation(clause: str) -> tuple[str, str, str]:
    """What stands before a negation, the negation, and what it denies; all of a clause without one is at the end.

    >>> _split_negation("the book not the film")
    ('the book ', 'not', ' the film')
    """
    match = _NEGATION.search(clause)
    if match is None:
        return "", "", clause
    return clause[: match.start()], match[0], clause[match.end() :]


def _clauses(text: str, matcher: Matcher) -> list[tuple[str, str]]:
    """(what stands before it, clause); labels that hold a separator stay whole."""
    if _RANGE.search(text):
        return [("", text)]
    limit = find_limit(text)
    if limit and re.search(r"\bbetween\b|\bfrom\b.*\bto\b", text):
        return [("", text)]
    masked = text
    for profile in matcher.profiles:
        label = profile.label.text.lower()
        if _SEPARATOR.search(label) and label in masked:
            hidden = _SEPARATOR.sub(lambda match: "\x00" * len(match[0]), label)
            masked = masked.replace(label, hidden)
    clauses = []
    separator = ""
    start = 0
    for match in _SEPARATOR.finditer(masked):
        if match[0] == "but" and _NEGATION.search(masked[start : match.end()]):
            continue  # "all but the film" is one clause
        clauses.append((separator, text[start : match.start()]))
        separator, start = match[0], match.end()
    clauses.append((separator, text[start:]))
    return [(mark, clause) for mark, clause in clauses if clause.strip()]


def _resolve(clause: str, matcher: Matcher) -> Selection:
    """The options that one clause names."""
    whole = matcher.labelled(clause)
    if whole:
        return Selection((whole,), 1.0)
    ids = matcher.ids
    spread = _RANGE.search(clause)
    if spread and 1 <= int(spread[1]) < int(spread[2]) <= len(ids):
        return Selection(tuple(ids[int(spread[1]) - 1 : int(spread[2])]), 1.0)
    limit = find_limit(clause)
    if limit:
        selection = _within(limit[0], limit[1], matcher)
        if selection.ids:
            return selection
    counted = _COUNT.search(clause)
    if counted and not set(counted[0].split()) <= matcher.label_words:
        selection = _counted(counted, matcher)
        if selection.ids:
            return selection
    if _FROM_END.search(clause) and len(ids) > 1:
        return Selection((ids[-2],), 1.0)
    tokens = matcher.tokens(clause)
    return _by_order(tokens, matcher) or _by_position_or_words(tokens, matcher)


def _within(period: Period, rest: str, matcher: Matcher) -> Selection:
    """Options in a period that the other words fit, too."""
    inside = []
    for profile in matcher.profiles:
        if any(period.contains(year) for year in profile.years):
            inside.append(profile.id)
    tokens = [one for one in matcher.tokens(rest) if one.text not in ALL_WORDS]
    content = matcher.content(tokens)
    if content:
        named, _ = matcher.meant(content)
        inside = [one for one in inside if one in named] or inside
    return Selection(tuple(inside), 0.9) if inside else NOTHING


def _counted(match: re.Match[str], matcher: Matcher) -> Selection:
    """ "the first two", "the two oldest"."""
    word = match[1] or match[4]
    figure = match[2] or match[3]
    count = int(figure) if figure.isdigit() else CARDINALS[figure]
    if word in ("first", "top"):
        return Selection(tuple(matcher.ids[:count]), 1.0)
    if word in ("last", "bottom", "final"):
        return Selection(tuple(matcher.ids[-count:]), 1.0)
    ranked = _ranked(word, matcher, matcher.ids)
    return Selection(tuple(ranked[:count]), 0.9) if ranked else NOTHING


def _by_order(tokens: Sequence[Token], matcher: Matcher) -> Selection | None:
    """ "the newest film", "the second oldest", "the biggest"; None where no such word stands in the clause."""
    orders = (TIME_ORDER, SIZE_ORDER, PRICE_ORDER)
    words = [token.text for token in tokens]
    found = [word for word in words if any(word in order for order in orders)]
    # "most recent" is about time: the word behind "most" decides.
    superlatives = [word for word in found if word != "most"] or found
    if not superlatives or superlatives[0] in matcher.label_words:
        return None
    word = superlatives[0]
    rest = [one for one in tokens if one.text not in (word, "most", "least", "more")]
    rank = [int(one.number) for one in rest if one.is_ordinal and one.number]
    content = [one for one in matcher.content(rest) if not one.is_ordinal]
    candidates = matcher.ids
    if content:
        named, _ = matcher.meant(content)
        candidates = named or candidates
    ranked = _ranked(word, matcher, candidates)
    place = rank[0] if rank else 1
    if len(ranked) < place:
        return None
    return Selection((ranked[place - 1],), 0.9)


def _ranked(word: str, matcher: Matcher, candidates: Sequence[str]) -> list[str]:
    """The candidates in the order that a superlative asks for; empty where they have none."""
    profiles = [one for one in matcher.profiles if one.id in candidates]
    if word in TIME_ORDER:
        known, direction = time_order(profiles), TIME_ORDER[word]
    elif word in SIZE_ORDER:
        known, direction = size_order(profiles, price=False), SIZE_ORDER[word]
    else:
        known, direction = size_order(profiles, price=True), PRICE_ORDER[word]
    if len(known) < min(2, len(profiles)):
        return []
    known.sort(key=lambda pair: -direction * pair[0])
    return [one for _, one in known]


def _by_position_or_words(tokens: Sequence[Token], matcher: Matcher) -> Selection:
    is_pointed = any(token.text in POINTERS for token in tokens)
    numbers = [token for token in tokens if token.number is not None]
    content = [one for one in matcher.content(tokens) if one.text not in POINTERS]
    others = [one for one in content if _is_noun(one)]
    place = pick(tokens, matcher.ids)
    if place and (is_pointed or not others):
        numbered = None if is_pointed else _numbered(tokens, matcher)
        return numbered or Selection((place,), 1.0)
    named, score = matcher.meant([one for one in content if not is_place_word(one)])
    if others and (numbers or any(is_place_word(one) for one in tokens)):
        # "the second film": a number in the labels, or else a place among those that the words name.
        by_words, words_score = matcher.meant(others)
        if named and by_words and set(named) < set(by_words):
            return Selection(tuple(named), score, by_label=bool(numbers))
        among = pick(tokens, by_words)
        if among:
            return Selection((among,), words_score)
        if place and not named:
            return Selection((place,), 0.5)  # "the second meeting"
    return Selection(tuple(named), score, by_label=bool(numbers)) if named else NOTHING


def _is_noun(token: Token) -> bool:
    """Whether a token may be what is counted."""
    return token.number is None and len(token.text) > 1 and not is_place_word(token)


def _numbered(tokens: Sequence[Token], matcher: Matcher) -> Selection | None:
    """The option whose label has the number that stands beside the category: "the second season", "season 2"."""
    numbers = [token.number for token in tokens if token.number is not None]
    initials = {stem[0] for stem in matcher.category}  # s3
    beside = {token.stem for token in tokens}
    if not numbers or not beside & (matcher.category | initials):
        return None
    having = []
    for profile in matcher.profiles:
        if any(own.number == numbers[0] for own in profile.label.tokens):
            having.append(profile.id)
    return Selection(tuple(having), 0.95, by_label=True) if len(having) == 1 else None
