"""Tiny BART, T5 and Llama with random weights, and a byte-level vocabulary learnt from the embedded sample."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whichsense.errors import require
from whichsense.models.bases import quietly

_PIECES = 2000  # of the vocabulary
# special token → its role in transformers
_ROLES = {
    "<s>": "bos_token",
    "<pad>": "pad_token",
    "</s>": "eos_token",
    "<unk>": "unk_token",
    "<mask>": "mask_token",
}


def bart(folder: Path, texts: Iterable[str]) -> None:
    """Four heads, two layers each way, BART's special tokens at BART's places."""
    torch = require("torch", "train")
    transformers = require("transformers", "train")
    tokenizer = byte_level(texts, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    config = transformers.BartConfig(
        vocab_size=len(tokenizer),
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=512,
        dropout=0.0,
        init_std=0.1,  # a model of this size learns faster from larger weights than BART's
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        quietly(transformers)
        transformers.BartForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def t5(folder: Path, texts: Iterable[str]) -> None:
    torch = require("torch", "train")
    transformers = require("transformers", "train")
    tokenizer = byte_level(texts, ["<pad>", "</s>", "<unk>"])
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        quietly(transformers)
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def llama(folder: Path, texts: Iterable[str]) -> None:
    """Two layers, four heads over two pairs of keys and values, as larger ones have."""
    torch = require("torch", "train")
    transformers = require("transformers", "train")
    tokenizer = byte_level(texts, ["<s>", "<pad>", "</s>", "<unk>"])
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.1,  # as for BART
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        quietly(transformers)
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def byte_level(texts: Iterable[str], special: list[str]) -> Any:
    """A byte-level BPE tokenizer: decoding gives every text back unchanged."""
    tokenizers = require("tokenizers", "train")
    transformers = require("transformers", "train")
    models = require("tokenizers.models", "train")
    pre_tokenizers = require("tokenizers.pre_tokenizers", "train")
    decoders = require("tokenizers.decoders", "train")
    trainers = require("tokenizers.trainers", "train")
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_PIECES,
        special_tokens=special,
        # All bytes, so that no text needs an unknown token.
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    special_tokens = {_ROLES[token]: token for token in special}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=100_000, **special_tokens
    )
