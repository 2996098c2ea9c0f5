"""Requests and responses as the OpenAPI description has them. pydantic is at this edge only."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from whichsense.conversation import Conversation, ServedConversation
from whichsense.conversation.turns import LONGEST_REPLY
from whichsense.errors import BadInput
from whichsense.index.search import check_question
from whichsense.serve.problems import MEDIA_TYPE
from whichsense.serve.state import Feedback, TraceSummary
from whichsense.types import Case, Hit, Method, ServedCase, serialised_fields

# What clients send.


def _askable(question: str) -> str:
    question = " ".join(question.split())
    try:
        check_question(question)
    except BadInput as error:
        raise ValueError(str(error)) from None
    return question


LONGEST_QUESTION = 2_000
# Python's white space; that of JSON Schema's patterns leaves out a few control characters.
_NOT_BLANK = r"[^\s\u001c-\u001f\u0085]"
Question = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_QUESTION, json_schema_extra={"pattern": _NOT_BLANK}),
    AfterValidator(_askable),
]


def whole(value: object) -> object:
    """In JSON, 5.0 is an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class Model(BaseModel):
    """A shape whose fields are described by the text below them."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class _Request(Model):
    """A field that there is not, or a value of another type, is an error."""

    model_config = ConfigDict(strict=True, extra="forbid")


def example(**fields: Any) -> ConfigDict:
    """The settings of a request that OpenAPI shows with this example."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


Probability = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Threshold = Annotated[
    Probability | None,
    Field(
        description="The least probability of an answer that is shown; the best one is shown in any case. "
        "null: the service chooses."
    ),
]


class _Streamable(_Request):
    stream: bool = False
    """Answer with server-sent events, as the header Accept: text/event-stream does."""
    seconds: float | None = Field(default=None, gt=0, le=3600, allow_inf_nan=False)
    """Give what is there after so many seconds. The service has a limit of its own."""
    threshold: Threshold = None


_INDEX = "Which index is asked: one of those that /v1/indexes lists; empty: the first of them."
IndexName = Annotated[str, Field(max_length=100, description=_INDEX)]
IndexQuery = Annotated[str, Query(alias="index", max_length=100, description=_INDEX)]


class BeginRequest(_Streamable):
    model_config = example(question="Who played the Joker?")

    question: Question
    system: str = Field("", max_length=200)
    """Which system answers: one of those that /v1/info lists; empty: the first of them."""
    index: IndexName = ""


class AskRequest(BeginRequest):
    clarify: bool = False
    """Also ask back which reading was meant, if there are several."""
    explain: bool = False
    """Also write one long answer with a citation on every sentence."""


class SayRequest(_Streamable):
    model_config = example(text="the one of 2008")

    text: str = Field(min_length=1, max_length=LONGEST_REPLY)
    """A reply in words."""


class ChooseRequest(_Streamable):
    model_config = example(options=["1"])

    options: list[Annotated[str, Field(max_length=20)]] = Field(max_length=50)
    """The ids of the chosen options; none: skip the question."""


class ExplainRequest(_Streamable):
    model_config = example(explain=True)

    explain: Literal[True]
    """The whole story of the question."""


ReplyRequest = SayRequest | ChooseRequest | ExplainRequest


class SearchRequest(_Request):
    model_config = example(question="Who played the Joker?", k=5)

    question: Question
    k: Annotated[int, BeforeValidator(whole)] = Field(10, ge=1, le=100)
    """Passages to find."""
    method: Method | None = None
    """By words, by meaning or both; null: the best that there is."""
    index: IndexName = ""


class FeedbackRequest(_Request):
    model_config = example(
        verdict="down", about="answer", correction="Heath Ledger played him in 2008."
    )

    verdict: Literal["up", "down"]
    about: Literal["", "answer", "question", "source"] = ""
    """What is wrong."""
    correction: str = Field("", max_length=4_000)


# What clients get: the records themselves, as their `to_json` writes them.


def _written(record: type[Any], name: str, **more: Any) -> Any:
    """The model of what a record's `to_json` writes: its fields with their texts, the records in it as they are
    written, and more that it derives."""
    fields: dict[str, Any] = {}
    (tree,) = ast.parse(inspect.getsource(record)).body
    told = {
        ast.unparse(line.target): " ".join(ast.literal_eval(below.value).split())
        for line, below in pairwise(getattr(tree, "body", ()))
        if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr)
    }
    for field, hint in serialised_fields(record).items():
        fields[field] = (_WRITTEN.get(hint, hint), Field(description=told.get(field)))
    return create_model(name, __doc__=record.__doc__, **fields | more)


