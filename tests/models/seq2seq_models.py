"""Tiny models with random weights, and token sequences for them."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from whichsense.models.seq2seq.ragged import Batch, RaggedRows

KINDS = ("bart", "t5", "t5-gated")


def tiny(kind: str, dropout: float = 0.0) -> Any:
    """Weights large enough that outputs differ between inputs."""
    torch.manual_seed(7)
    if kind == "bart":
        config: Any = transformers.BartConfig(
            vocab_size=60, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=48, max_position_embeddings=64,
            dropout=dropout, attention_dropout=dropout, activation_dropout=dropout, forced_eos_token_id=None,
            scale_embedding=True,
        )  # fmt: skip
        model: Any = transformers.BartForConditionalGeneration(config)
        model.generation_config.forced_eos_token_id = None
    else:
        gated = kind == "t5-gated"
        config = transformers.T5Config(
            vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=dropout,
            feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=not gated,
            pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, relative_attention_max_distance=12,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
        elif "norm" not in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model.eval()


def sequences(lengths: list[list[int]], seed: int = 3) -> list[list[list[int]]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        [torch.randint(4, 60, (n,), generator=generator).tolist() for n in question]
        for question in lengths
    ]


def batch(inputs: list[list[list[int]]], labels: torch.Tensor) -> Batch:
    flat = [one for question in inputs for one in question]
    return Batch(
        torch.tensor([token for one in flat for token in one]),
        RaggedRows.of([len(one) for one in flat]),
        RaggedRows.of([sum(map(len, question)) for question in inputs]),
        labels,
    )


def plain(model: Any, inputs: list[list[list[int]]]) -> tuple[Any, torch.Tensor]:
    """Fusion-in-Decoder by transformers alone: encode padded passages, join their states for each question."""
    flat = [one for question in inputs for one in question]
    longest = max(map(len, flat))
    ids = torch.tensor(
        [[*one, *[model.config.pad_token_id] * (longest - len(one))] for one in flat]
    )
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in flat])
    states = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    joined = states.reshape(len(inputs), -1, states.shape[-1])
    outputs = transformers.modeling_outputs.BaseModelOutput(last_hidden_state=joined)
    return outputs, mask.reshape(len(inputs), -1)
