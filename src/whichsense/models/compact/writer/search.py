"""Rewrites for many prompts at once, drawn by chance; and how likely given answers are."""

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
    Sequences,
    Writable,
    Writer,
)

Flags = NDArray[np.bool_]
_TEMPERATURE = 0.8
_CHOICES, _NUCLEUS = (
    40,
    0.95,
)  # tokens that are drawn from: so many, and as many as hold this much of the probability
UNWRITABLE = -20.0  # log probability of a token that cannot be written


@dataclass(frozen=True, slots=True)
class Written:
    """An output: its tokens without the end, and the mean of their log probabilities, with the end."""

    tokens: tuple[int, ...]
    each: float


def drawn(
    writer: Writer,
    prompts: Sequence[Prompt],
    pieces: Sequence[Ints],
    count: int,
    *,
    longest: int = LONGEST_OUTPUT,
) -> list[list[Written]]:
    """For each prompt the likeliest tokens one by one, then `count` outputs drawn as probable as the writer holds them.
    `pieces`: what may be written for each. What is longer than `longest` is left out.

    The same prompts get the same draws.
    """
    chance = np.random.default_rng(0)
    writable = writer.writable([piece for own in pieces for piece in own.tolist()])
    allowed = np.stack([_allowed(writable, own) for own in pieces])
    owner = np.repeat(np.arange(len(prompts)), count + 1)
    first = np.tile(np.arange(count + 1) == 0, len(prompts))
    live = _Live(
        writer.begin(prompts, writable),
        owner,
        owner,
        [()] * len(owner),
        np.zeros(len(owner)),
        first,
    )
    done: list[list[Written]] = [[] for _ in prompts]
    for _ in range(longest):
        scores = live.sequences.following[live.each] + allowed[live.owner]
        columns = [
            int(row.argmax()) if first else _one_of(row, chance)
            for row, first in zip(scores, live.first, strict=True)
        ]
        live = live.grown(columns)
        for place in np.flatnonzero(live.ended).tolist():
            tokens = live.tokens[place][:-1]
            if tokens:
                done[int(live.owner[place])].append(
                    Written(tokens, float(live.score[place]) / (len(tokens) + 1))
                )
        live = live.without_ended()
        if not len(live.owner):
            break
        live = live.read(writer)
    return done


@dataclass
class _Live:
    """What is still being written: whose it is, its tokens, their log probability, whether the likeliest are taken.

    Draws for the same prompt with the same tokens so far, as most are at first, are one sequence to the writer: `each`
    says which one of its sequences a draw goes on from.
    """

    sequences: Sequences
    each: Ints
    owner: Ints
    tokens: list[tuple[int, ...]]
    score: NDArray[np.float64]
    first: Flags

    @property
    def ended(self) -> Flags:
        return np.array([tokens[-1:] == (END,) for tokens in self.tokens], dtype=bool)

    def grown(self, columns: Sequence[int]) -> _Live:
        """Each draw with one more token, which the writer has not read yet."""
        ids = self.sequences.writable.ids[list(columns)].tolist()
        gained = self.sequences.following[self.each, list(columns)]
        tokens = [(*old, new) for old, new in zip(self.tokens, ids, strict=True)]
        return replace(self, tokens=tokens, score=self.score + gained)

    def without_ended(self) -> _Live:
        rows = np.flatnonzero(~self.ended)
        tokens = [self.tokens[row] for row in rows.tolist()]
        some = (
            self.each[rows],
            self.owner[rows],
            tokens,
            self.score[rows],
            self.first[rows],
        )
        return _Live(self.sequences, *some)

    def read(self, writer: Writer) -> _Live:
        """After the writer has read the last tokens."""
        steps = [
            (old, tokens[-1])
            for old, tokens in zip(self.each.tolist(), self.tokens, strict=True)
        ]
        place_of = {step: place for place, step in enumerate(dict.fromkeys(steps))}
        old, last = np.array(list(place_of), dtype=np.int64).T
        sequences, _ = writer.extend(self.sequences.chosen(old), last[:, None])
        return replace(
            self, sequences=sequences, each=np.array([place_of[step] for step in steps])
        )


def _one_of(scores: Floats, chance: np.random.Generator) -> int:
    """A column by its probability, among those that hold nearly all of it together."""
    best = np.argpartition(-scores, min(_CHOICES, len(scores) - 1))[:_CHOICES]
    best = best[np.argsort(-scores[best])]
    weights = np.exp((scores[best] - scores[best[0]]) / _TEMPERATURE)
    weights /= weights.sum()
    weights[np.cumsum(weights) - weights > _NUCLEUS] = 0
    return int(
        best[np.searchsorted(np.cumsum(weights), chance.random() * weights.sum())]
    )


def _allowed(writable: Writable, pieces: Ints) -> Floats:
    """0 for what may be written, very low for all else."""
    return np.where(
        np.isin(writable.ids, pieces) | (writable.ids == END), 0, HIDDEN
    ).astype(np.float32)


def likelihoods(
    writer: Writer,
    prompts: Sequence[Prompt],
    outputs: Sequence[Sequence[int]],
    more: Sequence[int] = (),
) -> list[list[float]]:
    """The log probability of each output (without its end; that is added) after each prompt: prompts × outputs.
    `more` are tokens beside the prompts' and the outputs' that might be written."""
    known = [token for prompt in prompts for token in prompt.ids]
    writable = writer.writable(
        [*known, *more, *(token for output in outputs for token in output)]
    )
    begun = writer.begin(prompts, writable)
    longest = max(1, *map(len, outputs))
    tokens = np.full((len(outputs), longest), END, dtype=np.int64)
    for row, output in enumerate(outputs):
        tokens[row, : len(output)] = output
    rows = np.repeat(np.arange(len(prompts)), len(outputs))
    _, after = writer.extend(
        begun.chosen(rows), np.tile(tokens, (len(prompts), 1)), every=True
    )
    after = np.concatenate(
        [np.repeat(begun.following, len(outputs), axis=0)[:, None], after], axis=1
    )
    after = after.reshape(len(prompts), len(outputs), longest + 1, -1)
    found = np.zeros((len(prompts), len(outputs)), np.float32)
    for number, output in enumerate(outputs):
        for place, column in enumerate(writable.columns([*output, END])):
            found[:, number] += (
                UNWRITABLE if column is None else after[:, number, place, column]
            )
    return found.tolist()
