"""A generation that grows: cutting, what is read already, the staging folder and its state."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whichsense.corpus import Corpus, RecordCorpus, Report, Seen, pieces, title_line
from whichsense.errors import WriteFault
from whichsense.files import write_atomically
from whichsense.index import folder as folders
from whichsense.index.folder import FORMAT, STAGING, Manifest, Sharding
from whichsense.index.lexical import DELETED, LexicalWriter, load_deleted
from whichsense.index.store import NamesWriter, PassagesWriter, pack
from whichsense.jobs.limits import Progress
from whichsense.protocols import Encoder
from whichsense.text.words import whole_characters
from whichsense.types import Document, Redirect, Sense

# What a build or an add has to do: a corpus that is put on top of an index, or of nothing.


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents become passages: `words` white-space words each, or whole sentences up to that many."""

    words: int = 100
    sentences: bool | None = None
    """None: of files that are one document each. Dumps and records are cut as the papers cut Wikipedia."""

    def of(self, corpus: Corpus | RecordCorpus) -> Cutting:
        """Return the same, decided for a corpus."""
        if self.sentences is not None:
            return self
        return dataclasses.replace(self, sentences=corpus.is_of_documents)


@dataclass(frozen=True)
class Growth:
    """The work that build and add have in common, with shards or without."""

    folder: Path
    corpus: Corpus | RecordCorpus
    cutting: Cutting
    encoder: Encoder | None
    base: Manifest | None
    progress: Progress
    say: Callable[[str], None]

    @property
    def job(self) -> dict[str, Any]:
        """Says whether a stopped run was the same work."""
        return {
            "corpus": self.corpus.fingerprint,
            "cutting": dataclasses.asdict(self.cutting),
            "format": FORMAT,
            "base": self.base.generation if self.base else None,
            "encoder": self.encoder.name if self.encoder else None,
        }

    def draft(
        self,
        passages: int,
        next_row: int,
        report: Mapping[str, Any],
        sharding: Sharding | None = None,
    ) -> Manifest:
        """Return the next generation's manifest, but for its files."""
        paths = [whole_characters(str(path)) for path in self.corpus.find_files()]
        source = {"paths": paths, "fingerprint": self.corpus.fingerprint}
        before = self.base.sources if self.base else ()
        return Manifest(
            generation=folders.next_generation(self.folder),
            passages=passages,
            next_row=next_row,
            created=now(),
            settings=dataclasses.asdict(self.cutting),
            sources=(*before, source),
            encoder=self.encoder.name if self.encoder else None,
            report=report,
            sharding=sharding,
        )

    @property
    def id_prefix(self) -> str:
        """Keep ids unique: where a file of the same name was read before, the generation goes before them."""
        if self.base is None:
            return ""
        read_before = set()
        for source in self.base.sources:
            for path in source["paths"]:
                read_before.add(Path(path).name)
        names = {path.name for path in self.corpus.find_files()}
        return f"{self.base.generation + 1}/" if read_before & names else ""


class CutPassage(NamedTuple):
    """A passage before it is stored."""

    title: str
    text: str
    document: str
    names: tuple[str, str, str, str]
    """Id, title, source and section."""
    start: int


def cut_record(record: Document, id_prefix: str, cutting: Cutting) -> Iterator[CutPassage]:
    """Yield the passages of a document, whose id gets a prefix."""
    if id_prefix:
        record = dataclasses.replace(record, id=f"{id_prefix}{record.id}")
    title, whole, source = title_line(record), record.text, record.source
    document = record.id
    for name, section, start, end in pieces(record, cutting.words, bool(cutting.sentences)):
        names = (name, title, source, section)
        yield CutPassage(title, whole[start:end], document, names, start)


