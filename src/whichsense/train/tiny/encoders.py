"""Tiny base models with random weights and a vocabulary of the embedded sample: every recipe runs on a CPU, offline.

A recipe names one in place of a hub name: `base = "tiny-bert"`.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from whichsense import sample
from whichsense.errors import BadConfig, did_you_mean, require
from whichsense.files import cache_folder, read_jsonl
from whichsense.models.bases import quietly
from whichsense.train.tiny import seq2seq as tiny_seq2seq

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_UNCASED = ("[PAD]", *(f"[unused{number}]" for number in range(99)), *_SPECIAL[1:])
"""What BERT's own vocabulary begins with: the compact model's signs are among the unused."""
_WORDS = 20_000
_VERSION = 3


def located(base: str) -> str:
    """A base model as transformers finds it: a folder or a name on the hub; a tiny one is made on first use."""
    if not base.startswith("tiny-"):
        return base
    if base not in BASES:
        raise BadConfig(f"No base model named '{base}'. {did_you_mean(base, BASES)}")
    folder = cache_folder() / f"{base}-{_VERSION}"
    if not folder.exists():
        beside = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        BASES[base](beside)
        try:
            os.replace(beside, folder)
        except OSError:  # another process was faster
            shutil.rmtree(beside)
    return str(folder)


def _bert(folder: Path, special: tuple[str, ...] = _SPECIAL) -> None:
    torch, transformers = require("torch", "train"), require("transformers", "train")
    tokenizer = wordpiece(special)
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,  # at 0.02 so small a net learns nothing for its first thousand steps
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        quietly(transformers)
        transformers.BertModel(config).save_pretrained(folder)


def wordpiece(special: tuple[str, ...] = _SPECIAL) -> Any:
    """A WordPiece tokenizer: the sample's commonest words, and characters for the rest."""
    tokenizers, transformers = (
        require("tokenizers", "train"),
        require("transformers", "train"),
    )
    parts = {
        name: require(f"tokenizers.{name}", "train")
        for name in ("models", "normalizers", "pre_tokenizers")
    }
    normal, cut = (
        parts["normalizers"].BertNormalizer(lowercase=True),
        parts["pre_tokenizers"].BertPreTokenizer(),
    )
    words = Counter(
        word
        for text in _texts()
        for word, _ in cut.pre_tokenize_str(normal.normalize_str(text))
    )
    letters = sorted({letter for word in words for letter in word})
    common = [
        word
        for word, _ in sorted(words.items(), key=lambda item: (-item[1], item[0]))[
            :_WORDS
        ]
    ]
    pieces = dict.fromkeys(
        [*special, *letters, *(f"##{letter}" for letter in letters), *common]
    )
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(
        parts["models"].WordPiece(vocabulary, unk_token="[UNK]")
    )
    made.normalizer, made.pre_tokenizer = normal, cut
    made.decoder = require("tokenizers.decoders", "train").WordPiece()
    cls, sep = vocabulary["[CLS]"], vocabulary["[SEP]"]
    made.post_processor = require("tokenizers.processors", "train").BertProcessing(
        ("[SEP]", sep), ("[CLS]", cls)
    )
    names = {
        f"{name.lower()}_token": f"[{name}]"
        for name in ("PAD", "UNK", "CLS", "SEP", "MASK")
    }
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=256, model_input_names=inputs, **names
    )


def _texts() -> Iterator[str]:
    for _, record in read_jsonl(sample.PASSAGES):
        yield f"{record['title']} {record['text']}"
    for path in (sample.QUESTIONS, sample.UNANSWERABLE):
        for _, record in read_jsonl(path):
            yield record["question"]


# name → what writes its folder: config.json, weights, tokenizer
BASES: dict[str, Callable[[Path], None]] = {
    "tiny-bert": _bert,
    "tiny-bert-uncased": lambda folder: _bert(folder, _UNCASED),
    "tiny-bart": lambda folder: tiny_seq2seq.bart(folder, _texts()),
    "tiny-t5": lambda folder: tiny_seq2seq.t5(folder, _texts()),
    "tiny-llama": lambda folder: tiny_seq2seq.llama(folder, _texts()),
}
