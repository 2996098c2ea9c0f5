"""What tools give: the records of the package without what would only fill a model's context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from whichsense.conversation.records import ALL, QUESTION, SKIP
from whichsense.serve.state.conversations import KeptConversation
from whichsense.text.sentences import sentence_at
from whichsense.types import (
    Case,
    Clarification,
    Hit,
    Method,
    Passage,
    Reading,
    ServedCase,
    Span,
)

_LONGEST_QUOTE = 400
_MOST_EVIDENCE = 3  # for one reading
_NEAREST = 3  # passages that are named where there is no answer
Shown = Literal[
    "answer", "clarification", "readings", "possible", "explanation", "more", "nothing"
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where an answer stands."""

    passage: Annotated[str, Field(description="The id: `read` gives the passage.")]
    title: str
    quote: Annotated[str, Field(description="The sentence that holds the answer.")]


@dataclass(frozen=True, slots=True)
class ReadingOutput:
    """One reading of the question."""

    question: Annotated[
        str, Field(description="The question, reworded for this answer, or as asked.")
    ]
    answer: str
    confidence: Annotated[float, Field(description="A probability, from 0 to 1.")]
    label: Annotated[
        str, Field(description="The words of the text that name this answer's case.")
    ]
    source: Annotated[
        str, Field(description="The title of its text, where there is no rewording.")
    ]
    told_apart: Annotated[
        str, Field(description="What tells it from the others: one of these three.")
    ]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class OptionOutput:
    id: str
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class ClarificationOutput:
    """The question back to the user."""

    question: str
    options: tuple[OptionOutput, ...]


@dataclass(frozen=True, slots=True)
class TurnOutput:
    """What is to be shown to the user now."""

    shown: Annotated[
        Shown,
        Field(
            description="clarification: the user is to choose. nothing: the corpus has no probable answer."
        ),
    ]
    question: Annotated[str, Field(description="The question that is talked about.")]
    message: str
    clarification: ClarificationOutput | None
    readings: Annotated[
        tuple[ReadingOutput, ...],
        Field(
            description="Best first. Answers to give; where there are several, none of them is the answer."
        ),
    ]
    dependence: Annotated[
        str, Field(description="What to say before several readings. Else empty.")
    ]
    tentative: Annotated[
        bool,
        Field(description="Whether the only answer is not probable: say “perhaps”."),
    ]
    possible: Annotated[
        tuple[ReadingOutput, ...],
        Field(description="Not probable enough to be given as answers."),
    ]
    nearest: Annotated[
        tuple[Evidence, ...],
        Field(description="Where there is no answer: the passages that came nearest."),
    ]
    notes: Annotated[
        tuple[str, ...], Field(description="What the user should know of the answer.")
    ]
    stopped: Annotated[
        str, Field(description="Why it ended early: deadline. Else empty.")
    ]
    conversation: Annotated[str, Field(description="For `reply`.")]
    case: Annotated[str, Field(description="The id of this answer in the service.")]


@dataclass(frozen=True, slots=True)
class SentenceOutput:
    sentence: str
    passages: Annotated[
        tuple[str, ...], Field(description="The ids of the passages that say so.")
    ]


@dataclass(frozen=True, slots=True)
class SourceOutput:
    passage: Annotated[str, Field(description="The id: `read` gives the passage.")]
    title: str


@dataclass(frozen=True, slots=True)
class ExplainOutput:
    """The long answer."""

    question: str
    text: Annotated[
        str, Field(description="With [1], [2], … for the sources. Empty: no answer.")
    ]
    sentences: tuple[SentenceOutput, ...]
    sources: Annotated[tuple[SourceOutput, ...], Field(description="[1] is the first.")]
    stopped: str
    case: str


@dataclass(frozen=True, slots=True)
class PassageOutput:
    id: str
    title: str
    section: str
    source: Annotated[str, Field(description="The name of the file it is from.")]
    text: str


@dataclass(frozen=True, slots=True)
class HitOutput:
    passage: PassageOutput
    score: float


