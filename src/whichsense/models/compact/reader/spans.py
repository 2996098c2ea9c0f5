"""Spans of a passage that can be answers: whole words and numbers within one sentence, with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.encoder.runtime import Floats
from whichsense.text.dates import include_sign, is_day
from whichsense.text.sentences import sentences
from whichsense.types import Passage

_Flags = NDArray[np.bool_]
LONGEST_SPAN = 16  # tokens
_SPANS = 12  # the most of one passage
_TRIED = 8 * _SPANS  # likeliest spans that are checked
_LEAST = 1e-4  # of a passage's probability: spans below are ignored
_SENTENCE_MARKS = (". ", "! ", "? ", '." ', ".) ", "\n")
_EDGES = " \t\n,;:"
_BRACKETS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ('"', '"'))


class AnswerSpan(NamedTuple):
    """A span of a passage: its tokens (first, last + 1) in the pair, and its characters in the title or the text."""

    tokens: tuple[int, int]
    in_title: bool
    start: int
    end: int
    probability: float


def best_spans(
    pair: Pair, passage: Passage, probabilities: Floats, continues: Sequence[bool]
) -> list[AnswerSpan]:
    """The likeliest spans that can be answers. `probabilities` come from `span_probabilities`; `continues` says of each
    token, and of the end, whether it continues a word."""
    best = np.argsort(-probabilities, axis=None, kind="stable")[:_TRIED]
    spans: list[AnswerSpan] = []
    for flat in best.tolist():
        first, length = divmod(flat, LONGEST_SPAN)
        last = first + length
        probability = float(probabilities[first, length])
        if len(spans) == _SPANS or probability < _LEAST:
            break
        if continues[first] or continues[last + 1]:
            continue
        in_title = pair.title[0] <= first < pair.title[1]
        text = passage.title if in_title else passage.text
        start, end = trimmed(text, pair.starts[first], pair.ends[last])
        start = include_sign(text, start)
        if _can_answer(text, start, end):
            tokens = (first, last + 1)
            spans.append(AnswerSpan(tokens, in_title, start, end, probability))
    return spans


def _can_answer(text: str, start: int, end: int) -> bool:
    inner = text[start:end]
    if not any(map(str.isalnum, inner)):
        return False
    if cuts_number(text, start, end) or is_day(text, start, end):
        return False
    return not _crosses_sentences(inner)


def span_probabilities(
    pair: Pair, scores: Floats, taken: _Flags | None = None
) -> Floats:
    """P(first token) · P(last token) of each span inside the title or the text, without taken tokens.

    The shape is tokens × LONGEST_SPAN: first token, length - 1. The sum is below 1, because a last token may fit no
    first token.
    """
    count = len(pair)
    free = free_tokens(pair, taken)
    edges = edge_probabilities(scores, free)
    # Padded, so that every first token has LONGEST_SPAN tokens from it on.
    ends = np.zeros(count + LONGEST_SPAN, dtype=np.float32)
    fits = np.zeros(count + LONGEST_SPAN, dtype=bool)
    ends[:count] = edges[:, 1]
    fits[:count] = free
    places = np.arange(count)[:, None] + np.arange(LONGEST_SPAN)
    # A span fits if all of its tokens are free.
    inside = np.logical_and.accumulate(fits[places], axis=1)
    return np.asarray(edges[:, :1] * ends[places] * inside, dtype=np.float32)


def edge_probabilities(scores: Floats, free: _Flags) -> Floats:
    """The probability of each free token to be an answer's first, and its last (tokens × 2)."""
    if not free.any():
        return np.zeros(scores.shape, dtype=np.float32)
    highest = scores[free].max(axis=0)
    weights = np.where(free[:, None], np.exp(scores - highest), 0)
    return np.asarray(weights / weights.sum(axis=0), dtype=np.float32)


def free_tokens(pair: Pair, taken: _Flags | None = None) -> _Flags:
    """Which tokens belong to the title or the text and are not taken. A [SEP] stands between the two."""
    free = np.zeros(len(pair), dtype=bool)
    for first, last in (pair.title, pair.text):
        free[first:last] = True
    return free if taken is None else free & ~taken


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without commas and unpaired brackets or quotes at its edges.

    >>> text = 'It was (Tony Goldwyn), the "star".'
    >>> [text[slice(*trimmed(text, start, end))] for start, end in ((7, 21), (7, 22), (27, 32), (7, 21))]
    ['Tony Goldwyn', 'Tony Goldwyn', 'star', 'Tony Goldwyn']
    """
    while start < end:
        inner = text[start:end]
        if _is_loose(inner[-1], inner):
            end -= 1
        elif _is_loose(inner[0], inner):
            start += 1
        elif len(inner) > 2 and (inner[0], inner[-1]) in _BRACKETS:
            start += 1
            end -= 1
        else:
            break
    return start, end


def _is_loose(edge: str, inner: str) -> bool:
    """Whether a character at the edge is a comma, a space, or a bracket or quote without its other half."""
    if edge in _EDGES:
        return True
    for both in _BRACKETS:
        if edge in both and sum(map(inner.count, set(both))) == 1:
            return True
    return False


def cuts_number(text: str, start: int, end: int) -> bool:
    """Whether a span begins or ends inside a number: 500 of 1,500."""
    before = text[max(start - 2, 0) : start]
    after = text[end : end + 2]
    if len(before) == 2 and before[0].isdigit() and before[1] in ",.":
        if text[start].isdigit():
            return True
    if len(after) == 2 and after[1].isdigit() and after[0] in ",.":
        return text[end - 1].isdigit()
    return False


def _crosses_sentences(inner: str) -> bool:
    """Whether a span holds the end of a sentence and the beginning of the next.

    >>> _crosses_sentences("in 1953. The next"), _crosses_sentences("J. K. Rowling"), _crosses_sentences("in 1953")
    (True, False, False)
    """
    has_mark = any(mark in inner for mark in _SENTENCE_MARKS)
    return has_mark and len(sentences(inner)) > 1
