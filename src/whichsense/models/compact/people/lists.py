"""Answers that one list gives: "Finland 26 weeks, Austria 20 weeks". Where one of them answers a question, all do.

The reader shares its belief out among them, and misses some. The list has the belief of all, and each value has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from whichsense.models.compact.rewrite.forms.value_lists import names_one, values_beside
from whichsense.text.function_words import SMALL_WORDS
from whichsense.types import Candidate, Span

_LEADING_ON = SMALL_WORDS | {"up"}
_SHARED = 0.9  # a value beside a right one is right; of 608 questions over documents


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


def label_in_list(question: str, candidate: Candidate) -> str:
    """The words that name the case of an answer in its list: "students" of "adults £12, students £9". Empty where it is
    no value of a list, or the question chooses one of them."""
    for best in candidate.spans[:1]:
        values = values_beside(best.passage.text, best.start, best.end)
        if len(values) < 2 or names_one(question, values):
            return ""
        for value in values:
            if value.start < best.end and best.start < value.end:
                return _without_end(value.label)
    return ""


def _without_end(label: str) -> str:
    """A label without the small words that lead on to its value.

    >>> _without_end("Skerry 12 up to"), _without_end("in Malta")
    ('Skerry 12', 'in Malta')
    """
    parts = label.split()
    while parts and parts[-1].lower() in _LEADING_ON:
        parts.pop()
    return " ".join(parts)


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
