"""Finding and naming damage, and saying which state of an index is served."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from whichsense.errors import IndexFault
from whichsense.index import folder as folders
from whichsense.index.folder import Manifest
from whichsense.index.lexical import Lexical


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
    try:
        count = Lexical(root / "lexical").count
        if count != manifest.passages:
            yield f"lexical: {count:,} passages instead of {manifest.passages:,}"
    except IndexFault as error:
        yield f"lexical: {error}"
    try:
        with sqlite3.connect(root / "names.sqlite") as database:
            (verdict,) = database.execute("PRAGMA quick_check").fetchone()
        database.close()
        if verdict != "ok":
            yield f"names.sqlite: {verdict}"
    except sqlite3.DatabaseError as error:
        yield f"names.sqlite: {error}"
    if manifest.encoder:
        from whichsense.index.vectors import Vectors

        try:
            vectors = Vectors.open(root / "vectors")
            yield from (f"vectors: {problem}" for problem in vectors.check())
            if vectors.count != manifest.passages:
                yield f"vectors: {vectors.count:,} instead of {manifest.passages:,}"
        except IndexFault as error:
            yield f"vectors: {error}"
