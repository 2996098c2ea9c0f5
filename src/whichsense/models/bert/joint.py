"""A joint reranker in the manner of JPR: passages are picked one after another, each in view of those picked before.

Every passage is read with the question once. A small decoder then sees the vectors of all of them, and of those that
it has picked in their order, and points at the next: one that holds an answer which the picked ones lack.
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


class JointReranker(nn.Module):
    """A cross encoder, and the decoder that points at its passages."""

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
        """The vector and the relevance of each row."""
        read = self.reader(batch)
        return read.vectors, read.relevance

    def next_scores(
        self, vectors: Tensor, relevance: Tensor, present: Tensor, picked: Tensor
    ) -> Tensor:
        """For each step (none picked, one, …) how good each passage would be as the next one.

        `vectors` [questions, passages, width], `present` marks real passages, `picked` [questions, steps] are the
        numbers of those picked. Passages that were picked before a step, and absent ones, get minus infinity.
        """
        asked, steps = picked.shape
        wide = vectors.shape[-1]
        chosen = vectors.gather(1, picked[..., None].expand(asked, steps, wide))
        history = torch.cat(
            [self.begin.expand(asked, 1, wide).to(chosen.dtype), chosen], dim=1
        )
        history = history + self.position.weight[: steps + 1]
        later = torch.ones(
            steps + 1, steps + 1, dtype=torch.bool, device=vectors.device
        ).triu(1)
        state = self.decoder(
            history, vectors, tgt_mask=later, memory_key_padding_mask=~present
        )
        with in_full(vectors):
            keys = self.key(vectors.float()).transpose(1, 2)
            scores = state.float() @ keys / math.sqrt(wide) + relevance[:, None]
        found: Tensor = scores.masked_fill(_gone(picked, present), -torch.inf)
        return found


def _gone(picked: Tensor, present: Tensor) -> Tensor:
    """[questions, steps + 1, passages]: which passages cannot be pointed at in each step."""
    asked, steps = picked.shape
    hot = torch.zeros(
        asked, steps + 1, present.shape[1], dtype=torch.bool, device=picked.device
    )
    if steps:
        hot[:, 1:].scatter_(2, picked[..., None], True)
    return hot.long().cumsum(1).bool() | ~present[:, None]


def opened(folder: str | Path, device: str = "") -> tuple[JointReranker, Inputs]:
    """A trained joint reranker from its folder."""
    about = saved.described(folder, "joint-reranker")
    shape = {name: int(about.options[name]) for name in ("layers", "heads", "most")}
    model = JointReranker(saved.empty_encoder(about.folder), **shape)
    saved.fill(model, about.folder)
    return model.to(device or best_device()).eval(), saved.tokenizer_of(about.folder)


def encoded(
    model: JointReranker, inputs: Inputs, question: str, passages: Sequence[Passage]
) -> tuple[Tensor, Tensor]:
    """Vectors and relevances of passages, batched by length."""
    rows = inputs.pairs(question, passages, places=False)
    width = int(model.reader.config.hidden_size)
    device = model.begin.device
    vectors, relevance = (
        torch.zeros(len(rows), width, device=device),
        torch.zeros(len(rows), device=device),
    )
    for places, (found, scores) in outputs(model, rows, inputs.tokenizer.pad_token_id):
        vectors[places], relevance[places] = found.float(), scores
    return vectors, relevance


def picked_order(
    model: JointReranker,
    inputs: Inputs,
    question: str,
    passages: Sequence[Passage],
    picks: int,
) -> list[tuple[int, float]]:
    """The passages picked jointly, then the others by relevance: their numbers, with scores that fall in this order."""
    if not passages:
        return []
    with inference(model):
        vectors, relevance = encoded(model, inputs, question, passages)
        order: list[int] = []
        present = torch.ones(1, len(passages), dtype=torch.bool, device=vectors.device)
        for _ in range(min(picks, len(passages), model.position.num_embeddings)):
            picked = torch.tensor([order], dtype=torch.long, device=vectors.device)
            order.append(
                int(
                    model.next_scores(vectors[None], relevance[None], present, picked)[
                        0, -1
                    ].argmax()
                )
            )
    scores: list[float] = relevance.tolist()
    rest = sorted(
        set(range(len(passages))) - set(order), key=lambda place: -scores[place]
    )
    top = max(scores)
    picked_scores = [
        (place, top + len(order) - number) for number, place in enumerate(order)
    ]
    return picked_scores + [(place, scores[place]) for place in rest]
