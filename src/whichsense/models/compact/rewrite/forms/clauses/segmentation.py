"""The clause of a sentence that an answer stands in: where it begins and ends, its subject, its verb, its label.

A sentence that gives several values is cut between them: "Adults pay £12 and children £6" has two clauses, and the
second takes its verb from the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.parsing import (
    Clause,
    parse_clause,
    tidy,
)
from whichsense.models.compact.rewrite.forms.clauses.times import (
    TIME,
    is_time,
    protect_commas,
)
from whichsense.models.compact.rewrite.forms.clauses.tokens import find_verb
from whichsense.models.compact.rewrite.forms.snippets import Snippet

_SEPARATOR = re.compile(
    r"\s*[;:]\s+|,? +(?:and|but|while|whereas|though|although|or) +(?:then +)?|, +|\s+[–—]\s+"
    r"|(?<=[\w-][A-Z\d])\. +(?=[A-Z])"  # the end of a sentence behind "USB-C"
)
# Separators that always end a clause.
_HARD = re.compile(r"[;–—.]|\b(?:but|while|whereas|though|although)\b")
_RELATIVE_PRONOUN = re.compile(r"(?:who|which|whose|whom|where)\b")
_BRACKETED_CONDITION = re.compile(
    r" (\()((?:in|on|at|for|with|without|within|under|over|above|below|outside) [^()]+)\)"
)
_BRACKETS = re.compile(r"\([^()]*\)")
# ", who had spoken to the assembly,": the main clause goes on behind it.
_RELATIVE = re.compile(r", (?:who|which|whose|where|when)\b[^,;:]*,(?= )")
_VALUE = re.compile(
    r"(?:[£$€¥]|\b(?:[A-Z]{3} ))?(?<![A-Za-z])\d+(?:[,.:]\d+)*(?:p\b|%)?"
    r"(?: (?:per cent|million|[A-Z][A-Za-z]?\b|[a-zµ°][\wµ°]*))?"
)
_NAME_BEFORE = re.compile(r"[A-Z]\w* $")


def find_clause(snippet: Snippet, rivals: Sequence[tuple[int, int]]) -> Clause | None:
    """The clause that holds a snippet's answer.

    `rivals` are the spans of the other answers in the same text. None for an answer in the title.

    >>> text = "Full-time staff get 28 days, part-time staff 14."
    >>> clause = find_clause(Snippet("Leave", text, 45, 47), [(20, 27)])
    >>> clause.subject, clause.verb, clause.is_elliptic
    ('part-time staff', '', True)
    """
    if snippet.in_title:
        return None
    begin, end = snippet.sentence_bounds
    own = (snippet.start - begin, snippet.end - begin)
    inside = [(start - begin, stop - begin) for start, stop in rivals]
    anchors = [span for span in inside if 0 <= span[0] and span[1] <= end - begin]
    original = snippet.text[begin:end]
    sentence = _mask(original, own, anchors)
    anchors = _with_values(sentence, own, anchors)
    left = _left_boundary(sentence, own, anchors)
    right = _right_boundary(sentence, own, anchors)
    label, left = _split_label(sentence, left, own[0])
    before = tidy(sentence[left : own[0]])
    after = tidy(sentence[own[1] : right], keep_left_comma=True)
    earlier = sentence[:left]
    return parse_clause(before, after, label, earlier, original)


def _mask(
    sentence: str, own: tuple[int, int], anchors: Sequence[tuple[int, int]]
) -> str:
    """The sentence, of the same length, without brackets and relative clauses that hold no answer."""
    spans = [own, *anchors]
    masked = list(protect_commas(sentence))
    for _, stop in spans:
        # "900 crowns (within Europe)": a condition in brackets is one without them.
        condition = _BRACKETED_CONDITION.match(sentence, stop)
        if condition:
            masked[condition.start(1)] = masked[condition.end(2)] = " "
            sentence = "".join(masked)
    for pattern in (_BRACKETS, _RELATIVE):
        for match in pattern.finditer(sentence):
            holds_answer = any(
                match.start() < stop and start < match.end() for start, stop in spans
            )
            if not holds_answer:
                mark = "," if pattern is _RELATIVE else " "
                masked[match.start() : match.end()] = mark + " " * (len(match[0]) - 1)
    return "".join(masked)


def _with_values(
    sentence: str, own: tuple[int, int], anchors: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The anchors and the values of the sentence that are written as the answer is: with its unit or currency."""
    spans = list(anchors)
    answer = sentence[own[0] : own[1]]
    if is_time(answer):
        for match in TIME.finditer(sentence):
            if match.end() <= own[0] or own[1] <= match.start():
                spans.append(match.span())
        return sorted(spans)
    shape = _shape(answer)
    if shape:
        for match in _VALUE.finditer(sentence):
            span = (match.start(), match.end())
            taken = [own, *spans]
            is_new = all(span[1] <= start or stop <= span[0] for start, stop in taken)
            is_version = _NAME_BEFORE.search(sentence, 0, span[0]) is not None
            if is_new and not is_version and _shape(match[0]) == shape:
                spans.append(span)
    return sorted(spans)


