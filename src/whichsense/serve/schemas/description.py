"""What FastAPI does not know of: problems and streams."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from whichsense.serve.problems import MEDIA_TYPE


class ProblemModel(BaseModel):
    type: str
    title: str
    status: int
    fix: str
    instance: str = ""
    errors: list[dict[str, str]] = []


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a path may answer with, for the OpenAPI description."""
    schema = {"$ref": "#/components/schemas/ProblemModel"}
    described: dict[int | str, dict[str, Any]] = {}
    for status in (400, 401, 403, 408, 413, 414, 415, 421, 429, 503, *statuses):
        described[status] = {
            "description": "A problem, with its fix.",
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
    return described


def describe(app: FastAPI) -> None:
    """Add what FastAPI does not know of to the OpenAPI description: the shape of problems."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        description = generate()
        schemas = description["components"]["schemas"]
        schemas.setdefault(ProblemModel.__name__, ProblemModel.model_json_schema())
        return description

    app.openapi = openapi  # type: ignore[method-assign]


STREAM = {
    "text/event-stream": {
        "itemSchema": {
            "type": "object",
            "properties": {
                "event": {"enum": ["stage", "progress", "done", "problem"]},
                "data": {"type": "string", "contentMediaType": "application/json"},
                "id": {"type": "string"},
            },
        },
        "example": 'event: stage\ndata: {"stage":"retrieve","counts":{"passages":40},"seconds":0.01}\nid: 1\n\n'
        'event: done\ndata: {"id":"…","case":{}}\nid: 7\n\n',
    }
}
