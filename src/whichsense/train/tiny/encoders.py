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
"""The beginning of BERT's own vocabulary: the compact model's special tokens are among the unused."""
_WORDS = 20_000
_VERSION = 3


def located(base: str) -> str:
    """A base model as transformers loads it: a folder or a name on the hub; a tiny one is written on first use."""
    if not base.startswith("tiny-"):
        return base
    if base not in _BASES:
        raise BadConfig(f"No base model named '{base}'. {did_you_mean(base, _BASES)}")
    folder = cache_folder() / f"{base}-{_VERSION}"
    if not folder.exists():
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        _BASES[base](temporary)
        try:
            os.replace(temporary, folder)
        except OSError:  # another process was faster
            shutil.rmtree(temporary)
    return str(folder)


def _bert(folder: Path, special: tuple[str, ...] = _SPECIAL) -> None:
    torch = require("torch", "train")
    transformers = require("transformers", "train")
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
    tokenizers = require("tokenizers", "train")
    transformers = require("transformers", "train")
    models = require("tokenizers.models", "train")
    normalizer = require("tokenizers.normalizers", "train").BertNormalizer(
        lowercase=True
    )
    splitter = require("tokenizers.pre_tokenizers", "train").BertPreTokenizer()
    vocabulary = _wordpiece_vocabulary(special, normalizer, splitter)
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = require("tokenizers.decoders", "train").WordPiece()
    sep = ("[SEP]", vocabulary["[SEP]"])
    cls = ("[CLS]", vocabulary["[CLS]"])
    processors = require("tokenizers.processors", "train")
    tokenizer.post_processor = processors.BertProcessing(sep, cls)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=256,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def _wordpiece_vocabulary(
    special: tuple[str, ...], normalizer: Any, splitter: Any
) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for text in _texts():
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)):
            counts[word] += 1
    letters = sorted({letter for word in counts for letter in word})
    # The commonest first; equally common ones by the alphabet.
    by_count = sorted(counts, key=lambda word: (-counts[word], word))
    endings = [f"##{letter}" for letter in letters]
    pieces = dict.fromkeys([*special, *letters, *endings, *by_count[:_WORDS]])
    return {piece: number for number, piece in enumerate(pieces)}


def _texts() -> Iterator[str]:
    for _, record in read_jsonl(sample.PASSAGES):
        yield f"{record['title']} {record['text']}"
    for path in (sample.QUESTIONS, sample.UNANSWERABLE):
        for _, record in read_jsonl(path):
            yield record["question"]


# name → what writes its folder: config.json, weights, tokenizer
_BASES: dict[str, Callable[[Path], None]] = {
    "tiny-bert": _bert,
    "tiny-bert-uncased": lambda folder: _bert(folder, _UNCASED),
    "tiny-bart": lambda folder: tiny_seq2seq.bart(folder, _texts()),
    "tiny-t5": lambda folder: tiny_seq2seq.t5(folder, _texts()),
    "tiny-llama": lambda folder: tiny_seq2seq.llama(folder, _texts()),
}