@dataclass(frozen=True, slots=True)
class SearchOutput:
    """Passages, best first."""

    query: str
    method: Method
    hits: tuple[HitOutput, ...]


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """A passage and its neighbours in its document."""

    before: tuple[PassageOutput, ...]
    passage: PassageOutput
    after: tuple[PassageOutput, ...]


def turn_output(kept: KeptConversation) -> TurnOutput:
    """The last turn of a conversation."""
    conversation = kept.conversation
    turn = conversation.last
    case = conversation.case or Case("")
    asked = turn.clarification if turn.pending else None
    is_empty = turn.shown == "nothing"
    # After a choice, what else would be possible is beside the point.
    is_whole = turn.intent.kind in (QUESTION, SKIP, ALL)
    return TurnOutput(
        shown=turn.shown,  # type: ignore[arg-type]
        question=case.question,
        message=turn.message,
        clarification=_clarification(asked) if asked else None,
        readings=_readings(turn.readings, case.question),
        dependence=conversation.dependence,
        tentative=turn.is_tentative,
        possible=_readings(case.possible, case.question) if is_whole else (),
        nearest=_nearest(case.hits) if is_empty else (),
        notes=case.notes,
        stopped=case.stopped,
        conversation=conversation.id,
        case=kept.case_id,
    )


def without_answers(output: TurnOutput) -> TurnOutput:
    """The question back alone."""
    return replace(output, readings=(), possible=(), tentative=False)


def explain_output(served: ServedCase) -> ExplainOutput:
    case = served.case
    answer = case.long_answer
    sentences = []
    sources = []
    for citation in answer.sentences if answer else ():
        ids = tuple(passage.id for passage in citation.passages)
        sentences.append(SentenceOutput(citation.sentence, ids))
    for passage in answer.passages if answer else ():
        sources.append(SourceOutput(passage.id, passage.title))
    return ExplainOutput(
        question=case.question,
        text=answer.cited_text if answer else "",
        sentences=tuple(sentences),
        sources=tuple(sources),
        stopped=case.stopped,
        case=served.id,
    )


def passage_output(passage: Passage) -> PassageOutput:
    return PassageOutput(
        passage.id, passage.title, passage.section, passage.source, passage.text
    )


def search_output(query: str, method: Method, hits: Sequence[Hit]) -> SearchOutput:
    rows = []
    for hit in hits:
        rows.append(HitOutput(passage_output(hit.passage), round(hit.score, 4)))
    return SearchOutput(query, method, tuple(rows))


def _clarification(clarification: Clarification) -> ClarificationOutput:
    options = []
    for one in clarification.options:
        options.append(OptionOutput(one.id, one.label, one.description))
    return ClarificationOutput(f"{clarification.lead}?", tuple(options))


def _readings(readings: Sequence[Reading], asked: str) -> tuple[ReadingOutput, ...]:
    rows = []
    for one in readings:
        evidence: dict[str, Evidence] = {}
        for span in one.evidence:
            evidence.setdefault(span.passage.id, _evidence(span))
        rows.append(
            ReadingOutput(
                question=one.question,
                answer=one.answer,
                confidence=round(one.confidence, 3),
                label=one.label,
                source=one.source,
                told_apart=one.told_apart(asked),
                evidence=tuple(evidence.values())[:_MOST_EVIDENCE],
            )
        )
    return tuple(rows)


def _nearest(hits: Sequence[Hit]) -> tuple[Evidence, ...]:
    rows = []
    for hit in hits[:_NEAREST]:
        rows.append(_evidence(Span(hit.passage, 0, 0)))
    return tuple(rows)


def _evidence(span: Span) -> Evidence:
    """The sentence in which a span stands, or as much of it as there is room for around the span."""
    text = span.passage.text
    start, end = sentence_at(text, span.start)
    end = max(end, span.end)
    room = max(_LONGEST_QUOTE - (span.end - span.start), 40) // 2
    begin = start if span.start - start <= room else span.start - room
    stop = end if end - span.end <= room else span.end + room
    quote = " ".join(text[begin:stop].split())
    if begin > start:
        quote = f"… {quote}"
    if stop < end:
        quote = f"{quote} …"
    return Evidence(span.passage.id, span.passage.title, quote)
