"""/v1/corpus: what is indexed; add a file, delete one."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator
from starlette.responses import Response

from whichsense.jobs.limits import within
from whichsense.serve.answering.queue import OnStage
from whichsense.serve.answering.running import Running
from whichsense.serve.documents import LISTED, add_file, delete_source, list_sources
from whichsense.serve.events import dump
from whichsense.serve.problems import Problem, Refused, not_found
from whichsense.serve.routes.ask import Asks, as_json, service_of, wants_events
from whichsense.serve.routes.uploads import KEY, Writes, receive, writable
from whichsense.serve.schemas.description import STREAM, problems
from whichsense.serve.schemas.responses import (
    AddedModel,
    CorpusModel,
    SourceList,
    SourceModel,
)

router = APIRouter(prefix="/v1/corpus", tags=["corpus"])
# What a terminal acts on, or what turns the direction of writing.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def _file_name(name: str) -> str:
    """A name that shows what it is, and is neither in another folder nor hidden."""
    if not FilePath(name).stem.strip():
        raise ValueError("The file's name is blank. Give the file a name.")
    if _UNSEEN.search(name):
        raise ValueError(
            "The file's name has control characters. Give the file another name."
        )
    if name.startswith(".") or "/" in name or "\\" in name:
        raise ValueError(
            "The file's name has a folder, or begins with a dot. Give the name alone."
        )
    return name


FileName = Annotated[str, Path(), AfterValidator(_file_name)]
SourceName = Annotated[str, Path(max_length=1000)]
_LONGEST_NAME = 200  # bytes; file systems have 255
_NAME = Problem(
    422, "name", "The file's name is too long.", "Give the file a shorter name."
)
_INCOMPLETE = Problem(
    409,
    "incomplete",
    "Nothing was sent under this key.",
    "Send the file to /v1/corpus/uploads/{key} first.",
)


@router.get("", response_model=CorpusModel, responses=problems())
async def corpus(request: Request, caller: Asks) -> Response:
    """What is indexed: passages, when it was built, the names of its sources, and whether this caller may change it."""
    service = service_of(request)
    manifest = service.served.index.manifest
    names = []
    for source in manifest.sources:
        # Names alone: where the files lay is nobody else's business.
        names += [FilePath(path).name for path in source.get("paths", ())]
    fix = ""
    try:
        writable(service, caller)
    except Refused as refused:
        fix = refused.problem.fix
    table = {
        "passages": manifest.passages,
        "generation": manifest.generation,
        "created": manifest.created,
        "sources": names[:1000],
        "writable": not fix,
        "fix": fix,
        "most_bytes": service.settings.upload_bytes,
    }
    return as_json(dump(table))


@router.get("/sources", response_model=SourceList, responses=problems(422))
async def sources(
    request: Request, caller: Asks, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> Response:
    """What is indexed, source by source, the latest first. An index of very many passages is not gone through."""
    service = service_of(request)
    index = service.served.index

    def work() -> str:
        listed = list_sources(index) if len(index) <= LISTED else []
        is_whole = len(index) <= LISTED and len(listed) <= limit
        return dump({"sources": listed[:limit], "complete": is_whole})

    return as_json(await service.briefly(work))


@router.put(
    "/sources/{name}",
    response_model=AddedModel,
    responses={200: {"content": STREAM}, **problems(409, 410, 422)},
    openapi_extra={
        "requestBody": {
            "required": False,
            "content": {"application/octet-stream": {"schema": {}}},
        }
    },
)
async def add(
    name: FileName,
    request: Request,
    caller: Writes,
    upload: Annotated[
        str,
        Query(
            pattern=f"^({KEY})?$",
            description="The key under which the file was sent in pieces; then there is no body.",
        ),
    ] = "",
) -> Response:
    """Add a file to the index; its name says its format. Streamed, events `progress` say how far it is.

    It takes the place of what was added under its name before: sent twice, it is there once. After a stop in between,
    the same request resumes.
    """
    service = service_of(request)
    folder = writable(service, caller)
    if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        raise Refused(_NAME)
    body = service.uploads.part(caller.id, upload or f"{name}\0whole")
    if not upload:
        await receive(request, service, body)
    elif not service.uploads.received(caller.id, upload):
        raise Refused(_INCOMPLETE)

    def work(running: Running, on_stage: OnStage) -> str:
        def progress(done: float | None, count: int) -> None:
            running.limits.check()
            if running.streamed:
                running.publish("progress", dump({"done": done, "passages": count}))

        try:
            with (
                within(running.limits),
                service.uploads.turn(),
                service.uploads.named(body, name) as path,
            ):
                added = add_file(folder, path, progress)
        except Refused as refused:
            if refused.problem.kind == "file":
                body.unlink(missing_ok=True)  # another one will be sent
            raise
        body.unlink(missing_ok=True)
        service.engine.refresh()
        return dump(dataclasses.asdict(added))

    streamed = wants_events(request)
    running = service.writing.submit(work, caller.id, streamed=streamed)
    if streamed:
        return await service.stream(running)
    return as_json(await service.result(running, request, service.writing))


@router.delete(
    "/sources/{name:path}",
    response_model=SourceModel,
    responses=problems(404, 409, 422),
)
async def delete(name: SourceName, request: Request, caller: Writes) -> Response:
    """Delete all passages of a source."""
    service = service_of(request)
    folder = writable(service, caller)

    def work(running: Running, on_stage: OnStage) -> str:
        with within(running.limits), service.uploads.turn():
            passages, deleted = delete_source(folder, name)
        if not deleted:
            raise not_found("source", "See the passages' field 'source'.")
        service.engine.refresh()
        table = {"source": name, "passages": passages, "changed": -deleted}
        return dump(table)

    running = service.writing.submit(work, caller.id)
    return as_json(await service.result(running, request, service.writing))
