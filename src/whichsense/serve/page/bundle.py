"""The page's files in memory: compressed once, named by what they hold."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "assets"
DOCUMENT = "index.html"
_HERE = b"{assets}"  # in the document: the folder of this version's files
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as it is and compressed."""

    media_type: str
    plain: bytes
    zipped: bytes
    tag: str
    """Of its content: a browser that has it gets 304."""

    @classmethod
    def of(cls, name: str, content: bytes) -> Asset:
        tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        zipped = gzip.compress(content, 9, mtime=0)
        return cls(_TYPES[Path(name).suffix], content, zipped, tag)


@dataclass(frozen=True, slots=True)
class Bundle:
    """All files of one version of the page."""

    version: str
    """Of all files together; it stands in their addresses, so that they may be kept for ever."""
    document: Asset
    assets: dict[str, Asset]

    @property
    def zipped_bytes(self) -> int:
        """What a first visit transfers at most."""
        parts = (self.document, *self.assets.values())
        return sum(len(part.zipped) for part in parts)


@cache
def bundle() -> Bundle:
    """The files of the package."""
    contents = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir())}
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(name.encode() + b"\0" + content)
    version = digest.hexdigest()[:12]
    page = contents.pop(DOCUMENT).replace(_HERE, f"/page/{version}".encode())
    assets = {name: Asset.of(name, content) for name, content in contents.items()}
    return Bundle(version, Asset.of(DOCUMENT, page), assets)