def _shape(value: str) -> str:
    """A value's currency or unit, "#" for a bare number; empty for what is no value, a year and a date."""
    match = _VALUE.search(value)
    if not match or is_time(value):
        return ""
    unit = re.sub(r"[\d,.:\s]+", "", match[0]).removesuffix("s")
    if not unit or unit in vocabulary.PREPOSITIONS | vocabulary.CONJUNCTIONS:
        return "#"
    return unit


def _left_boundary(
    sentence: str, own: tuple[int, int], anchors: Sequence[tuple[int, int]]
) -> int:
    """Where the answer's clause begins."""
    earlier = [stop for _, stop in anchors if stop <= own[0]]
    boundary = 0
    if earlier:
        boundary = _cut_between(sentence, max(earlier), own[0])
    for match in _SEPARATOR.finditer(sentence, boundary, own[0]):
        if _HARD.search(match[0]):
            boundary = match.end()
            continue
        has_verb = find_verb(sentence[match.end() : own[0]]) is not None
        follows_verb = find_verb(sentence[: match.start()]) is not None
        if has_verb and follows_verb and ":" not in match[0]:
            boundary = match.end()
    return boundary


def _right_boundary(
    sentence: str, own: tuple[int, int], anchors: Sequence[tuple[int, int]]
) -> int:
    """Where the answer's clause ends."""
    later = [start for start, _ in anchors if start >= own[1]]
    boundary = len(sentence)
    if later:
        cut = _cut_between(sentence, own[1], min(later), end=True)
        boundary = min(boundary, cut)
    separators = list(_SEPARATOR.finditer(sentence, own[1], boundary))
    for place, match in enumerate(separators):
        if _HARD.search(match[0]) or _RELATIVE_PRONOUN.match(sentence, match.end()):
            return match.start()
        following = separators[place + 1 :]
        stop = following[0].start() if following else boundary
        # An answer that is the subject needs the verb behind it.
        answer_has_verb = find_verb(sentence[own[1] : match.start()]) is not None
        is_subject = find_verb(sentence[: own[0]]) is None
        if is_subject and not answer_has_verb:
            continue
        if find_verb(sentence[match.end() : stop]) is not None:
            return match.start()
    return boundary


def _cut_between(sentence: str, start: int, stop: int, *, end: bool = False) -> int:
    """Where to cut between two values: behind the separator, or before it for `end`."""
    separators = list(_SEPARATOR.finditer(sentence, start, stop))
    if not separators:
        return start if not end else stop
    chosen = _choose_separator(sentence, separators, start, stop)
    return chosen.start() if end else chosen.end()


def _choose_separator(
    sentence: str, separators: Sequence[re.Match[str]], start: int, stop: int
) -> re.Match[str]:
    """The separator between two values: the strong one, the one beside a value, or the last."""
    for match in separators:
        if _HARD.search(match[0]):
            return match
    if separators[0].start() == start:
        return separators[0]
    last = separators[-1]
    between = sentence[last.end() : stop].split()
    if len(between) <= 1:
        return last
    with_comma = [match for match in separators if "," in match[0]]
    return (with_comma or separators)[-1]


def _split_label(sentence: str, left: int, stop: int) -> tuple[str, int]:
    """What stands before the last colon of the clause, and where the clause itself begins."""
    colon = sentence.rfind(": ", 0, stop)
    if colon < 0:
        return "", left
    opening = max(sentence.rfind(mark, 0, colon) for mark in (";", ": "))
    label = tidy(sentence[opening + 1 : colon])
    # "Departures from the station, school days: 6:05": the last part is the one that differs.
    label = label.rpartition(", ")[2]
    return label, max(left, colon + 2)
