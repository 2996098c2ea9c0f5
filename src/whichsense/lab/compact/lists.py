"""Lists of passages for each question, as word pieces in flat arrays, built once and stored."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.files import read_json, sha256
from whichsense.jobs.limits import show_progress
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.workers import LoadedOnce, run_spread
from whichsense.lab.compact.questions import (
    DataConfig,
    ListConfig,
    PassageSearch,
    TrainingQuestion,
    can_fork,
    dev_questions,
    open_search,
    training_questions,
)
from whichsense.models.compact.encoder import (
    BEGIN,
    END,
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    LONGEST_TITLE,
    Pair,
    Tokenizer,
    answer_ids,
)
from whichsense.models.compact.rewrite_support import find_tokens
from whichsense.types import Passage, decode, encode, frozen

# A tokenizer that remembers.


@dataclass(frozen=True)
class CachedTokenizer(Tokenizer):
    """Tokenizes a text once: the same questions, answers and rewrites come again in every epoch."""

    _ids: dict[tuple[str, int | None], tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, vocabulary: Sequence[str]) -> CachedTokenizer:
        return cls({piece: number for number, piece in enumerate(vocabulary)})

    def ids(self, text: str, most: int | None = None) -> list[int]:
        # Lists are mutable, so the cache holds tuples.
        ids = self._ids.get((text, most))
        if ids is None:
            ids = tuple(super().ids(text, most))
            self._ids[text, most] = ids
        return list(ids)


# Lists of passages as flat arrays: half a million passages as word pieces in a few hundred megabytes.

Ints = NDArray[Any]
_Bools = NDArray[np.bool_]


@frozen
class RaggedArray:
    """Rows of different lengths, one after another in one array."""

    values: Ints
    starts: Ints
    """The place of each row's first item, and last the number of items."""

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Any]], dtype: Any, width: int = 0) -> RaggedArray:
        """`width`: numbers of an item; 0 if items are single numbers."""
        # Row r is values[starts[r]:starts[r + 1]].
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=starts[1:])
        items: list[Any] = []
        for row in rows:
            items += row
        shape = (-1, width) if width else (-1,)
        return cls(np.array(items, dtype).reshape(shape), starts)

    @classmethod
    def concatenate(
        cls, parts: Sequence[RaggedArray], shifts: Sequence[int] | None = None
    ) -> RaggedArray:
        """Return the rows of all parts; `shifts` are added to the values of each part."""
        values = []
        starts = []
        end = 0
        for part, shift in zip(parts, shifts or [0] * len(parts), strict=True):
            values.append(part.values + shift)
            starts.append(part.starts[:-1] + end)
            end += len(part.values)
        starts.append(np.array([end]))
        return cls(np.concatenate(values), np.concatenate(starts))

    def __getitem__(self, row: int) -> Ints:
        first = self.starts[row]
        end = self.starts[row + 1]
        values: Ints = self.values[first:end]
        return values

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self, rows: Ints) -> Ints:
        sizes: Ints = self.starts[rows + 1] - self.starts[rows]
        return sizes

    def padded(self, rows: Ints, width: int) -> Ints:
        """Return the first items of some rows side by side (rows × width). Behind a shorter row the values are
        arbitrary."""
        if not len(self.values):
            shape = (len(rows), width, *self.values.shape[1:])
            return np.zeros(shape, self.values.dtype)
        places = self.starts[rows][:, None] + np.arange(width)
        # The last rows would reach beyond the end.
        places = np.minimum(places, len(self.values) - 1)
        values: Ints = self.values[places]
        return values


