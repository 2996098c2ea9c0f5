"""Documents of a service: uploads, their way into the index and out of it, the paths for both."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import AfterValidator
from starlette.responses import Response

from whichsense import index as indexes
from whichsense import types
from whichsense.corpus import Corpus, Report
from whichsense.errors import BadInput, IndexBusy, MissingExtra
from whichsense.index import Index
from whichsense.index.growth import Cutting, cut_record
from whichsense.jobs.limits import Progress, check_limits
from whichsense.serve.answering import Engine, Running, new_id
from whichsense.serve.events import Origin, dump, wants_events
from whichsense.serve.guard import TOO_LARGE
from whichsense.serve.problems import Problem, Refused, busy, not_found
from whichsense.serve.schemas import (
    STREAM,
    CorpusModel,
    IndexQuery,
    SourceEntry,
    SourceList,
    SourceModel,
    UploadModel,
    problems,
)
from whichsense.serve.service import Asks, Caller, Service, Serving, Writes, lacks_scope
from whichsense.serve.settings import is_embedded
from whichsense.types import Document

# /v1/corpus/uploads: a file in pieces. What has arrived stays: after a break, the rest is sent.

uploads_router = APIRouter(prefix="/v1/corpus/uploads", tags=["corpus"])
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
_SCOPE = lacks_scope("write", "--scope ask --scope write")
_BODY = {
    "requestBody": {"required": False, "content": {"application/octet-stream": {"schema": {}}}}
}
_PIECE = 2**20  # bytes that are written, and counted, at once
_NO_ROOM = Problem(
    503,
    "disk-full",
    "There is no room for the file.",
    "Tell the operator: the disk of the state folder is full.",
)


def _writable(service: Service, caller: Caller, index: str) -> Engine:
    """The engine of an index that can be written to, by this caller; Refused where it cannot."""
    engine = service.engine(caller, index)
    if is_embedded(engine.place):
        raise Refused(_EMBEDDED)
    if "write" not in caller.scopes:
        raise Refused(_SCOPE)
    return engine


@uploads_router.get("/{key}", responses=problems(409, 422))
async def received(
    key: UploadKey, service: Serving, caller: Writes, index: IndexQuery = ""
) -> UploadModel:
    """How many bytes of an upload have arrived: where to go on."""
    _writable(service, caller, index)
    find = partial(service.uploads.received, caller.id, key)
    return UploadModel(received=await service.briefly(find))


@uploads_router.patch("/{key}", responses=problems(409, 422), openapi_extra=_BODY)
async def append(
    key: UploadKey,
    request: Request,
    service: Serving,
    caller: Writes,
    *,
    upload_offset: Annotated[
        int, Header(ge=0, le=2**40, description="Where in the file this piece begins.")
    ],
    index: IndexQuery = "",
) -> UploadModel:
    """Send a piece of a file. It may overlap what has arrived, and may not leave a gap.

    When all of it is there, `PUT /v1/corpus/sources/{name}?upload={key}` adds it to the index.
    """
    _writable(service, caller, index)
    part = service.uploads.part(caller.id, key)
    await _receive(request, service, caller, part, upload_offset)
    return UploadModel(received=service.uploads.received(caller.id, key))


async def _receive(
    request: Request, service: Service, caller: Caller, path: FilePath, offset: int | None = None
) -> None:
    """Write a body into a file from an offset on; without one, it is the file, which is there only when it is whole."""
    try:
        await asyncio.to_thread(service.uploads.begin)
        if offset is None:
            beside = path.with_name(f".{new_id()}")
            try:
                with open(beside, "wb") as file:
                    await _copy(request, file, service, caller)
                os.replace(beside, path)
            finally:
                beside.unlink(missing_ok=True)
            return
        with open(path, "ab") as file:
            if offset > file.tell():
                raise Refused(_gap(file.tell()))
        with open(path, "r+b") as file:
            file.seek(offset)
            await _copy(request, file, service, caller)
    except OSError:
        raise Refused(_NO_ROOM) from None


async def _copy(request: Request, file: BinaryIO, service: Service, caller: Caller) -> None:
    """Write a body as it comes."""
    pieces: list[bytes] = []
    async for chunk in request.stream():
        pieces.append(chunk)
        if sum(map(len, pieces)) >= _PIECE:
            await _write(b"".join(pieces), file, service, caller)
            pieces.clear()
    await _write(b"".join(pieces), file, service, caller)


async def _write(body: bytes, file: BinaryIO, service: Service, caller: Caller) -> None:
    """Write a part of a body, if there is room for it, in the caller's quota too."""
    if file.tell() + len(body) > service.settings.upload_bytes:
        raise Refused(TOO_LARGE)
    if caller.quota is not None:
        spent = caller.id, len(body), caller.quota
        wait = await asyncio.to_thread(service.quotas.spend, *spent)
        if wait:
            title = "The files of this key are more than it may send in a day."
            raise Refused(busy("quota", title, wait))
    await asyncio.to_thread(file.write, body)


