"""/healthz, /readyz, /metrics, /v1/info."""

from __future__ import annotations

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from whichsense.sample import corpus_name
from whichsense.serve.problems import Problem, Refused
from whichsense.serve.routes.ask import Asks, service_of
from whichsense.serve.schemas.description import problems
from whichsense.serve.schemas.responses import Info
from whichsense.version import __version__

router = APIRouter(tags=["status"])


@router.get("/healthz", responses=problems())
async def healthz() -> dict[str, str]:
    """The process is there."""
    return {"status": "ok"}


@router.get("/readyz", responses=problems())
async def readyz(request: Request) -> Response:
    """Questions can be answered: models are loaded, the index is open, and it is the newest.

    Says so too where traces are being lost.
    """
    service = service_of(request)
    served = service.served
    if service.engine.fault:
        raise Refused(_not_served(service.engine.fault))
    gap = service.traces.gap
    table = {
        "status": "ready",
        "passages": len(served.index),
        "traces": "off" if not service.settings.traces else "kept",
    }
    if gap is not None:
        table["traces"] = f"{gap.lost} lost: {gap.reason}"
    return JSONResponse(table)


def _not_served(reason: str) -> Problem:
    title = "The newest index cannot be served; the one before it still answers."
    return Problem(503, "index", title, reason)


@router.get("/metrics", response_class=Response, responses=problems())
async def metrics(request: Request, caller: Asks) -> Response:
    """Counters in Prometheus's text format, of all workers."""
    service = service_of(request)
    page = await service.briefly(service.telemetry.page)
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get("/v1/info", response_model=Info, responses=problems())
async def info(request: Request) -> Response:
    """What is served: corpus, system, and what it can do."""
    service = service_of(request)
    served = service.served
    table = {
        "version": __version__,
        "system": served.system,
        "systems": [
            {"name": name, "about": service.engine.about.get(name, "")}
            for name in served.systems
        ],
        "corpus": corpus_name(service.settings.index),
        "passages": len(served.index),
        "generation": served.index.manifest.generation,
        "method": served.index.method(service.settings.method),
        "clarifies": served.pipeline.clarifier is not None,
        "explains": served.pipeline.summarizer is not None,
        "needs_key": service.access.needs_key(),
        "traces": service.settings.traces,
    }
    return JSONResponse(table)
