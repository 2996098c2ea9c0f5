"""Tiny base models with random weights, so that every recipe runs on a CPU."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from whichsense import sample
from whichsense.errors import BadConfig, did_you_mean, require
from whichsense.files import cache_folder, read_jsonl
from whichsense.models.bases import quietly

# Tiny BART, T5 and Llama with random weights, and a byte-level vocabulary learnt from the embedded
# sample.

_PIECES = 2000  # of the vocabulary
# special token → its role in transformers
_ROLES = {
    "<s>": "bos_token",
    "<pad>": "pad_token",
    "</s>": "eos_token",
    "<unk>": "unk_token",
    "<mask>": "mask_token",
}


def _write(folder: Path, tokenizer: Any, kind: str, head: str, **config: Any) -> None:
    """Write a model with random weights, the same ones each time, and its tokenizer."""
    torch = require("torch", "train")
    transformers = require("transformers", "train")
    settings = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), **config)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        quietly(transformers)
        getattr(transformers, f"{kind}{head}")(settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def bart(folder: Path, texts: Iterable[str]) -> None:
    """Four heads, two layers each way, BART's special tokens at BART's places."""
    _write(
        folder,
        byte_level(texts, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
        "Bart",
        "ForConditionalGeneration",
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


def t5(folder: Path, texts: Iterable[str]) -> None:
    _write(
        folder,
        byte_level(texts, ["<pad>", "</s>", "<unk>"]),
        "T5",
        "ForConditionalGeneration",
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


def llama(folder: Path, texts: Iterable[str]) -> None:
    """Two layers, four heads over two pairs of keys and values, as larger ones have."""
    _write(
        folder,
        byte_level(texts, ["<s>", "<pad>", "</s>", "<unk>"]),
        "Llama",
        "ForCausalLM",
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


def byte_level(texts: Iterable[str], special: list[str]) -> Any:
    """Return a byte-level BPE tokenizer: decoding gives every text back unchanged."""
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


# Tiny base models with random weights and a vocabulary of the embedded sample: every recipe runs on a
# CPU, offline.
#
# A recipe names one in place of a hub name: `base = "tiny-bert"`.

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
    _write(
        folder,
        wordpiece(special),
        "Bert",
        "Model",
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,  # at 0.02 so small a net learns nothing for its first thousand steps
    )


def mpnet(folder: Path) -> None:
    """An MPNet with as many tokens as the real one, so that any weights folder's fit; it has no tokenizer."""
    torch = require("torch", "train")
    transformers = require("transformers", "train")
    config = transformers.MPNetConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        quietly(transformers)
        transformers.MPNetModel(config).save_pretrained(folder)


def wordpiece(special: tuple[str, ...] = _SPECIAL) -> Any:
    """Return a WordPiece tokenizer: the sample's commonest words, and characters for the rest."""
    tokenizers = require("tokenizers", "train")
    transformers = require("transformers", "train")
    models = require("tokenizers.models", "train")
    normalizer = require("tokenizers.normalizers", "train").BertNormalizer(lowercase=True)
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
    "tiny-mpnet": mpnet,
    "tiny-bart": lambda folder: bart(folder, _texts()),
    "tiny-t5": lambda folder: t5(folder, _texts()),
    "tiny-llama": lambda folder: llama(folder, _texts()),
}
