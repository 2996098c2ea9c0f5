"""The models that clients choose among, and GET /v1/models: one pipeline, three manners of answering."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import JSONResponse, Response

from whichsense.conversation import AskingPolicy
from whichsense.pipeline import Pipeline
from whichsense.serve.openai.shapes import ModelList, ModelObject, errors
from whichsense.serve.problems import Problem, Refused
from whichsense.serve.routes.ask import Asks, service_of
from whichsense.serve.service import Service

router = APIRouter(prefix="/v1/models", tags=["OpenAI-compatible"])


@dataclass(frozen=True, slots=True)
class Model:
    """A name, and how it answers."""

    id: str
    description: str
    asks: bool = False
    """Whether an ambiguous question is answered with a question back."""
    explains: bool = False
    """Whether a question is answered with one long, cited text."""

    @property
    def policy(self) -> AskingPolicy:
        return AskingPolicy(enabled=self.asks)


MODELS = (
    Model("whichsense", "Asks back which reading is meant.", asks=True),
    Model("whichsense-readings", "Lists every reading; never asks back."),
    Model(
        "whichsense-explain",
        "Tells the whole story, with a citation on every sentence.",
        explains=True,
    ),
)


def offered(pipeline: Pipeline) -> tuple[Model, ...]:
    """The models that a pipeline has the stages for."""
    can_explain = pipeline.summarizer is not None
    return tuple(model for model in MODELS if can_explain or not model.explains)


def find_model(name: str, pipeline: Pipeline) -> Model:
    """The model of this name; refused where there is none."""
    models = offered(pipeline)
    for model in models:
        if model.id == name:
            return model
    names = ", ".join(model.id for model in models)
    title = f"There is no model '{name[:100]}' here."
    errors = [{"where": "body.model", "problem": "not one of the models"}]
    problem = Problem(404, "model-not-found", title, f"Use one of: {names}.", errors)
    raise Refused(problem)


@router.get("", response_model=ModelList, responses=errors())
async def list_models(request: Request, caller: Asks) -> Response:
    """The models: manners in which the same index is asked."""
    service = service_of(request)
    listed = []
    for model in offered(service.served.pipeline):
        listed.append(_describe(model, service))
    return JSONResponse({"object": "list", "data": listed})


@router.get("/{model_id}", response_model=ModelObject, responses=errors(404))
async def read_model(
    model_id: Annotated[str, Path(max_length=100)], request: Request, caller: Asks
) -> Response:
    """One model."""
    service = service_of(request)
    found = find_model(model_id, service.served.pipeline)
    return JSONResponse(_describe(found, service))


def _describe(model: Model, service: Service) -> dict[str, Any]:
    built = datetime.datetime.fromisoformat(service.served.index.manifest.created)
    return {
        "id": model.id,
        "object": "model",
        "created": int(built.timestamp()),
        "owned_by": "whichsense",
        "description": model.description,
    }
