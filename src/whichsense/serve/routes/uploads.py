"""/v1/corpus/uploads: a file in pieces. What has arrived stays: after a break, the rest is sent."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path as FilePath
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Depends, Header, Path, Request
from starlette.responses import Response

from whichsense.serve.access import Caller, requires
from whichsense.serve.answering.queue import new_id
from whichsense.serve.events import dump
from whichsense.serve.guard import TOO_LARGE
from whichsense.serve.problems import Problem, Refused
from whichsense.serve.routes.ask import as_json, service_of
from whichsense.serve.schemas.description import problems
from whichsense.serve.schemas.responses import UploadModel
from whichsense.serve.service import Service

router = APIRouter(prefix="/v1/corpus/uploads", tags=["corpus"])
Writes = Annotated[Caller, Depends(requires("write"))]
KEY = r"[A-Za-z0-9_-]{8,100}"
UploadKey = Annotated[
    str, Path(pattern=f"^{KEY}$", description="Chosen by the client, for one file.")
]
_EMBEDDED = Problem(
    409,
    "embedded",
    "The embedded corpora are not written to.",
    "Serve an index of your own: whichsense index build … --out DIR, whichsense serve --index DIR",
)
_SCOPE = Problem(
    403,
    "scope",
    "This key lacks the scope 'write'.",
    "Use a key made with: whichsense keys add NAME --scope ask --scope write",
)
_NO_ROOM = Problem(
    503,
    "disk-full",
    "There is no room for the file.",
    "Tell the operator: the disk of the state folder is full.",
)


def writable(service: Service, caller: Caller) -> str:
    """The folder of the index, if it can be written to and this caller may; Refused where not."""
    if service.settings.is_embedded:
        raise Refused(_EMBEDDED)
    if "write" not in caller.scopes:
        raise Refused(_SCOPE)
    return service.settings.index


@router.get("/{key}", response_model=UploadModel, responses=problems(409, 422))
async def received(key: UploadKey, request: Request, caller: Writes) -> Response:
    """How many bytes of an upload have arrived: where to go on."""
    service = service_of(request)
    writable(service, caller)
    size = await service.briefly(lambda: service.uploads.received(caller.id, key))
    return as_json(dump({"received": size}))


@router.patch(
    "/{key}",
    response_model=UploadModel,
    responses=problems(409, 422),
    openapi_extra={
        "requestBody": {
            "required": False,
            "content": {"application/octet-stream": {"schema": {}}},
        }
    },
)
async def append(
    key: UploadKey,
    request: Request,
    caller: Writes,
    upload_offset: Annotated[
        int, Header(ge=0, le=2**40, description="Where in the file this piece begins.")
    ],
) -> Response:
    """Send a piece of a file. It may overlap what has arrived, and may not leave a gap.

    When all of it is there, `PUT /v1/corpus/sources/{name}?upload={key}` adds it to the index.
    """
    service = service_of(request)
    writable(service, caller)
    part = service.uploads.part(caller.id, key)
    await receive(request, service, part, upload_offset)
    return as_json(dump({"received": service.uploads.received(caller.id, key)}))


async def receive(
    request: Request, service: Service, path: FilePath, offset: int | None = None
) -> None:
    """Write a body into a file from an offset on; without one, it is the file, which is there only when it is whole."""
    try:
        await asyncio.to_thread(service.uploads.begin)
        if offset is None:
            beside = path.with_name(f".{new_id()}")
            try:
                with open(beside, "wb") as file:
                    await _copy(request, file, service.settings.upload_bytes)
                os.replace(beside, path)
            finally:
                beside.unlink(missing_ok=True)
            return
        with open(path, "ab") as file:
            if offset > file.tell():
                raise Refused(_gap(file.tell()))
        with open(path, "r+b") as file:
            file.seek(offset)
            await _copy(request, file, service.settings.upload_bytes)
    except OSError:
        raise Refused(_NO_ROOM) from None


async def _copy(request: Request, file: BinaryIO, most: int) -> None:
    async for chunk in request.stream():
        if file.tell() + len(chunk) > most:
            raise Refused(TOO_LARGE)
        await asyncio.to_thread(file.write, chunk)


def _gap(received: int) -> Problem:
    return Problem(
        409,
        "gap",
        f"Only {received} bytes of this file have arrived.",
        f"Go on from there: Upload-Offset: {received}",
    )
