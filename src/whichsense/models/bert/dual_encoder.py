"""DPR's dual encoder: one tower for questions, one for passages; relevance is the inner product of their first tokens.

An index compares unit vectors by cosine. For cosine to rank as the inner product does, a passage's vector gets one more
number: (p, √(m² − |p|²)) / m, with m the norm of the longest one; a question's vector gets a zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import fitting
from whichsense.models.bert.inputs import InputRow, Inputs
from whichsense.models.bert.running import best_device, in_full, inference, outputs

TASK = "dual-encoder"
# The norm m relative to the longest vector measured. Longer vectors are shortened to m.
_ROOM = 1.1


class DualEncoder(nn.Module):
    """Two encoders of one shape."""

    def __init__(self, question: nn.Module, passage: nn.Module) -> None:
        super().__init__()
        self.question = question
        self.passage = passage
        config: Any = question.config
        self.config = config

    def forward(
        self, batch: Mapping[str, Mapping[str, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Vectors of the questions and of the passages of a batch."""
        questions = self.vectors("question", batch["questions"])
        passages = self.vectors("passage", batch["passages"])
        return questions, passages

    def vectors(self, tower: str, batch: Mapping[str, Tensor]) -> Tensor:
        """The state of the first token of each row (rows × width)."""
        encoder = getattr(self, tower)
        hidden: Tensor = encoder(**fitting(self.config, batch)).last_hidden_state
        return hidden[:, 0].float()


class _Tower(nn.Module):
    """One tower as a module of its own."""

    def __init__(self, model: DualEncoder, name: str) -> None:
        super().__init__()
        self.model = model
        self.name = name

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return self.model.vectors(self.name, batch)


def encode(
    model: DualEncoder, tower: str, rows: Sequence[InputRow], pad: int
) -> NDArray[np.float32]:
    """The vectors of rows (rows × width), not normalized."""
    vectors = np.zeros((len(rows), int(model.config.hidden_size)), dtype=np.float32)
    half = _Tower(model, tower)
    with inference(half):
        for places, batch in outputs(half, rows, pad):
            vectors[places] = batch.cpu().numpy()
    return vectors


def _pad_passages(vectors: NDArray[np.float32], longest: float) -> NDArray[np.float32]:
    """Passages' vectors as unit vectors with the number that makes cosines rank as inner products."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = vectors * np.minimum(1.0, longest / np.maximum(norms, 1e-9)) / longest
    squares = np.square(scaled).sum(axis=1, keepdims=True)
    rest = np.sqrt(np.maximum(0.0, 1.0 - squares))
    return np.concatenate([scaled, rest], axis=1).astype(np.float32)


def _pad_questions(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Questions' vectors as unit vectors with a zero in that place."""
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    padded = np.concatenate([vectors / norms, np.zeros_like(norms)], axis=1)
    return padded.astype(np.float32)


@dataclass(frozen=True)
class DPR:
    """An `Encoder` for an index, from a folder that `whichsense train` or `published.py` wrote. Loads on first use."""

    folder: str
    device: str = ""

    @property
    def name(self) -> str:
        return self.folder

    @property
    def dimensions(self) -> int:
        return int(self._parts[0].config.hidden_size) + 1

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The first line of a text is its title."""
        model, inputs, longest = self._parts
        passages = []
        for text in texts:
            title, newline, body = text.partition("\n")
            passages.append((title, body) if newline else ("", title))
        rows = inputs.passages(passages)
        vectors = encode(model, "passage", rows, inputs.tokenizer.pad_token_id)
        return _pad_passages(vectors, longest)

    def encode_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        model, inputs, _ = self._parts
        rows = inputs.single(questions)
        vectors = encode(model, "question", rows, inputs.tokenizer.pad_token_id)
        return _pad_questions(vectors)

    @cached_property
    def _parts(self) -> tuple[DualEncoder, Inputs, float]:
        return load_dual_encoder(self.folder, self.device)


def load_dual_encoder(
    folder: str | Path, device: str = ""
) -> tuple[DualEncoder, Inputs, float]:
    """Load a dual encoder, its inputs, and the norm of its longest passage vector."""
    about = saved.described(folder, TASK)
    question = saved.empty_encoder(about.folder)
    passage = saved.empty_encoder(about.folder)
    model = DualEncoder(question, passage)
    saved.fill(model, about.folder)
    inputs = saved.tokenizer_of(about.folder)
    longest = float(about.options["longest_vector"])
    return model.to(device or best_device()).eval(), inputs, longest


def save(
    folder: Path,
    model: DualEncoder,
    inputs: Inputs,
    passages: Sequence[tuple[str, str]],
) -> None:
    """Write a folder. The norm m is estimated from the vectors of `passages` (title and text)."""
    rows = inputs.passages(passages)
    vectors = encode(model, "passage", rows, inputs.tokenizer.pad_token_id)
    longest = _ROOM * float(np.linalg.norm(vectors, axis=1).max())
    saved.save(
        folder,
        model,
        inputs,
        task=TASK,
        config=model.config,
        options={"longest_vector": longest},
    )


def build(base: str) -> DualEncoder:
    """A dual encoder with both towers from one base model."""
    return DualEncoder(saved.encoder(base), saved.encoder(base))


def similarity(questions: Tensor, passages: Tensor) -> Tensor:
    """Inner products (questions × passages)."""
    with in_full(questions):
        return questions.float() @ passages.float().T
