"""The compact model on ONNX Runtime: loads the folder that `export.py` wrote, and encodes pairs. No torch."""

from __future__ import annotations

import json
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import WhichsenseError, require
from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.encoder.tokens import Tokenizer

Floats = NDArray[np.float32]
Item = TypeVar("Item")
Found = TypeVar("Found")
WEIGHTS = Path(__file__).parents[2] / "weights" / "compact-9"
FORMAT = 4
EXTRA = "dense"
# What a file raises that is missing or was copied by half: as JSON, as a zip archive, as numpy's arrays in it.
UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_SIZES = frozenset(
    "width heads layers early writer_layers".split()
)  # what is needed of a model's shape


def once(load: Callable[[Any], Found]) -> cached_property[Found]:
    """A part that is loaded when it is first asked for, and once though a thread may load it ahead: from Python 3.12
    on a cached property has no lock. Each part has its own, so that nobody waits for what is not needed yet."""
    lock, name = threading.RLock(), load.__name__

    @wraps(load)
    def loaded(own: Any) -> Found:
        with lock:
            if name not in vars(own):
                vars(own)[name] = load(own)
            found: Found = vars(own)[name]
            return found

    return cached_property(loaded)


@dataclass(frozen=True)
class Words:
    """Word vectors, kept once as int8: the encoder's, the writer's, and those of what it may write."""

    vocabulary: list[str]
    codes: NDArray[Any]
    steps: Floats | None
    places: Floats
    types: Floats
    writer_places: Floats
    writer_kinds: Floats
    signs: Floats
    bias: Floats

    @classmethod
    def load(cls, path: Path) -> Words:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        tokens = arrays["vocabulary"].tobytes().decode("utf-8").split("\n")
        names = (
            "places",
            "types",
            "writer_places",
            "writer_kinds",
            "signs",
            "words_bias",
        )
        tables = (arrays[name].astype(np.float32) for name in names)
        return cls(tokens, arrays["codes"], arrays.get("steps"), *tables)

    def vectors(self, ids: Sequence[int] | NDArray[np.int64]) -> Floats:
        rows = self.codes[np.asarray(ids)].astype(np.float32)
        return (
            rows
            if self.steps is None
            else np.asarray(rows * self.steps[np.asarray(ids)], dtype=np.float32)
        )

    def embedded(self, pair: Pair) -> Floats:
        """What the encoder's first layer is given, before its LayerNorm."""
        found = (
            self.vectors(pair.ids)
            + self.places[: len(pair)]
            + self.types[np.asarray(pair.types)]
        )
        return np.asarray(found[None], dtype=np.float32)

    def prompted(
        self, ids: NDArray[np.int64], kinds: NDArray[np.int64], first: int = 0
    ) -> Floats:
        """What the writer is given, before its LayerNorm, of tokens (… × tokens) that stand from a place on."""
        signs = np.where(
            (ids < len(self.signs))[..., None],
            self.signs[np.minimum(ids, len(self.signs) - 1)],
            0,
        )
        places = self.writer_places[first : first + ids.shape[-1]]
        return np.asarray(
            self.vectors(ids) + signs + self.writer_kinds[kinds] + places,
            dtype=np.float32,
        )


@dataclass(frozen=True, slots=True)
class Late:
    """What the encoder says about one pair: states (tokens × width), relevance, span scores (tokens × 2), ambiguity."""

    states: Floats
    relevance: float
    span: Floats
    ambiguity: float


@dataclass
class Work:
    """How much was encoded so far: pairs that entered, prompts that the writer read, and both times the layers that
    they went through."""

    pairs: int = 0
    prompts: int = 0
    layers: int = 0


@dataclass(frozen=True)
class CompactModel:
    """Loads on first use. `threads` pairs are encoded at a time, each by itself: nothing is padded, and what is found
    for a pair never depends on the others."""

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
                f"There is no compact model in '{self.folder}'. {mended(self.folder)}"
            ) from None
        except UNREADABLE as error:
            raise damaged(path, error) from None
        if config.get("format") != FORMAT:
            raise WhichsenseError(
                f"'{self.folder}' has format {config.get('format')}; this version reads {FORMAT}. "
                "Use the version of whichsense that wrote it, or export the model again."
            )
        if (
            not isinstance(shape := config.get("shape"), dict)
            or not shape.keys() >= _SIZES
        ):
            raise damaged(path, ValueError("it does not say the model's shape"))
        return config

    @once
    def words(self) -> Words:
        path = self.folder / "embeddings.npz"
        assert self.config  # a folder that holds no model is told as such
        try:
            return Words.load(path)
        except UNREADABLE as error:
            raise damaged(path, error) from None

    @once
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(
            {token: number for number, token in enumerate(self.words.vocabulary)}
        )

    def early(self, pairs: Sequence[Pair]) -> list[tuple[Floats, float]]:
        """The first layers: each pair's states and its score for going on."""
        session, depth = self._early, self.config["shape"]["early"]
        self.count(len(pairs) * depth, pairs=len(pairs))

        def one(pair: Pair) -> tuple[Floats, float]:
            states, relevance = session.run(
                ["states", "relevance"], {"embedded": self.words.embedded(pair)}
            )
            return states, float(relevance[0])

        return self._each(one, pairs)

    def late(self, states: Sequence[Floats]) -> list[Late]:
        """The other layers, for the pairs that go on."""
        session, shape = self._late, self.config["shape"]
        self.count(len(states) * (shape["layers"] - shape["early"]))

        def one(early: Floats) -> Late:
            names = ["states", "relevance", "span", "ambiguity"]
            found, relevance, span, ambiguity = session.run(names, {"early": early})
            return Late(found[0], float(relevance[0]), span[0], float(ambiguity[0]))

        return self._each(one, states)

    def verdicts(self, states: Floats) -> Floats:
        """Of spans, each given by three states (spans × 3 × width): of [CLS], its first token and its last."""
        edges = states.reshape(len(states), -1)
        found: Floats = self._verdict.run(["verdict"], {"edges": edges})[0]
        return found

    def prepare(self) -> None:
        """Load everything now, not with the first pair: in the order in which it is needed."""
        _ = self.tokenizer, self._early, self._late, self._verdict

    def session(self, name: str, threads: int = 1) -> Any:
        """An ONNX Runtime session for one of the folder's graphs."""
        runtime = require("onnxruntime", EXTRA)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        path = self.folder / name
        try:
            return runtime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's errors have no base of their own
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
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="whichsense")

    def _each(
        self, what: Callable[[Item], Found], items: Sequence[Item]
    ) -> list[Found]:
        found: Iterable[Found] = (
            map(what, items) if self.threads == 1 else self._pool.map(what, items)
        )
        return list(found)

    def count(self, layers: int, *, pairs: int = 0, prompts: int = 0) -> None:
        """Note what was encoded."""
        self.work.pairs += pairs
        self.work.prompts += prompts
        self.work.layers += layers


def read_config(path: Path) -> dict[str, Any]:
    """What a weights folder says of itself."""
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise ValueError("it is no JSON object")
    return config


def damaged(path: Path, error: Exception) -> WhichsenseError:
    said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return WhichsenseError(
        f"'{path}' is missing or damaged ({said}). {mended(path.parent)}"
    )


def mended(folder: Path) -> str:
    """What to do about it."""
    if folder == WEIGHTS:
        return "Install whichsense again."
    return "Give the model folder of a trained recipe, such as runs/compact/model, or train it again."
