"""Bodies of requests. A field that means nothing here is ignored; one that would change the form is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from whichsense.errors import BadInput
from whichsense.index.search import check_question
from whichsense.serve.openai.history import ASSISTANT, USER, Message, Said, count_tokens
from whichsense.serve.problems import Problem, Refused
from whichsense.serve.schemas.requests import LONGEST_QUESTION, Threshold, whole

_TEXT = ("text", "input_text", "output_text")
_MOST_MESSAGES = 2_000
_Strict = ConfigDict(strict=True)


class Part(BaseModel):
    """A part of a message."""

    model_config = _Strict

    type: str
    text: str | None = None


Content = str | list[Part] | None


class ChatMessage(BaseModel):
    model_config = _Strict

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None


class InputItem(BaseModel):
    """An item of a response's input; items other than messages are ignored."""

    model_config = _Strict

    type: str | None = None
    role: str | None = None
    content: Content = None


class Format(BaseModel):
    model_config = _Strict

    type: str


class TextSettings(BaseModel):
    model_config = _Strict

    format: Format | None = None


class StreamOptions(BaseModel):
    model_config = _Strict

    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """The body of a chat completion."""

    model_config = ConfigDict(
        strict=True,
        json_schema_extra={
            "examples": [
                {
                    "model": "whichsense",
                    "messages": [{"role": "user", "content": "Who played the Joker?"}],
                }
            ]
        },
    )

    said_in: ClassVar[str] = "messages"
    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    threshold: Threshold = None
    store: bool | None = Field(
        None, description="false: the conversation is not kept, but held again."
    )
    n: Annotated[int | None, BeforeValidator(whole)] = Field(
        None, description="Only 1: every choice would be the same."
    )
    response_format: Format | None = None
    tool_choice: Any = None
    modalities: list[str] | None = None

    def said(self) -> Said:
        """The newest message of the person, and what was said before."""
        _refuse_unless("n", self.n in (None, 1), _ONE)
        _refuse_unless("response_format", _is_text(self.response_format), _JSON)
        _check_tools(self.tool_choice)
        written = self.modalities is None or "text" in self.modalities
        _refuse_unless("modalities", written, "Answers are text. Ask for text.")
        return _said(self.messages, self.said_in)


class ResponsesRequest(BaseModel):
    """The body of a response."""

    model_config = ConfigDict(
        strict=True,
        json_schema_extra={
            "examples": [{"model": "whichsense", "input": "Who played the Joker?"}]
        },
    )

    said_in: ClassVar[str] = "input"
    model: str
    input: str | Annotated[list[InputItem], Field(max_length=_MOST_MESSAGES)]
    instructions: Any = Field(None, description="Accepted, and not followed.")
    previous_response_id: str | None = Field(None, max_length=100)
    store: bool | None = Field(None, description="false: nothing can follow it by id.")
    stream: bool | None = None
    threshold: Threshold = None
    text: TextSettings | None = None
    metadata: dict[str, str] | None = None
    tool_choice: Any = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None

    def said(self) -> Said:
        """The newest message of the person, and what was said before."""
        form = self.text.format if self.text else None
        _refuse_unless("text.format", _is_text(form), _JSON)
        _check_tools(self.tool_choice)
        _refuse_unless("background", not self.background, _FOREGROUND)
        _refuse_unless("conversation", self.conversation is None, _CONVERSATION)
        _refuse_unless("prompt", self.prompt is None, "Send the question as input.")
        if isinstance(self.input, str):
            return _said([ChatMessage(role="user", content=self.input)], self.said_in)
        return _said([item for item in self.input if item.role], self.said_in)


_ONE = "Answers are the same each time. Ask for one."
_JSON = "Answers are Markdown. Leave it out; POST /v1/ask answers with JSON."
_TOOLS = "No tool is ever called. Leave it out."
_FOREGROUND = "Answers are not made in the background. Stream instead."
_CONVERSATION = "Conversations are continued by previous_response_id. Send that."


def _is_text(form: Format | None) -> bool:
    return form is None or form.type == "text"


def _check_tools(choice: Any) -> None:
    _refuse_unless("tool_choice", choice in (None, "auto", "none"), _TOOLS)


def _refuse_unless(param: str, fits: bool, fix: str) -> None:
    if not fits:
        raise refusal(param, "has a value that cannot be honoured", fix)


def refusal(param: str, problem: str, fix: str) -> Refused:
    """400 for one parameter."""
    errors = [{"where": f"body.{param}", "problem": problem}]
    title = "The request cannot be answered."
    return Refused(Problem(400, "unsupported-value", title, fix, errors))


def _said(messages: Iterable[ChatMessage | InputItem], param: str) -> Said:
    """The last message of the person is the newest; whatever follows it is dropped."""
    told: list[Message] = []
    tokens = 0
    newest: Content = None
    asked = -1  # the place of the last message of the person
    for message in messages:
        text = _text(message.content)
        tokens += count_tokens(text)
        if message.role == USER:
            newest, asked = message.content, len(told)
        if message.role in (USER, ASSISTANT):
            told.append(Message(str(message.role), text))
    if asked < 0:
        fix = "Send the question as the last message, with the role 'user'."
        raise refusal(param, "has no message of the role 'user'", fix)
    _check_parts(newest, param)
    return Said(told[asked].text, tuple(told[:asked]), tokens)


def _text(content: Content) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text or "" for part in content if part.type in _TEXT)


def _check_parts(content: Content, param: str) -> None:
    """Refuse images and files in the newest message; older ones are passed over."""
    parts: Sequence[Part] = content if isinstance(content, list) else ()
    for part in parts:
        if part.type not in _TEXT:
            problem = f"has a part of the type '{part.type[:40]}'"
            fix = "Only text is read: ask in words, without images, sound or files."
            raise refusal(param, problem, fix)


def check_text(text: str, param: str) -> str:
    """The question or reply on one line; refused where it is empty or too long."""
    text = " ".join(text.split())
    if not text:
        raise refusal(param, "has an empty last message", "Ask something.")
    if len(text) > LONGEST_QUESTION:
        raise refusal(
            param,
            f"has a last message of {len(text):,} characters",
            f"Ask in at most {LONGEST_QUESTION:,}. Texts to search in belong in the index: whichsense index add",
        )
    try:
        check_question(text)
    except BadInput as error:
        raise refusal(param, "cannot be read", str(error)) from None
    return text
