"""Fetch a dataset by name; explain what to do where there is no network."""

from __future__ import annotations

import errno
import http.client
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeGuard

from whichsense.errors import DamagedData, MissingData
from whichsense.files import sha256
from whichsense.jobs.limits import Progress
from whichsense.lab.datasets.catalog import (
    Download,
    Entry,
    advise_getting,
    entry,
    fetch_folder,
    fetched_name,
    find,
    names,
)

_TIMEOUT = 60  # seconds
_CHUNK = 2**18  # bytes
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# Errors of a disk. Those of a network have other numbers, or come as URLError.
_DISK_ERRORS = {
    *_NO_SPACE,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EIO,
}


def fetch_dataset(name: str, data_dir: str | Path | None, force: bool, progress: Progress) -> Path:
    """Do the work of `datasets.fetch`."""
    about = entry(name)
    present = find(about, data_dir)
    if about.family.packaged or (present and not force):
        if present is None:
            advice = advise_getting(about, data_dir)
            raise MissingData(f"'{name}' is missing. {advice}")
        return present
    if about.download is None:
        advice = advise_getting(about, data_dir)
        raise MissingData(f"'{name}' cannot be fetched. {advice}")
    with _explain_errors(about, about.download, data_dir):
        folder = fetch_folder(about, data_dir)
        folder.mkdir(parents=True, exist_ok=True)
        file_name = about.download.url.rsplit("/", 1)[-1]
        part = folder / f".{file_name}.part"
        try:
            _download(about.download, part, progress)
            return _put_in_place(about, part, data_dir)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _explain_errors(about: Entry, source: Download, data_dir: str | Path | None) -> Iterator[None]:
    """Turn errors of disk and network into messages, each with its own advice."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        if _is_disk_error(error):
            folder = fetch_folder(about, data_dir)
            full = error.errno in _NO_SPACE
            raise MissingData(
                f"'{about.name}' could not be written to '{folder}': {error.strerror}. "
                f"{'Free some space' if full else 'Check its rights'} and run it again, or name another folder "
                "with --data-dir."
            ) from None
        reason = error.reason if type(error) is urllib.error.URLError else error
        raise MissingData(
            f"'{about.name}' could not be fetched from {source.url}: {reason}. Are you offline? "
            f"{advise_getting(about, data_dir)}"
        ) from None


def _is_disk_error(error: Exception) -> TypeGuard[OSError]:
    # URLError is an OSError, too, and HTTPError is a URLError
    if not isinstance(error, OSError) or isinstance(error, urllib.error.URLError):
        return False
    return error.errno in _DISK_ERRORS


def _download(source: Download, part: Path, progress: Progress) -> None:
    """Download the whole file into `part`, and compare its checksum."""
    request = urllib.request.Request(source.url, headers={"User-Agent": "whichsense"})
    done = 0  # bytes
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        with open(part, "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done / total if total else None, done // 1024)
    if done < total:
        raise http.client.HTTPException(
            f"the connection broke after {done:,} of {total:,} bytes; run it again"
        )
    if source.sha256 and sha256(part) != source.sha256:
        raise DamagedData(
            f"{source.url} has the wrong checksum (expected sha256 {source.sha256}). Nothing was changed. "
            "It was damaged on the way or has a new version: try again, or report it."
        )


def _put_in_place(about: Entry, part: Path, data_dir: str | Path | None) -> Path:
    """Move a plain file to its place; unpack an archive, with all datasets that it holds."""
    assert about.download is not None
    folder = fetch_folder(about, data_dir)
    url = about.download.url
    if not about.download.member:
        suffix = ".gz" if url.endswith(".gz") else ""
        place = folder / (fetched_name(about) + suffix)
        os.replace(part, place)
        return place
    for other in map(entry, names()):
        if other.download is not None and other.download.url == url:
            _unpack(part, other.download, folder / fetched_name(other))
    return folder / fetched_name(about)


def _unpack(archive: Path, download: Download, place: Path) -> None:
    """Write one file of an archive to its place in one step."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with _open_member(archive, download) as source, open(temporary, "wb") as file:
            shutil.copyfileobj(source, file)
        os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _open_member(archive: Path, download: Download) -> Iterator[IO[bytes]]:
    """One file of an archive, by its name, in whichever of its folders."""
    url = download.url
    wanted = download.member.rsplit("/", 1)[-1]
    try:
        opened = zipfile.ZipFile(archive) if url.endswith(".zip") else tarfile.open(archive)
        with opened as packed:
            for name, open_file in _members(packed):
                if name.rsplit("/", 1)[-1] == wanted:
                    with open_file() as file:
                        yield file
                    return
        raise DamagedData(f"{url} does not hold '{wanted}'. It has a new version: report it.")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error):
        raise DamagedData(
            f"{url} is not a whole archive. Nothing was changed: try again."
        ) from None


def _members(packed: zipfile.ZipFile | tarfile.TarFile) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each file, and what opens it."""
    if isinstance(packed, zipfile.ZipFile):
        for name in packed.namelist():
            yield name, partial(packed.open, name)
        return
    for item in packed:
        if item.isfile():
            yield item.name, partial(packed.extractfile, item)
