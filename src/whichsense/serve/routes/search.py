"""POST /v1/search, GET /v1/passages/{id}."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from whichsense import records
from whichsense.errors import BadInput
from whichsense.index import Index
from whichsense.serve.events import dump
from whichsense.serve.problems import Problem, Refused, not_found
from whichsense.serve.recall import RecallingRoute
from whichsense.serve.routes.ask import Asks, as_json, service_of
from whichsense.serve.schemas.description import problems
from whichsense.serve.schemas.requests import SearchRequest
from whichsense.serve.schemas.responses import PassageAnswer, SearchAnswer
from whichsense.types import Passage

router = APIRouter(prefix="/v1", tags=["search"])
recalled = APIRouter(prefix="/v1", tags=["search"], route_class=RecallingRoute)
_NO_VECTORS = Problem(
    409,
    "no-vectors",
    "The index that is served has no vectors.",
    'Leave "method" out, or ask for "bm25".',
)
_NEIGHBOURS = 2  # passages on each side


@recalled.post("/search", response_model=SearchAnswer, responses=problems(409, 422))
async def search(body: SearchRequest, request: Request, caller: Asks) -> Response:
    """Find the passages that may answer a question, best first."""
    service = service_of(request)
    index = service.served.index
    try:
        method = index.method(body.method)
    except BadInput:
        raise Refused(_NO_VECTORS) from None

    def work() -> str:
        hits = index.search(body.question, body.k, method)
        table = {
            "question": body.question,
            "method": method,
            "hits": records.encode(tuple(hits)),
        }
        return dump(table)

    return as_json(await service.briefly(work))


@router.get(
    "/passages/{passage_id:path}",
    response_model=PassageAnswer,
    responses=problems(404, 422),
)
async def passage(
    passage_id: Annotated[str, Path(max_length=1000)], request: Request, caller: Asks
) -> Response:
    """A passage by its id, with its neighbours in the document that it is from."""
    service = service_of(request)
    index = service.served.index

    def work() -> str | None:
        rows = neighbours(index, passage_id)
        if rows is None:
            return None
        before, passage, after = rows
        table = {
            "passage": records.encode(passage),
            "before": records.encode(before),
            "after": records.encode(after),
        }
        return dump(table)

    body = await service.briefly(work)
    if body is None:
        raise not_found("passage", "Take the id from a hit or an answer's evidence.")
    return as_json(body)


def neighbours(
    index: Index, passage_id: str
) -> tuple[tuple[Passage, ...], Passage, tuple[Passage, ...]] | None:
    """A passage between what stands before and after it in its document; None where there is none of this id."""
    try:
        document = index.document(passage_id)
    except BadInput:
        return None
    place = [one.id for one in document].index(passage_id)
    before = document[max(0, place - _NEIGHBOURS) : place]
    after = document[place + 1 : place + 1 + _NEIGHBOURS]
    return tuple(before), document[place], tuple(after)
