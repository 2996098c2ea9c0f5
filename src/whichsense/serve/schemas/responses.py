"""What clients get."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from whichsense.types import (
    Candidate,
    Clarification,
    Cost,
    Hit,
    LongAnswer,
    Method,
    Passage,
    Reading,
)

_TENTATIVE = "Whether the only answer is not probable: give it as “Perhaps: …”."


class CaseModel(BaseModel):
    """A question with everything that is known of it: `Case.to_json`."""

    schema_: int = Field(alias="schema")
    question: str
    hits: list[Hit]
    answers: list[Candidate]
    readings: list[Reading]
    possible: list[Reading]
    answerable: float | None
    ambiguous: float | None
    is_ambiguous: bool | None
    clarification: Clarification | None
    long_answer: LongAnswer | None
    policy: dict[str, Any]
    spent: dict[str, Cost]
    calls: list[dict[str, Any]]
    notes: list[str]
    stopped: str


class AnswerModel(BaseModel):
    id: str
    system: str = Field(description="The system that answered.")
    tentative: bool = Field(description=_TENTATIVE)
    case: CaseModel


class CaseState(BaseModel):
    id: str
    state: Literal["running", "finished"]
    system: str
    tentative: bool = Field(description=_TENTATIVE)
    case: CaseModel | None


class TurnModel(BaseModel):
    said: str
    intent: dict[str, Any]
    shown: str
    message: str
    readings: list[Reading]
    clarification: Clarification | None
    long_answer: LongAnswer | None


class TalkModel(BaseModel):
    """What was said and shown: `Conversation.to_json`. The last turn says what to show now."""

    schema_: int = Field(alias="schema")
    id: str
    turns: list[TurnModel]
    case: dict[str, Any] | None
    asked: list[str]


class ConversationModel(BaseModel):
    id: str
    case_id: str = Field(description="Of the question that is talked about.")
    system: str = Field(description="The system that answers.")
    tentative: bool = Field(description=_TENTATIVE)
    conversation: TalkModel


class SearchAnswer(BaseModel):
    question: str
    method: Method
    hits: list[Hit]


class PassageAnswer(BaseModel):
    passage: Passage
    before: list[Passage] = Field(description="What comes before it in its document.")
    after: list[Passage]


class CaseSummary(BaseModel):
    id: str
    at: float
    question: str
    seconds: float
    readings: int
    stopped: str
    up: int
    down: int
    system: str
    spent: dict[str, float] = Field(description="Seconds by stage.")


class CaseList(BaseModel):
    cases: list[CaseSummary]


class FeedbackList(BaseModel):
    feedback: list[dict[str, Any]]


class SystemModel(BaseModel):
    name: str = Field(description="What `system` in /v1/ask may say.")
    about: str


class Info(BaseModel):
    """What is served."""

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


class AddedModel(SourceModel):
    added: int
    replaced: int = Field(description="Passages of an earlier file of this name.")
    duplicates: int = Field(description="Passages that the index has already.")
    left_out: int = Field(description="Records that could not be read.")
    why: list[str] = Field(description="Of the first of them.")
