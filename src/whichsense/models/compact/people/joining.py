"""Whole answers: *written by Ann Ray and Bo Finch* gives one answer, not two, and *EUR 399* no bare number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from whichsense.types import Candidate, Span

_LINKS = (" and ", " & ")
_CURRENCY = re.compile(r"\b[A-Z]{3}\s$")  # a code such as EUR before a number


def join_named_together(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates, of which two that stand side by side in their best sentence become one; it is as probable as the
    better one. Numbers and dates are not joined: each has a time or a case of its own."""
    joined = list(candidates)
    for first in candidates:
        for second in candidates:
            both = _join(first, second)
            if both is not None and first in joined and second in joined:
                place = min(joined.index(first), joined.index(second))
                joined = [one for one in joined if one not in (first, second)]
                joined.insert(place, both)
    return joined


def _join(first: Candidate, second: Candidate) -> Candidate | None:
    """Both as one answer, if the second follows the first behind a link."""
    if first is second or not first.spans or not second.spans:
        return None
    begin, end = first.spans[0], second.spans[0]
    text = begin.passage.text
    has_digit = any(map(str.isdigit, first.answer + second.answer))
    if has_digit or begin.passage != end.passage:
        return None
    if text[begin.end : end.start] not in _LINKS:
        return None
    span = Span(begin.passage, begin.start, end.end, max(begin.score, end.score))
    score = max(first.score, second.score)
    return Candidate(text[begin.start : end.end], score, (span,))


def include_currency(candidate: Candidate) -> Candidate:
    """An amount with the currency's code that stands before it in the evidence."""
    if not candidate.spans or not candidate.answer[:1].isdigit():
        return candidate
    best, *others = candidate.spans
    before = best.passage.text[: best.start]
    code = _CURRENCY.search(before)
    if code is None or best.start == best.end:
        return candidate
    whole = replace(best, start=code.start())
    answer = best.passage.text[whole.start : whole.end]
    return replace(candidate, answer=answer, spans=(whole, *others))
