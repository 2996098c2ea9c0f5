"""From questions to lists: passages that an index finds, chosen so that every answer and hard wrong ones are there."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense import sample
from whichsense.errors import BadConfig
from whichsense.files import read_json, sha256, write_atomically
from whichsense.index import Index
from whichsense.index.saved_hits import SavedHits
from whichsense.jobs.progress import show_progress
from whichsense.jobs.workers import run_forked
from whichsense.models.bert.saved import ABOUT
from whichsense.models.compact.encoder.inputs import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    LONGEST_TITLE,
    answer_ids,
)
from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.train.compact.data import questions
from whichsense.train.compact.data.pack import Pack, Ragged
from whichsense.train.compact.data.questions import Asked, Data
from whichsense.types import Hit, Method

ANSWERS, SPANS = 12, 12  # the most of a question, and of a slot
_LONGEST_TEXT = 210
_PART = 1000  # questions in one file: what a stopped search loses at most
_EACH, _FIRST, _GOOD = (
    3,
    8,
    6,
)  # good passages for each answer, in all, and at least if there are
Span = tuple[int, int, int]
Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lists:
    """A recipe's `[lists]`."""

    folder: str = ""
    """Where lists are kept, for all recipes that learn from them; empty: nowhere."""
    depth: int = 64
    """Hits that passages are chosen from."""
    passages: int = 20
    """Of a list to learn from."""
    measured: int = 24
    """Of a list to measure with: the first so many hits."""
    processes: int = 16
    """That make lists side by side where they are kept in a folder: at most one a core, on Linux."""


def prepared(data: Data, lists: Lists, vocabulary: Sequence[str]) -> tuple[Pack, Pack]:
    """The lists to learn from and those to measure with: made now, or read where they were made before."""
    _ = data.topic_files  # topics that are not there are told by the first recipe, not after hours by the last
    train, dev = (
        _Maker(data, lists, vocabulary, learning=learning) for learning in (True, False)
    )
    return train.made(lambda: questions.training(data), "train"), dev.made(
        lambda: questions.development(data), "dev"
    )


class Cutter:
    """Questions, answers and passages as word pieces, each passage once, as a pack has them."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.tokenizer = Tokenizer(
            {piece: number for number, piece in enumerate(vocabulary)}
        )
        self.inside = np.array([piece.startswith("##") for piece in vocabulary])
        self._cut: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        self._rows: dict[tuple[str, str], int] = {}

    def aliases(self, names: Sequence[str]) -> list[Ids]:
        """Of one answer."""
        found = (
            tuple(answer_ids(self.tokenizer, name)) for name in names if name.strip()
        )
        return [ids for ids in dict.fromkeys(found) if 0 < len(ids) < LONGEST_ANSWER]

    def spans(
        self, title: str, text: str, aliases: Sequence[Sequence[Ids]]
    ) -> list[Span]:
        """Where answers stand in a passage."""
        pieces = self._pieces(title, text)
        return [
            (number, *place)
            for number, group in enumerate(aliases)
            for alias in group
            for place in places_in(*pieces, alias, self.inside)
        ]

    def row(self, title: str, text: str) -> int:
        """The passage's place in the pack."""
        return self._rows.setdefault((title, text), len(self._rows))

    def pack(
        self,
        asked: Sequence[Asked],
        slots: Sequence[Sequence[int]],
        spans: Sequence[Sequence[Span]],
    ) -> Pack:
        """Lists of passages that have a place, with the spans of each slot."""
        narrow = np.uint16 if len(self.inside) < 2**16 else np.int32
        titles, texts = (
            [self._pieces(*passage)[part] for passage in self._rows] for part in (0, 1)
        )
        return Pack(
            Ragged.of(
                [self.tokenizer.ids(one.text, LONGEST_QUESTION) for one in asked],
                narrow,
            ),
            Ragged.of(slots, np.int32),
            Ragged.of([own[:SPANS] for own in spans], np.int16, width=3),
            Ragged.of(titles, narrow),
            Ragged.of(texts, narrow),
            tuple(asked),
        )

    def _pieces(self, title: str, text: str) -> tuple[list[int], list[int]]:
        found = self._cut.get((title, text))
        if found is None:
            found = (
                self.tokenizer.ids(title, LONGEST_TITLE),
                self.tokenizer.ids(text, _LONGEST_TEXT),
            )
            self._cut[title, text] = found
        return found


