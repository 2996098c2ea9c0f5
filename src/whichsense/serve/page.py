"""The page: files that a browser gets, with no build step and nothing from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from whichsense.corpus.file_formats import SUFFIXES
from whichsense.serve.problems import not_found

# The page's files in memory: compressed once, named by what they hold.

FOLDER = Path(__file__).parent / "page" / "assets"
DOCUMENT = "index.html"
_HERE = b"{assets}"  # in the document: the folder of this version's files
_ROOT = b"{root}"  # what the service's addresses begin with
_FORMATS = b"{formats}"  # and the names of files that can be added
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
def bundle(root: str = "") -> Bundle:
    """Read the files of the page, for a service whose addresses begin with `root`."""
    return make_bundle(read_folder(FOLDER), root)


def read_folder(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def make_bundle(contents: dict[str, bytes], root: str) -> Bundle:
    """Compress files of which one is the document; the others' addresses are written into it."""
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(name.encode() + b"\0" + content)
    version = digest.hexdigest()[:12]
    here = f"{root}/page/{version}".encode()
    page = contents[DOCUMENT].replace(_HERE, here).replace(_ROOT, root.encode())
    # Dumps are too large to send.
    sent = [suffix for suffix, name in SUFFIXES.items() if name != "wikipedia"]
    page = page.replace(_FORMATS, ",".join(sent).encode())
    assets = {
        name: Asset.of(name, content) for name, content in contents.items() if name != DOCUMENT
    }
    return Bundle(version, Asset.of(DOCUMENT, page), assets)


# / and its files. Every address of the page has the same document; its script shows what the address
# names.

router = APIRouter(include_in_schema=False)
_ALWAYS_ASK = "no-cache"
_FOR_EVER = "public, max-age=31536000, immutable"


@router.get("/")
@router.get("/q/{case_id}")
@router.get("/t/{thread_id}")
@router.get("/t/{thread_id}/{turn}")
@router.get("/compare")
@router.get("/compare/{left}/{right}")
@router.get("/corpus")
@router.get("/traces")
async def document(request: Request) -> Response:
    """The page."""
    return send_document(bundle, request)


@router.get("/page/{version}/{name}")
async def asset(version: str, name: str, request: Request) -> Response:
    """A file of the page. An older version's address gives today's file, and is not kept."""
    return send_asset(bundle, version, name, request)


# For every page that is served in this way.


def send_document(bundle: Callable[[str], Bundle], request: Request) -> Response:
    """Answer with a bundle's document."""
    document = bundle(request.scope.get("root_path", "")).document
    return _respond(request, document, _ALWAYS_ASK)


def send_asset(
    bundle: Callable[[str], Bundle], version: str, name: str, request: Request
) -> Response:
    """Answer with a file of a bundle; it is kept for ever where its version is asked for."""
    current = bundle("")
    found = current.assets.get(name)
    if found is None:
        raise not_found("file", "Load the page again.")
    caching = _FOR_EVER if version == current.version else _ALWAYS_ASK
    return _respond(request, found, caching)


def _respond(request: Request, asset: Asset, caching: str) -> Response:
    headers = {"Cache-Control": caching, "ETag": asset.tag, "Vary": "Accept-Encoding"}
    known = request.headers.get("if-none-match", "")
    if asset.tag in [tag.strip().removeprefix("W/") for tag in known.split(",")]:
        return Response(status_code=304, headers=headers)
    body = asset.plain
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        body = asset.zipped
    return Response(body, headers=headers, media_type=asset.media_type)
