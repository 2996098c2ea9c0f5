"""The writer on ONNX Runtime: reads prompts, then a few tokens at a time for many sequences that share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.jobs.limits import check_limits
from whichsense.models.compact.encoder.lazy import once
from whichsense.models.compact.encoder.runtime import CompactModel, Floats
from whichsense.models.compact.encoder.tokens import END
from whichsense.models.compact.writer.prompts import REWRITE, WRITTEN, Prompt

Ints = NDArray[np.int64]
HIDDEN = -1e9  # added to a score that must not count
_KINDS = ("keys", "values")
# New tokens × tokens that they attend to, in one call: bounds the memory of a call.
_MOST_CELLS = 2**18


@dataclass(frozen=True)
class Writable:
    """The tokens that may be written, ascending, with their vectors and biases."""

    ids: Ints
    vectors: Floats
    bias: Floats

    def columns(self, tokens: Sequence[int]) -> list[int | None]:
        """The place of each token among them; None for one that may not be written."""
        known = self.ids.tolist()
        columns: list[int | None] = []
        for place, token in zip(
            np.searchsorted(self.ids, tokens).tolist(), tokens, strict=True
        ):
            is_known = place < len(known) and known[place] == token
            columns.append(place if is_known else None)
        return columns


@dataclass(frozen=True)
class WriterState:
    """Sequences as far as they are written, and the distribution of the next token."""

    memory: dict[str, Floats]
    """Keys and values of all prompts' tokens, side by side, for each layer (heads × memory × head width)."""
    mask: Floats
    """The part of the memory that each sequence attends to, its prompt's (sequences × 1 × 1 × memory; 0 or HIDDEN)."""
    past: dict[str, Floats]
    """Keys and values of what was written, for each layer (sequences × heads × tokens × head width)."""
    writable: Writable
    following: Floats
    """Log probabilities of the next token (sequences × writable)."""

    @property
    def length(self) -> int:
        """Tokens written so far."""
        return int(next(iter(self.past.values())).shape[2])

    def select(self, rows: Ints | slice) -> WriterState:
        """Some of the sequences in that order. A sequence may be repeated."""
        past = {name: array[rows] for name, array in self.past.items()}
        return replace(
            self, mask=self.mask[rows], past=past, following=self.following[rows]
        )


