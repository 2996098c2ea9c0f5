"""The folder of an index: manifest, generations, the lock of the writer, and the rename that publishes."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from whichsense.errors import BadInput, DamagedIndex, DiskFull, IndexBusy, IndexFault, NoIndex
from whichsense.files import lock, sha256, write_atomically

# An index is a folder. First, what is in it and who may write; then, how it changes.
#
#     DIR/manifest.json    names the generation that is served, and every file in it with size and checksum
#     DIR/generation-7/    immutable: lexical/ (tantivy), vectors/ (optional), names.sqlite, fingerprints.npy;
#                          of a sharded index: shard-00000/, … with these each, and one names.sqlite
#     DIR/staging/         the next generation while it grows, with the state that a stopped build resumes from
#     DIR/writer.lock      held (flock) by the one writer; the system frees it when that process dies
#
# A crash leaves the old generation served or the new one; what is left lying beside is swept by the
# next writer.

# Raised whenever anything about the files changes meaning: how words are indexed, how passages are stored.
FORMAT = 4
MANIFEST, STAGING, LOCK = "manifest.json", "staging", "writer.lock"
# tantivy's own lock files come and go with readers and writers; they carry nothing.
TRANSIENT = (".tantivy-writer.lock", ".tantivy-meta.lock")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a file must be, byte for byte."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Sharding:
    """How the passages of an index are spread over shards. Those are folders of the generation."""

    by: str
    """hash or source."""
    build: str
    """In every shard's label too: a shard of another build is noticed."""
    parts: int
    """Parts of the corpus that were read: those of an `add` are numbered from here on."""
    passages: tuple[int, ...]
    """Of each shard."""
    rows: tuple[int, ...]
    """Of each shard, deleted passages included."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is served, and what it was made from."""

    generation: int
    passages: int
    next_row: int
    created: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Mapping[str, Any], ...] = ()
    encoder: str | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    format: int = FORMAT
    sharding: Sharding | None = None

    @property
    def folder(self) -> str:
        return f"generation-{self.generation}"

    def roots(self, folder: Path) -> list[Path]:
        """Return the folders in which passages are searched: the generation, or each of its shards."""
        return shard_roots(folder / self.folder, self.sharding)

    @property
    def shard_passages(self) -> tuple[int, ...]:
        """Passages of each shard. An index without shards is one."""
        return self.sharding.passages if self.sharding else (self.passages,)

    @property
    def shard_rows(self) -> tuple[int, ...]:
        """Rows of each shard."""
        return self.sharding.rows if self.sharding else (self.next_row,)

    def to_json(self) -> str:
        table = dataclasses.asdict(self)
        if self.sharding is None:
            del table["sharding"]
        return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def shard_roots(content: Path, sharding: Sharding | None) -> list[Path]:
    """Return the folders of the shards in a generation; without shards the generation's own."""
    if sharding is None:
        return [content]
    return [shard_root(content, number) for number in range(len(sharding.rows))]


def shard_root(content: Path, number: int) -> Path:
    return content / f"shard-{number:05d}"


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of an index folder, or an error that says what is the matter with the folder."""
    path = folder / MANIFEST
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NoIndex(_why_no_index(folder)) from None
    except NotADirectoryError:
        raise NoIndex(f"'{folder}' is a file; an index is a folder.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedIndex(
            f"'{path}' is not a manifest ({error}). Build the index again."
        ) from None
    try:
        if table["format"] != FORMAT:
            raise DamagedIndex(
                f"'{folder}' has index format {table['format']}; this version reads {FORMAT}. "
                "Build it again, or use the version of whichsense that wrote it."
            )
        files = {name: FileRecord(**record) for name, record in table["files"].items()}
        table["files"] = files
        table["sources"] = tuple(table["sources"])
        if "sharding" in table:
            table["sharding"] = _sharding(table["sharding"])
        return Manifest(**table)
    except (KeyError, TypeError, AttributeError) as error:
        raise DamagedIndex(
            f"'{path}' lacks what a manifest has ({error}). Build the index again."
        ) from None


def _sharding(table: dict[str, Any]) -> Sharding:
    passages, rows = tuple(table["passages"]), tuple(table["rows"])
    return Sharding(**{**table, "passages": passages, "rows": rows})


def _why_no_index(folder: Path) -> str:
    build = f"whichsense index build SOURCE --out {folder}"
    if not folder.exists():
        return f"There is no index at '{folder}'. Build one: {build}"
    if (folder / STAGING).exists():
        return f"The index at '{folder}' was never finished. Run the same `whichsense index build` again: it resumes."
    return f"'{folder}' holds no index. Build one: {build}"


def verify_sizes(folder: Path, manifest: Manifest, below: str = "") -> None:
    """The quick check at opening: every file is there and has its size. `below` is how their names begin."""
    for name, record in manifest.files.items():
        if not name.startswith(below):
            continue
        path = folder / manifest.folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DamagedIndex(
                f"'{path}' is missing. Build the index again or restore the file."
            ) from None
        if size != record.size:
            raise DamagedIndex(
                f"'{path}' has {size:,} bytes, not {record.size:,}. Build the index again or restore the file."
            )


def is_whole(folder: Path, manifest: Manifest) -> bool:
    """Tell whether a generation is exactly what its manifest says, to the last byte."""
    for part in parts_of(manifest):
        if any(damaged_files(folder, manifest, part)):
            return False
    return not any(unknown_files(folder, manifest))


def damaged_files(folder: Path, manifest: Manifest, part: str) -> Iterator[str]:
    """Yield the slow check: one line for each file of a part (see `parts_of`) that is not what the manifest says."""
    root = folder / manifest.folder
    for name, record in manifest.files.items():
        if name.partition("/")[0] != part:
            continue
        path = root / name
        if not path.exists():
            yield f"{name}: missing"
        elif path.stat().st_size != record.size:
            yield f"{name}: {path.stat().st_size:,} bytes instead of {record.size:,}"
        elif sha256(path) != record.sha256:
            yield f"{name}: content changed (checksum differs)"


def parts_of(manifest: Manifest) -> list[str]:
    """Return the files and folders right below a generation: shards, or the halves of an index."""
    return list(dict.fromkeys(name.partition("/")[0] for name in manifest.files))


def unknown_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield one line for each file that the manifest does not name."""
    root = folder / manifest.folder
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name not in manifest.files and path.name not in TRANSIENT:
            yield f"{name}: not in the manifest"


