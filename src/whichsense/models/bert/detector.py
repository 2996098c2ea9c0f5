"""Is a question ambiguous? A yes-or-no head over the question, alone or with the passages found for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import CrossEncoder
from whichsense.models.bert.inputs import Inputs, Row
from whichsense.models.bert.running import best_device, inference, outputs
from whichsense.types import Passage


class Detector(nn.Module):
    """The relevance head of a cross encoder, trained to say "ambiguous"."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.reader = CrossEncoder(encoder, reads=False)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        logits: Tensor = self.reader(batch).relevance
        return logits


def detector_row(inputs: Inputs, question: str, passages: Sequence[Passage]) -> Row:
    """`[CLS] question [SEP]`, or `[CLS] question [SEP] passage passage … [SEP]` as far as there is room."""
    if not passages:
        return inputs.single([question])[0]
    evidence = " ".join(
        f"{passage.title}. {passage.text}" if passage.title else passage.text
        for passage in passages
    )
    return inputs.pairs(question, [Passage("", "", evidence)], places=False)[0]


def opened(folder: str | Path, device: str = "") -> tuple[Detector, Inputs, int]:
    """A trained detector, its inputs, and how many passages it reads with a question."""
    about = saved.described(folder, "ambiguity-detector")
    model = Detector(saved.empty_encoder(about.folder))
    saved.fill(model, about.folder)
    return (
        model.to(device or best_device()).eval(),
        saved.tokenizer_of(about.folder),
        int(about.options["passages"]),
    )


def probabilities(model: Detector, inputs: Inputs, rows: Sequence[Row]) -> list[float]:
    """How likely each question is to be ambiguous."""
    found = torch.zeros(len(rows))
    with inference(model):
        for places, logits in outputs(model, rows, inputs.tokenizer.pad_token_id):
            found[places] = logits.sigmoid().float().cpu()
    values: list[float] = found.tolist()
    return values
