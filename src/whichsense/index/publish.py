"""How an index changes: the next generation is staged beside the served one, moved into place, and then served.

The rename of manifest.json is the one moment at which an index changes. Before that the staging folder holds the new
manifest too: a build that was killed between the move and the rename needs only the rename.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

from whichsense.errors import IndexFault
from whichsense.files import sha256, write_atomically
from whichsense.index.folder import (
    MANIFEST,
    STAGING,
    TRANSIENT,
    FileRecord,
    Manifest,
    is_whole,
    leftovers,
    read_manifest,
)


def stage(folder: Path, base: Manifest | None) -> Path:
    """A fresh staging folder, filled with the files of `base` (hard links: they are immutable, so this is instant)."""
    staging = folder / STAGING
    _discard_staging(folder)
    content = staging / "content"
    content.mkdir(parents=True)
    if base is not None:
        link_files(folder, base, content)
    return staging


def link_files(folder: Path, base: Manifest, content: Path, below: str = "") -> None:
    """Fill a staged generation with the files of `base`, or with those whose names begin with `below`."""
    for name in base.files:
        if name.startswith(below):
            target = content / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(folder / base.folder / name, target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _discard_staging(folder: Path) -> None:
    shutil.rmtree(folder / STAGING, ignore_errors=True)


def next_generation(folder: Path) -> int:
    """One more than any that is there, served or not: a damaged manifest must not prevent a new build."""
    highest = 0
    for path in folder.glob("generation-*"):
        number = path.name.removeprefix("generation-")
        if number.isdigit():
            highest = max(highest, int(number))
    return highest + 1


def publish(folder: Path, base: Manifest | None, draft: Manifest) -> Manifest:
    """Move the staged content into place and serve it: the moment at which the index changes."""
    content = folder / STAGING / "content"
    for name in TRANSIENT:
        for path in content.rglob(name):
            path.unlink()
    _open_to_readers(content)
    manifest = dataclasses.replace(draft, files=_records(content, folder, base))
    _sync_folder(content)
    for path in content.rglob("*"):
        if path.is_dir():
            _sync_folder(path)
    write_atomically(folder / STAGING / MANIFEST, manifest.to_json())
    # From here on a killed build is finished by the next one (`finished`).
    os.rename(content, folder / manifest.folder)
    _sync_folder(folder)
    return _served(folder, manifest)


def finished(folder: Path) -> Manifest | None:
    """Serve a complete generation that a killed writer moved into place but did not serve; None without one."""
    try:
        manifest = read_manifest(folder / STAGING)
    except IndexFault:
        return None
    if not (folder / manifest.folder).is_dir() or not is_whole(folder, manifest):
        return None
    return _served(folder, manifest)


def _served(folder: Path, manifest: Manifest) -> Manifest:
    write_atomically(folder / MANIFEST, manifest.to_json())
    _sync_folder(folder)
    _sweep(folder, manifest)
    return manifest


def _open_to_readers(content: Path) -> None:
    """tantivy makes some files for their owner alone; an index is for everybody whom the folder lets in."""
    # The mask can be read only by setting it.
    mask = os.umask(0)
    os.umask(mask)
    for path in content.rglob("*"):
        if path.is_file() and path.stat().st_nlink == 1:
            path.chmod(0o666 & ~mask)


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Remove what is not served. Readers that have old files open keep them until they close."""
    for name in leftovers(folder, manifest):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name, ignore_errors=True)
        else:
            (folder / name).unlink(missing_ok=True)


def _records(
    content: Path, folder: Path, base: Manifest | None
) -> dict[str, FileRecord]:
    records = {}
    for path in sorted(content.rglob("*")):
        if not path.is_file():
            continue
        name = path.relative_to(content).as_posix()
        if base and name in base.files:
            # A hard link into the served generation: its checksum is known.
            if _same_file(path, folder / base.folder / name):
                records[name] = base.files[name]
                continue
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        records[name] = FileRecord(path.stat().st_size, sha256(path))
    return records


def _same_file(one: Path, other: Path) -> bool:
    return other.exists() and os.path.samefile(one, other)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
