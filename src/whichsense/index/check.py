"""Finding and naming damage, and saying which state of an index is served."""

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


@dataclass(frozen=True, slots=True)
class Health:
    """What `check` found: problems are damage, notes are harmless."""

    manifest: Manifest | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.problems


def check(folder: str | Path) -> Health:
    """Read every byte of an index and hold it against its manifest."""
    folder = Path(folder)
    try:
        manifest = folders.read_manifest(folder)
    except IndexFault as error:
        return Health(None, (str(error),), ())
    problems = list(folders.damaged_files(folder, manifest))
    problems += _contradictions(folder / manifest.folder, manifest)
    notes = tuple(
        f"{name}: left by a write that was interrupted or is under way; harmless, the next write uses or removes it"
        for name in folders.leftovers(folder, manifest)
    )
    return Health(manifest, tuple(problems), notes)


def _contradictions(root: Path, manifest: Manifest) -> Iterator[str]:
    """Parts that are whole but do not belong together."""
    for part, check_part in (
        ("texts", _texts),
        ("names", _names),
        ("fingerprints", _fingerprints),
        ("vectors", _vectors),
    ):
        try:
            yield from (f"{part}: {problem}" for problem in check_part(root, manifest))
        except (IndexFault, OSError, ValueError, EOFError) as error:
            yield f"{part}: {error}"


def _texts(root: Path, manifest: Manifest) -> Iterator[str]:
    texts = Texts(root)
    yield from _miscounted(texts.lexical.count, manifest.passages)
    yield from texts.passages.problems()
    yield from _miscounted(texts.passages.next_row, manifest.next_row)


def _names(root: Path, manifest: Manifest) -> Iterator[str]:
    if problem := Names(root / "names.sqlite").problem():
        yield problem


def _fingerprints(root: Path, manifest: Manifest) -> Iterator[str]:
    yield from _miscounted(len(np.load(root / "fingerprints.npy")), manifest.passages)


def _vectors(root: Path, manifest: Manifest) -> Iterator[str]:
    if manifest.encoder:
        from whichsense.index.dense.vectors import Vectors

        vectors = Vectors.open(root / "vectors")
        yield from vectors.check()
        yield from _miscounted(vectors.count, manifest.passages)


def _miscounted(found: int, expected: int) -> Iterator[str]:
    if found != expected:
        yield f"{found:,} passages instead of {expected:,}"