@dataclass(frozen=True)
class Writer:
    """Extends and scores sequences. It loads on first use."""

    model: CompactModel

    @once
    def _session(self) -> Any:
        return self.model.session("writer.onnx", self.model.threads)

    def prepare(self) -> None:
        """Load the graph now, not with the first rewrite."""
        _ = self._session

    @cached_property
    def _names(self) -> list[str]:
        """Keys and values of each layer."""
        layers = self.model.config["shape"]["writer_layers"]
        names = []
        for layer in range(layers):
            for kind in _KINDS:
                names.append(f"{kind}_{layer}")
        return names

    def writable(self, tokens: Sequence[int]) -> Writable:
        ids = np.array(sorted({*tokens, END}), dtype=np.int64)
        return Writable(ids, self.model.words.vectors(ids), self.model.words.bias[ids])

    def begin(self, prompts: Sequence[Prompt], writable: Writable) -> WriterState:
        """Read the prompts: one sequence for each, with nothing written."""
        count = len(prompts)
        sizes = [len(prompt.ids) for prompt in prompts]
        layers = len(self._names) // len(_KINDS)
        self.model.work.add(layers=count * layers, prompts=count)
        # Prompts are padded to the longest; tokens of padding are hidden, and dropped from the memory.
        is_token = np.arange(max(sizes)) < np.array(sizes)[:, None]
        hidden = np.where(is_token, 0, HIDDEN).astype(np.float32)
        reach = np.broadcast_to(
            hidden[:, None, None, :], (count, 1, max(sizes), max(sizes))
        )
        empty = self._empty(count, writable)
        outputs = self._run(
            empty,
            self._embed(prompts, max(sizes)),
            np.ascontiguousarray(reach),
            np.zeros(1, np.int64),
        )
        memory = {}
        for name in self._names:
            by_head = outputs[f"new_{name}"].transpose(1, 0, 2, 3)
            memory[name] = np.ascontiguousarray(by_head[:, is_token])
        owner = np.repeat(np.arange(count), sizes)
        is_own = owner == np.arange(count)[:, None]
        mask = np.where(is_own, 0, HIDDEN).astype(np.float32)[:, None, None, :]
        begun = replace(empty, memory=memory, mask=mask)
        return self.extend(begun, np.full((count, 1), REWRITE))[0]

    def _embed(self, prompts: Sequence[Prompt], longest: int) -> Floats:
        """Prompts × longest × width, with zeros for padding."""
        words = self.model.words
        width = words.vectors([0]).shape[1]
        embedded = np.zeros((len(prompts), longest, width), np.float32)
        for row, prompt in enumerate(prompts):
            vectors = words.embed_prompt(np.array(prompt.ids), np.array(prompt.kinds))
            embedded[row, : len(prompt.ids)] = vectors
        return embedded

    def _empty(self, rows: int, writable: Writable) -> WriterState:
        """Sequences without a prompt: their memory is one hidden token."""
        shape = self.model.config["shape"]
        heads = shape["heads"]
        each = shape["width"] // heads
        memory = dict.fromkeys(self._names, np.zeros((heads, 1, each), np.float32))
        past = dict.fromkeys(self._names, np.zeros((rows, heads, 0, each), np.float32))
        mask = np.full((rows, 1, 1, 1), HIDDEN, np.float32)
        return WriterState(
            memory, mask, past, writable, np.zeros((rows, 0), np.float32)
        )

    def extend(
        self, old: WriterState, tokens: Ints, *, every: bool = False
    ) -> tuple[WriterState, Floats]:
        """Append new tokens (sequences × new). Also return the log probabilities after the last of them, or with
        `every` after each (sequences × new × writable)."""
        rows, new = tokens.shape
        reach = old.mask.shape[-1] + old.length + new
        most = max(1, _MOST_CELLS // (new * reach))
        parts = []
        for at in range(0, rows, most):
            part = slice(at, at + most)
            parts.append(self._extend(old.select(part), tokens[part], every=every))
        past = {}
        for name in self._names:
            past[name] = np.concatenate([part[f"new_{name}"] for part in parts])
        written = np.concatenate([part["written"] for part in parts])
        written = written.reshape(rows, new if every else 1, -1)
        return replace(old, past=past, following=written[:, -1]), written

    def _extend(
        self, old: WriterState, tokens: Ints, *, every: bool
    ) -> dict[str, Floats]:
        rows, new = tokens.shape
        length = old.length + new
        embedded = self.model.words.embed_prompt(
            tokens, np.full(new, WRITTEN), old.length
        )
        # A token attends to itself and to what was written before it.
        is_before = np.arange(length) <= np.arange(old.length, length)[:, None]
        causal = np.where(is_before, 0, HIDDEN).astype(np.float32)
        reach = np.broadcast_to(causal, (rows, 1, new, length))
        # Outputs are taken after every token, or after the last of each row.
        take = np.arange(rows * new) if every else np.arange(new - 1, rows * new, new)
        return self._run(old, embedded, np.ascontiguousarray(reach), take)

    def _run(
        self, old: WriterState, embedded: Floats, reach: Floats, take: Ints
    ) -> dict[str, Floats]:
        check_limits()
        inputs = {
            "embedded": embedded,
            "self_mask": reach,
            "mask": old.mask,
            "take": take,
            "words": old.writable.vectors,
            "words_bias": old.writable.bias,
            **old.memory,
        }
        for name, array in old.past.items():
            inputs[f"past_{name}"] = array
        names = ["written"]
        for name in self._names:
            names.append(f"new_{name}")
        outputs = self._session.run(names, inputs)
        return dict(zip(names, outputs, strict=True))
