"""/v1/corpus: what is indexed; add a file, delete one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from whichsense import index as indexes
from whichsense.errors import BadInput, IndexBusy, MissingExtra
from whichsense.serve.access import Caller, requires
from whichsense.serve.answering.queue import OnStage, new_id
from whichsense.serve.answering.running import Running
from whichsense.serve.events import dump
from whichsense.serve.problems import Problem, Refused, not_found
from whichsense.serve.routes.ask import Asks, as_json, service_of, wants_events
from whichsense.serve.schemas.description import STREAM, problems
from whichsense.serve.schemas.responses import CorpusModel, SourceModel
from whichsense.serve.service import Service

router = APIRouter(prefix="/v1/corpus", tags=["corpus"])
Result = TypeVar("Result")
Writes = Annotated[Caller, Depends(requires("write"))]
SourceName = Annotated[str, Path(pattern=r"^[\w][\w. -]{0,99}$")]
_EMBEDDED = Problem(
    409,
    "embedded",
    "The embedded corpora are not written to.",
    "Serve an index of your own: whichsense index build … --out DIR, whichsense serve --index DIR",
)
_BUSY = Problem(
    409,
    "index-busy",
    "Another process is writing to the index.",
    "Try again when it is done.",
)


@router.get("", response_model=CorpusModel, responses=problems())
async def corpus(request: Request, caller: Asks) -> Response:
    """What is indexed: passages, when it was built, the names of its sources."""
    service = service_of(request)
    manifest = service.served.index.manifest
    names = []
    for source in manifest.sources:
        # Names alone: where the files lay is nobody else's business.
        names += [FilePath(path).name for path in source.get("paths", ())]
    table = {
        "passages": manifest.passages,
        "generation": manifest.generation,
        "created": manifest.created,
        "sources": names[:1000],
        "writable": not service.settings.is_embedded,
    }
    return as_json(dump(table))


@router.put(
    "/sources/{name}",
    response_model=SourceModel,
    responses={200: {"content": STREAM}, **problems(409, 410, 422)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {}}},
        }
    },
)
async def add(name: SourceName, request: Request, caller: Writes) -> Response:
    """Add a file to the index; its name says its format. Streamed, events `progress` say how far it is.

    After a stop in between, the same request resumes.
    """
    service = service_of(request)
    folder = _writable(service)
    path = service.settings.state / "uploads" / name
    await _receive(request, path)

    def work(running: Running, on_stage: OnStage) -> str:
        def progress(done: float | None, count: int) -> None:
            running.limits.check()
            if running.streamed:
                running.publish("progress", dump({"done": done, "passages": count}))

        before = len(service.served.index)
        manifest = _written(lambda: indexes.add([path], folder, progress=progress))
        path.unlink(missing_ok=True)
        service.engine.refresh()
        return dump(
            {
                "source": path.stem,
                "passages": manifest.passages,
                "changed": manifest.passages - before,
            }
        )

    streamed = wants_events(request)
    running = service.writing.submit(work, caller.id, streamed=streamed)
    if streamed:
        return await service.stream(running)
    return as_json(await service.result(running, request, service.writing))


@router.delete(
    "/sources/{name}", response_model=SourceModel, responses=problems(404, 409, 422)
)
async def delete(name: SourceName, request: Request, caller: Writes) -> Response:
    """Delete all passages of a source."""
    service = service_of(request)
    folder = _writable(service)

    def work(running: Running, on_stage: OnStage) -> str:
        manifest, deleted = _written(lambda: indexes.delete(folder, [], [name]))
        if not deleted:
            raise not_found("source", "See the passages' field 'source'.")
        service.engine.refresh()
        table = {"source": name, "passages": manifest.passages, "changed": -deleted}
        return dump(table)

    running = service.writing.submit(work, caller.id)
    return as_json(await service.result(running, request, service.writing))


def _writable(service: Service) -> str:
    if service.settings.is_embedded:
        raise Refused(_EMBEDDED)
    return service.settings.index


async def _receive(request: Request, path: FilePath) -> None:
    """Write the body to a file; only a whole one gets the file's name."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{new_id()}")
    try:
        with open(beside, "wb") as file:
            async for chunk in request.stream():
                await asyncio.to_thread(file.write, chunk)
        os.replace(beside, path)
    except OSError:
        title = "There is no room for the file."
        fix = "Tell the operator: the disk of the state folder is full."
        raise Refused(Problem(503, "disk-full", title, fix)) from None
    finally:
        beside.unlink(missing_ok=True)


def _written(write: Callable[[], Result]) -> Result:
    """Write to the index. Errors name files, so that a problem without them takes their place."""
    try:
        return write()
    except IndexBusy:
        raise Refused(_BUSY) from None
    except MissingExtra:
        title = "The service cannot read files of this format."
        fix = "Tell the operator: pip install 'whichsense[documents]'"
        raise Refused(Problem(409, "format", title, fix)) from None
    except BadInput:
        title = "The file holds nothing that can be read."
        fix = "Send text, Markdown, HTML, PDF, Word, JSON lines, TSV or CSV under a name that says so."
        raise Refused(Problem(422, "file", title, fix)) from None
