"""The teacher's network: a large encoder of transformers with the compact model's heads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import saved
from whichsense.models.bert.running import compile_layers
from whichsense.models.compact.encoder.net import Score
from whichsense.models.compact.encoder.tokens import BEGIN, END, PAD
from whichsense.train.compact.data.pairs import PairTensors
from whichsense.train.compact.encoder.base import load_vocabulary

TASK = "compact-teacher"
_MAX_UNKNOWN = 0.01  # the share of word pieces that a teacher may lack


class TeacherNet(nn.Module):
    """`numbers` maps ids of BERT's uncased word pieces to the teacher's own ids."""

    def __init__(self, encoder: nn.Module, numbers: Tensor) -> None:
        super().__init__()
        config: Any = encoder.config
        self.encoder = encoder
        self.numbers: Tensor
        self.register_buffer("numbers", numbers)
        # MPNet has no token types.
        self.typed = getattr(config, "type_vocab_size", 1) > 1
        self.relevance = Score(config.hidden_size)
        self.span = nn.Linear(config.hidden_size, 2)

    def compile(self, *arguments: Any, **options: Any) -> None:
        compile_layers(self.encoder, *arguments, **options)

    def forward(self, pairs: PairTensors) -> dict[str, Tensor]:
        """Scores of passages (pairs) and of their tokens as first and last of an answer (pairs × tokens × 2)."""
        inputs = {
            "input_ids": self.numbers[pairs.ids],
            "attention_mask": pairs.mask.long(),
        }
        if self.typed:
            inputs["token_type_ids"] = pairs.types
        states = self.encoder(**inputs).last_hidden_state
        return {
            "relevance": self.relevance(states).float(),
            "span": self.span(states).float(),
        }


def infer(net: TeacherNet, pairs: PairTensors) -> dict[str, Tensor]:
    """The network's output without gradients, in bfloat16 on a GPU."""
    device = pairs.ids.device
    on_gpu = device.type == "cuda"
    with (
        torch.inference_mode(),
        torch.autocast(device.type, torch.bfloat16, enabled=on_gpu),
    ):
        output: dict[str, Tensor] = net(pairs)
    return output


def map_vocabulary(tokenizer: Any, vocabulary: Sequence[str]) -> Tensor:
    """A tokenizer's id of every word piece. MPNet has BERT's pieces under other ids, with other special tokens."""
    ids: dict[str, int] = tokenizer.get_vocab()
    unknown = []
    for piece in vocabulary:
        if piece not in ids and not piece.startswith("["):
            unknown.append(piece)
    if len(unknown) > _MAX_UNKNOWN * len(vocabulary):
        raise BadConfig(
            f"The teacher does not know {len(unknown):,} of BERT's uncased word pieces, such as '{unknown[0]}'. "
            "Choose one with that vocabulary: all-mpnet-base-v2, bert-large-uncased, …"
        )
    numbers = torch.tensor(
        [ids.get(piece, tokenizer.unk_token_id) for piece in vocabulary]
    )
    # Special tokens have other names in other vocabularies.
    numbers[PAD] = tokenizer.pad_token_id
    numbers[BEGIN] = tokenizer.cls_token_id
    numbers[END] = tokenizer.sep_token_id
    return numbers


def load_teacher(folder: Path) -> TeacherNet:
    """A trained teacher, ready for inference."""
    about = saved.described(folder, TASK)
    vocabulary = load_vocabulary(str(about.options["pieces"]))
    numbers = map_vocabulary(load_tokenizer(folder), vocabulary)
    net = TeacherNet(saved.empty_encoder(folder), numbers)
    saved.fill(net, folder)
    return net.eval()
