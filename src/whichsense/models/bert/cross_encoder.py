"""A cross encoder: question and passage are read together. One head for relevance, one for where answers stand."""

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


class Read(NamedTuple):
    """What the network makes of rows: one vector and one relevance each, and logits over tokens where it reads."""

    vectors: Tensor
    relevance: Tensor
    starts: Tensor | None = None
    ends: Tensor | None = None


class CrossEncoder(nn.Module):
    """An encoder with a relevance head over its first token and, if `reads`, a head for the ends of answers."""

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

    def forward(self, batch: Mapping[str, Tensor]) -> Read:
        hidden = self.encoder(**fitting(self.config, batch)).last_hidden_state.float()
        first = hidden[:, 0]
        with in_full(hidden):
            relevance = self.relevance(first).squeeze(-1)
            if self.span is None:
                return Read(first, relevance)
            starts, ends = self.span(hidden).unbind(-1)
        return Read(first, relevance, starts, ends)


def fitting(config: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without segments for the architectures that know none."""
    if getattr(config, "type_vocab_size", 0) > 1:
        return dict(batch)
    return {name: tensor for name, tensor in batch.items() if name != "token_type_ids"}


def opened(
    folder: str | Path, task: str, *, reads: bool, device: str = ""
) -> tuple[CrossEncoder, Inputs]:
    """A trained cross encoder from its folder."""
    place = saved.described(folder, task).folder
    model = CrossEncoder(saved.empty_encoder(place), reads=reads)
    saved.fill(model, place)
    return model.to(device or best_device()).eval(), saved.tokenizer_of(place)


def relevances(
    model: CrossEncoder, inputs: Inputs, question: str, passages: Sequence[Passage]
) -> list[float]:
    """How relevant each passage is to the question: logits, in the order of the passages."""
    rows = inputs.pairs(question, passages, places=False)
    found = torch.zeros(len(rows))
    with inference(model):
        for places, read in outputs(model, rows, inputs.tokenizer.pad_token_id):
            found[places] = read.relevance.cpu()
    scores: list[float] = found.tolist()
    return scores
