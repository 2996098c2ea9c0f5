"""A vector for each token of a text, from any local checkpoint: what BERTScore compares."""

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
    """Unit vectors of each text's own tokens, without those that mark begin and end. Loads on first use.

    `layer` counts from 1; without it the layer known to be best for the model is taken, or else the last.
    """

    def __init__(self, path: str | Path, layer: int | None = None) -> None:
        self.path, self.layer = Path(path), layer
        if not (self.path / "config.json").is_file():
            raise BadInput(
                f"'{path}' holds no model: a folder with config.json, weights and tokenizer is needed."
            )

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any, int]:
        torch, transformers = (
            require("torch", "train"),
            require("transformers", "train"),
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.path)
        network = transformers.AutoModel.from_pretrained(self.path).eval()
        depth = network.config.num_hidden_layers
        layer = self.layer or _BEST_LAYER.get((network.config.model_type, depth), depth)
        if not 1 <= layer <= depth:
            raise BadInput(f"The model has layers 1 to {depth}; {layer} was asked for.")
        return torch, tokenizer, network, layer

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """A matrix for each text, a row for each token."""
        torch, tokenizer, network, layer = self._parts
        encoded = tokenizer(
            [text.strip() for text in texts],
            padding=True,
            truncation=True,
            max_length=min(
                tokenizer.model_max_length, network.config.max_position_embeddings - 2
            ),
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        own = encoded.pop("special_tokens_mask") == 0
        with torch.inference_mode():
            states = network(**encoded, output_hidden_states=True).hidden_states[layer]
        states = torch.nn.functional.normalize(states.float(), dim=-1)
        return [row[mask].numpy() for row, mask in zip(states, own, strict=True)]
