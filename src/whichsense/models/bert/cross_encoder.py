"""A cross encoder over question and passage, with a relevance head and, for reading, a span head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from whichsense.models.bert import saved
from whichsense.models.bert.inputs import Inputs
from whichsense.models.bert.running import (
    best_device,
    compile_layers,
    in_full,
    inference,
    outputs,
)
from whichsense.types import Passage


class CrossEncoderOutput(NamedTuple):
    """For each row: the [CLS] vector (rows × width), the relevance (rows), and with a span head each token's logits
    to begin and to end an answer (rows × tokens)."""

    vectors: Tensor
    relevance: Tensor
    starts: Tensor | None = None
    ends: Tensor | None = None


class CrossEncoder(nn.Module):
    """An encoder with a relevance head over its first token and, if `reads`, a span head over all tokens."""

    def __init__(self, encoder: nn.Module, *, reads: bool) -> None:
        super().__init__()
        self.encoder = encoder
        config: Any = encoder.config
        self.config = config
        width = int(config.hidden_size)
        self.relevance = nn.Linear(width, 1)
        self.span = nn.Linear(width, 2) if reads else None
        for head in (self.relevance, self.span):
            if head is not None:
                nn.init.normal_(head.weight, std=0.02)
                nn.init.zeros_(head.bias)

    def compile(self, *arguments: Any, **options: Any) -> None:
        compile_layers(self.encoder, *arguments, **options)

    def forward(self, batch: Mapping[str, Tensor]) -> CrossEncoderOutput:
        inputs = fitting(self.config, batch)
        hidden = self.encoder(**inputs).last_hidden_state.float()
        first = hidden[:, 0]
        with in_full(hidden):
            relevance = self.relevance(first).squeeze(-1)
            if self.span is None:
                return CrossEncoderOutput(first, relevance)
            starts, ends = self.span(hidden).unbind(-1)
        return CrossEncoderOutput(first, relevance, starts, ends)


def fitting(config: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The batch without segments, if the architecture has none."""
    inputs = dict(batch)
    if getattr(config, "type_vocab_size", 0) <= 1:
        inputs.pop("token_type_ids", None)
    return inputs


def load_cross_encoder(
    folder: str | Path, task: str, *, reads: bool, device: str = ""
) -> tuple[CrossEncoder, Inputs]:
    """Load a trained cross encoder from its folder."""
    place = saved.described(folder, task).folder
    model = CrossEncoder(saved.empty_encoder(place), reads=reads)
    saved.fill(model, place)
    return model.to(device or best_device()).eval(), saved.tokenizer_of(place)


def relevances(
    model: CrossEncoder, inputs: Inputs, question: str, passages: Sequence[Passage]
) -> list[float]:
    """The relevance of each passage to the question (logits), in the order of the passages."""
    rows = inputs.pairs(question, passages, places=False)
    relevance = torch.zeros(len(rows))
    with inference(model):
        for places, output in outputs(model, rows, inputs.tokenizer.pad_token_id):
            relevance[places] = output.relevance.cpu()
    scores: list[float] = relevance.tolist()
    return scores
