"""A classifier of ambiguous questions: one logit for a question, alone or with the passages retrieved for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import CrossEncoder
from whichsense.models.bert.inputs import InputRow, Inputs
from whichsense.models.bert.running import best_device, inference, outputs
from whichsense.types import Passage


class AmbiguityClassifier(nn.Module):
    """A cross encoder whose relevance head is trained to detect ambiguity."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.reader = CrossEncoder(encoder, reads=False)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        logits: Tensor = self.reader(batch).relevance
        return logits


def detector_row(
    inputs: Inputs, question: str, passages: Sequence[Passage]
) -> InputRow:
    """`[CLS] question [SEP]`, or `[CLS] question [SEP] passage passage … [SEP]`, truncated."""
    if not passages:
        return inputs.single([question])[0]
    texts = []
    for passage in passages:
        title = f"{passage.title}. " if passage.title else ""
        texts.append(title + passage.text)
    evidence = Passage("", "", " ".join(texts))
    return inputs.pairs(question, [evidence], places=False)[0]


def load_classifier(
    folder: str | Path, device: str = ""
) -> tuple[AmbiguityClassifier, Inputs, int]:
    """Load a trained classifier, its inputs, and the number of passages that it reads with a question."""
    about = saved.described(folder, "ambiguity-detector")
    model = AmbiguityClassifier(saved.empty_encoder(about.folder))
    saved.fill(model, about.folder)
    model = model.to(device or best_device()).eval()
    inputs = saved.tokenizer_of(about.folder)
    return model, inputs, int(about.options["passages"])


def probabilities(
    model: AmbiguityClassifier, inputs: Inputs, rows: Sequence[InputRow]
) -> list[float]:
    """The probability of each question to be ambiguous."""
    ambiguous = torch.zeros(len(rows))
    with inference(model):
        for places, logits in outputs(model, rows, inputs.tokenizer.pad_token_id):
            ambiguous[places] = logits.sigmoid().float().cpu()
    values: list[float] = ambiguous.tolist()
    return values
