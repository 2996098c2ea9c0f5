"""Files on their way into the index: pieces of one that is being sent, and whole ones until they are read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from whichsense.files import lock, sha256
from whichsense.jobs.limits import check_limits

_KEPT = (
    86_400.0  # seconds for which a file that was not sent to its end can be continued
)
_POLL = 0.05  # seconds between two looks at whose turn it is


class Uploads:
    """A folder. A client calls its upload by a key of its own; what is there of it outlives the service."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def part(self, owner: str, key: str) -> Path:
        """Where the pieces of an upload are put together."""
        digest = hashlib.sha256(f"{owner}\0{key}".encode("utf-8", "replace"))
        return self._folder / "parts" / digest.hexdigest()[:32]

    def received(self, owner: str, key: str) -> int:
        """How many bytes of an upload are there: the offset from which it is continued."""
        try:
            return self.part(owner, key).stat().st_size
        except FileNotFoundError:
            return 0

    def begin(self) -> None:
        """Make the folder, and sweep what nobody continued."""
        (self._folder / "parts").mkdir(parents=True, exist_ok=True, mode=0o700)
        before = time.time() - _KEPT
        for path in (*self._folder.glob("*"), *self._folder.glob("parts/*")):
            with contextlib.suppress(OSError):
                if path.name != "parts" and path.stat().st_mtime < before:
                    _remove(path)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other worker changes the index, and keep the others waiting until the block ends."""
        path = self._folder.with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "wb") as file:
            while not lock(file):
                check_limits()
                time.sleep(_POLL)
            yield

    @contextlib.contextmanager
    def named(self, body: Path, name: str) -> Iterator[Path]:
        """A whole file under its own name, in a folder of its own that ends with the block.

        Its time says what it holds: an index that was stopped while it read the file resumes with the same bytes, and
        with no others.
        """
        place = self._folder / os.urandom(16).hex()
        place.mkdir(parents=True, mode=0o700)
        path = place / name
        try:
            try:
                os.link(body, path)
            except OSError:  # a file system without links
                shutil.copyfile(body, path)
            digest = int(sha256(path)[:16], 16)
            seconds = digest % 2**31
            os.utime(path, ns=(0, seconds * 10**9))
            yield path
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
