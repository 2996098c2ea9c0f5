"""Published checkpoints load by their own names: files of the layouts of facebook/bart-large, t5-large and T5 1.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from whichsense.errors import BadInput
from whichsense.lab.train.tiny import byte_level
from whichsense.models.seq2seq import generator
from whichsense.models.seq2seq.formats import SEPARATOR, InputForm
from whichsense.models.seq2seq.generator import Generator, load_generator
from whichsense.models.seq2seq.network import Network

SIZE, FEED, HEADS, LAYERS, PLACES = 16, 24, 2, 2, 48
FORM = InputForm(passages=2, question_tokens=8, passage_tokens=8, input_tokens=24, output_tokens=8)


def bart_shapes(words: int, prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of bart-large. The base model's file has no prefix; fine-tuned ones have "model."."""
    yield f"{prefix}shared.weight", (words, SIZE)
    for side in ("encoder", "decoder"):
        yield f"{prefix}{side}.embed_tokens.weight", (words, SIZE)
        yield f"{prefix}{side}.embed_positions.weight", (PLACES + 2, SIZE)
        yield from (
            (f"{prefix}{side}.layernorm_embedding.{part}", (SIZE,)) for part in ("weight", "bias")
        )
        for layer in range(LAYERS):
            name = f"{prefix}{side}.layers.{layer}"
            attentions = ("self_attn",) if side == "encoder" else ("self_attn", "encoder_attn")
            for attention in attentions:
                for part in ("k_proj", "v_proj", "q_proj", "out_proj"):
                    yield f"{name}.{attention}.{part}.weight", (SIZE, SIZE)
                    yield f"{name}.{attention}.{part}.bias", (SIZE,)
                yield from (
                    (f"{name}.{attention}_layer_norm.{part}", (SIZE,))
                    for part in ("weight", "bias")
                )
            yield from ((f"{name}.fc1.weight", (FEED, SIZE)), (f"{name}.fc1.bias", (FEED,)))
            yield from ((f"{name}.fc2.weight", (SIZE, FEED)), (f"{name}.fc2.bias", (SIZE,)))
            yield from ((f"{name}.final_layer_norm.{part}", (SIZE,)) for part in ("weight", "bias"))
    if prefix:
        yield "final_logits_bias", (1, words)


def t5_shapes(words: int, gated: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "shared.weight", (words, SIZE)
    for side in ("encoder", "decoder"):
        if not gated:
            yield f"{side}.embed_tokens.weight", (words, SIZE)
        for layer in range(LAYERS):
            blocks = (
                ("SelfAttention",) if side == "encoder" else ("SelfAttention", "EncDecAttention")
            )
            for place, block in enumerate(blocks):
                name = f"{side}.block.{layer}.layer.{place}"
                yield from ((f"{name}.{block}.{part}.weight", (SIZE, SIZE)) for part in "qkvo")
                yield f"{name}.layer_norm.weight", (SIZE,)
                if layer == 0 and (
                    block == "SelfAttention" or not gated
                ):  # T5 1.0 has a table that nothing reads
                    yield f"{name}.{block}.relative_attention_bias.weight", (32, HEADS)
            name = f"{side}.block.{layer}.layer.{len(blocks)}"
            for part in ("wi_0", "wi_1") if gated else ("wi",):
                yield f"{name}.DenseReluDense.{part}.weight", (FEED, SIZE)
            yield f"{name}.DenseReluDense.wo.weight", (SIZE, FEED)
            yield f"{name}.layer_norm.weight", (SIZE,)
        yield f"{side}.final_layer_norm.weight", (SIZE,)
    if gated:
        yield "lm_head.weight", (words, SIZE)


def published(folder: Path, kind: str) -> dict[str, Any]:
    """A checkpoint as it lies on the hub: pytorch_model.bin, config.json and a tokenizer."""
    texts = ["who won the race in 2012", "Ann won the race"]
    special = (
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        if kind.startswith("bart")
        else ["<pad>", "</s>", "<unk>"]
    )
    tokenizer = byte_level(texts, special)
    words = len(tokenizer)
    if kind.startswith("bart"):
        config: Any = transformers.BartConfig(
            vocab_size=words, d_model=SIZE, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_ffn_dim=FEED,
            decoder_ffn_dim=FEED, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
            max_position_embeddings=PLACES, architectures=["BartModel"],
        )  # fmt: skip
        shapes = dict(bart_shapes(words, "" if kind == "bart" else "model."))
    else:
        gated = kind == "t5-1.1"
        config = transformers.T5Config(
            vocab_size=words, d_model=SIZE, d_kv=SIZE // HEADS, d_ff=FEED, num_layers=LAYERS, num_heads=HEADS,
            feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=not gated, pad_token_id=0,
            eos_token_id=1, decoder_start_token_id=0, architectures=["T5ForConditionalGeneration"],
        )  # fmt: skip
        shapes = dict(t5_shapes(words, gated))
    generator = torch.Generator().manual_seed(5)
    weights = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    shared = next(name for name in weights if name.endswith("shared.weight"))
    for name in weights:
        if name.endswith("embed_tokens.weight"):
            weights[name] = weights[shared]
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.save(weights, folder / "pytorch_model.bin")
    return weights


@pytest.mark.parametrize("kind", ["bart", "bart-tuned", "t5", "t5-1.1"])
def test_published_weights_arrive(kind: str, tmp_path: Path) -> None:
    weights = published(tmp_path, kind)
    codec = generator.load_codec(tmp_path, FORM)
    model = generator.load_model(tmp_path, codec)
    state = model.state_dict()
    words = len(codec.tokenizer) - 1  # one row more: the separator's
    for name, weight in weights.items():
        own = name if name in state else f"model.{name}"
        if "EncDecAttention.relative_attention_bias" in name:
            continue
        assert own in state, name
        found = (
            state[own][..., :words]
            if name == "final_logits_bias"
            else state[own][: weight.shape[0]]
        )
        assert torch.equal(found, weight), name
    assert not {
        name for name, parameter in model.named_parameters() if not torch.isfinite(parameter).all()
    }
    assert codec.tokenizer.convert_tokens_to_ids(SEPARATOR) == words


@pytest.mark.parametrize("kind", ["bart-tuned", "t5", "t5-1.1"])
def test_saved_and_loaded_again(kind: str, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    published(tmp_path / "base", kind)
    codec = generator.load_codec(tmp_path / "base", FORM)
    network = Network(generator.load_model(tmp_path / "base", codec)).eval()
    generator.save(
        tmp_path / "own", network.model, codec, FORM, task="verification", options={"single": True}
    )
    again = Generator(tmp_path / "own", device="cpu")
    assert (again.task, again.form, again.options) == ("verification", FORM, {"single": True})
    inputs = [[[*codec.start, *codec.ids("who won the race"), codec.end]]]
    target = [[codec.target(["Ann"], 8), codec.target(["2012"], 8)]]
    first = Generator.of(network, codec, FORM).score(inputs, target)
    assert again.score(inputs, target)[0] == pytest.approx(first[0], abs=1e-4)
    with pytest.raises(BadInput, match="trained as 'verification'"):
        load_generator(tmp_path / "own", ("clarification",))


def test_faults_are_told(tmp_path: Path) -> None:
    published(tmp_path, "bart")
    with pytest.raises(BadInput, match="positions for 48 tokens"):
        generator.load_codec(tmp_path, InputForm())
    with pytest.raises(BadInput, match="no trained sequence-to-sequence model"):
        Generator(tmp_path)
    with pytest.raises(BadInput, match="cannot be loaded"):
        generator.load_codec(tmp_path / "nothing", FORM)
