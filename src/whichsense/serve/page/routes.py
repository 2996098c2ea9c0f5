"""/ and its files. Every address of the page has the same document; its script shows what the address names."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from whichsense.serve.page.bundle import Asset, bundle
from whichsense.serve.problems import not_found

router = APIRouter(include_in_schema=False)
_ALWAYS_ASK = "no-cache"
_FOR_EVER = "public, max-age=31536000, immutable"


@router.get("/")
@router.get("/q/{case_id}")
@router.get("/compare")
@router.get("/compare/{left}/{right}")
@router.get("/corpus")
@router.get("/traces")
async def document(request: Request) -> Response:
    """The page."""
    return _respond(request, bundle().document, _ALWAYS_ASK)


@router.get("/page/{version}/{name}")
async def asset(version: str, name: str, request: Request) -> Response:
    """A file of the page. An older version's address gives today's file, and is not kept."""
    found = bundle().assets.get(name)
    if found is None:
        raise not_found("file", "Load the page again.")
    is_current = version == bundle().version
    return _respond(request, found, _FOR_EVER if is_current else _ALWAYS_ASK)


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
