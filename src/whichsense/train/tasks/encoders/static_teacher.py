"""The sentence encoder that the static encoder learns from: its vectors of texts and of single tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import saved

_LONGEST = 256  # tokens of a text
_TEXTS = 64  # in a batch
_TOKENS = 4096  # single tokens in a batch


class StaticTeacher:
    """A BERT sentence encoder with mean pooling, without gradients."""

    def __init__(self, base: str) -> None:
        self._base = base
        self.tokenizer: Any = load_tokenizer(base)
        self.vocabulary: dict[str, int] = dict(self.tokenizer.get_vocab())

    @cached_property
    def network(self) -> nn.Module:
        return saved.encoder(self._base).eval().requires_grad_(False)

    def collate(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Texts as the network reads them."""
        encoded = self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=_LONGEST,
            return_tensors="pt",
        )
        names = ("input_ids", "attention_mask")
        return {name: encoded[name] for name in names}

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        """[texts, width]: the mean over tokens, of length 1, as sentence encoders of this kind are used."""
        hidden = self.network(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        return functional.normalize((hidden * mask).sum(1).float(), dim=1)

    def encode_texts(self, texts: Sequence[str]) -> Tensor:
        vectors = []
        for start in range(0, len(texts), _TEXTS):
            batch = self.collate(texts[start : start + _TEXTS])
            vectors.append(self.encode(batch))
        return torch.cat(vectors)

    def encode_tokens(self) -> Tensor:
        """[vocabulary, width]: each token by itself, between the special ones."""
        first, last = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        rows = [[first, token, last] for token in range(len(self.vocabulary))]
        ids = torch.tensor(rows)
        vectors = []
        for start in range(0, len(ids), _TOKENS):
            part = ids[start : start + _TOKENS]
            batch = {"input_ids": part, "attention_mask": torch.ones_like(part)}
            vectors.append(self.encode(batch))
        return torch.cat(vectors)
