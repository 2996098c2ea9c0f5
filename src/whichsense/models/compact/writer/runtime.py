"""The writer on ONNX Runtime: reads prompts, then a few tokens at a time for many sequences that share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.runtime import CompactModel, Floats, once
from whichsense.models.compact.encoder.tokens import END
from whichsense.models.compact.writer.prompts import REWRITE, WRITTEN, Prompt

Ints = NDArray[np.int64]
HIDDEN = -1e9  # added to a score that must not count
_KINDS = ("keys", "values")
_MOST_CELLS = (
    2**18
)  # new tokens × tokens that they see in one call: bounds what a call needs


@dataclass(frozen=True)
class Writable:
    """The tokens that may be written, ascending, with their vectors and biases."""

    ids: Ints
    vectors: Floats
    bias: Floats

    def columns(self, tokens: Sequence[int]) -> list[int | None]:
        """Where tokens stand among them; None for one that may not be written."""
        places = np.searchsorted(self.ids, tokens).tolist()
        known = self.ids.tolist()
        pairs = zip(places, tokens, strict=True)
        return [
            at if at < len(known) and known[at] == token else None
            for at, token in pairs
        ]


@dataclass(frozen=True)
class Sequences:
    """Sequences as far as they are, and the distribution of the next token."""

    memory: dict[str, Floats]
    """Keys and values of all prompts' tokens, side by side, for each layer (heads × memory × head width)."""
    mask: Floats
    """Which of them each sequence sees: its prompt's (sequences × 1 × 1 × memory; 0, or very low)."""
    past: dict[str, Floats]
    """Keys and values of what was written, for each layer (sequences × heads × tokens × head width)."""
    writable: Writable
    following: Floats
    """Log probabilities of the next token (sequences × writable)."""

    @property
    def length(self) -> int:
        return int(next(iter(self.past.values())).shape[2])

    def chosen(self, rows: Ints | slice) -> Sequences:
        """Some of the sequences, in that order, any as often as it is named."""
        past = {name: array[rows] for name, array in self.past.items()}
        return replace(
            self, mask=self.mask[rows], past=past, following=self.following[rows]
        )


@dataclass(frozen=True)
class Writer:
    """Writes and scores."""

    model: CompactModel

    @once
    def _session(self) -> Any:
        return self.model.session("writer.onnx", self.model.threads)

    def prepare(self) -> None:
        """Load the graph now, not with the first rewrite."""
        _ = self._session

    @cached_property
    def _names(self) -> list[str]:
        layers = self.model.config["shape"]["writer_layers"]
        return [f"{kind}_{layer}" for layer in range(layers) for kind in _KINDS]

    def writable(self, tokens: Sequence[int]) -> Writable:
        ids = np.array(sorted({*tokens, END}), dtype=np.int64)
        return Writable(ids, self.model.words.vectors(ids), self.model.words.bias[ids])

    def begin(self, prompts: Sequence[Prompt], writable: Writable) -> Sequences:
        """One sequence for each prompt, with nothing written."""
        sizes = [len(prompt.ids) for prompt in prompts]
        embedded = np.zeros(
            (len(prompts), max(sizes), self.model.words.vectors([0]).shape[1]),
            np.float32,
        )
        for row, prompt in enumerate(prompts):
            embedded[row, : sizes[row]] = self.model.words.embed_prompt(
                np.array(prompt.ids), np.array(prompt.kinds)
            )
        there = np.arange(max(sizes)) < np.array(sizes)[:, None]
        self.model.work.add(
            layers=len(prompts) * len(self._names) // 2, prompts=len(prompts)
        )
        nothing = self._nothing(len(prompts), writable)
        hidden = np.where(there, 0, HIDDEN).astype(np.float32)
        reach = np.broadcast_to(
            hidden[:, None, None, :], (len(prompts), 1, max(sizes), max(sizes))
        )
        found = self._run(
            nothing, embedded, np.ascontiguousarray(reach), np.zeros(1, np.int64)
        )
        memory = {
            name: found[f"new_{name}"].transpose(1, 0, 2, 3)[:, there]
            for name in self._names
        }
        own = (
            np.repeat(np.arange(len(prompts)), sizes)
            == np.arange(len(prompts))[:, None]
        )
        mask = np.where(own, 0, HIDDEN).astype(np.float32)[:, None, None, :]
        memory = {name: np.ascontiguousarray(array) for name, array in memory.items()}
        begun = replace(nothing, memory=memory, mask=mask)
        return self.extend(begun, np.full((len(prompts), 1), REWRITE))[0]

    def _nothing(self, rows: int, writable: Writable) -> Sequences:
        """Sequences without a prompt: a memory of one token that nobody sees."""
        shape = self.model.config["shape"]
        heads, each = shape["heads"], shape["width"] // shape["heads"]
        memory = dict.fromkeys(self._names, np.zeros((heads, 1, each), np.float32))
        past = dict.fromkeys(self._names, np.zeros((rows, heads, 0, each), np.float32))
        unseen = np.full((rows, 1, 1, 1), HIDDEN, np.float32)
        return Sequences(
            memory, unseen, past, writable, np.zeros((rows, 0), np.float32)
        )

    def extend(
        self, old: Sequences, tokens: Ints, *, every: bool = False
    ) -> tuple[Sequences, Floats]:
        """The sequences with new tokens behind them (sequences × new), and the log probabilities after the last of
        them, or with `every` after each (sequences × new × writable)."""
        rows, new = tokens.shape
        most = max(1, _MOST_CELLS // (new * (old.mask.shape[-1] + old.length + new)))
        some = [slice(at, at + most) for at in range(0, rows, most)]
        parts = [
            self._extended(old.chosen(part), tokens[part], every=every) for part in some
        ]
        past = {
            name: np.concatenate([part[f"new_{name}"] for part in parts])
            for name in self._names
        }
        found = np.concatenate([part["written"] for part in parts]).reshape(
            rows, new if every else 1, -1
        )
        return replace(old, past=past, following=found[:, -1]), found

    def _extended(
        self, old: Sequences, tokens: Ints, *, every: bool
    ) -> dict[str, Floats]:
        rows, new = tokens.shape
        kinds = np.full(new, WRITTEN)
        embedded = self.model.words.embed_prompt(tokens, kinds, old.length)
        before = (
            np.arange(old.length + new)
            <= np.arange(old.length, old.length + new)[:, None]
        )
        reach = np.broadcast_to(
            np.where(before, 0, HIDDEN).astype(np.float32),
            (rows, 1, new, old.length + new),
        )
        take = np.arange(rows * new) if every else np.arange(new - 1, rows * new, new)
        return self._run(old, embedded, np.ascontiguousarray(reach), take)

    def _run(
        self, old: Sequences, embedded: Floats, reach: Floats, take: Ints
    ) -> dict[str, Floats]:
        given = {
            "embedded": embedded,
            "self_mask": reach,
            "mask": old.mask,
            "take": take,
            "words": old.writable.vectors,
            "words_bias": old.writable.bias,
            **old.memory,
            **{f"past_{name}": array for name, array in old.past.items()},
        }
        names = ["written", *(f"new_{name}" for name in self._names)]
        return dict(zip(names, self._session.run(names, given), strict=True))
