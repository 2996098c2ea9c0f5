"""Values that a sentence lists side by side, and the belief that they share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from whichsense.text.answers import MONTHS
from whichsense.text.words import SMALL_WORDS, porter_stem, sentence_spans, words
from whichsense.types import Candidate, Span

_SHARED = 0.9  # a value beside a right one is right; of 608 questions over documents
_ONES = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_TENS = "fifteen|eighteen|twenty|thirty|forty|fifty|sixty|ninety|hundred"
_ORDINAL = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_MONTH = "|".join(MONTHS)
_AMOUNT = r"\d+(?:[,.]\d+)*"
_NOT_UNITS = f"{_ONES}|{_TENS}|a|an|and|as|at|by|for|from|if|in|is|of|on|or|per|the|to|up|with|within"
# What is listed, most special first. The name of each is the kind of its values.
_VALUES = {
    "clock": r"\d{1,2}[:.]\d\d(?! ?(?:%|per cent|[a-z]{3,}))",
    "date": rf"\d{{1,2}} (?:{_MONTH})(?: \d{{4}})?|(?:{_MONTH}) \d{{1,2}}(?:, \d{{4}})?",
    "share": rf"{_AMOUNT} ?(?:per cent|percent|%)",
    "price": rf"(?:[£$€¥]|\b[A-Z]{{3}} ){_AMOUNT}(?: million)?",
    "span": rf"(?:{_AMOUNT}|{_ONES}|{_TENS})(?: and a half)?[ -](?:second|minute|hour|day|week|month|year)s?\b",
    "ordinal": rf"(?:{_ORDINAL}) (?!(?:{_NOT_UNITS})\b)[a-z]+",
    "amount": rf"(?:{_AMOUNT}|{_ONES}|{_TENS}) (?!(?:{_NOT_UNITS})\b)[a-zµ°]+[\w²³/()]*",
    "number": rf"{_AMOUNT}",
}
_ANY = re.compile(
    "|".join(
        rf"(?P<{kind}>(?<![\w.,])(?:{form})(?!\w))" for kind, form in _VALUES.items()
    )
)
_SEPARATOR = re.compile(r"[,;/]| and | or ")
_BRACKETS = re.compile(r"\([^()]*\)")
_RANGE = re.compile(r"\d ?[–-]$|\d (?:to|until) $")
_CONDITION = re.compile(
    r"(?i)(?:above|after|at|before|below|during|for|from|if|in|on|outside|over|since|under|until|when|where|with|without"
    r"|within)\b"
)
_MOST_LABEL_WORDS = 7
_MOST_TAIL_WORDS = 4  # between a value and the separator behind it: "a month", "of pay"
_MOST_VALUES = 8
_ROOT = 5  # letters that related words share
_LEAST_ROOT = 4


def complete_lists(question: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates, best first, with all the values of the best one's list, if the question chooses none of them."""
    if not candidates or not candidates[0].spans:
        return list(candidates)
    best = candidates[0].spans[0]
    values = values_beside(best.passage.text, best.start, best.end)
    if len(values) < 2 or names_one(question, values):
        return list(candidates)
    members = []
    for value in values:
        span = Span(best.passage, value.start, value.end, best.score)
        members.append(_find(candidates, span) or _make(span))
    belief = 1 - prod(1 - member.score for member in members)
    listed = []
    for member in members:
        score = max(member.score, _SHARED * belief)
        # Other places of the same value say nothing of this list.
        listed.append(replace(member, score=score, spans=member.spans[:1]))
    rest = [one for one in candidates if one not in members]
    return sorted([*listed, *rest], key=lambda candidate: -candidate.score)


def _find(candidates: Sequence[Candidate], span: Span) -> Candidate | None:
    """The candidate whose best span overlaps a given one."""
    for candidate in candidates:
        for own in candidate.spans[:1]:
            is_same = own.passage == span.passage
            if is_same and own.start < span.end and span.start < own.end:
                return candidate
    return None


def _make(span: Span) -> Candidate:
    answer = span.passage.text[span.start : span.end]
    return Candidate(answer, 0.0, (span,))


@dataclass(frozen=True, slots=True)
class ListedValue:
    """A value of a list, `text[start:end]`, and the words that say what it is for."""

    start: int
    end: int
    label: str


def values_beside(text: str, start: int, end: int) -> list[ListedValue]:
    """The list of labelled values that a span of a text stands in, in order; empty where there is none.

    >>> text = "Open daily. Adults pay £12, students £9 and children £6."
    >>> [(one.label, text[one.start : one.end]) for one in values_beside(text, 38, 40)]
    [('Adults pay', '£12'), ('students', '£9'), ('children', '£6')]
    >>> text = "The fee is £5 for cars and £2 for motorcycles."
    >>> [(one.label, text[one.start : one.end]) for one in values_beside(text, 11, 13)]
    [('for cars', '£5'), ('for motorcycles', '£2')]
    >>> values_beside("It weighs 12 kg and holds 4 litres.", 10, 15)
    []
    """
    for first, stop in sentence_spans(text):
        if first <= start < stop:
            found = _lists_of(_blank_brackets(text[first:stop]))
            for values in found:
                for one in values:
                    if one.start < end - first and start - first < one.end:
                        return [
                            ListedValue(one.start + first, one.end + first, one.label)
                            for one in values
                        ]
    return []


def _blank_brackets(sentence: str) -> str:
    return _BRACKETS.sub(lambda match: " " * len(match[0]), sentence)


def _kind(match: re.Match[str]) -> str:
    """What may stand in one list: values of one unit or currency; spans of time, whatever their unit."""
    kind = match.lastgroup or ""
    if kind in ("amount", "ordinal"):
        return f"{kind} {match[0].split()[-1].removesuffix('s')}"
    if kind == "price":
        return re.sub(r"[\d,.]+", "", match[0])
    return kind


