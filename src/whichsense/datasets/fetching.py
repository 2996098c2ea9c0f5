"""Fetch a dataset by name, for users who are online; a clear message for those who are not."""

from __future__ import annotations

import errno
import http.client
import json
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from whichsense.datasets.catalog import Download, Entry, entry, names
from whichsense.datasets.folder import (
    advise_getting,
    fetch_folder,
    fetched_name,
    find,
)
from whichsense.errors import DamagedData, MissingData
from whichsense.files import sha256
from whichsense.jobs.progress import Progress

_TIMEOUT = 60
_CHUNK = 2**18


def fetch_dataset(
    name: str, data_dir: str | Path | None, force: bool, progress: Progress
) -> Path:
    """The work of `datasets.fetch`."""
    about = entry(name)
    present = find(about, data_dir)
    if about.family.packaged or (present and not force):
        if present is None:
            raise MissingData(f"'{name}' is missing. {advise_getting(about, data_dir)}")
        return present
    if about.download is None:
        raise MissingData(
            f"'{name}' cannot be fetched. {advise_getting(about, data_dir)}"
        )
    with _explained(about, about.download, data_dir):
        folder = fetch_folder(about, data_dir)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{about.download.url.rsplit('/', 1)[-1]}.part"
        _download(about.download, part, progress)
        try:
            return _put_in_place(about, part, data_dir)
        finally:
            part.unlink(missing_ok=True)


_HERE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EIO,
}
"""What can be wrong with a disk. A network has other numbers, or comes as URLError."""


@contextmanager
def _explained(
    about: Entry, source: Download, data_dir: str | Path | None
) -> Iterator[None]:
    """Errors of disk and network in words, each with its own advice."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        if (
            isinstance(error, OSError)
            and not isinstance(error, urllib.error.URLError)
            and error.errno in _HERE
        ):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise MissingData(
                f"'{about.name}' could not be written to '{fetch_folder(about, data_dir)}': {error.strerror}. "
                f"{'Free some space' if full else 'Check its rights'} and run it again, or name another folder "
                "with --data-dir."
            ) from None
        reason = error.reason if type(error) is urllib.error.URLError else error
        raise MissingData(
            f"'{about.name}' could not be fetched from {source.url}: {reason}. Are you offline? "
            f"{advise_getting(about, data_dir)}"
        ) from None


def _download(source: Download, part: Path, progress: Progress) -> None:
    """Bring the whole of it into `part`; the file beside it remembers which version was begun."""
    if part.exists() and source.sha256 and sha256(part) == source.sha256:
        return
    resumed = _receive(source.url, part, progress)
    if source.sha256 and sha256(part) != source.sha256:
        part.unlink()
        if (
            resumed
        ):  # the rest may belong to a newer file: once more, from the beginning
            _receive(source.url, part, progress)
            if sha256(part) == source.sha256:
                return
            part.unlink()
        raise DamagedData(
            f"{source.url} has the wrong checksum (expected sha256 {source.sha256}). Nothing was changed. "
            "It was damaged on the way or has a new version: try again, or report it."
        )


def _receive(url: str, part: Path, progress: Progress) -> bool:
    """Download, going on from what is there where the server allows it; True where it went on."""
    tag_file = part.with_suffix(".tag")
    begun = part.stat().st_size if part.exists() else 0
    tag = json.loads(tag_file.read_text()) if begun and tag_file.exists() else ""
    request = urllib.request.Request(url, headers={"User-Agent": "whichsense"})
    if begun and tag:
        request.add_header("Range", f"bytes={begun}-")
        request.add_header("If-Range", tag)
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not begun:
            raise
        error.close()
        part.unlink()  # what was begun does not fit what is there now
        return _receive(url, part, progress)
    with answer:
        resumed: bool = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        done = begun if resumed else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        # A weak tag does not promise the same bytes, so it is of no use for going on.
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        tag_file.write_text(json.dumps("" if tag.startswith("W/") else tag))
        with open(part, "ab" if resumed else "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done / total if total else None, done // 1024)
    if total is not None and done < total:
        raise http.client.HTTPException(
            f"the connection broke after {done:,} of {total:,} bytes; run it again to go on"
        )
    tag_file.unlink(missing_ok=True)
    return resumed


def _put_in_place(about: Entry, part: Path, data_dir: str | Path | None) -> Path:
    """Move a plain file to its place; unpack an archive, with all datasets that it holds."""
    assert about.download is not None
    folder = fetch_folder(about, data_dir)
    url = about.download.url
    if not about.download.member:
        place = folder / (fetched_name(about) + (".gz" if url.endswith(".gz") else ""))
        os.replace(part, place)
        return place
    for other in (entry(name) for name in names()):
        if other.download is None or other.download.url != url:
            continue
        beside = folder / f".{fetched_name(other)}.{os.getpid()}.tmp"
        try:
            with (
                _member(part, other.download, url) as source,
                open(beside, "wb") as file,
            ):
                shutil.copyfileobj(source, file)
            os.replace(beside, folder / fetched_name(other))
        finally:
            beside.unlink(missing_ok=True)
    return folder / fetched_name(about)


@contextmanager
def _member(archive: Path, download: Download, url: str) -> Iterator[IO[bytes]]:
    """One file of an archive, found by its name wherever it lies in it; nothing else is unpacked."""
    wanted = download.member.rsplit("/", 1)[-1]
    try:
        with (
            zipfile.ZipFile(archive)
            if url.endswith(".zip")
            else tarfile.open(archive) as packed
        ):
            file = (
                _zipped(packed, wanted)
                if isinstance(packed, zipfile.ZipFile)
                else _tarred(packed, wanted)
            )
            if file is None:
                raise DamagedData(
                    f"{url} does not hold '{wanted}'. It has a new version: report it."
                )
            with file:
                yield file
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error):
        raise DamagedData(
            f"{url} is not a whole archive. Nothing was changed: try again."
        ) from None


def _zipped(packed: zipfile.ZipFile, wanted: str) -> IO[bytes] | None:
    inside = next(
        (item for item in packed.namelist() if item.rsplit("/", 1)[-1] == wanted), None
    )
    return packed.open(inside) if inside else None


def _tarred(packed: tarfile.TarFile, wanted: str) -> IO[bytes] | None:
    inside = next(
        (
            item
            for item in packed
            if item.isfile() and item.name.rsplit("/", 1)[-1] == wanted
        ),
        None,
    )
    return packed.extractfile(inside) if inside else None
