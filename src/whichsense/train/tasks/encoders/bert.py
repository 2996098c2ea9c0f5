"""What the tasks over BERT-like encoders share: the `[model]` table, and the weights that training starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from torch import nn

from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import saved
from whichsense.models.bert.inputs import Inputs
from whichsense.train.tiny.encoders import located

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class EncoderModel:
    """A recipe's `[model]`: which encoder, and how much of a text it reads."""

    base: str = "bert-base-uncased"
    """A name on the hub, a folder that transformers saved, or `tiny-bert`."""
    longest: int = 256
    """Tokens."""
    start: str = ""
    """The folder of a model of the same task to start from: trained on one dataset, fine-tuned on another."""

    def encoder(self) -> nn.Module:
        return saved.encoder(located(self.base))

    def inputs(self) -> Inputs:
        return Inputs(load_tokenizer(located(self.base)), self.longest)

    def load_start(self, network: Network, task: str) -> Network:
        """The network with the weights of `start`, if it is given."""
        if self.start:
            saved.fill(network, saved.described(self.start, task).folder)
        return network
