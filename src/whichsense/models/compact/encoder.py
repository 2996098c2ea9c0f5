"""The encoder on ONNX Runtime, without torch: word pieces, pairs, and the weights that read them."""

from __future__ import annotations

import gzip
import json
import math
import re
import threading
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import WhichsenseError, require
from whichsense.jobs.limits import current_limits
from whichsense.models.wordpiece import placed_pieces

# Parts that load on first use.

_Value = TypeVar("_Value")


class once(Generic[_Value]):
    """A cached property that threads compute once.

    Each object has a lock for each of its parts: two models load at the same time, and nobody waits for a part that it
    does not need. `functools.cached_property` has one lock for all objects in Python 3.11, and none from 3.12 on.
    """

    def __init__(self, load: Callable[[Any], _Value]) -> None:
        self._load = load
        self.__doc__ = load.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | _Value:
        if instance is None:
            return self
        values = vars(instance)
        # setdefault is atomic: all threads get the same lock.
        lock = values.setdefault(f"_lock_of_{self._name}", threading.RLock())
        with lock:
            if self._name not in values:
                values[self._name] = self._load(instance)
            value: _Value = values[self._name]
        return value


# How much a model has encoded: what a question costs, without a clock.


@dataclass
class Work:
    """How much was encoded so far. Threads may add at the same time."""

    pairs: int = 0
    """(question, passage) pairs that entered the encoder."""
    prompts: int = 0
    """Prompts that the writer read."""
    layers: int = 0
    """Pairs and prompts, times the layers that they went through."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, *, layers: int, pairs: int = 0, prompts: int = 0) -> None:
        with self._lock:
            self.pairs += pairs
            self.prompts += prompts
            self.layers += layers


# BERT's uncased word pieces with their character offsets, so that answers are cut out of the original
# text.

PAD = 0
UNKNOWN = 100
BEGIN = 101
END = 102
# BERT splits words at these characters. Python's \s also holds control characters, which BERT drops without splitting.
_WORD = re.compile(r"[^\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_CACHE_SIZE = 2**17  # words


@dataclass(frozen=True, slots=True)
class Pieces:
    """The tokens of a text. Token i covers `text[starts[i]:ends[i]]`."""

    ids: list[int]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Tokenizer:
    """Caches the pieces of words: texts mostly repeat the same ones."""

    vocabulary: Mapping[str, int]
    _cache: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

    def pieces(self, text: str, most: int | None = None) -> Pieces:
        """The tokens of a text, or its first `most`."""
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        for match in _WORD.finditer(text):
            if most is not None and len(ids) >= most:
                break
            place = match.start()
            for number, start, end in self._word(match.group()):
                ids.append(number)
                starts.append(place + start)
                ends.append(place + end)
        return Pieces(ids[:most], starts[:most], ends[:most])

    def ids(self, text: str, most: int | None = None) -> list[int]:
        return self.pieces(text, most).ids

    def _word(self, word: str) -> list[tuple[int, int, int]]:
        """The pieces of a word: (token, start, end) each."""
        pieces = self._cache.get(word)
        if pieces is None:
            pieces = placed_pieces(word, self.vocabulary)
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[word] = pieces
        return pieces


def joined(tokens: Sequence[str]) -> str:
    """Word pieces as lower-case text: "st . john ##s" → "st . johns".

    >>> joined(["who", "wrote", "dub", "##liners", "?"])
    'who wrote dubliners ?'
    """
    return " ".join(tokens).replace(" ##", "")


# The encoder's inputs: (question, passage) pairs as token numbers. The writer's are in
# `writer/prompts.py`.

# All in tokens.
LONGEST_QUESTION = 48
LONGEST_TITLE = 24
_LONGEST_PAIR = 224
LONGEST_ANSWER = 24
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """`[CLS] question [SEP] title [SEP] text [SEP]` with the character offsets of the passage's tokens.

    `title` and `text` are (first, last + 1) among the tokens; `starts` and `ends` are offsets in the title or in the
    text, and 0 for all other tokens.
    """

    ids: list[int]
    types: list[int]
    title: tuple[int, int]
    text: tuple[int, int]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def pair(
    tokenizer: Tokenizer,
    question: Sequence[int],
    title: str,
    text: str,
    longest: int = _LONGEST_PAIR,
) -> Pair:
    """Build the input for a question (tokens, truncated already) and a passage. The text is truncated to fit."""
    title_pieces = tokenizer.pieces(title, LONGEST_TITLE)
    question_part = [BEGIN, *question, END]
    title_at = len(question_part)
    title_end = title_at + len(title_pieces)
    text_at = title_end + 1  # behind a [SEP]
    text_pieces = tokenizer.pieces(text, max(longest - text_at - 1, 0))
    text_end = text_at + len(text_pieces)
    no_offsets = [0] * title_at
    return Pair(
        ids=[*question_part, *title_pieces.ids, END, *text_pieces.ids, END],
        types=[0] * title_at + [1] * (text_end + 1 - title_at),
        title=(title_at, title_end),
        text=(text_at, text_end),
        starts=[*no_offsets, *title_pieces.starts, 0, *text_pieces.starts, 0],
        ends=[*no_offsets, *title_pieces.ends, 0, *text_pieces.ends, 0],
    )


def question_words(question: str) -> list[str]:
    """Split a question at white space, without the final question mark. A rewrite inserts between these words."""
    return question.strip().rstrip("?").split()


def answer_ids(tokenizer: Tokenizer, answer: str) -> list[int]:
    """The tokens of an answer without its leading article, unless the article is all of it."""
    bare = _ARTICLE.sub("", answer.strip())
    return tokenizer.ids(bare or answer, LONGEST_ANSWER)


_FARTHEST = 128  # tokens: from here on all distances share a bucket


def distance_buckets(size: int, buckets: int) -> NDArray[np.int64]:
    """The bucket of the distance from each token to each (size × size), half of them for what stands behind: as MPNet
    and T5 have them.

    >>> distance_buckets(3, 32)
    array([[ 0, 17, 18],
           [ 1,  0, 17],
           [ 2,  1,  0]])
    """
    places = np.arange(size)
    distance = places[:, None] - places[None, :]
    half = buckets // 2
    near = half // 2
    far = np.maximum(np.abs(distance), 1)
    share = np.log(far / near) / math.log(_FARTHEST / near)
    shared = np.minimum(near + (share * (half - near)).astype(np.int64), half - 1)
    own = np.where(np.abs(distance) < near, np.abs(distance), shared)
    return np.asarray(own + half * (distance < 0), np.int64)


# The compact encoder on ONNX Runtime, without torch: loads the folder that `export.py` writes, and
# encodes pairs.

Floats = NDArray[np.float32]
_Item = TypeVar("_Item")

WEIGHTS = Path(__file__).parents[1] / "weights" / "compact-11"
FORMAT = 4
_EXTRA = "dense"
# The errors of a missing or truncated file: of JSON, of a zip archive, of numpy's arrays in it.
UNREADABLE = (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
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
        self.work.add(layers=len(pairs) * self.config["shape"]["early"], pairs=len(pairs))

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
            # A packed graph's 7-bit codes take three quarters of the room.
            packed = name.endswith(".gz")
            graph = gzip.decompress(path.read_bytes()) if packed else str(path)
            return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
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
        return self._late if self.lacks("verifier.onnx") else self.session("verifier.onnx")

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

    def map(self, encode: Callable[[_Item], _Value], items: Sequence[_Item]) -> list[_Value]:
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
    return WhichsenseError(f"'{path}' is missing or damaged ({reason}). {repair_hint(path.parent)}")


def repair_hint(folder: Path) -> str:
    """What to do about a weights folder that cannot be read."""
    if folder == WEIGHTS:
        return "Install whichsense again."
    return (
        "Give the model folder of a trained recipe, such as runs/compact/model, or train it again."
    )
