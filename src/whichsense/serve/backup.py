"""Back up a service's state and indexes, and restore them: whole or not at all, resumed after any stop.

A backup is a folder:

    backup.json      written last: what the others must be, byte for byte
    state/           keys.json, traces.sqlite, quotas.sqlite
    indexes/NAME/    an index folder with one generation

It is put together beside its place, in `.NAME.part`, and renamed; so is what is restored. Whatever is whole there
already is kept when the same command is given again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, IndexBusy
from whichsense.files import lock, read_json, sha256, write_atomically
from whichsense.index.folder import MANIFEST, Manifest, read_manifest
from whichsense.jobs.limits import check_limits
from whichsense.serve import settings, state

_WHOLE = "backup.json"
_FORMAT = 1
_TRIES = 5  # for an index that is built anew meanwhile
_DATABASES = (state.FILE, state.QUOTAS)


def back_up(folder: Path, kept: Path, indexes: Mapping[str, Path]) -> dict[str, int]:
    """Write the state in a folder, and these indexes by their names, to a new folder: how many files, how many bytes.

    A service may run meanwhile: databases are copied as they are at one moment, an index as one generation.
    """
    if folder.exists():
        raise BadInput(f"'{folder}' is there already. Name a folder that is not.")
    part = _part(folder)
    with _alone(part):
        _copy_state(kept, part / "state")
        for path in (part / "indexes").glob("*"):
            if path.name not in indexes:
                shutil.rmtree(path)  # of a call for others
        for name, place in indexes.items():
            _copy_index(place, part / "indexes" / name)
        files = {}
        for path in _files(part):
            if path.name != _WHOLE:
                record = path.stat().st_size, sha256(path)
                files[str(path.relative_to(part))] = record
        table = {"format": _FORMAT, "indexes": list(indexes), "files": files}
        write_atomically(part / _WHOLE, json.dumps(table, indent=1))
        _publish(part, folder)
    return _counts(files)


def restore(folder: Path, kept: Path, indexes: Mapping[str, Path]) -> dict[str, int]:
    """Put a backup's state into a folder, and the indexes that are named into theirs; none of them may be there.

    Each is there whole, or not at all. What an earlier call has restored is left as it is.
    """
    table = _read_whole(folder)
    for name in indexes:
        if name not in table["indexes"]:
            known = ", ".join(table["indexes"]) or "none"
            raise BadInput(f"The backup has no index '{name}'. It has: {known}.")
    restored: dict[str, Any] = {}
    for name, place in {
        "state": kept,
        **{f"indexes/{name}": place for name, place in indexes.items()},
    }.items():
        files = {}
        for path, record in table["files"].items():
            if path.startswith(f"{name}/"):
                files[path.removeprefix(f"{name}/")] = restored[path] = record
        if not _is_there(place, files):
            _restore(folder / name, place, files)
    return _counts(restored)


def _counts(files: Mapping[str, Any]) -> dict[str, int]:
    return {"files": len(files), "bytes": sum(size for size, _ in files.values())}


def _files(folder: Path) -> list[Path]:
    """The files below a folder."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _restore(source: Path, place: Path, files: Mapping[str, Any]) -> None:
    part = _part(place)
    with _alone(part):
        for name, (size, digest) in files.items():
            check_limits()
            if not _is_file(part / name, size, digest):
                _copy(source / name, part / name)
            if not _is_file(part / name, size, digest):
                raise BadInput(
                    f"'{source / name}' is damaged: it is not what the backup was. Restore from another one."
                )
        _remove_others(part, files)  # left by a call for another backup
        _publish(part, place)


def _remove_others(folder: Path, names: Mapping[str, Any]) -> None:
    for path in _files(folder):
        if str(path.relative_to(folder)) not in names:
            path.unlink()


def _is_there(place: Path, files: Mapping[str, Any]) -> bool:
    """Whether a call before has restored these; raises where something else is there."""
    if not place.exists() or not any(place.iterdir()):
        return False
    if all(_is_file(place / name, *record) for name, record in files.items()):
        return True
    raise BadInput(
        f"'{place}' holds something else. Move it away first, or restore into another folder."
    )


def _is_file(path: Path, size: int, digest: str) -> bool:
    return path.is_file() and path.stat().st_size == size and sha256(path) == digest


def _read_whole(folder: Path) -> Any:
    try:
        table = read_json(folder / _WHOLE)
        is_ours = table["format"] == _FORMAT
    except (BadInput, KeyError, TypeError):
        raise BadInput(
            f"'{folder}' is no whole backup. Make one: whichsense backup FOLDER; the same command resumes one "
            "that was stopped."
        ) from None
    if not is_ours:
        raise BadInput(
            f"'{folder}' was written by a later version of whichsense. Restore it with that one."
        )
    return table


def _part(folder: Path) -> Path:
    """Where a folder is put together: on the same disk."""
    return folder.absolute().parent / f".{folder.name}.part"


@contextlib.contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Keep others from the same work."""
    _make_folder(part)
    handle = os.open(part, os.O_RDONLY)
    try:
        if not lock(handle):
            raise BadInput(f"Another process is writing '{part}'. Wait for its end.")
        for path in part.rglob(".*.tmp"):
            path.unlink()  # of a call that was ended
        yield
    finally:
        os.close(handle)


def _publish(part: Path, folder: Path) -> None:
    """Have the disk hold all names, then rename: the one moment at which the folder is there."""
    for path in (*part.rglob("*"), part):
        if path.is_dir():
            _sync(path)
    if folder.exists():
        folder.rmdir()  # empty
    os.rename(part, folder)
    _sync(folder.absolute().parent)


def _copy_index(place: Path, target: Path) -> None:
    """Copy the generation that is served. Its files never change; where a newer one takes its place meanwhile, begin
    again with that."""
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError):
            body = (place / MANIFEST).read_bytes()
            manifest = read_manifest(place)
            _copy_generation(place, target, manifest)
            if (place / MANIFEST).read_bytes() == body:
                write_atomically(target / MANIFEST, body)
                return
    raise IndexBusy(f"'{place}' changes all the time. Back it up when it does not.")


def _copy_generation(place: Path, target: Path, manifest: Manifest) -> None:
    wanted = {f"{manifest.folder}/{name}": one for name, one in manifest.files.items()}
    _remove_others(target, wanted)  # of another generation
    for name, record in wanted.items():
        check_limits()
        if not _is_file(target / name, record.size, record.sha256):
            _copy(place / name, target / name)


def _copy_state(kept: Path, target: Path) -> None:
    _make_folder(target)
    for name, copy in {settings.FILE: _copy, **dict.fromkeys(_DATABASES, _copy_database)}.items():
        if (kept / name).exists():
            copy(kept / name, target / name)


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database that may be written to: as it is at one moment."""
    beside = target.with_name(f".{target.name}.tmp")
    beside.unlink(missing_ok=True)
    with (
        contextlib.closing(sqlite3.connect(source)) as reading,
        contextlib.closing(sqlite3.connect(beside)) as writing,
    ):
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode = DELETE")  # one file, and no other
    _sync(beside)
    beside.chmod(0o600)
    os.replace(beside, target)


def _copy(source: Path, target: Path) -> None:
    """Copy a file beside its place, and rename it when the disk has it."""
    _make_folder(target.parent)
    beside = target.with_name(f".{target.name}.tmp")
    shutil.copyfile(source, beside)
    beside.chmod(source.stat().st_mode & 0o777)
    _sync(beside)
    os.replace(beside, target)


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
