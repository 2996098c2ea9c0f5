"""What clients send."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from whichsense.conversation.records import LONGEST_REPLY
from whichsense.errors import BadInput
from whichsense.index.search import check_question
from whichsense.types import Method


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


Threshold = Annotated[
    float | None,
    Field(
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="The least probability of an answer that is shown; the best one is shown in any case. "
        "null: the service chooses.",
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


class AskRequest(_Streamable):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who played the Joker?"}]}
    )

    question: Question
    clarify: bool = Field(
        False,
        description="Also ask back which reading was meant, if there are several.",
    )
    explain: bool = Field(
        False,
        description="Also write one long answer with a citation on every sentence.",
    )
    system: System = ""


class BeginRequest(_Streamable):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who played the Joker?"}]}
    )

    question: Question
    system: System = ""


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
