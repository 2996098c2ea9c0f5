"""What tools take. The JSON schemas of these models are what the calling model reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema

from whichsense.conversation.records import LONGEST_REPLY
from whichsense.serve.mcp.errors import ToolFault
from whichsense.serve.schemas.requests import LONGEST_QUESTION, Question
from whichsense.types import Method

_MOST_HITS = 20
Arguments = TypeVar("Arguments", bound="_Arguments")


class _Arguments(BaseModel):
    """An argument that there is not is an error: it is a misspelt one."""

    model_config = ConfigDict(extra="forbid")


class AskArguments(_Arguments):
    question: Annotated[
        Question,
        Field(
            description="One question in plain words, as the user put it. Do not make it more specific yourself."
        ),
    ]
    ask_back: bool = Field(
        True,
        description="Whether the user may be asked which reading they mean. "
        "false: give every reading at once.",
    )


class QuestionArguments(_Arguments):
    question: Annotated[
        Question, Field(description="One question in plain words, as the user put it.")
    ]


def _as_text(value: object) -> object:
    """The number of an option is as good as its id."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


OptionId = Annotated[str, Field(max_length=20), BeforeValidator(_as_text)]


class ReplyArguments(_Arguments):
    conversation: str = Field(
        max_length=100, description="The id that `ask`, `clarify` or `reply` gave."
    )
    text: Annotated[str, Field(max_length=LONGEST_REPLY)] | SkipJsonSchema[None] = (
        Field(
            None,
            description="What the user said, word for word: a number, a few words, several options, “all”, "
            "“none of these”, or a new question.",
        )
    )
    options: Annotated[list[OptionId], Field(max_length=50)] | SkipJsonSchema[None] = (
        Field(
            None,
            description="In place of `text`: the ids of the chosen options. "
            "An empty list: no preference, give every reading.",
        )
    )


class SearchArguments(_Arguments):
    query: Annotated[Question, Field(description="A question, or words to look for.")]
    k: int = Field(5, ge=1, le=_MOST_HITS, description="Passages to find.")
    method: Method | SkipJsonSchema[None] = Field(
        None,
        description="By words (bm25), by meaning (dense) or both (hybrid); leave it out for the best that there is.",
    )


class ReadArguments(_Arguments):
    passage: str = Field(
        min_length=1,
        max_length=1000,
        description="A passage's id, from evidence, a source or a search hit.",
    )


def parse(model: type[Arguments], given: Mapping[str, Any] | None) -> Arguments:
    """The arguments of a call; a `ToolFault` names every one that is wrong."""
    try:
        return model.model_validate(given or {})
    except ValidationError as error:
        problems = [_explain(one) for one in error.errors()[:5]]
        known = ", ".join(model.model_fields)
        raise ToolFault(f"{' '.join(problems)} The arguments are: {known}.") from None


def _explain(error: Any) -> str:
    """One sentence about one argument, without what was given."""
    name = ".".join(str(part)[:40] for part in error["loc"]) or "arguments"
    kind = error["type"]
    if kind == "missing":
        return f"The argument '{name}' is missing."
    if kind == "extra_forbidden":
        return f"There is no argument '{name}'."
    if kind == "string_too_short":
        return f"The argument '{name}' is empty."
    if kind == "string_too_long" and name in ("question", "query"):
        return (
            f"The argument '{name}' is too long: ask one question of at most "
            f"{LONGEST_QUESTION:,} characters."
        )
    message = str(error["msg"]).removeprefix("Value error, ")[:200].rstrip(".")
    return f"The argument '{name}' is wrong: {message}."