def _lists_of(sentence: str) -> list[list[ListedValue]]:
    """The lists of a sentence."""
    by_kind: dict[str, list[re.Match[str]]] = {}
    for match in _ANY.finditer(sentence):
        if _is_part_of_name(sentence, match) or _is_range(sentence, match):
            continue
        by_kind.setdefault(_kind(match), []).append(match)
    found = []
    for matches in by_kind.values():
        for run in _runs(sentence, matches):
            values = _label_before(sentence, run) or _label_behind(sentence, run)
            if values:
                found.append(values)
    return found


def _is_part_of_name(sentence: str, match: re.Match[str]) -> bool:
    """Whether a bare number belongs to a name: "Unit 6", "Skerry 12"."""
    before = sentence[: match.start()].split()
    if match.lastgroup not in ("number", "amount") or not before:
        return False
    follows = _ANY.match(sentence, match.end() + 1)
    return before[-1][:1].isupper() and follows is not None


def _is_range(sentence: str, match: re.Match[str]) -> bool:
    """Whether a value is an end of a range: "9:00–17:00", "4 to 6"."""
    follows = re.match(r" ?[–-] ?\d| (?:to|until) \d", sentence[match.end() :])
    return follows is not None or _RANGE.search(sentence[: match.start()]) is not None


def _runs(sentence: str, matches: Sequence[re.Match[str]]) -> list[list[re.Match[str]]]:
    """Values of one kind that follow each other with a separator and few words between them."""
    runs: list[list[re.Match[str]]] = []
    for match in matches:
        if runs:
            between = sentence[runs[-1][-1].end() : match.start()]
            is_near = len(words(between)) <= 2 * _MOST_LABEL_WORDS
            if _SEPARATOR.search(between) and is_near and words(between):
                runs[-1].append(match)
                continue
        runs.append([match])
    return [run for run in runs if 2 <= len(run) <= _MOST_VALUES]


def _label_before(sentence: str, run: Sequence[re.Match[str]]) -> list[ListedValue]:
    """A list whose labels stand before their values; empty where it is not that."""
    opening = sentence[: run[0].start()]
    labels = [re.split(r"[:;,]", opening)[-1]]
    for left, right in pairwise(run):
        between = sentence[left.end() : right.start()]
        cuts = list(_SEPARATOR.finditer(between))
        tail = between[: cuts[0].start()]
        ends = not words(between[cuts[-1].end() :])
        if ends or len(tail.split()) > _MOST_TAIL_WORDS:
            return []
        labels.append(between[cuts[0].end() :])
    return _labelled(run, labels)


def _label_behind(sentence: str, run: Sequence[re.Match[str]]) -> list[ListedValue]:
    """A list whose labels stand behind their values; empty where it is not that."""
    labels = []
    for left, right in pairwise(run):
        between = sentence[left.end() : right.start()]
        last = list(_SEPARATOR.finditer(between))[-1]
        labels.append(between[: last.start()])
    labels.append(re.split(r"[:;,.]", sentence[run[-1].end() :])[0])
    return _labelled(run, labels)


def _labelled(run: Sequence[re.Match[str]], labels: Sequence[str]) -> list[ListedValue]:
    """The values with their labels, if no two have the same. The first may have none: it holds by default."""
    tidied = [label.strip(" ,;:/") for label in labels]
    if all(map(_is_condition, tidied[1:])):
        tidied[0] = _condition_in(tidied[0])
    keys = [tuple(_telling_words(label)) for label in tidied]
    if () in keys[1:] or len(set(keys)) < len(keys):
        return []
    if any(len(label.split()) > _MOST_LABEL_WORDS for label in tidied[1:]):
        return []
    return [
        ListedValue(match.start(), match.end(), label)
        for match, label in zip(run, tidied, strict=True)
    ]


def _condition_in(label: str) -> str:
    """The condition at the end of a label, without the preposition that leads to a value; empty where it has none.

    >>> _condition_in("of absence in Finland"), _condition_in("Faults are repaired within")
    ('in Finland', '')
    """
    parts = label.split()
    while parts and _CONDITION.fullmatch(parts[-1]):
        parts.pop()
    for place in range(len(parts) - 1, -1, -1):
        if _CONDITION.fullmatch(parts[place]):
            return " ".join(parts[place:])
    return ""


def _is_condition(label: str) -> bool:
    """Whether a label says when or where a value holds, and not what has it.

    >>> _is_condition("in winter"), _is_condition("children")
    (True, False)
    """
    return _CONDITION.match(label) is not None


def _telling_words(label: str) -> list[str]:
    """The stems of a label's words but for small ones.

    >>> _telling_words("for the Skerry 12")
    ['skerri', '12']
    """
    return [porter_stem(word) for word in words(label) if word not in SMALL_WORDS]


def names_one(question: str, values: Sequence[ListedValue]) -> bool:
    """Whether a question names what some value of a list is for, and so chooses.

    >>> values = [ListedValue(0, 1, "in Rome"), ListedValue(3, 4, "in Oslo")]
    >>> names_one("What is the fee in Oslo?", values), names_one("What is the fee?", values)
    (True, False)
    """
    asked = _telling_words(question)
    labels = [_telling_words(value.label) for value in values]
    for label in labels:
        for word in label:
            is_shared = all(word in other for other in labels)
            if not is_shared and any(_is_akin(word, other) for other in asked):
                return True
    return False


def _is_akin(one: str, other: str) -> bool:
    """Whether two stems begin alike: "respond" and "response", "week" and "weekly"."""
    shorter = min(len(one), len(other), _ROOT)
    return one == other or (shorter >= _LEAST_ROOT and one[:shorter] == other[:shorter])
