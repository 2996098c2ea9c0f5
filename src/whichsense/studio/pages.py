"""The studio's pages: one document for every address, its own files, and those that it has from the service's page."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from whichsense.serve import page
from whichsense.serve.page import Bundle, make_bundle, read_folder

FOLDER = Path(__file__).parent / "page"
_SHARED = ("dom.js", "icon.svg", "page.css", "text.js", "theme.js")
"""Of the service's page: its helpers and its look."""
_ADDRESSES = (
    "/",
    "/item/{number}",
    "/progress",
    "/adjudicate",
    "/adjudicate/{number}",
    "/agreement",
    "/pay",
    "/members",
)


@cache
def bundle(root: str = "") -> Bundle:
    """Read the files of the studio's pages, for a studio whose addresses begin with `root`."""
    service = read_folder(page.FOLDER)
    shared = {name: service[name] for name in _SHARED}
    return make_bundle({**shared, **read_folder(FOLDER)}, root)


router = APIRouter(include_in_schema=False)


async def document(request: Request) -> Response:
    """The document. Its script shows what the address names."""
    return page.send_document(bundle, request)


for address in _ADDRESSES:
    router.add_api_route(address, document)


@router.get("/page/{version}/{name}")
async def asset(version: str, name: str, request: Request) -> Response:
    """A file of the pages."""
    return page.send_asset(bundle, version, name, request)
