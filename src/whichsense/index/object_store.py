"""An index in an object store: uploaded and fetched with checksums."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whichsense.errors import (
    BadInput,
    DamagedIndex,
    DiskFull,
    IndexBusy,
    NoIndex,
    WhichsenseError,
    WriteFault,
    require,
)
from whichsense.files import cache_folder, lock, sha256, write_atomically
from whichsense.index.folder import MANIFEST, Manifest, parts_of, read_manifest
from whichsense.jobs.limits import Progress, silent

# A path of the system drops one of the two slashes.
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.DOTALL)


def url_of(place: str | Path) -> str | None:
    """Return the URL that a place is; None for a folder of this machine.

    >>> url_of(Path("s3://bucket/wiki")), url_of("file:///data/wiki"), url_of("data/wiki")
    ('s3://bucket/wiki', 'file:///data/wiki', None)
    """
    match = _URL.fullmatch(str(place))
    if match is None:
        return None
    scheme, rest = match.groups()
    return f"{scheme}:///{rest}" if scheme == "file" else f"{scheme}://{rest}"


def local_folder(place: str | Path) -> Path:
    """Return the folder of an index: the place itself, or a copy of all that is at a URL."""
    url = url_of(place)
    if url is None:
        return Path(place)
    folder, manifest = fetch_manifest(url)
    fetch_parts(url, folder, manifest, parts_of(manifest))
    return folder


def manifest_of(place: str | Path) -> Manifest:
    """Return the manifest of an index, in a folder or at a URL."""
    url = url_of(place)
    return fetch_manifest(url)[1] if url else read_manifest(Path(place))


def fetch_manifest(url: str) -> tuple[Path, Manifest]:
    """Return the manifest at a URL, and the folder of its copy."""
    store, root = _open_store(url)
    body = _read(store, f"{root}/{MANIFEST}", url)
    if body is None:
        raise NoIndex(
            f"There is no index at '{url}'. Build one in a folder, and copy it: whichsense index copy DIR {url}"
        )
    name = hashlib.sha256(url.encode() + b"\n" + body).hexdigest()[:20]
    folder = cache_folder() / "fetched" / name
    if not (folder / MANIFEST).exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / MANIFEST, body.decode())
    return folder, read_manifest(folder)


def fetch_parts(url: str, folder: Path, manifest: Manifest, parts: Iterable[str]) -> None:
    """Fetch what the copy lacks of some parts (see `parts_of`). A file is there whole, or not at all."""
    with open(folder / "fetching.lock", "ab") as file:
        lock(file, wait=True)  # one of a machine's workers fetches for all
        _fetch(url, folder, manifest, set(parts))


def _fetch(url: str, folder: Path, manifest: Manifest, wanted: set[str]) -> None:
    store, root = _open_store(url)
    for name, record in manifest.files.items():
        path = folder / manifest.folder / name
        if name.partition("/")[0] not in wanted or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        there = f"{root}/{manifest.folder}/{name}"
        try:
            with store.open(there, "rb") as source, open(beside, "wb") as copy:
                shutil.copyfileobj(source, copy, 2**20)
            if sha256(beside) != record.sha256:
                raise DamagedIndex(
                    f"'{there}' is not what the manifest at '{url}' says: it is damaged, or from another build. "
                    f"Copy the index once more: whichsense index copy DIR {url}"
                )
            os.replace(beside, path)
        except FileNotFoundError:
            raise DamagedIndex(
                f"'{there}' is missing. Copy the index once more: whichsense index copy DIR {url}"
            ) from None
        except WhichsenseError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise DiskFull(path) from None
            raise _unreachable(url, error) from None
        finally:
            beside.unlink(missing_ok=True)


def copy_index(folder: Path, url: str, progress: Progress = silent) -> Manifest:
    """Copy an index to a URL. Its manifest comes last, so that whoever reads there finds the old index or the new one.

    A copy that was ended is resumed. One that is complete is made again, for it may be damaged.
    """
    manifest = read_manifest(folder)
    body = (folder / MANIFEST).read_bytes()
    if json.loads(body)["generation"] != manifest.generation:
        raise IndexBusy(f"'{folder}' was changed just now. Copy it once more.")
    store, root = _open_store(url)
    there = f"{root}/{manifest.folder}"
    served = _read(store, f"{root}/{MANIFEST}", url)
    _check_generation(served, body, url)
    is_begun = _read(store, f"{there}/{MANIFEST}", url) == body and served != body
    try:
        if not is_begun:
            if served != body and store.exists(there):
                store.rm(there, recursive=True)  # what another copy left
            _write(store, f"{there}/{MANIFEST}", body)
        for number, (name, record) in enumerate(manifest.files.items()):
            progress(number / len(manifest.files), number)
            place = f"{there}/{name}"
            if is_begun and _size(store, place) == record.size:
                continue
            _make_folder(store, place)
            store.put_file(str(folder / manifest.folder / name), place)
        progress(1.0, len(manifest.files))
        _write(store, f"{root}/{MANIFEST}", body)
    except Exception as error:
        raise WriteFault(
            f"The index could not be copied to '{url}' ({error}). Check the address and the rights to it; "
            "the same command resumes."
        ) from None
    return manifest


def _check_generation(served: bytes | None, body: bytes, url: str) -> None:
    """Raise BadInput where another index has a folder of this one's name: its readers would find both mixed."""
    if served is None or served == body:
        return
    try:
        number = json.loads(served)["generation"]
    except (ValueError, TypeError, KeyError):
        raise BadInput(
            f"What is at '{url}' is not an index. Choose another URL, or delete it."
        ) from None
    if number == json.loads(body)["generation"]:
        raise BadInput(
            f"There is another index at '{url}', with a generation of the same number ({number}). "
            "Choose another URL, or delete what is there."
        )


# The exceptions of a store are its own: those of s3fs are not all OSErrors.
def _read(store: Any, place: str, url: str) -> bytes | None:
    try:
        return bytes(store.cat_file(place))
    except FileNotFoundError:
        return None
    except Exception as error:
        raise _unreachable(url, error) from None


def _write(store: Any, place: str, body: bytes) -> None:
    """Beside its place and renamed: a file is there whole, or not at all, in a folder of this machine too."""
    _make_folder(store, place)
    store.pipe_file(f"{place}.tmp", body)
    store.mv(f"{place}.tmp", place)


def _make_folder(store: Any, place: str) -> None:
    """Only file systems need one. s3fs would make a bucket of a name that is mistyped."""
    protocols = [store.protocol] if isinstance(store.protocol, str) else store.protocol
    if "file" in protocols:
        store.makedirs(place.rpartition("/")[0], exist_ok=True)


def _size(store: Any, place: str) -> int | None:
    try:
        return int(store.size(place))
    except FileNotFoundError:
        return None


def _open_store(url: str) -> tuple[Any, str]:
    fsspec = require("fsspec", "cluster")
    try:
        store, root = fsspec.core.url_to_fs(url)
    except Exception as error:
        raise NoIndex(
            f"'{url}' cannot be opened: {error} Stores have packages of their own, such as s3fs or gcsfs."
        ) from None
    return store, root.rstrip("/")


def _unreachable(url: str, error: Exception) -> NoIndex:
    return NoIndex(f"'{url}' cannot be read ({error}). Check its address and the rights to it.")