@dataclass(frozen=True)
class _Part:
    """Some of the questions, whose lists are one file."""

    asked: Sequence[Asked]
    folder: Path
    name: str
    number: int

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}-{self.number:05d}.npz"

    @property
    def questions(self) -> Sequence[Asked]:
        return self.asked[self.number * _PART : (self.number + 1) * _PART]

    @property
    def luck(self) -> str:
        return f"{self.name}/{self.number}"


class _Maker:
    """Makes lists part by part; what is written is not made again."""

    def __init__(
        self, data: Data, lists: Lists, vocabulary: Sequence[str], *, learning: bool
    ) -> None:
        self.data, self.lists, self.learning = data, lists, learning
        self.vocabulary = vocabulary
        self._index: Index | _Hits | None = None

    def made(self, ask: Callable[[], list[Asked]], name: str) -> Pack:
        folder = Path(self.lists.folder) if self.lists.folder else None
        if folder is None:
            return self._pack(ask(), name)
        about = self._about()
        done = folder / f"{name}.json"
        if done.exists():
            _same(read_json(done)["about"], about, folder)
            return _read(done, done.stat().st_mtime_ns)
        asked = ask()
        started = folder / f"{name}.started.json"
        if started.exists():
            _same(read_json(started), about, folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(started, json.dumps(about))
        count = -(-len(asked) // _PART)
        parts = [_Part(asked, folder, name, number) for number in range(count)]
        with show_progress(f"lists of {name}", "questions") as progress:
            missing = [part.number for part in parts if not part.path.exists()]
            self._index = _searched(self.data)  # once for all processes
            several = self.lists.processes if shareable(self._index) else 1
            work = run_forked(several)(
                lambda number: self.write(parts[number]), missing
            )
            for number, _ in enumerate(work, count - len(missing) + 1):
                progress(number / count, min(len(asked), number * _PART))
        write_atomically(done, json.dumps({"about": about, "parts": count}))
        return self.made(ask, name)

    def write(self, part: _Part) -> None:
        self._pack(part.questions, part.luck).save(part.path)

    def _about(self) -> dict[str, object]:
        """What lists depend on: others need another folder."""
        files = [sha256(path) for path in self.data.paths()]
        plain = {
            name: getattr(self.data, name)
            for name in ("without", "held", "limit", "dev_limit", "method")
        }
        sizes = {
            name: getattr(self.lists, name)
            for name in ("depth", "passages", "measured")
        }
        found: dict[str, object] = json.loads(
            json.dumps({"files": files, **plain, **sizes})
        )
        return found

    def _pack(self, asked: Sequence[Asked], luck: str) -> Pack:
        cutter, dice = Cutter(self.vocabulary), random.Random(luck)
        slots: list[list[int]] = []
        spans: list[list[Span]] = []
        for one, passages in zip(asked, self._found(asked), strict=True):
            aliases = [cutter.aliases(group) for group in one.answers[:ANSWERS]]
            given = dict.fromkeys(
                [*((own.title, own.text) for own in one.passages), *passages]
            )
            held = {passage: cutter.spans(*passage, aliases) for passage in given}
            chosen = (
                self._chosen(held, len(aliases), dice)
                if self.learning
                else list(held)[: self.lists.measured]
            )
            slots.append([cutter.row(*passage) for passage in chosen])
            spans += [held[passage] for passage in chosen]
        return cutter.pack([replace(one, passages=()) for one in asked], slots, spans)

    def _found(self, asked: Sequence[Asked]) -> list[list[tuple[str, str]]]:
        """The hits of each question; none for those that bring all their passages."""
        if self._index is None:
            self._index = _searched(self.data)
        texts = [one.text for one in asked if one.searched]
        hits = iter(self._index.search_many(texts, self.lists.depth, self.data.method))
        return [
            [(h.passage.title, h.passage.text) for h in next(hits)]
            if one.searched
            else []
            for one in asked
        ]

    def _chosen(
        self,
        held: Mapping[tuple[str, str], Sequence[Span]],
        answers: int,
        dice: random.Random,
    ) -> list[tuple[str, str]]:
        """Good ones for every answer, then others that the search put high; in the search's order."""
        good = [passage for passage, spans in held.items() if spans]
        picked: dict[tuple[str, str], None] = {}
        for number in range(answers):
            own = [
                passage
                for passage in good
                if any(span[0] == number for span in held[passage])
            ]
            picked.update(dict.fromkeys(own[:_EACH]))
        chosen = list(picked)[:_FIRST]
        chosen += [passage for passage in good if passage not in chosen][
            : max(0, _GOOD - len(chosen))
        ]
        room = self.lists.passages - len(chosen)
        hard = [passage for passage, spans in held.items() if not spans][
            : int(room * 1.4) + 2
        ]
        dice.shuffle(hard)
        chosen += hard[:room]
        order = {passage: place for place, passage in enumerate(held)}
        return sorted(chosen, key=order.__getitem__)


@lru_cache(maxsize=2)
def _read(done: Path, written: int) -> Pack:
    """Lists that are complete, once for all recipes that one command trains. `written`: when they were."""
    count = read_json(done)["parts"]
    return Pack.joined(
        Pack.load(_Part((), done.parent, done.stem, number).path)
        for number in range(count)
    )


@dataclass(frozen=True)
class _Hits:
    """Several files with hits, as one: a question's are those of the first that has it."""

    files: tuple[SavedHits, ...]

    def search_many(
        self, questions: Sequence[str], k: int, method: Method | None
    ) -> list[list[Hit]]:
        return [
            self._holder(question).search_many([question], k, method)[0]
            for question in questions
        ]

    def _holder(self, question: str) -> SavedHits:
        return next((file for file in self.files if question in file), self.files[-1])


def shareable(searched: object) -> bool:
    """Whether copies of this process may search. Torch, which a DPR's index is searched with, does not run in them."""
    encoder = searched.manifest.encoder if isinstance(searched, Index) else None
    return not encoder or not (Path(encoder) / ABOUT).is_file()


def _searched(data: Data) -> Index | _Hits:
    """Where passages are looked for: the hits that were kept, the index, or the embedded sample."""
    if data.kept:
        return _Hits(tuple(map(_opened, data.kept)))
    return Index.open(Path(data.index)) if data.index else sample.index()


@cache
def _opened(path: Path) -> SavedHits:
    """Once, as questions to learn from and to measure with share it."""
    return SavedHits.open(path)


def occurrences(
    text: Sequence[int], alias: Sequence[int], inside: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Where a row of word pieces stands in another, as whole words: first and last piece.

    >>> inside = np.array([False, False, True])
    >>> occurrences([1, 2, 1, 1], [1], inside)
    [(2, 2), (3, 3)]
    """
    found, size = [], len(alias)
    at = [place for place, piece in enumerate(text) if piece == alias[0]]
    for place in at:
        end = place + size
        if list(text[place:end]) == list(alias) and not (
            end < len(text) and inside[text[end]]
        ):
            found.append((place, end - 1))
    return found


def places_in(
    title: Sequence[int],
    text: Sequence[int],
    alias: Sequence[int],
    inside: NDArray[np.bool_],
) -> list[tuple[int, int]]:
    """The same in a passage, counted from its title's first piece on."""
    more = [
        (len(title) + first, len(title) + last)
        for first, last in occurrences(text, alias, inside)
    ]
    return [*occurrences(title, alias, inside), *more]


def _same(before: object, now: object, folder: Path) -> None:
    if before != now:
        raise BadConfig(
            f"'{folder}' holds lists of other questions or of another index. Choose another lists.folder."
        )