@frozen
class Pack:
    """Lists of passages. Texts are word pieces; a passage is stored once, whatever the number of its lists.

    A slot is a place in a list: slots of all lists are numbered one after another. A span is (answer's number, first
    token, last token), counted from the title's first token on; the text follows the title without a gap.
    """

    questions: RaggedArray
    slots: RaggedArray
    """For each list, the passages in its slots."""
    spans: RaggedArray
    """For each slot of all lists."""
    titles: RaggedArray
    texts: RaggedArray
    asked: tuple[TrainingQuestion, ...]

    def __len__(self) -> int:
        return len(self.asked)

    def slot_range(self, number: int) -> range:
        """Return the slots of a list."""
        return range(int(self.slots.starts[number]), int(self.slots.starts[number + 1]))

    def passage(self, row: int) -> tuple[list[int], list[int]]:
        """Return the title and the text of a passage."""
        return self.titles[row].tolist(), self.texts[row].tolist()

    def passage_of(self, slot: int) -> int:
        """Return the row of the passage in a slot."""
        return int(self.slots.values[slot])

    @property
    def slot_has_answer(self) -> _Bools:
        """For each slot, whether its passage holds an answer."""
        return np.asarray(np.diff(self.spans.starts) > 0)

    @property
    def has_answer(self) -> _Bools:
        """For each list, whether one of its passages holds an answer."""
        # The number of such slots before each slot.
        counts = np.concatenate([[0], np.cumsum(self.slot_has_answer)])
        return np.asarray(np.diff(counts[self.slots.starts]) > 0)

    def to_bytes(self) -> bytes:
        """Return an npz archive, which `from_bytes` reads."""
        questions = json.dumps([encode(one) for one in self.asked])
        # Text is stored as bytes: an array of objects would need pickle.
        asked = np.frombuffer(questions.encode(), np.uint8)
        arrays: dict[str, Ints] = {"asked": asked}
        for name in _ARRAYS:
            array: RaggedArray = getattr(self, name)
            arrays[name] = array.values
            arrays[f"{name}_starts"] = array.starts
        body = io.BytesIO()
        np.savez(body, allow_pickle=False, **arrays)
        return body.getvalue()

    @classmethod
    def from_bytes(cls, body: bytes) -> Pack:
        arrays = {}
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            for name in _ARRAYS:
                arrays[name] = RaggedArray(file[name], file[f"{name}_starts"])
            tables = json.loads(file["asked"].tobytes())
        return cls(**arrays, asked=tuple(decode(TrainingQuestion, table) for table in tables))

    @classmethod
    def concatenate(cls, packs: Iterable[Pack]) -> Pack:
        """Return the lists of all packs, each with its own passages."""
        every = list(packs)
        first_passages = [0]
        asked: list[TrainingQuestion] = []
        for pack in every:
            first_passages.append(first_passages[-1] + len(pack.titles))
            asked += pack.asked
        arrays = {}
        for name in _ARRAYS:
            # Slots hold the numbers of passages, which move.
            shifts = first_passages[:-1] if name == "slots" else None
            parts = [getattr(pack, name) for pack in every]
            arrays[name] = RaggedArray.concatenate(parts, shifts)
        return cls(**arrays, asked=tuple(asked))


_ARRAYS = ("questions", "slots", "spans", "titles", "texts")


# Pairs of a question and a passage as tensors, and the places of tokens in them.

_SPECIAL_TOKENS = 4  # of a pair


class PairTensors(NamedTuple):
    """Pairs × tokens: `[CLS] question [SEP] title [SEP] text [SEP]`."""

    ids: Tensor
    types: Tensor
    """1 for title and text."""
    mask: Tensor
    region: Tensor
    """Tokens of title and text, without separators: answers are among them."""
    heads: Tensor
    """Pairs × 2: the place of the title's first token, and the number of the title's tokens."""


def to_pair_places(places: NDArray[np.int64], first: Any, title: Any) -> NDArray[np.int64]:
    """Return places counted from the title's first token, as places in a pair: a separator follows the title.

    >>> to_pair_places(np.array([0, 1, 2]), first=5, title=2).tolist()
    [5, 6, 8]
    """
    moved: NDArray[np.int64] = places + first + (places >= title)
    return moved


