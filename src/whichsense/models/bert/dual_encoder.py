"""DPR's dual encoder: one tower for questions, one for passages, relevance is the inner product of their first tokens.

An index holds unit vectors and compares them by cosine. So that cosine ranks as the inner product does, a passage's
vector gets one more number: (p, √(m² − |p|²)) / m, with m the length of the longest one; a question's gets a zero.
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
from whichsense.models.bert.inputs import Inputs, Row
from whichsense.models.bert.running import best_device, in_full, inference, outputs

TASK = "dual-encoder"
# Passages that are longer than all that were measured are shortened to this many times the longest of those.
ROOM = 1.1


class DualEncoder(nn.Module):
    """Two encoders of one shape."""

    def __init__(self, question: nn.Module, passage: nn.Module) -> None:
        super().__init__()
        self.question, self.passage = question, passage
        config: Any = question.config
        self.config = config

    def forward(
        self, batch: Mapping[str, Mapping[str, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Vectors of the questions and of the passages of a batch."""
        return self.vectors("question", batch["questions"]), self.vectors(
            "passage", batch["passages"]
        )

    def vectors(self, tower: str, batch: Mapping[str, Tensor]) -> Tensor:
        found: Tensor = getattr(self, tower)(
            **fitting(self.config, batch)
        ).last_hidden_state[:, 0]
        return found.float()


class _Tower(nn.Module):
    """One half, as something that takes a batch."""

    def __init__(self, model: DualEncoder, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return self.model.vectors(self.name, batch)


def encode(
    model: DualEncoder, tower: str, rows: Sequence[Row], pad: int
) -> NDArray[np.float32]:
    """Plain vectors of rows, batched by length."""
    found = np.zeros((len(rows), int(model.config.hidden_size)), dtype=np.float32)
    half = _Tower(model, tower)
    with inference(half):
        for places, vectors in outputs(half, rows, pad):
            found[places] = vectors.cpu().numpy()
    return found


def with_rest(vectors: NDArray[np.float32], longest: float) -> NDArray[np.float32]:
    """Passages' vectors at length 1, with the number that makes cosines rank as inner products."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    shorter = vectors * np.minimum(1.0, longest / np.maximum(lengths, 1e-9)) / longest
    rest = np.sqrt(np.maximum(0.0, 1.0 - np.square(shorter).sum(axis=1, keepdims=True)))
    return np.concatenate([shorter, rest], axis=1).astype(np.float32)


def without_rest(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Questions' vectors at length 1, with a zero in that place."""
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return np.concatenate([vectors / lengths, np.zeros_like(lengths)], axis=1).astype(
        np.float32
    )


@dataclass(frozen=True)
class DPR:
    """An `Encoder` for an index, from a folder that `whichsense train` or `imported` wrote. Loads on first use."""

    folder: str
    device: str = ""

    @property
    def name(self) -> str:
        return self.folder

    @property
    def dimensions(self) -> int:
        return int(self._parts[0].config.hidden_size) + 1

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A first line is the title."""
        model, inputs, longest = self._parts
        pairs = [
            (title, text) if found else ("", title)
            for title, found, text in (t.partition("\n") for t in texts)
        ]
        return with_rest(
            encode(
                model, "passage", inputs.passages(pairs), inputs.tokenizer.pad_token_id
            ),
            longest,
        )

    def encode_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        model, inputs, _ = self._parts
        return without_rest(
            encode(
                model,
                "question",
                inputs.single(questions),
                inputs.tokenizer.pad_token_id,
            )
        )

    @cached_property
    def _parts(self) -> tuple[DualEncoder, Inputs, float]:
        return opened(self.folder, self.device)


def opened(folder: str | Path, device: str = "") -> tuple[DualEncoder, Inputs, float]:
    """A dual encoder, its inputs, and the length of its longest passage vector."""
    about = saved.described(folder, TASK)
    model = DualEncoder(
        saved.empty_encoder(about.folder), saved.empty_encoder(about.folder)
    )
    saved.fill(model, about.folder)
    inputs, longest = (
        saved.tokenizer_of(about.folder),
        float(about.options["longest_vector"]),
    )
    return model.to(device or best_device()).eval(), inputs, longest


def save(
    folder: Path,
    model: DualEncoder,
    inputs: Inputs,
    passages: Sequence[tuple[str, str]],
) -> None:
    """Write a folder; the vectors of `passages` (title and text) tell how long vectors are."""
    vectors = encode(
        model, "passage", inputs.passages(passages), inputs.tokenizer.pad_token_id
    )
    longest = ROOM * float(np.linalg.norm(vectors, axis=1).max())
    saved.save(
        folder,
        model,
        inputs,
        task=TASK,
        config=model.config,
        options={"longest_vector": longest},
    )


def build(base: str) -> DualEncoder:
    """Both towers from one base model."""
    return DualEncoder(saved.encoder(base), saved.encoder(base))


def similarity(questions: Tensor, passages: Tensor) -> Tensor:
    """Inner products, each question with each passage."""
    with in_full(questions):
        return questions.float() @ passages.float().T