_TENTATIVE = Field(description="Whether the only answer is not probable: give it as “Perhaps: …”.")
_SCHEMA = (int, Field(alias="schema"))
_WRITTEN: dict[Any, Any] = {}
for _record in (Case, Conversation):
    # A conversation has a case: one is written after the other.
    _WRITTEN[_record] = _written(_record, f"{_record.__name__}Record", schema_=_SCHEMA)
AnswerModel = _written(ServedCase, "AnswerModel", tentative=(bool, _TENTATIVE))
CaseState = create_model(
    "CaseState",
    __base__=AnswerModel,
    state=Literal["running", "finished"],
    case=_WRITTEN[Case] | None,
)
ConversationModel = _written(
    ServedConversation, "ConversationModel", id=str, tentative=(bool, _TENTATIVE)
)


class SearchAnswer(Model):
    question: str
    index: str
    method: Method
    hits: list[Hit]


class CaseList(Model):
    cases: list[TraceSummary]


class FeedbackList(Model):
    feedback: list[Feedback]


class SystemModel(Model):
    name: str
    """What `system` in /v1/ask may say."""
    about: str


class _Indexed(Model):
    corpus: str
    """The name of the index's folder, or of an embedded corpus."""
    passages: int
    generation: int
    method: Method


class IndexEntry(_Indexed):
    name: str
    """What `index` in a request may say."""
    default: bool
    """Whether it is asked where a request names none."""
    created: str
    writable: bool
    """Whether this caller may add and delete."""


class IndexList(Model):
    indexes: list[IndexEntry]
    """The default comes first."""


class Info(_Indexed):
    """What is served. The corpus is that of the default index."""

    version: str
    system: str
    """What answers where no system is named."""
    systems: list[SystemModel]
    """All that can be asked."""
    clarifies: bool
    explains: bool
    needs_key: bool
    traces: bool


class CorpusModel(Model):
    passages: int
    generation: int
    created: str
    sources: list[str]
    """The names of the files it was made from."""
    writable: bool
    """Whether this caller may add and delete."""
    fix: str
    """What to do where it is not writable."""
    most_bytes: int
    """The largest file that may be added."""


class SourceEntry(Model):
    source: str
    """What deletes it."""
    title: str
    """Of its first passage."""
    documents: int
    passages: int


class SourceList(Model):
    sources: list[SourceEntry]
    complete: bool
    """Whether these are all."""


class UploadModel(Model):
    received: int
    """Bytes that have arrived."""


class SourceModel(Model):
    source: str
    passages: int
    """In the whole index, after the change."""
    changed: int
    """Passages that were added, or (negative) deleted."""


# What FastAPI does not know of: problems and streams.


class ProblemModel(BaseModel):
    type: str
    title: str
    status: int
    fix: str
    instance: str = ""
    errors: list[dict[str, str]] = []


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a path may answer with, for the OpenAPI description."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemModel"}}}
    described = {"description": "A problem, with its fix.", "content": content}
    usual = (400, 401, 403, 404, 408, 413, 414, 415, 421, 429, 503)
    return dict.fromkeys((*usual, *statuses), described)


def describe(app: FastAPI) -> None:
    """Add what FastAPI does not know of to the OpenAPI description: the shape of problems."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        description = generate()
        schemas = description["components"]["schemas"]
        schemas.setdefault(ProblemModel.__name__, ProblemModel.model_json_schema())
        return description

    app.openapi = openapi  # type: ignore[method-assign]


def events(example: str, event: Any, **more: Any) -> dict[str, Any]:
    """A stream of server-sent events, for the OpenAPI description."""
    data = {"type": "string", "contentMediaType": "application/json"}
    item = {"type": "object", "properties": {"event": event, "data": data, **more}}
    return {"text/event-stream": {"itemSchema": item, "example": example}}


STREAM = events(
    'event: stage\ndata: {"stage":"retrieve","counts":{"passages":40},"seconds":0.01}\nid: 1\n\n'
    'event: done\ndata: {"id":"…","case":{}}\nid: 7\n\n',
    event={"enum": ["stage", "progress", "done", "problem"]},
    id={"type": "string"},
)
