"""Requests and responses as the OpenAPI description has them. pydantic is at this edge only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from fastapi import FastAPI, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
)

from whichsense.conversation import Conversation
from whichsense.conversation.turns import LONGEST_REPLY
from whichsense.errors import BadInput
from whichsense.index.search import check_question
from whichsense.serve.problems import MEDIA_TYPE
from whichsense.serve.state import Feedback, TraceSummary
from whichsense.types import Case, Hit, Method, Passage

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
    Field(
        min_length=1,
        max_length=LONGEST_QUESTION,
        json_schema_extra={"pattern": _NOT_BLANK},
    ),
    AfterValidator(_askable),
]


def whole(value: object) -> object:
    """In JSON, 5.0 is an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class _Request(BaseModel):
    """A field that there is not, or a value of another type, is an error."""

    model_config = ConfigDict(strict=True, extra="forbid")


Probability = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Threshold = Annotated[
    Probability | None,
    Field(
        description="The least probability of an answer that is shown; the best one is shown in any case. "
        "null: the service chooses."
    ),
]


class _Streamable(_Request):
    stream: bool = Field(
        False,
        description="Answer with server-sent events, as the header Accept: text/event-stream does.",
    )
    seconds: float | None = Field(
        None,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Give what is there after so many seconds. The service has a limit of its own.",
    )
    threshold: Threshold = None


System = Annotated[
    str,
    Field(
        max_length=200,
        description="Which system answers: one of those that /v1/info lists; empty: the first of them.",
    ),
]


_INDEX = "Which index is asked: one of those that /v1/indexes lists; empty: the first of them."
IndexName = Annotated[str, Field(max_length=100, description=_INDEX)]
IndexQuery = Annotated[str, Query(alias="index", max_length=100, description=_INDEX)]


class BeginRequest(_Streamable):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who played the Joker?"}]}
    )

    question: Question
    system: System = ""
    index: IndexName = ""


class AskRequest(BeginRequest):
    clarify: bool = Field(
        False,
        description="Also ask back which reading was meant, if there are several.",
    )
    explain: bool = Field(
        False,
        description="Also write one long answer with a citation on every sentence.",
    )


class SayRequest(_Streamable):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "the one of 2008"}]}
    )

    text: str = Field(
        min_length=1, max_length=LONGEST_REPLY, description="A reply in words."
    )


class ChooseRequest(_Streamable):
    model_config = ConfigDict(json_schema_extra={"examples": [{"options": ["1"]}]})

    options: list[Annotated[str, Field(max_length=20)]] = Field(
        max_length=50,
        description="The ids of the chosen options; none: skip the question.",
    )


class ExplainRequest(_Streamable):
    model_config = ConfigDict(json_schema_extra={"examples": [{"explain": True}]})

    explain: Literal[True] = Field(description="The whole story of the question.")


ReplyRequest = SayRequest | ChooseRequest | ExplainRequest


class SearchRequest(_Request):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who played the Joker?", "k": 5}]}
    )

    question: Question
    k: Annotated[int, BeforeValidator(whole)] = Field(
        10, ge=1, le=100, description="Passages to find."
    )
    method: Method | None = Field(
        None, description="By words, by meaning or both; null: the best that there is."
    )
    index: IndexName = ""


class FeedbackRequest(_Request):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verdict": "down",
                    "about": "answer",
                    "correction": "Heath Ledger played him in 2008.",
                }
            ]
        }
    )

    verdict: Literal["up", "down"]
    about: Literal["", "answer", "question", "source"] = Field(
        "", description="What is wrong."
    )
    correction: str = Field("", max_length=4_000)


# What clients get.

_TENTATIVE = "Whether the only answer is not probable: give it as “Perhaps: …”."


def _written(record: type[Any]) -> type[BaseModel]:
    """A record as its `to_json` writes it: its fields, and the number of their schema."""
    hints = get_type_hints(record).items()
    fields: dict[str, Any] = {
        name: (hint, ...) for name, hint in hints if name != "scratch"
    }
    fields["schema_"] = (int, Field(alias="schema"))
    return create_model(f"{record.__name__}Record", __doc__=record.__doc__, **fields)


if TYPE_CHECKING:
    CaseModel: TypeAlias = BaseModel
    ConversationOfTurns: TypeAlias = BaseModel
else:
    CaseModel = _written(Case)
    ConversationOfTurns = _written(Conversation)


class AnswerModel(BaseModel):
    id: str
    system: str = Field(description="The system that answered.")
    index: str = Field(description="The index that was asked.")
    tentative: bool = Field(description=_TENTATIVE)
    case: CaseModel


class CaseState(BaseModel):
    id: str
    state: Literal["running", "finished"]
    system: str
    index: str
    tentative: bool = Field(description=_TENTATIVE)
    case: CaseModel | None


class ConversationModel(BaseModel):
    id: str
    case_id: str = Field(description="Of the question that is talked about.")
    system: str = Field(description="The system that answers.")
    index: str = Field(description="The index that is asked.")
    tentative: bool = Field(description=_TENTATIVE)
    conversation: ConversationOfTurns


class SearchAnswer(BaseModel):
    question: str
    index: str
    method: Method
    hits: list[Hit]


class PassageAnswer(BaseModel):
    passage: Passage
    before: list[Passage] = Field(description="What comes before it in its document.")
    after: list[Passage]


class CaseList(BaseModel):
    cases: list[TraceSummary]


class FeedbackList(BaseModel):
    feedback: list[Feedback]


class SystemModel(BaseModel):
    name: str = Field(description="What `system` in /v1/ask may say.")
    about: str


class IndexEntry(BaseModel):
    name: str = Field(description="What `index` in a request may say.")
    default: bool = Field(description="Whether it is asked where a request names none.")
    corpus: str = Field(description="The name of its folder, or of an embedded corpus.")
    passages: int
    generation: int
    created: str
    method: Method
    writable: bool = Field(description="Whether this caller may add and delete.")


class IndexList(BaseModel):
    indexes: list[IndexEntry] = Field(description="The default comes first.")


class Info(BaseModel):
    """What is served. The corpus is that of the default index."""

    version: str
    system: str = Field(description="What answers where no system is named.")
    systems: list[SystemModel] = Field(description="All that can be asked.")
    corpus: str = Field(
        description="The name of the index's folder, or of an embedded corpus."
    )
    passages: int
    generation: int
    method: Method
    clarifies: bool
    explains: bool
    needs_key: bool
    traces: bool


class CorpusModel(BaseModel):
    passages: int
    generation: int
    created: str
    sources: list[str] = Field(description="The names of the files it was made from.")
    writable: bool = Field(description="Whether this caller may add and delete.")
    fix: str = Field(description="What to do where it is not writable.")
    most_bytes: int = Field(description="The largest file that may be added.")


class SourceEntry(BaseModel):
    source: str = Field(description="What deletes it.")
    title: str = Field(description="Of its first passage.")
    documents: int
    passages: int


class SourceList(BaseModel):
    sources: list[SourceEntry]
    complete: bool = Field(description="Whether these are all.")


class UploadModel(BaseModel):
    received: int = Field(description="Bytes that have arrived.")


class SourceModel(BaseModel):
    source: str
    passages: int = Field(description="In the whole index, after the change.")
    changed: int = Field(description="Passages that were added, or (negative) deleted.")


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
    schema = {"$ref": "#/components/schemas/ProblemModel"}
    described: dict[int | str, dict[str, Any]] = {}
    usual = (400, 401, 403, 404, 408, 413, 414, 415, 421, 429, 503)
    for status in (*usual, *statuses):
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
