"""What clients get, as the OpenAPI description has it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class UrlCitation(BaseModel):
    start_index: int
    end_index: int
    title: str
    url: str


class ChatAnnotation(BaseModel):
    type: Literal["url_citation"]
    url_citation: UrlCitation


class AssistantMessage(BaseModel):
    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: list[ChatAnnotation]


class Choice(BaseModel):
    index: int
    message: AssistantMessage
    logprobs: None
    finish_reason: Literal["stop"]


class ChatUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage


class Annotation(UrlCitation):
    type: Literal["url_citation"]


class OutputText(BaseModel):
    type: Literal["output_text"]
    text: str
    annotations: list[Annotation]


class OutputMessage(BaseModel):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    status: str
    content: list[OutputText]


class ResponseUsage(BaseModel):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ResponseObject(BaseModel):
    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed", "in_progress", "failed"]
    model: str
    output: list[OutputMessage]
    previous_response_id: str | None
    store: bool
    metadata: dict[str, str]
    usage: ResponseUsage | None


class ModelObject(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str


class ModelList(BaseModel):
    object: Literal["list"]
    data: list[ModelObject]


class OpenAIError(BaseModel):
    message: str
    type: str
    param: str | None
    code: str


class OpenAIErrorBody(BaseModel):
    error: OpenAIError


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a path may answer with, for the OpenAPI description."""
    described: dict[int | str, dict[str, Any]] = {}
    for status in (400, 401, 403, 408, 413, 414, 415, 421, 429, 503, *statuses):
        described[status] = {
            "description": "An error; its message says what to do.",
            "model": OpenAIErrorBody,
        }
    return described


STREAM = {
    "text/event-stream": {
        "itemSchema": {
            "type": "object",
            "properties": {
                "event": {"type": "string"},
                "data": {"type": "string", "contentMediaType": "application/json"},
            },
        },
        "example": 'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"…"}}]}\n\n'
        "data: [DONE]\n\n",
    }
}
