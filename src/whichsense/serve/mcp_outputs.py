"""What tools of the Model Context Protocol take and give: arguments, small records, their texts and schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic.json_schema import SkipJsonSchema

from whichsense.conversation.turns import ALL, LONGEST_REPLY, QUESTION, SKIP
from whichsense.errors import WhichsenseError
from whichsense.serve.problems import Problem
from whichsense.serve.schemas import LONGEST_QUESTION, Probability, Question
from whichsense.serve.state import KeptConversation
from whichsense.text.words import sentence_at
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

# What tools give: the records of the package without what would only fill a model's context.

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
    index: Annotated[str, Field(description="The index that was asked.")]
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
class SearchOutput:
    """Passages, best first."""

    query: str
    method: Method
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """A passage and its neighbours in its document."""

    before: tuple[Passage, ...]
    passage: Passage
    after: tuple[Passage, ...]


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
        index=kept.index,
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


# What tools give, as a model reads it: plain text, with what to do next where something is to be
# done.

_MOST_POSSIBLE = 3  # that are named
_LATE = "The time was up before there was an answer. Call the tool again, or `search`."


def turn_text(output: TurnOutput, *, has_buttons: bool = False) -> str:
    """What to show to the user, or to ask them."""
    blocks = [output.message] if output.message else []
    if output.clarification is not None:
        blocks += _question_back(output, has_buttons)
    elif output.shown == "nothing":
        blocks += _nothing(output)
    else:
        head = output.dependence
        if output.shown == "possible" and output.readings:
            head = "Not probable, but possible:"
        blocks += [head] if head else []
        blocks += _texts_readings(output.readings, is_tentative=output.tentative)
    if output.clarification is None and output.possible and output.readings:
        blocks.append(_possible(output.possible))
    if output.shown == "more":
        blocks.append(f"Ask the user, then call {_reply(output)}.")
    blocks += [f"Note: {note}" for note in output.notes]
    if output.stopped and output.readings:
        blocks.append(
            "The time was up before all was read: there may be more readings."
        )
    return "\n\n".join(blocks)


def unasked_text(output: TurnOutput) -> str:
    """For who wanted to know what to ask: there is nothing to ask."""
    return f"There is no need to ask back.\n\n{turn_text(output)}"


def _question_back(output: TurnOutput, has_buttons: bool) -> list[str]:
    """The options, how to hand the choice back, and what to do where nobody can be asked."""
    assert output.clarification is not None
    lines = [output.clarification.question]
    for option in output.clarification.options:
        # What describes an option is in the readings, too, where they follow.
        is_described = option.description and not output.readings
        about = f" – {option.description}" if is_described else ""
        lines.append(f"{option.id}. {option.label}{about}")
    several = f"“{output.question}” has several readings."
    if has_buttons:
        ask = f"{several} The user sees these options as buttons; wait for the choice:"
        then = f"If they choose in words instead, call {_reply(output)}."
    else:
        ask = f"{several} Ask the user which one they mean:"
        then = f"Then call {_reply(output)}."
    blocks = [ask, "\n".join(lines), then]
    if output.readings:
        blocks.append("Only if nobody can be asked, give every reading:")
        blocks += _texts_readings(output.readings, numbered=False)
    return blocks


def _reply(output: TurnOutput) -> str:
    return f'`reply` with conversation "{output.conversation}" and what the user says as `text`'


def _nothing(output: TurnOutput) -> list[str]:
    if output.stopped:
        return [_LATE]
    blocks = [f"The corpus has no probable answer to “{output.question}”."]
    if output.nearest:
        lines = ["The nearest passages:"]
        for one in output.nearest:
            lines.append(f"- {one.title} [{one.passage}]: {one.quote}")
        blocks.append("\n".join(lines))
    blocks.append(
        "Say so. Call `search` with other words; or ask the user to say more about what they mean, "
        f"and call {_reply(output)}."
    )
    return blocks


def _texts_readings(
    readings: Sequence[ReadingOutput],
    *,
    numbered: bool = True,
    is_tentative: bool = False,
) -> list[str]:
    blocks = []
    for number, one in enumerate(readings, 1):
        mark = ""
        if len(readings) > 1:
            mark = f"{number}. " if numbered else "- "
        perhaps = "Perhaps: " if is_tentative else ""
        about = f" – {one.told_apart}" if one.told_apart else ""
        lines = [f"{mark}{perhaps}{one.answer}{about} ({one.confidence:.0%})"]
        for evidence in one.evidence[:1]:
            lines.append(f"   “{evidence.quote}” {evidence.title} [{evidence.passage}]")
        blocks.append("\n".join(lines))
    return blocks


def _possible(readings: Sequence[ReadingOutput]) -> str:
    names = [one.answer for one in readings[:_MOST_POSSIBLE]]
    more = len(readings) - len(names)
    rest = f" and {more} more" if more else ""
    return f"Not probable enough to count as an answer: {'; '.join(names)}{rest}."


def explain_text(output: ExplainOutput) -> str:
    if not output.text and output.stopped:
        return _LATE
    if not output.text:
        return f"The corpus has no probable answer to “{output.question}”."
    lines = [output.text, ""]
    for number, source in enumerate(output.sources, 1):
        lines.append(f"[{number}] {source.title} [{source.passage}]")
    return "\n".join(lines)


def search_text(output: SearchOutput) -> str:
    if not output.hits:
        return "No passage matches. Try other words."
    blocks = []
    for number, hit in enumerate(output.hits, 1):
        blocks.append(f"{number}. {_passage(hit.passage)}")
    return "\n\n".join(blocks)


def read_text(output: ReadOutput) -> str:
    """The passage between its neighbours, as they follow each other in the document."""
    blocks = []
    for one in output.before:
        blocks.append(f"(before) {_passage(one)}")
    blocks.append(_passage(output.passage))
    for one in output.after:
        blocks.append(f"(after) {_passage(one)}")
    return "\n\n".join(blocks)


def _passage(passage: Passage) -> str:
    section = f" › {passage.section}" if passage.section else ""
    return f"{passage.title}{section} [{passage.id}]\n{passage.text}"


# JSON schemas for models: what pydantic makes of a type, without what only costs tokens.


@cache
def schema_of(model: Any) -> dict[str, Any]:
    """The schema of a type. It is shared: nobody may change it."""
    schema = TypeAdapter(model).json_schema(mode="serialization")
    pruned: dict[str, Any] = _pruned(schema)
    return pruned


def _pruned(value: Any) -> Any:
    """Without titles, which repeat names, and defaults of null, which say that a field may be left out.

    >>> _pruned({"title": "Ask", "properties": {"title": {"title": "Title", "type": "string", "default": None}}})
    {'properties': {'title': {'type': 'string'}}}
    """
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, item in value.items():
        is_title = name == "title" and isinstance(item, str)
        if not is_title and not (name == "default" and item is None):
            kept[name] = _pruned(item)
    return kept


# What a model is told where a tool cannot give what was asked: what is wrong, and what to do.

_AGAIN = "Call the tool again once; if it fails again, tell the user that the service has a fault"
# Fixes of the HTTP service that mean nothing to a model, by the kind of problem.
_FIXES = {
    "missing-stage": "Call `ask` with ask_back false, or `search`.",
    "reply": "Reply with one of the options, or ask a new question.",
    "changed": "Call `reply` again.",
    "not-usable": "Ask in other words.",
}


class ToolFault(WhichsenseError):
    """The message is for the model that called the tool."""


def explain_problem(problem: Problem) -> str:
    """A problem of the service in a sentence or two."""
    if problem.kind == "internal":
        log = f" (its log calls this {problem.instance})" if problem.instance else ""
        return f"The service failed at this call. {_AGAIN}{log}."
    return f"{problem.title} {_FIXES.get(problem.kind, problem.fix)}"


# What tools take. The JSON schemas of these models are what the calling model reads.

_MOST_HITS = 20
Arguments = TypeVar("Arguments", bound="_Arguments")


class _Arguments(BaseModel):
    """An argument that there is not is an error: it is a misspelt one."""

    model_config = ConfigDict(extra="forbid")


_INDEX = Field(
    "", max_length=100, description="Which index is asked; leave it out for the first."
)


class QuestionArguments(_Arguments):
    question: Annotated[
        Question,
        Field(
            description="One question in plain words, as the user put it. Do not make it more specific yourself."
        ),
    ]
    index: str = _INDEX
    threshold: Probability | SkipJsonSchema[None] = Field(
        None,
        description="The least probability of an answer that is given; leave it out, as a rule.",
    )


class AskArguments(QuestionArguments):
    ask_back: bool = Field(
        True,
        description="Whether the user may be asked which reading they mean. "
        "false: give every reading at once.",
    )


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
    index: str = _INDEX


class ReadArguments(_Arguments):
    passage: str = Field(
        min_length=1,
        max_length=1000,
        description="A passage's id, from evidence, a source or a search hit.",
    )
    index: str = _INDEX


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
