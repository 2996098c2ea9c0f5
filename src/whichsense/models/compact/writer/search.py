"""Sampling from the writer for many prompts at once, and scoring given outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.encoder.tokens import END
from whichsense.models.compact.writer.prompts import LONGEST_OUTPUT, Prompt
from whichsense.models.compact.writer.runtime import (
    HIDDEN,
    Ints,
    Writable,
    Writer,
    WriterState,
)

_Flags = NDArray[np.bool_]
_TEMPERATURE = 0.8
_TOP_K, _TOP_P = (
    40,
    0.95,
)  # tokens to sample from: the most, and the probability that they hold together
_UNWRITABLE = -20.0  # log probability of a token that cannot be written


@dataclass(frozen=True, slots=True)
class Sample:
    """An output of the writer: its tokens without the end, and the mean of their log probabilities, end included."""

    tokens: tuple[int, ...]
    each: float


def drawn(
    writer: Writer,
    prompts: Sequence[Prompt],
    pieces: Sequence[Ints],
    count: int,
    *,
    longest: int = LONGEST_OUTPUT,
) -> list[list[Sample]]:
    """For each prompt the greedy output and `count` samples.

    `pieces` are the tokens that may be written for each prompt. Outputs longer than `longest` are dropped. The seed is
    fixed: the same prompts get the same samples.
    """
    rng = np.random.default_rng(0)
    vocabulary: list[int] = []
    for own in pieces:
        vocabulary += own.tolist()
    writable = writer.writable(vocabulary)
    penalties = np.stack([_penalties(writable, own) for own in pieces])
    state = writer.begin(prompts, writable)
    live = _Live.start(state, len(prompts), count)
    done: list[list[Sample]] = [[] for _ in prompts]
    for _ in range(longest):
        scores = live.state.following[live.row] + penalties[live.owner]
        columns = _next_columns(scores, live.greedy, rng)
        live = live.append(columns)
        for place in np.flatnonzero(live.ended).tolist():
            tokens = live.tokens[place][:-1]
            if tokens:
                mean = float(live.score[place]) / (len(tokens) + 1)
                done[int(live.owner[place])].append(Sample(tokens, mean))
        live = live.drop_ended()
        if not len(live.owner):
            break
        live = live.advance(writer)
    return done


@dataclass
class _Live:
    """The draws that have not ended. Each array has one entry a draw.

    Draws for the same prompt with the same tokens so far, as most are at first, share one sequence of the writer.
    """

    state: WriterState
    row: Ints
    """The writer's sequence that the draw continues."""
    owner: Ints
    """The prompt that it is for."""
    tokens: list[tuple[int, ...]]
    score: NDArray[np.float64]
    """Log probability of its tokens."""
    greedy: _Flags
    """Whether it takes the likeliest token at every step."""

    @classmethod
    def start(cls, state: WriterState, prompts: int, count: int) -> _Live:
        """One greedy draw and `count` samples for each prompt, without tokens."""
        owner = np.repeat(np.arange(prompts), count + 1)
        greedy = np.tile(np.arange(count + 1) == 0, prompts)
        size = len(owner)
        return cls(state, owner, owner, [()] * size, np.zeros(size), greedy)

    @property
    def ended(self) -> _Flags:
        return np.array([tokens[-1:] == (END,) for tokens in self.tokens], dtype=bool)

    def append(self, columns: Sequence[int]) -> _Live:
        """Each draw with one more token, which the writer has not read yet."""
        new = self.state.writable.ids[list(columns)].tolist()
        gain = self.state.following[self.row, list(columns)]
        tokens = []
        for old, token in zip(self.tokens, new, strict=True):
            tokens.append((*old, token))
        return replace(self, tokens=tokens, score=self.score + gain)

    def drop_ended(self) -> _Live:
        draws = np.flatnonzero(~self.ended)
        return replace(
            self,
            row=self.row[draws],
            owner=self.owner[draws],
            tokens=[self.tokens[draw] for draw in draws.tolist()],
            score=self.score[draws],
            greedy=self.greedy[draws],
        )

    def advance(self, writer: Writer) -> _Live:
        """Let the writer read the last tokens, each different (sequence, token) once."""
        place_of: dict[tuple[int, int], int] = {}
        row = []
        for old, tokens in zip(self.row.tolist(), self.tokens, strict=True):
            step = (old, tokens[-1])
            row.append(place_of.setdefault(step, len(place_of)))
        old_rows, last = np.array(list(place_of), dtype=np.int64).T
        state, _ = writer.extend(self.state.select(old_rows), last[:, None])
        return replace(self, state=state, row=np.array(row))


