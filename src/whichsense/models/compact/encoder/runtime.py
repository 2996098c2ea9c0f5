"""The compact encoder on ONNX Runtime, without torch: loads the folder that `export.py` writes, and encodes pairs."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import WhichsenseError, require
from whichsense.jobs.limits import current_limits
from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.encoder.lazy import once
from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.models.compact.encoder.work import Work

Floats = NDArray[np.float32]
_Item = TypeVar("_Item")
_Value = TypeVar("_Value")
WEIGHTS = Path(__file__).parents[2] / "weights" / "compact-11"
FORMAT = 4
_EXTRA = "dense"
# The errors of a missing or truncated file: of JSON, of a zip archive, of numpy's arrays in it.
UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_SHAPE = frozenset("width heads layers early writer_layers".split())


@dataclass(frozen=True)
class Embeddings:
    """Embedding tables of the encoder and the writer. Both share the word vectors, which are stored once, in int8."""

    vocabulary: list[str]
    codes: NDArray[Any]
    """Word vectors (vocabulary × width) in units of their steps."""
    steps: Floats | None
    """One for each word (vocabulary × 1). None: the codes are floats already."""
    places: Floats
    types: Floats
    writer_places: Floats
    writer_kinds: Floats
    signs: Floats
    """Vectors of the writer's own for the first tokens of the vocabulary, added to theirs."""
    bias: Floats
    """Of the writer's output logits (vocabulary)."""

    @classmethod
    def load(cls, path: Path) -> Embeddings:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text = arrays["vocabulary"].tobytes().decode("utf-8")
        return cls(
            vocabulary=text.split("\n"),
            codes=arrays["codes"],
            steps=arrays.get("steps"),
            places=arrays["places"].astype(np.float32),
            types=arrays["types"].astype(np.float32),
            writer_places=arrays["writer_places"].astype(np.float32),
            writer_kinds=arrays["writer_kinds"].astype(np.float32),
            signs=arrays["signs"].astype(np.float32),
            bias=arrays["words_bias"].astype(np.float32),
        )

    def vectors(self, ids: Sequence[int] | NDArray[np.int64]) -> Floats:
        """The word vectors of tokens (… × width)."""
        rows: Floats = self.codes[np.asarray(ids)].astype(np.float32)
        if self.steps is None:
            return rows
        return np.asarray(rows * self.steps[np.asarray(ids)], dtype=np.float32)

    def embed_pair(self, pair: Pair) -> Floats:
        """The encoder's input before its LayerNorm (1 × tokens × width)."""
        words = self.vectors(pair.ids)
        places = self.places[: len(pair)]
        types = self.types[np.asarray(pair.types)]
        embedded = words + places + types
        return np.asarray(embedded[None], dtype=np.float32)

    def embed_prompt(
        self, ids: NDArray[np.int64], kinds: NDArray[np.int64], first: int = 0
    ) -> Floats:
        """The writer's input before its LayerNorm (… × tokens × width), of tokens (… × tokens) from a place on."""
        has_sign = ids < len(self.signs)
        own = self.signs[np.minimum(ids, len(self.signs) - 1)]
        signs = np.where(has_sign[..., None], own, 0)
        places = self.writer_places[first : first + ids.shape[-1]]
        embedded = self.vectors(ids) + signs + self.writer_kinds[kinds] + places
        return np.asarray(embedded, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Late:
    """The encoder's output for one pair: states (tokens × width), relevance, span scores (tokens × 2), ambiguity."""

    states: Floats
    relevance: float
    span: Floats
    ambiguity: float


@dataclass(frozen=True)
class CompactModel:
    """The encoder. It loads on first use. `threads` pairs are encoded at a time, each by itself: nothing is padded, and
    the output for a pair never depends on the others."""

    folder: Path = WEIGHTS
    threads: int = 2
    work: Work = field(default_factory=Work)

    @once
    def config(self) -> dict[str, Any]:
        path = self.folder / "config.json"
        try:
            config = read_config(path)
        except FileNotFoundError:
            raise WhichsenseError(
                f"There is no compact model in '{self.folder}'. {repair_hint(self.folder)}"
            ) from None
        except UNREADABLE as error:
            raise damaged(path, error) from None
        if config.get("format") != FORMAT:
            raise WhichsenseError(
                f"'{self.folder}' has format {config.get('format')}; this version reads {FORMAT}. "
                "Use the version of whichsense that wrote it, or export the model again."
            )
        shape = config.get("shape")
        if not isinstance(shape, dict) or not shape.keys() >= _SHAPE:
            raise damaged(path, ValueError("it does not say the model's shape"))
        return config

    @once
    def words(self) -> Embeddings:
        self.require_config()
        path = self.folder / "embeddings.npz"
        try:
            return Embeddings.load(path)
        except UNREADABLE as error:
            raise damaged(path, error) from None

    @once
    def tokenizer(self) -> Tokenizer:
        vocabulary = self.words.vocabulary
        return Tokenizer({token: number for number, token in enumerate(vocabulary)})

    def require_config(self) -> None:
        """Raise the error of a folder that holds no model, before a file in it is missed."""
        _ = self.config

    def early(self, pairs: Sequence[Pair]) -> list[tuple[Floats, float]]:
        """Run the first layers: each pair's states (1 × tokens × width) and its relevance so far."""
        session = self._early
        words = self.words
        self.work.add(
            layers=len(pairs) * self.config["shape"]["early"], pairs=len(pairs)
        )

        def encode(pair: Pair) -> tuple[Floats, float]:
            inputs = {"embedded": words.embed_pair(pair)}
            states, relevance = session.run(["states", "relevance"], inputs)
            return states, float(relevance[0])

        return self.map(encode, pairs)

    def late(self, states: Sequence[Floats]) -> list[Late]:
        """Run the other layers on the early states of the pairs that go on."""
        return self._run_late(self._late, states)

    def verify(self, pairs: Sequence[Pair]) -> list[Late]:
        """Read pairs with the verifier, which shares the first layers. Of a rewrite and its question, in the place of
        a title, `ambiguity` is the logit of being fluent."""
        states = [states for states, _ in self.early(pairs)]
        return self._run_late(self._verifier, states)

    def _run_late(self, session: Any, states: Sequence[Floats]) -> list[Late]:
        shape = self.config["shape"]
        self.work.add(layers=len(states) * (shape["layers"] - shape["early"]))

        def encode(early: Floats) -> Late:
            names = ["states", "relevance", "span", "ambiguity"]
            outputs = session.run(names, {"early": early})
            final, relevance, span, ambiguity = outputs
            return Late(final[0], float(relevance[0]), span[0], float(ambiguity[0]))

        return self.map(encode, states)

    def verdicts(self, states: Floats) -> Floats:
        """The logit of each span to be an answer, from three states of it (spans × 3 × width): of [CLS], of its first
        token and of its last."""
        edges = states.reshape(len(states), -1)
        logits: Floats = self._verdict.run(["verdict"], {"edges": edges})[0]
        return logits

    def verifier_verdicts(self, states: Floats) -> Floats:
        """The same by the verifier, of its own states."""
        edges = states.reshape(len(states), -1)
        logits: Floats = self._verifier_verdict.run(["verdict"], {"edges": edges})[0]
        return logits

    def prepare(self) -> None:
        """Load everything now, in the order in which a question needs it."""
        _ = self.tokenizer, self._early, self._late, self._verdict
        _ = self._verifier, self._verifier_verdict

    def session(self, name: str, threads: int = 1) -> Any:
        """An ONNX Runtime session for one of the folder's graphs."""
        runtime = require("onnxruntime", _EXTRA)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # errors only
        path = self.folder / name
        try:
            return runtime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's errors share no base class
            raise damaged(path, error) from None

    @once
    def _early(self) -> Any:
        return self.session("early.onnx")

    @once
    def _late(self) -> Any:
        return self.session("late.onnx")

    @once
    def _verdict(self) -> Any:
        return self.session("verdict.onnx")

    @once
    def _verifier(self) -> Any:
        return (
            self._late if self.lacks("verifier.onnx") else self.session("verifier.onnx")
        )

    @once
    def _verifier_verdict(self) -> Any:
        name = "verifier-verdict.onnx"
        return self._verdict if self.lacks(name) else self.session(name)

    def lacks(self, name: str) -> bool:
        """Whether the folder is of a model that was trained without this graph."""
        return not (self.folder / name).exists()

    @once
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="whichsense")

    def map(
        self, encode: Callable[[_Item], _Value], items: Sequence[_Item]
    ) -> list[_Value]:
        """Encode items, `threads` at a time."""
        limits = current_limits()  # threads of the pool have none of their own

        def step(item: _Item) -> _Value:
            limits.check()
            return encode(item)

        if self.threads == 1:
            return list(map(step, items))
        return list(self._pool.map(step, items))


def read_config(path: Path) -> dict[str, Any]:
    """The configuration of a weights folder."""
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise ValueError("it is not a JSON object")
    return config


def damaged(path: Path, error: Exception) -> WhichsenseError:
    reason = type(error).__name__
    if str(error):
        reason = str(error).splitlines()[0][:200]
    return WhichsenseError(
        f"'{path}' is missing or damaged ({reason}). {repair_hint(path.parent)}"
    )


def repair_hint(folder: Path) -> str:
    """What to do about a weights folder that cannot be read."""
    if folder == WEIGHTS:
        return "Install whichsense again."
    return "Give the model folder of a trained recipe, such as runs/compact/model, or train it again."
