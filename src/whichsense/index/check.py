"""Find and name damage, and say which generation of an index is served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whichsense.errors import IndexFault
from whichsense.index import folder as folders
from whichsense.index.folder import Manifest
from whichsense.index.lexical.generation import Texts
from whichsense.index.names import Names
from whichsense.index.shards.layout import check_labels
from whichsense.index.shards.shard import KEYS
from whichsense.jobs.workers import Executor, run_here


@dataclass(frozen=True, slots=True)
class Health:
    """What `check` found: problems are damage, notes are harmless."""

    manifest: Manifest | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.problems

    def summary(self) -> str:
        """Some lines for a person."""
        lines = []
        if self.manifest:
            generation = f"generation {self.manifest.generation}"
            passages = f"{self.manifest.passages:,} passages"
            lines.append(
                f"served: {generation}, {passages}, from {self.manifest.created}"
            )
        for problem in self.problems:
            lines.append(f"damage: {problem}")
        for note in self.notes:
            lines.append(f"note:   {note}")
        verdict = "sound"
        if not self.sound:
            verdict = "DAMAGED: build the index again, or restore the files named above"
        return "\n".join([*lines, verdict])


def check(folder: str | Path, executor: Executor = run_here) -> Health:
    """Read every byte of an index and compare it with its manifest. An executor may read its parts elsewhere."""
    folder = Path(folder)
    try:
        manifest = folders.read_manifest(folder)
    except IndexFault as error:
        return Health(None, (str(error),), ())
    items = []
    for part in folders.parts_of(manifest):
        items.append(_PartWork(folder.resolve(), manifest, part))
    damage: dict[str, list[str]] = {}
    for item, lines in executor(_read_part, items):
        damage[item.part] = lines
    problems: list[str] = []
    for item in items:  # in the manifest's order, whoever was first
        problems += damage[item.part]
    problems += folders.unknown_files(folder, manifest)
    problems += _shard_faults(folder, manifest)
    problems += _contradictions(folder, manifest)
    notes = []
    for name in folders.leftovers(folder, manifest):
        notes.append(
            f"{name}: left by a write that was interrupted or is under way; harmless, the next write uses or removes it"
        )
    return Health(manifest, tuple(problems), tuple(notes))


@dataclass(frozen=True, slots=True)
class _PartWork:
    """A part of an index that is read."""

    folder: Path
    manifest: Manifest
    part: str


def _read_part(work: _PartWork) -> list[str]:
    return list(folders.damaged_files(work.folder, work.manifest, work.part))


def _shard_faults(folder: Path, manifest: Manifest) -> Iterator[str]:
    if manifest.sharding:
        try:
            check_labels(manifest.roots(folder), manifest.sharding)
        except IndexFault as error:
            yield str(error)


def _contradictions(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Parts that are whole but do not belong together."""
    yield from _tried("names", _check_names(folder / manifest.folder))
    counts = zip(manifest.shard_passages, manifest.shard_rows, strict=True)
    for root, (passages, rows) in zip(manifest.roots(folder), counts, strict=True):
        where = f"{root.name}: " if manifest.sharding else ""
        yield from _tried(f"{where}texts", _check_texts(root, passages, rows))
        prints = _check_fingerprints(root, passages)
        yield from _tried(f"{where}fingerprints", prints)
        if manifest.sharding:
            yield from _tried(f"{where}keys", _check_keys(root, rows))
        if manifest.encoder:
            vectors = _check_vectors(root, passages)
            yield from _tried(f"{where}vectors", vectors)


def _tried(part: str, problems: Iterator[str]) -> Iterator[str]:
    try:
        for problem in problems:
            yield f"{part}: {problem}"
    except (IndexFault, OSError, ValueError, EOFError) as error:
        yield f"{part}: {error}"


def _check_texts(root: Path, passages: int, rows: int) -> Iterator[str]:
    texts = Texts(root)
    yield from _miscounted(texts.lexical.count, passages)
    yield from texts.passages.problems()
    yield from _miscounted(texts.passages.next_row, rows)


def _check_names(root: Path) -> Iterator[str]:
    if problem := Names(root / "names.sqlite").problem():
        yield problem


def _check_fingerprints(root: Path, passages: int) -> Iterator[str]:
    fingerprints = np.load(root / "fingerprints.npy")  # one for each passage
    yield from _miscounted(len(fingerprints), passages)


def _check_keys(root: Path, rows: int) -> Iterator[str]:
    keys = np.load(root / KEYS)  # one for each row, ascending
    yield from _miscounted(len(keys), rows)
    if np.any(keys[1:] <= keys[:-1]):
        yield "not in order"


def _check_vectors(root: Path, passages: int) -> Iterator[str]:
    from whichsense.index.dense.vectors import Vectors

    vectors = Vectors.open(root / "vectors")
    yield from vectors.check()
    yield from _miscounted(vectors.count, passages)


def _miscounted(count: int, expected: int) -> Iterator[str]:
    if count != expected:
        yield f"{count:,} passages instead of {expected:,}"