def _gap(received: int) -> Problem:
    title = f"Only {received} bytes of this file have arrived."
    return Problem(409, "gap", title, f"Go on from there: Upload-Offset: {received}")


# Files into the index and out of it. Runs in a thread; what is wrong with a file is told without its
# path.

LISTED = 20_000
"""Passages up to which an index is gone through for a list of its sources."""
_EXAMPLES = 3  # broken records that are named
_QUERY, _EQUALS = (
    2_000,
    10,
)  # by how much of a passage its equals are searched for, and among how many hits
_BUSY = Problem(
    409,
    "index-busy",
    "Another process is writing to the index.",
    "Try again when it is done.",
    headers={"Retry-After": "10"},
)
_FORMATS = "Send text, Markdown, HTML, PDF, Word, JSON lines, TSV or CSV under a name that says so."
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")
_PICTURE = Problem(
    422, "file", "The file is a picture, and pictures are not read.", f"Send its text. {_FORMATS}"
)
# The part of a fix that only the command line can do: ", or name it with --format".
_OPTIONS = re.compile(r",? or [^.]*--[a-z]+(?: [\w-]+)?")


@dataclass(frozen=True, slots=True)
class AddedFile:
    """What became of a file."""

    source: str
    """What its passages name as their source, and what deletes them."""
    passages: int
    """In the whole index, after the change."""
    changed: int
    added: int
    replaced: int
    """Passages of an earlier file of this name, which are gone."""
    duplicates: int
    """Passages that the index has already."""
    left_out: int
    """Records that could not be read."""
    why: Sequence[str] = ()
    """Of the first of them."""


def add_file(folder: str, path: FilePath, progress: Progress) -> AddedFile:
    """Add a file in the place of what was added under its name before. A file that cannot be read, or whose whole text
    other sources have, changes nothing."""
    with open(path, "rb") as file:
        if file.read(16).startswith(_PICTURES):
            raise Refused(_PICTURE)
    with _explained(path):
        corpus = Corpus(path, prefix=True)
        (source,) = corpus.source_names()
        with closing(Index.open(folder)) as index:
            before = len(index)
            is_known = bool(index.of_source(source))
            twin = _holder(index, corpus, source)
        if twin:
            raise Refused(_duplicate(twin))
        replaced = 0
        if is_known:
            # Read it once before the old one goes.
            for _ in corpus.records(Report()):
                check_limits()
            _, replaced = indexes.delete(folder, [], [source])
        manifest = indexes.add([path], folder, progress=progress)
    report = Report.from_dict(dict(manifest.report))
    return AddedFile(
        source,
        manifest.passages,
        changed=manifest.passages - before,
        added=report.passages,
        replaced=replaced,
        duplicates=report.duplicates,
        left_out=report.broken,
        why=[f"{one.where}: {one.why}" for one in report.named[:_EXAMPLES]],
    )


def _holder(index: Index, corpus: Corpus, source: str) -> str:
    """Return another source that has the text of a file; empty where any of its passages is in no other source."""
    cutting, holder = Cutting(**index.manifest.settings), ""
    with closing(corpus.records(Report())) as records:
        for record in records:
            check_limits()
            if not isinstance(record, Document):
                return ""
            for piece in cut_record(record, "", cutting):
                holder = _source_of(index, piece.title, piece.text, source)
                if not holder:
                    return ""
    return holder


