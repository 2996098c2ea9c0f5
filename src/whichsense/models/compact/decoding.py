"""The decoder on ONNX Runtime, a few tokens at a time, for many sequences that share one memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.inputs import LAST_SIGN
from whichsense.models.compact.runtime import CompactModel, Floats
from whichsense.models.compact.tokens import END

Ints = NDArray[np.int64]
_KINDS = ("keys", "values")
HIDDEN = -1e9  # added to a score that must not count
_MOST_CELLS = 2**17  # new tokens × memory tokens in one call: bounds what a call needs beside the memory


@dataclass(frozen=True)
class Memory:
    """What the decoder looks at: the states of some passages' tokens, projected once for all sequences."""

    ids: Ints
    projected: dict[str, Floats]
    """Keys and values for each layer of the decoder, and the keys of copying."""
    words: Ints
    """The tokens that may be written, ascending: those of the memory and of prompts, and frequent ones."""
    word_vectors: Floats
    word_bias: Floats
    order: Ints
    """Memory places sorted by their token; `edges` are where a new token begins, `columns` where it stands in words."""
    edges: Ints
    columns: Ints

    def part(self, places: Ints) -> Memory:
        """The memory of some of its tokens. What may be written stays the same."""
        projected = {
            name: array[places] if array.ndim == 2 else np.ascontiguousarray(array[:, places])
            for name, array in self.projected.items()
        }
        return Memory.of(self.ids[places], projected, self.words, self.word_vectors, self.word_bias)

    @classmethod
    def of(cls, ids: Ints, projected: dict[str, Floats], words: Ints, vectors: Floats, bias: Floats) -> Memory:
        order = np.argsort(ids, kind="stable")
        edges = np.flatnonzero(np.diff(ids[order], prepend=-1))
        columns = np.searchsorted(words, ids[order][edges])
        return cls(ids, projected, words, vectors, bias, order, edges, columns)


@dataclass(frozen=True)
class View:
    """What one sequence may see of the memory, and what is marked as its answer (memory tokens, 0 or 1)."""

    seen: Floats
    marks: Floats

    @classmethod
    def whole(cls, memory: Memory) -> View:
        """Everything, nothing marked."""
        return cls(np.ones(len(memory.ids), dtype=np.float32), np.zeros(len(memory.ids), dtype=np.float32))


@dataclass(frozen=True)
class Sequences:
    """Sequences as far as they are, and the distribution of the next token."""

    past: dict[str, Floats]
    """Keys and values of their tokens for each layer (sequences × heads × tokens × head width)."""
    length: int
    padding: Ints
    """How many places at the beginning of each are empty: shorter prompts stand to the right."""
    mask: Floats
    marks: Floats
    following: Floats
    """Log probabilities of the next token (sequences × words)."""

    def chosen(self, rows: Ints) -> Sequences:
        """Some of the sequences, in that order, any as often as it is named."""
        return Sequences(
            {name: array[rows] for name, array in self.past.items()},
            self.length,
            self.padding[rows],
            self.mask[rows],
            self.marks[rows],
            self.following[rows],
        )


