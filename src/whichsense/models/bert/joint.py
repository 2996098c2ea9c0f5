"""A joint reranker after JPR: it picks passages one after another, given those picked before.

Every passage is encoded with the question once. A decoder attends to the vectors of all passages and, in order, of
those picked, and points at the next: one that holds an answer which the picked ones lack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import CrossEncoder
from whichsense.models.bert.inputs import Inputs
from whichsense.models.bert.running import best_device, in_full, inference, outputs
from whichsense.types import Passage


class PassagePointer(nn.Module):
    """A cross encoder, and a decoder that points at its passages."""

    def __init__(self, encoder: nn.Module, layers: int, heads: int, most: int) -> None:
        super().__init__()
        self.reader = CrossEncoder(encoder, reads=False)
        width = int(self.reader.config.hidden_size)
        layer = nn.TransformerDecoderLayer(
            width, heads, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.decoder = nn.TransformerDecoder(layer, layers, nn.LayerNorm(width))
        self.begin = nn.Parameter(torch.zeros(width))
        self.position = nn.Embedding(most, width)
        self.key = nn.Linear(width, width)
        nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The vector (rows × width) and the relevance (rows) of each row."""
        read = self.reader(batch)
        return read.vectors, read.relevance

    def next_scores(
        self, vectors: Tensor, relevance: Tensor, present: Tensor, picked: Tensor
    ) -> Tensor:
        """The score of each passage as the next one, at each step (questions × steps + 1 × passages).

        `vectors` are questions × passages × width; `present` marks real passages; `picked` are the numbers of the
        passages picked so far (questions × steps). Passages picked before a step and absent ones get minus infinity.
        """
        questions, steps = picked.shape
        width = vectors.shape[-1]
        index = picked[..., None].expand(questions, steps, width)
        chosen = vectors.gather(1, index)
        begin = self.begin.expand(questions, 1, width).to(chosen.dtype)
        history = torch.cat([begin, chosen], dim=1)
        history = history + self.position.weight[: steps + 1]
        square = torch.ones(
            steps + 1, steps + 1, dtype=torch.bool, device=vectors.device
        )
        later = square.triu(1)
        state = self.decoder(
            history, vectors, tgt_mask=later, memory_key_padding_mask=~present
        )
        with in_full(vectors):
            keys = self.key(vectors.float()).transpose(1, 2)
            scores = state.float() @ keys / math.sqrt(width) + relevance[:, None]
        gone = _gone(picked, present)
        masked: Tensor = scores.masked_fill(gone, -torch.inf)
        return masked


def _gone(picked: Tensor, present: Tensor) -> Tensor:
    """Which passages cannot be pointed at, at each step (questions × steps + 1 × passages)."""
    questions, steps = picked.shape
    picked_at = torch.zeros(
        questions, steps + 1, present.shape[1], dtype=torch.bool, device=picked.device
    )
    if steps:
        picked_at[:, 1:].scatter_(2, picked[..., None], True)
    # A passage picked at one step is gone at all later ones.
    picked_before = picked_at.long().cumsum(1).bool()
    return picked_before | ~present[:, None]


def load_joint(folder: str | Path, device: str = "") -> tuple[PassagePointer, Inputs]:
    """Load a trained joint reranker from its folder."""
    about = saved.described(folder, "joint-reranker")
    shape = {name: int(about.options[name]) for name in ("layers", "heads", "most")}
    model = PassagePointer(saved.empty_encoder(about.folder), **shape)
    saved.fill(model, about.folder)
    return model.to(device or best_device()).eval(), saved.tokenizer_of(about.folder)


def _encode(
    model: PassagePointer, inputs: Inputs, question: str, passages: Sequence[Passage]
) -> tuple[Tensor, Tensor]:
    """The vectors (passages × width) and relevances (passages) of passages."""
    rows = inputs.pairs(question, passages, places=False)
    width = int(model.reader.config.hidden_size)
    device = model.begin.device
    vectors = torch.zeros(len(rows), width, device=device)
    relevance = torch.zeros(len(rows), device=device)
    for places, output in outputs(model, rows, inputs.tokenizer.pad_token_id):
        batch_vectors, batch_relevance = output
        vectors[places] = batch_vectors.float()
        relevance[places] = batch_relevance
    return vectors, relevance


def picked_order(
    model: PassagePointer,
    inputs: Inputs,
    question: str,
    passages: Sequence[Passage],
    picks: int,
) -> list[tuple[int, float]]:
    """The passages picked jointly, then the others by relevance: (number, score) each, by descending score."""
    if not passages:
        return []
    with inference(model):
        vectors, relevance = _encode(model, inputs, question, passages)
        order: list[int] = []
        present = torch.ones(1, len(passages), dtype=torch.bool, device=vectors.device)
        for _ in range(min(picks, len(passages), model.position.num_embeddings)):
            picked = torch.tensor([order], dtype=torch.long, device=vectors.device)
            scores_by_step = model.next_scores(
                vectors[None], relevance[None], present, picked
            )
            order.append(int(scores_by_step[0, -1].argmax()))
    scores: list[float] = relevance.tolist()
    rest = set(range(len(passages))) - set(order)
    # Picked passages score above the most relevant one, the first of them highest.
    top = max(scores)
    ranked = []
    for number, place in enumerate(order):
        ranked.append((place, top + len(order) - number))
    for place in sorted(rest, key=lambda place: -scores[place]):
        ranked.append((place, scores[place]))
    return ranked