def _source_of(index: Index, title: str, text: str, but: str) -> str:
    for hit in index.search(f"{title} {text}"[:_QUERY], _EQUALS, "bm25"):
        passage = hit.passage
        if (passage.title, passage.text) == (title, text) and passage.source != but:
            return passage.source
    return ""


def _duplicate(source: str) -> Problem:
    title = f"The file holds nothing new: '{source[:100]}' has its text already."
    fix = "Delete that source first if this name is the better one."
    return Problem(422, "file", title, fix)


def delete_source(folder: str, source: str) -> tuple[int, int]:
    """Delete the passages of a source: how many are left in the index, and how many went."""
    try:
        manifest, deleted = indexes.delete(folder, [], [source])
    except IndexBusy:
        raise Refused(_BUSY) from None
    return manifest.passages, deleted


def list_sources(index: Index) -> list[SourceEntry]:
    """Every source, the latest first."""
    entries: dict[str, SourceEntry] = {}
    documents: set[tuple[str, str]] = set()
    for passage in index.passages():
        source = passage.source
        entry = entries.get(source)
        if entry is None:
            title = passage.title
            entry = SourceEntry(source=source, title=title, documents=0, passages=0)
            entries[source] = entry
        document = source, passage.id.rpartition("#")[0] or passage.id
        entry.documents += document not in documents
        documents.add(document)
        entry.passages += 1
    return list(reversed(entries.values()))


@contextmanager
def _explained(path: FilePath) -> Iterator[None]:
    """Errors of what is read as problems."""
    try:
        yield
    except IndexBusy:
        raise Refused(_BUSY) from None
    except MissingExtra:
        title = "The service cannot read files of this format."
        fix = "Tell the operator: pip install 'whichsense[documents]'"
        raise Refused(Problem(409, "format", title, fix)) from None
    except BadInput as error:
        raise Refused(unreadable(str(error), path)) from None


def unreadable(message: str, path: FilePath) -> Problem:
    """What is wrong with a file, without where it lies.

    >>> message = "'/x/a.txt' is not utf-8 (byte 3). Save it as UTF-8, or say --encoding cp1252."
    >>> problem = unreadable(message, FilePath("/x/a.txt"))
    >>> problem.title, problem.fix
    ('The file is not utf-8 (byte 3).', 'Save it as UTF-8.')
    """
    message = message.replace(f"'{path}' ", "").replace(f"{path}, ", "")
    reason, _, fix = _OPTIONS.sub("", message).partition(". ")
    title = f"The file {reason.rstrip('.')}."
    if str(path.parent) in message:
        title, fix = "The file holds nothing that can be read.", ""
    fix = fix[:1].upper() + fix[1:]
    return Problem(422, "file", title[:300], fix[:500] or _FORMATS)


# /v1/corpus: what is indexed; add a file, delete one.

corpus_router = APIRouter(prefix="/v1/corpus", tags=["corpus"])
# What a terminal acts on, or what turns the direction of writing.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def _file_name(name: str) -> str:
    """A name that shows what it is, and is neither in another folder nor hidden."""
    if not FilePath(name).stem.strip():
        raise ValueError("The file's name is blank. Give the file a name.")
    if _UNSEEN.search(name):
        raise ValueError("The file's name has control characters. Give the file another name.")
    if name.startswith(".") or "/" in name or "\\" in name:
        raise ValueError("The file's name has a folder, or begins with a dot. Give the name alone.")
    return name


FileName = Annotated[str, Path(), AfterValidator(_file_name)]
SourceName = Annotated[str, Path(max_length=1000)]
_LONGEST_NAME = 200  # bytes; file systems have 255
_NAME = Problem(422, "name", "The file's name is too long.", "Give the file a shorter name.")
_INCOMPLETE = Problem(
    409,
    "incomplete",
    "Nothing was sent under this key.",
    "Send the file to /v1/corpus/uploads/{key} first.",
)


