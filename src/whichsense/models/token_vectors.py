"""A vector for each token of a text, from any local checkpoint, for BERTScore."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, require

# The layer that agreed best with people, by kind and depth of the model (Zhang et al., 2020).
_BEST_LAYER = {
    ("roberta", 24): 17,
    ("roberta", 12): 10,
    ("bert", 24): 18,
    ("bert", 12): 9,
    ("distilbert", 6): 5,
}


class TokenVectors:
    """Unit vectors of each text's tokens, without special tokens. It loads on first use.

    `layer` counts from 1. By default it is the layer known to be best for the model, or else the last.
    """

    def __init__(self, path: str | Path, layer: int | None = None) -> None:
        self.path = Path(path)
        self.layer = layer
        if not (self.path / "config.json").is_file():
            raise BadInput(
                f"'{path}' holds no model: a folder with config.json, weights and tokenizer is needed."
            )

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any, int]:
        torch = require("torch", "train")
        transformers = require("transformers", "train")
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.path)
        network = transformers.AutoModel.from_pretrained(self.path).eval()
        depth = network.config.num_hidden_layers
        layer = self.layer or _BEST_LAYER.get((network.config.model_type, depth), depth)
        if not 1 <= layer <= depth:
            raise BadInput(f"The model has layers 1 to {depth}; {layer} was asked for.")
        return torch, tokenizer, network, layer

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """A matrix for each text (tokens × width)."""
        torch, tokenizer, network, layer = self._parts
        # RoBERTa numbers its positions from 2.
        positions = network.config.max_position_embeddings - 2
        encoded = tokenizer(
            [text.strip() for text in texts],
            padding=True,
            truncation=True,
            max_length=min(tokenizer.model_max_length, positions),
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        is_own = encoded.pop("special_tokens_mask") == 0
        with torch.inference_mode():
            output = network(**encoded, output_hidden_states=True)
        states = output.hidden_states[layer]
        states = torch.nn.functional.normalize(states.float(), dim=-1)
        return [row[mask].numpy() for row, mask in zip(states, is_own, strict=True)]