def now() -> str:
    """Return the time, as a manifest has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


# The next generation while it grows, and the state from which a stopped or killed build resumes.
#
# tantivy commits on its own, so a state is written before the commit that it describes and renamed
# after it: whichever of the two counts as many passages as tantivy holds is the true one.

_STATE, _NEXT_STATE = "state.json", "state.next.json"
_DAMAGE = (WriteFault, sqlite3.DatabaseError, ValueError, EOFError, IndexError)


@dataclass(slots=True)
class State:
    """How far a build has come. `job` tells whether it is the same one."""

    job: Mapping[str, Any]
    position: int = 0
    next_row: int = 0
    passages: int = 0
    read_all: bool = False
    report: Mapping[str, Any] = field(default_factory=dict)


class Staging:
    """Takes records in, drops duplicates, and can stop after any of them without losing or doubling one."""

    def __init__(self, root: Path, state: State, lexical: LexicalWriter, id_prefix: str) -> None:
        self.root = root
        self.state = state
        self.content = root / "content"
        self._id_prefix = id_prefix
        self.report = Report.from_dict(dict(state.report)) if state.report else Report()
        self._lexical = lexical
        self._seen = _load_seen(root, state)
        self._names = NamesWriter(own_copy(self.content / "names.sqlite"))
        self._passages = PassagesWriter(self.content / "passages", state.next_row)

    @classmethod
    def resume_or_start(
        cls, folder: Path, base: Manifest | None, job: Mapping[str, Any], id_prefix: str = ""
    ) -> Staging:
        """Go on with the same job if it was stopped; otherwise begin anew on top of `base`."""
        root = folder / STAGING
        states = []
        for name in (_STATE, _NEXT_STATE):
            state = _load(root / name)
            if state and state.job == job:
                states.append(state)
        # A staging folder that a power cut left half-written is begun anew.
        with contextlib.suppress(*_DAMAGE):
            if states and (resumed := cls._resume(root, states, id_prefix)):
                return resumed
        root = folders.stage(folder, base)
        state = State(
            job, next_row=base.next_row if base else 0, passages=base.passages if base else 0
        )
        return cls(root, state, LexicalWriter(root / "content" / "lexical"), id_prefix)

    @classmethod
    def _resume(cls, root: Path, states: Sequence[State], id_prefix: str) -> Staging | None:
        lexical = LexicalWriter(root / "content" / "lexical")
        try:
            for state in states:
                if state.passages == lexical.count:
                    return cls(root, state, lexical, id_prefix)
        except BaseException:
            lexical.close()
            raise
        lexical.close()
        return None

    def put(self, record: Document | Redirect | Sense, cutting: Cutting) -> None:
        if not isinstance(record, Document):
            self._names.add(record)
            return
        state, source = self.state, record.source
        # The hot loop of a build.
        for piece in cut_record(record, self._id_prefix, cutting):
            if self._seen.new(piece.title, piece.text):
                self._lexical.add(state.next_row, piece.title, piece.text)
                stored = pack(piece.names, piece.start, piece.text)
                self._passages.add(stored, piece.document, source)
                state.next_row += 1
                state.passages += 1
                self.report.passages += 1
            else:
                self.report.duplicates += 1

    def checkpoint(self, position: int) -> None:
        """From here on a crash loses nothing of what came before. `position`: records taken from the corpus."""
        state = self.state
        state.position = position
        state.report = self.report.as_dict()
        # What tantivy's commit makes count must be on disk before it.
        self._names.commit()
        self._passages.flush()
        save_array(_seen_path(self.root, state), self._seen.to_array())
        write_atomically(self.root / _NEXT_STATE, json.dumps(dataclasses.asdict(state)))
        self._lexical.commit()
        os.replace(self.root / _NEXT_STATE, self.root / _STATE)
        for stale in self.root.glob("seen-*.npy"):
            if stale != _seen_path(self.root, state):
                stale.unlink()

    def finish_reading(self, position: int) -> None:
        # First: once `read_all` is written, a resumed build does not come back here.
        save_fingerprints(self.content, self._seen)
        self.state.read_all = True
        self.checkpoint(position)

    def close(self) -> None:
        """Let merges end and files close, so that the content can be moved."""
        # Each is closed even if another cannot be.
        with contextlib.ExitStack() as parts:
            for part in (self._names, self._passages, self._lexical):
                parts.callback(part.close)


def staged_job(folder: Path) -> Mapping[str, Any] | None:
    """Return which job the staging folder was read for, if it was read to the end."""
    state = _load(folder / STAGING / _STATE)
    return state.job if state and state.read_all else None


def save_fingerprints(content: Path, seen: Seen) -> None:
    """Beside and renamed: it may be a hard link into the served generation, which is never written through."""
    save_array(content / "fingerprints.npy", seen.to_array())


def save_deleted(content: Path, rows: Iterable[int]) -> None:
    """Add to the rows of deleted passages. Their compressed text stays until a rebuild."""
    deleted = np.fromiter(rows, dtype=np.uint64)
    save_array(content / DELETED, np.union1d(load_deleted(content), deleted))


def load_fingerprints(content: Path) -> Seen:
    return Seen.from_array(np.load(content / "fingerprints.npy"))


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array beside its place and rename it: what is there may be a link into the served generation."""
    body = io.BytesIO()
    np.save(body, array)
    write_atomically(path, body.getvalue())


def _seen_path(root: Path, state: State) -> Path:
    return root / f"seen-{state.passages}.npy"


def _load_seen(root: Path, state: State) -> Seen:
    path = _seen_path(root, state)
    if path.exists():
        return Seen.from_array(np.load(path))
    content = root / "content"
    if (content / "fingerprints.npy").exists():
        return load_fingerprints(content)
    return Seen()


def _load(path: Path) -> State | None:
    try:
        return State(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def own_copy(path: Path) -> Path:
    """A file that may be written: SQLite changes files in place, and a hard link leads into the served generation."""
    if path.exists() and path.stat().st_nlink > 1:
        beside = path.with_suffix(".copy")
        beside.write_bytes(path.read_bytes())
        os.replace(beside, path)
    return path