@corpus_router.get("", responses=problems(422))
async def corpus(service: Serving, caller: Asks, index: IndexQuery = "") -> CorpusModel:
    """What is indexed: passages, when it was built, the names of its sources, and whether this caller may change it."""
    manifest = service.served(caller, index).index.manifest
    names = []
    for source in manifest.sources:
        # Names alone: where the files lay is nobody else's business.
        names += [FilePath(path).name for path in source.get("paths", ())]
    fix = ""
    try:
        _writable(service, caller, index)
    except Refused as refused:
        fix = refused.problem.fix
    return CorpusModel(
        passages=manifest.passages,
        generation=manifest.generation,
        created=manifest.created,
        sources=names[:1000],
        writable=not fix,
        fix=fix,
        most_bytes=service.settings.upload_bytes,
    )


@corpus_router.get("/sources", responses=problems(422))
async def sources(
    service: Serving,
    caller: Asks,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    name: IndexQuery = "",
) -> SourceList:
    """What is indexed, source by source, the latest first. An index of very many passages is not gone through."""
    index = service.served(caller, name).index
    if len(index) > LISTED:
        return SourceList(sources=[], complete=False)
    listed = await service.briefly(lambda: list_sources(index))
    return SourceList(sources=listed[:limit], complete=len(listed) <= limit)


@corpus_router.put(
    "/sources/{name}",
    response_model=AddedFile,
    responses={200: {"content": STREAM}, **problems(409, 410, 422)},
    openapi_extra=_BODY,
)
async def add(
    name: FileName,
    request: Request,
    service: Serving,
    caller: Writes,
    *,
    upload: Annotated[
        str,
        Query(
            pattern=f"^({KEY})?$",
            description="The key under which the file was sent in pieces; then there is no body.",
        ),
    ] = "",
    index: IndexQuery = "",
) -> Response:
    """Add a file to the index; its name says its format. Streamed, events `progress` say how far it is.

    It takes the place of what was added under its name before: sent twice, it is there once. After a stop in between,
    the same request resumes.
    """
    engine = _writable(service, caller, index)
    if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        raise Refused(_NAME)
    body = service.uploads.part(caller.id, upload or f"{engine.name}\0{name}\0whole")
    if not upload:
        await _receive(request, service, caller, body)
    elif not service.uploads.received(caller.id, upload):
        raise Refused(_INCOMPLETE)
    work = partial(_add, service, engine, body, name)
    origin = Origin(caller.id, engine.name)
    streamed = wants_events(request)
    running = service.writing.submit(work, origin, streamed=streamed)
    return await service.respond(running, request, service.writing)


def _add(service: Service, engine: Engine, body: FilePath, name: str, running: Running) -> str:
    """Add a file that has arrived under a name. In a thread."""

    def progress(done: float | None, count: int) -> None:
        running.limits.check()
        if running.streamed:
            table = {"done": done, "passages": count}
            service.writing.publish(running, "progress", dump(table))

    try:
        with service.uploads.turn(), service.uploads.named(body, name) as path:
            added = add_file(engine.place, path, progress)
    except Refused as refused:
        if refused.problem.kind == "file":
            body.unlink(missing_ok=True)  # another one will be sent
        raise
    body.unlink(missing_ok=True)
    engine.refresh()
    return dump(types.encode(added))


@corpus_router.delete(
    "/sources/{name:path}", response_model=SourceModel, responses=problems(404, 409, 422)
)
async def delete(
    name: SourceName, request: Request, service: Serving, caller: Writes, index: IndexQuery = ""
) -> Response:
    """Delete all passages of a source."""
    engine = _writable(service, caller, index)

    def work(running: Running) -> str:
        with service.uploads.turn():
            passages, deleted = delete_source(engine.place, name)
        if not deleted:
            raise not_found("source", "See the passages' field 'source'.")
        engine.refresh()
        return dump({"source": name, "passages": passages, "changed": -deleted})

    running = service.writing.submit(work, Origin(caller.id, engine.name))
    return await service.respond(running, request, service.writing)


routers = (corpus_router, uploads_router)