def _generations(folder: Path) -> list[int]:
    names = [path.name.removeprefix("generation-") for path in folder.glob("generation-*")]
    return [int(name) for name in names if name.isdecimal()]


def leftovers(folder: Path, manifest: Manifest | None) -> list[str]:
    """Return what an interrupted writer left beside the served generation. Harmless."""
    served = manifest.folder if manifest else None
    names = [f"generation-{number}" for number in _generations(folder)]
    names += [path.name for path in folder.glob(f".{MANIFEST}.*.tmp")]
    names = sorted(name for name in names if name != served)
    if (folder / STAGING).exists():
        names.append(STAGING)
    return names


@contextlib.contextmanager
def writing(folder: Path, what: str) -> Iterator[None]:
    """Be the one writer of this folder, or learn who is."""
    try:
        with _locked(folder, what):
            yield
    except (OSError, sqlite3.OperationalError) as error:
        is_full = getattr(error, "errno", None) == errno.ENOSPC
        if is_full or "disk is full" in str(error):  # SQLite has no error number
            raise DiskFull(folder) from error
        raise


@contextlib.contextmanager
def _locked(folder: Path, what: str) -> Iterator[None]:
    _ensure_usable(folder)
    with open(folder / LOCK, "a+", encoding="utf-8") as file:
        if not lock(file):
            raise IndexBusy(
                f"'{folder}' is being written by {_holder(file)}. Wait until it ends, or stop it."
            )
        file.truncate(0)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        file.write(f"process {os.getpid()} ({what}, since {since})\n")
        file.flush()
        yield


def _holder(file: TextIO) -> str:
    """Return who holds the lock. A writer signs right after taking it, so that an empty file is read again."""
    for _ in range(5):
        file.seek(0)
        if signed := file.read().strip():
            return signed
        time.sleep(0.02)  # between its locking and its signing
    return "another process"


def _ensure_usable(folder: Path) -> None:
    """A folder that is new, empty, or an index. Any other is left alone: a writer sweeps what it does not know."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"'{folder}' is a file. Choose a folder for the index.")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / LOCK).exists():  # a writer makes it before anything else
        return
    strangers = sorted(path.name for path in folder.glob("*"))
    if strangers:
        raise BadInput(
            f"'{folder}' holds other files ({strangers[0]}, …). Choose a new or empty folder for the index."
        )


# How an index changes: the next generation is staged beside the served one, moved into place, and
# then served.
#
# The rename of manifest.json is the one moment at which an index changes. Before that the staging
# folder holds the new manifest too: a build that was killed between the move and the rename needs
# only the rename.


def stage(folder: Path, base: Manifest | None) -> Path:
    """A fresh staging folder, filled with the files of `base` (hard links: they are immutable, so this is instant)."""
    staging = folder / STAGING
    shutil.rmtree(staging, ignore_errors=True)
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


def next_generation(folder: Path) -> int:
    """Return one more than any that is there, served or not: a damaged manifest must not prevent a new build."""
    return max(_generations(folder), default=0) + 1


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


def _records(content: Path, folder: Path, base: Manifest | None) -> dict[str, FileRecord]:
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