def stack_pairs(pairs: Sequence[Pair], width: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens, their types, and which of them are no padding (pairs × tokens each); as wide as the longest pair,
    or as given."""
    sizes = np.array([len(one) for one in pairs])
    ids, types = np.zeros((2, len(pairs), width or int(sizes.max())), np.int64)
    for row, one in enumerate(pairs):
        ids[row, : len(one)] = one.ids
        types[row, : len(one)] = one.types
    mask = np.arange(ids.shape[1]) < sizes[:, None]
    return torch.from_numpy(ids), torch.from_numpy(types), torch.from_numpy(mask)


def build_pairs(
    pack: Pack, lists: Ints, rows: Ints, longest: int, bare: NDArray[np.bool_]
) -> tuple[PairTensors, Ints]:
    """Return the pairs of these lists and passages, as `inputs.pair` builds one, and the number of tokens of each."""
    question = pack.questions.sizes(lists)
    title = np.where(bare, 0, pack.titles.sizes(rows))
    room = np.maximum(0, longest - question - title - _SPECIAL_TOKENS)
    text = np.minimum(pack.texts.sizes(rows), room)
    text = np.where(bare, 0, text)
    ids = np.zeros((len(rows), longest), np.int64)
    ids[:, 0] = BEGIN
    place = np.ones(len(rows), np.int64)  # where the next part of each pair begins
    for tokens, chosen, sizes in (
        (pack.questions, lists, question),
        (pack.titles, rows, title),
        (pack.texts, rows, text),
    ):
        pair, at = _enumerate_rows(sizes)
        first = tokens.starts[chosen]  # of each pair, in the flat values
        ids[pair, place[pair] + at] = tokens.values[first[pair] + at]
        ids[np.arange(len(rows)), place + sizes] = END
        place = place + sizes + 1
    # [CLS] and a separator stand before the title.
    return _mask_pairs(ids, place, np.stack([question + 2, title], 1)), place


def _enumerate_rows(sizes: Ints) -> tuple[Ints, Ints]:
    """For rows of these sizes, each item's row and its place there.

    >>> [part.tolist() for part in _enumerate_rows(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    row = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return row, np.arange(len(row)) - starts[row]


def _mask_pairs(ids: Ints, sizes: Ints, heads: Ints) -> PairTensors:
    at = np.arange(ids.shape[1])[None]
    mask = at < sizes[:, None]
    passage = (at >= heads[:, :1]) & mask
    after_title = at == heads.sum(1)[:, None]
    at_end = at == sizes[:, None] - 1
    return PairTensors(
        torch.from_numpy(ids),
        torch.from_numpy(passage.astype(np.int64)),
        torch.from_numpy(mask),
        torch.from_numpy(passage & ~(after_title | at_end)),
        torch.from_numpy(heads),
    )


# Questions and passages become a pack: both as word pieces, each passage once.

MAX_ANSWERS = 12  # of a question
MAX_SPANS = 12  # of a slot
_LONGEST_TEXT = 210  # word pieces
Ids = tuple[int, ...]
TitledText = tuple[str, str]
Span = tuple[int, int, int]
"""The answer's number, the first and the last token."""


class ListBuilder:
    """Collects lists of passages."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._tokenizer = CachedTokenizer.of(vocabulary)
        self._rows: dict[TitledText, int] = {}  # a passage's place in the pack
        self._questions: list[TrainingQuestion] = []
        self._slots: list[list[int]] = []
        self._spans: list[Sequence[Span]] = []

    def answers(self, question: TrainingQuestion) -> list[list[Ids]]:
        """Return the word pieces of each answer's aliases, without those that are too long to be found."""
        answers = []
        for names in question.answers[:MAX_ANSWERS]:
            aliases: dict[Ids, None] = {}
            for name in names:
                if not name.strip():
                    continue
                ids = tuple(answer_ids(self._tokenizer, name))
                if 0 < len(ids) < LONGEST_ANSWER:
                    aliases[ids] = None
            answers.append(list(aliases))
        return answers

    def find_spans(self, passage: TitledText, answers: Sequence[Sequence[Ids]]) -> list[Span]:
        """Return where answers occur in a passage."""
        title, text = self._pieces(passage)
        spans = []
        for number, aliases in enumerate(answers):
            for alias in aliases:
                for before, part in ((0, title), (len(title), text)):
                    for first, end in find_tokens(part, alias, self._vocabulary):
                        spans.append((number, before + first, before + end - 1))
        return spans

    def add(
        self,
        question: TrainingQuestion,
        passages: Sequence[TitledText],
        spans: Sequence[Sequence[Span]],
    ) -> None:
        """Add a list: a question, its passages, and the spans of answers in each."""
        # A passage gets a row when a list first holds it.
        rows = [self._rows.setdefault(passage, len(self._rows)) for passage in passages]
        self._questions.append(replace(question, passages=()))
        self._slots.append(rows)
        self._spans += spans

    def add_marked(
        self, question: TrainingQuestion, passages: Sequence[Passage], own: Collection[str]
    ) -> None:
        """Add a list whose answers are marked in the passages of these ids alone: the same string elsewhere is none."""
        answers = self.answers(question)
        titled = [(passage.title, passage.text) for passage in passages]
        spans = []
        for passage, one in zip(passages, titled, strict=True):
            spans.append(self.find_spans(one, answers) if passage.id in own else [])
        self.add(question, titled, spans)

    def build(self) -> Pack:
        questions = []
        titles = []
        texts = []
        for question in self._questions:
            questions.append(self._tokenizer.ids(question.text, LONGEST_QUESTION))
        for passage in self._rows:
            title, text = self._pieces(passage)
            titles.append(title)
            texts.append(text)
        spans = [own[:MAX_SPANS] for own in self._spans]
        # Half the memory, where ids fit.
        dtype = np.uint16 if len(self._vocabulary) < 2**16 else np.int32
        return Pack(
            RaggedArray.from_rows(questions, dtype),
            RaggedArray.from_rows(self._slots, np.int32),
            RaggedArray.from_rows(spans, np.int16, width=3),
            RaggedArray.from_rows(titles, dtype),
            RaggedArray.from_rows(texts, dtype),
            tuple(self._questions),
        )

    def _pieces(self, passage: TitledText) -> tuple[list[int], list[int]]:
        title, text = passage
        ids = self._tokenizer.ids
        return ids(title, LONGEST_TITLE), ids(text, _LONGEST_TEXT)


# From questions to lists: passages of a search, chosen so that every answer and hard negatives are
# among them.

_POSITIVES_OF_ANSWER = 3  # passages that hold it, at most
_MAX_POSITIVES = 8  # chosen for the sake of answers
_MIN_POSITIVES = 6  # if the search finds so many
_TRAIN = "train"
_DEV = "dev"
_ADVICE = "Choose another lists.folder."
_CODEC = PartCodec(".npz", Pack.to_bytes, Pack.from_bytes)
_ListParts = Parts[TrainingQuestion, Pack]


def load_lists(data: DataConfig, lists: ListConfig, vocabulary: Sequence[str]) -> tuple[Pack, Pack]:
    """Return the lists to train on and those to evaluate on: built now, or read from where they were stored."""
    # Missing topics are an error of the first recipe, not, hours later, of the last.
    _ = data.topic_files
    train = _Lists(data, lists, vocabulary, _TRAIN)
    dev = _Lists(data, lists, vocabulary, _DEV)
    return train.load(), dev.load()


@dataclass(frozen=True)
class _Lists:
    """Lists of one kind: to train on, or to evaluate on."""

    data: DataConfig
    lists: ListConfig
    vocabulary: Sequence[str]
    name: str

    def load(self) -> Pack:
        if not self.lists.folder:
            search = open_search(self.data)
            return self._build(self._questions(), search, seed=self.name)
        parts = _ListParts(
            Path(self.lists.folder),
            self.name,
            self._fingerprint(),
            size=self.lists.part,
            codec=_CODEC,
            advice=_ADVICE,
        )
        if not parts.is_complete:
            self._write(parts)
        finished = parts.folder / f"{self.name}.json"
        return _read(finished, finished.stat().st_mtime_ns)

    def _questions(self) -> list[TrainingQuestion]:
        if self.name == _TRAIN:
            return training_questions(self.data)
        return dev_questions(self.data)

    def _fingerprint(self) -> dict[str, object]:
        """Return what lists depend on: others need another folder."""
        data = self.data
        lists = self.lists
        return {
            "files": [sha256(path) for path in data.paths()],
            "without": list(data.without),
            "held": data.held,
            "limit": data.limit,
            "dev_limit": data.dev_limit,
            "method": data.method,
            "depth": lists.depth,
            "passages": lists.passages,
            "measured": lists.measured,
        }

    def _write(self, parts: _ListParts) -> None:
        search = LoadedOnce(partial(open_search, self.data))
        # It is opened here, once for all forked processes.
        processes = self.lists.processes if can_fork(search()) else 1

        def build_part(part: Part[TrainingQuestion]) -> Pack:
            return self._build(part.items, search(), seed=f"{self.name}/{part.number}")

        with show_progress(f"lists of {self.name}", "questions") as progress:
            parts.complete(
                self._questions(),
                build_part,
                executor=run_spread(processes),
                progress=progress,
                wait=True,
            )

    def _build(
        self, questions: Sequence[TrainingQuestion], search: PassageSearch, seed: str
    ) -> Pack:
        builder = ListBuilder(self.vocabulary)
        rng = random.Random(seed)
        hits = self._search(questions, search)
        for question, found in zip(questions, hits, strict=True):
            answers = builder.answers(question)
            own = [(one.title, one.text) for one in question.passages]
            # Passages with their spans, each once, in the order of the search.
            spans = {passage: builder.find_spans(passage, answers) for passage in (*own, *found)}
            if self.name == _TRAIN:
                passages = self._choose(spans, len(answers), rng)
            else:
                passages = list(spans)[: self.lists.measured]
            builder.add(question, passages, [spans[one] for one in passages])
        return builder.build()

    def _search(
        self, questions: Sequence[TrainingQuestion], search: PassageSearch
    ) -> list[list[TitledText]]:
        """Return the hits of each question; none for those that bring all their passages."""
        texts = [one.text for one in questions if one.searched]
        # One call for all questions: the index searches them together.
        found = iter(search.search_many(texts, self.lists.depth, self.data.method))
        passages = []
        for question in questions:
            hits = next(found) if question.searched else []
            passages.append([(hit.passage.title, hit.passage.text) for hit in hits])
        return passages

    def _choose(
        self, spans: Mapping[TitledText, Sequence[Span]], answers: int, rng: random.Random
    ) -> list[TitledText]:
        """Positives for every answer, then hard negatives that the search ranked high; in the order of the search."""
        positives: list[TitledText] = []
        negatives: list[TitledText] = []
        for passage, own in spans.items():
            (positives if own else negatives).append(passage)
        chosen = _choose_positives(positives, spans, answers)
        room = self.lists.passages - len(chosen)
        # Drawn from a few more than there is room for, so that lists differ.
        hard = negatives[: int(room * 1.4) + 2]
        rng.shuffle(hard)
        chosen += hard[:room]
        order = {passage: place for place, passage in enumerate(spans)}
        return sorted(chosen, key=order.__getitem__)


def _choose_positives(
    positives: Sequence[TitledText], spans: Mapping[TitledText, Sequence[Span]], answers: int
) -> list[TitledText]:
    """Return a few passages for every answer, then others up to a minimum."""
    by_answer: dict[TitledText, None] = {}
    for number in range(answers):
        count = 0
        for passage in positives:
            holds = any(answer == number for answer, _, _ in spans[passage])
            if holds and count < _POSITIVES_OF_ANSWER:
                by_answer[passage] = None
                count += 1
    chosen = list(by_answer)[:_MAX_POSITIVES]
    for passage in positives:
        if len(chosen) < _MIN_POSITIVES and passage not in chosen:
            chosen.append(passage)
    return chosen


@lru_cache(maxsize=2)
def _read(finished: Path, written: int) -> Pack:
    """Complete lists, read once for all recipes that one command trains. `written`: when the file was."""
    fingerprint = read_json(finished)["about"]
    parts = _ListParts(finished.parent, finished.stem, fingerprint, size=1, codec=_CODEC)
    return Pack.concatenate(parts)