def _next_columns(
    scores: Floats, greedy: _Flags, rng: np.random.Generator
) -> list[int]:
    """The next token of each draw, as a column of its scores (draws × writable)."""
    columns = []
    for row, is_greedy in zip(scores, greedy, strict=True):
        column = int(row.argmax()) if is_greedy else _sample(row, rng)
        columns.append(column)
    return columns


def _sample(scores: Floats, rng: np.random.Generator) -> int:
    """Sample a column by top-k and top-p (nucleus) sampling with a temperature."""
    best = np.argpartition(-scores, min(_TOP_K, len(scores) - 1))[:_TOP_K]
    best = best[np.argsort(-scores[best])]
    weights = np.exp((scores[best] - scores[best[0]]) / _TEMPERATURE)
    weights /= weights.sum()
    weights[np.cumsum(weights) - weights > _TOP_P] = 0
    threshold = rng.random() * weights.sum()
    place = np.searchsorted(np.cumsum(weights), threshold)
    return int(best[place])


def _penalties(writable: Writable, pieces: Ints) -> Floats:
    """0 for each token that may be written for a prompt, very low for all others (writable)."""
    allowed = np.isin(writable.ids, pieces) | (writable.ids == END)
    return np.where(allowed, 0, HIDDEN).astype(np.float32)


def likelihoods(
    writer: Writer,
    prompts: Sequence[Prompt],
    outputs: Sequence[Sequence[int]],
    more: Sequence[int] = (),
) -> list[list[float]]:
    """The log probability of each output, end included, after each prompt (prompts × outputs). The distribution is over
    the tokens of the prompts and the outputs, and over `more`."""
    vocabulary = list(more)
    for prompt in prompts:
        vocabulary += prompt.ids
    for output in outputs:
        vocabulary += output
    writable = writer.writable(vocabulary)
    after = _distributions(writer, prompts, outputs, writable)
    totals = np.zeros((len(prompts), len(outputs)), np.float32)
    for number, output in enumerate(outputs):
        for place, column in enumerate(writable.columns([*output, END])):
            if column is None:
                totals[:, number] += _UNWRITABLE
            else:
                totals[:, number] += after[:, number, place, column]
    return totals.tolist()


def _distributions(
    writer: Writer,
    prompts: Sequence[Prompt],
    outputs: Sequence[Sequence[int]],
    writable: Writable,
) -> Floats:
    """Log probabilities at each place of each output after each prompt (prompts × outputs × places × writable)."""
    longest = max(1, *map(len, outputs))
    tokens = np.full((len(outputs), longest), END, dtype=np.int64)
    for row, output in enumerate(outputs):
        tokens[row, : len(output)] = output
    state = writer.begin(prompts, writable)
    # Every prompt is repeated for every output: prompts · outputs rows.
    rows = np.repeat(np.arange(len(prompts)), len(outputs))
    repeated = state.select(rows)
    all_tokens = np.tile(tokens, (len(prompts), 1))
    _, later = writer.extend(repeated, all_tokens, every=True)
    first = np.repeat(state.following, len(outputs), axis=0)[:, None]
    after = np.concatenate([first, later], axis=1)
    return after.reshape(len(prompts), len(outputs), longest + 1, -1)