@dataclass(frozen=True)
class Decoder:
    """Writes and scores."""

    model: CompactModel

    @cached_property
    def _memory(self) -> Any:
        return self.model.session("memory.onnx", self.model.threads)

    @cached_property
    def _step(self) -> Any:
        return self.model.session("decoder.onnx", self.model.threads)

    def prepare(self) -> None:
        """Load the graphs now, not with the first rewrite."""
        _ = self._memory, self._step

    @cached_property
    def _past_names(self) -> list[str]:
        return [f"{kind}_{layer}" for layer in range(self.model.config["shape"]["decoder_layers"]) for kind in _KINDS]

    def remember(self, states: Floats, ids: Sequence[int], more: Sequence[int] = ()) -> Memory:
        """A memory of tokens' states. `more` are tokens beside these and the frequent ones that may be written."""
        names = ["copy_keys", *self._past_names]
        projected = dict(zip(names, self._memory.run(names, {"states": states}), strict=True))
        tokens = np.asarray(ids, dtype=np.int64)
        signs = range(1, LAST_SIGN + 1)
        allowed = {*tokens.tolist(), *more, *self.model.config.get("frequent", ()), *signs, END}
        words = np.array(sorted(allowed), dtype=np.int64)
        return Memory.of(tokens, projected, words, self.model.words.vectors(words), self.model.words.bias[words])

    def begin(self, memory: Memory, prefixes: Sequence[Sequence[int]], views: Sequence[View]) -> Sequences:
        """Sequences after their prompts."""
        shape = self.model.config["shape"]
        longest = max(map(len, prefixes))
        tokens = np.zeros((len(prefixes), longest), dtype=np.int64)
        for row, prefix in enumerate(prefixes):
            tokens[row, longest - len(prefix) :] = prefix
        padding = np.array([longest - len(prefix) for prefix in prefixes])
        none = np.zeros((len(prefixes), shape["heads"], 0, shape["width"] // shape["heads"]), dtype=np.float32)
        mask = np.stack([np.where(view.seen > 0, 0, HIDDEN) for view in views]).astype(np.float32)
        marks = np.stack([view.marks for view in views]).astype(np.float32)
        words = np.zeros((len(prefixes), 0), dtype=np.float32)
        return self.extend(
            memory, Sequences(dict.fromkeys(self._past_names, none), 0, padding, mask, marks, words), tokens
        )[0]

    def extend(
        self, memory: Memory, old: Sequences, tokens: Ints, *, every: bool = False
    ) -> tuple[Sequences, Floats | None]:
        """The sequences with new tokens behind them (sequences × new); with `every`, the log probabilities after each
        new token too (sequences × new × words)."""
        rows, new = tokens.shape
        most = max(1, _MOST_CELLS // (new * max(1, len(memory.ids))))
        parts = [
            self._extended(memory, old.chosen(np.arange(at, min(at + most, rows))), tokens[at : at + most], every)
            for at in range(0, rows, most)
        ]
        past = {name: np.concatenate([part[name] for part, _ in parts]) for name in self._past_names}
        found = np.concatenate([following for _, following in parts])
        kept = Sequences(past, old.length + new, old.padding, old.mask, old.marks, found[:, -1])
        return kept, found if every else None

    def _extended(self, memory: Memory, old: Sequences, tokens: Ints, every: bool) -> tuple[dict[str, Floats], Floats]:
        rows, new = tokens.shape
        places = np.arange(old.length, old.length + new)[None] - old.padding[:, None]
        embedded = self.model.words.vectors(tokens) + self.model.words.decoder_places[np.maximum(places, 0)]
        take = np.arange(rows * new) if every else np.arange(new - 1, rows * new, new)
        given = {
            "embedded": embedded,
            **{f"past_{name}": array for name, array in old.past.items()},
            "self_mask": _self_mask(old.padding, old.length, new),
            **memory.projected,
            "mask": np.repeat(old.mask, new, axis=0),
            "marks": np.repeat(old.marks, new, axis=0),
            "take": take,
            "words": memory.word_vectors,
            "words_bias": memory.word_bias,
        }
        names = ["written", "copied", "gate", *(f"new_{name}" for name in self._past_names)]
        written, copied, gate, *past = self._step.run(names, given)
        found = _mixed(memory, written, copied, gate).reshape(rows, -1, len(memory.words))
        return dict(zip(self._past_names, past, strict=True)), found


def _self_mask(padding: Ints, past: int, new: int) -> Floats:
    """Which earlier tokens each new one may see: all of its own sequence up to itself."""
    before = np.arange(past + new)[None, None] <= np.arange(past, past + new)[None, :, None]
    own = np.arange(past + new)[None, None] >= padding[:, None, None]
    return np.where(before & own, 0, HIDDEN).astype(np.float32)[:, None]


def _mixed(memory: Memory, written: Floats, copied: Floats, gate: Floats) -> Floats:
    """Log probabilities over the words: written, or copied from wherever the word stands in the memory."""
    share = 1 / (1 + np.exp(-gate))
    found = np.exp(written) * (1 - share)
    weights = np.add.reduceat(np.exp(copied[:, memory.order]), memory.edges, axis=1)
    found[:, memory.columns] += share * weights
    return np.asarray(np.log(np.maximum(found, 1e-30)), dtype=np.float32)
