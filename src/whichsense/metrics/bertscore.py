"""BERTScore F1 with any local checkpoint: every token's best partner by cosine, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, require

# The layer that agreed best with people, by kind and depth of the model (Zhang et al., 2020).
_BEST_LAYER = {("roberta", 24): 17, ("roberta", 12): 10, ("bert", 24): 18, ("bert", 12): 9, ("distilbert", 6): 5}


def bert_score(
    references: Sequence[str], predictions: Sequence[str], model: str | Path, layer: int | None = None, batch: int = 32
) -> list[float]:
    """F1 for each pair. CAmbigNQ's figure is the mean, with roberta-large and its 17th layer, not rescaled.

    `layer` counts from 1; without it the layer known to be best for the model is taken, or else the last.
    """
    if len(references) != len(predictions):
        raise BadInput(f"BERTScore needs pairs: {len(references)} references, {len(predictions)} predictions.")
    torch, transformers = require("torch", "train"), require("transformers", "train")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModel.from_pretrained(model).eval()
    depth = network.config.num_hidden_layers
    chosen = layer or _BEST_LAYER.get((network.config.model_type, depth), depth)
    if not 1 <= chosen <= depth:
        raise BadInput(f"The model has layers 1 to {depth}; {chosen} was asked for.")
    scores: list[float] = []
    for start in range(0, len(references), batch):
        gold = _vectors(torch, tokenizer, network, chosen, references[start : start + batch])
        ours = _vectors(torch, tokenizer, network, chosen, predictions[start : start + batch])
        scores += [_f1(*pair) for pair in zip(gold, ours, strict=True)]
    return scores


def _vectors(torch: Any, tokenizer: Any, network: Any, layer: int, texts: Sequence[str]) -> list[Any]:
    """Unit vectors of each text's own tokens."""
    encoded = tokenizer(
        [text.strip() for text in texts],
        padding=True,
        truncation=True,
        max_length=min(tokenizer.model_max_length, network.config.max_position_embeddings - 2),
        return_special_tokens_mask=True,
        return_tensors="pt",
    )
    own = encoded.pop("special_tokens_mask") == 0
    with torch.inference_mode():
        states = network(**encoded, output_hidden_states=True).hidden_states[layer]
    states = torch.nn.functional.normalize(states.float(), dim=-1)
    return [row[mask] for row, mask in zip(states, own, strict=True)]


def _f1(gold: Any, ours: Any) -> float:
    if not len(gold) or not len(ours):
        return 0.0
    similarity = ours @ gold.T
    precision, recall = float(similarity.max(dim=1).values.mean()), float(similarity.max(dim=0).values.mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
