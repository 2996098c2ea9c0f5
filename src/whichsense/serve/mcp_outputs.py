"""What tools of the Model Context Protocol take and give: arguments, small records, their texts and schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import SkipJsonSchema

from whichsense.conversation import ServedConversation
from whichsense.conversation.turns import ALL, LONGEST_REPLY, QUESTION, SKIP
from whichsense.errors import WhichsenseError
from whichsense.serve.problems import Problem
from whichsense.serve.schemas import LONGEST_QUESTION, AskRequest, Probability, Question
from whichsense.text.words import sentence_at
from whichsense.types import (
    Case,
    Clarification,
    Hit,
    Method,
    Passage,
    PassageInContext,
    Reading,
    ServedCase,
    Span,
)

# What tools give: the records of the package without what would only fill a model's context.

_LONGEST_QUOTE = 400
_MOST_EVIDENCE = 3  # for one reading
_NEAREST = 3  # passages that are named where there is no answer
Shown = Literal["answer", "clarification", "readings", "possible", "explanation", "more", "nothing"]


class _Output:
    """A record whose fields are described by the text below them."""

    __slots__ = ()
    __pydantic_config__: ClassVar = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Evidence(_Output):
    """Where an answer stands."""

    passage: str
    """The id: `read` gives the passage."""
    title: str
    quote: str
    """The sentence that holds the answer."""

    def __str__(self) -> str:
        return f"{self.title} [{self.passage}]"


@dataclass(frozen=True, slots=True)
class ReadingOutput(_Output):
    """One reading of the question."""

    question: str
    """The question, reworded for this answer, or as asked."""
    answer: str
    confidence: float
    """A probability, from 0 to 1."""
    label: str
    """The words of the text that name this answer's case."""
    source: str
    """The title of its text, where there is no rewording."""
    told_apart: str
    """What tells it from the others: one of these three."""
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class OptionOutput(_Output):
    id: str
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class ClarificationOutput(_Output):
    """The question back to the user."""

    question: str
    options: tuple[OptionOutput, ...]


@dataclass(frozen=True, slots=True)
class TurnOutput(_Output):
    """What is to be shown to the user now."""

    shown: Shown
    """clarification: the user is to choose. nothing: the corpus has no probable answer."""
    question: str
    """The question that is talked about."""
    message: str
    clarification: ClarificationOutput | None
    readings: tuple[ReadingOutput, ...]
    """Best first. Answers to give; where there are several, none of them is the answer."""
    dependence: str
    """What to say before several readings. Else empty."""
    tentative: bool
    """Whether the only answer is not probable: say “perhaps”."""
    possible: tuple[ReadingOutput, ...]
    """Not probable enough to be given as answers."""
    nearest: tuple[Evidence, ...]
    """Where there is no answer: the passages that came nearest."""
    notes: tuple[str, ...]
    """What the user should know of the answer."""
    stopped: str
    """Why it ended early: deadline. Else empty."""
    conversation: str
    """For `reply`."""
    index: str
    """The index that was asked."""
    case: str
    """The id of this answer in the service."""


@dataclass(frozen=True, slots=True)
class SentenceOutput(_Output):
    sentence: str
    passages: tuple[str, ...]
    """The ids of the passages that say so."""


@dataclass(frozen=True, slots=True)
class SourceOutput(_Output):
    passage: str
    """The id: `read` gives the passage."""
    title: str


@dataclass(frozen=True, slots=True)
class ExplainOutput(_Output):
    """The long answer."""

    question: str
    text: str
    """With [1], [2], … for the sources. Empty: no answer."""
    sentences: tuple[SentenceOutput, ...]
    sources: tuple[SourceOutput, ...]
    """[1] is the first."""
    stopped: str
    case: str


@dataclass(frozen=True, slots=True)
class SearchOutput(_Output):
    """Passages, best first."""

    query: str
    method: Method
    hits: tuple[Hit, ...]


def turn_output(kept: ServedConversation) -> TurnOutput:
    """The last turn of a conversation."""
    conversation, turn = kept.conversation, kept.last
    case = conversation.case or Case("")
    nearest = case.hits[:_NEAREST] if turn.shown == "nothing" else ()
    # After a choice, what else would be possible is beside the point.
    is_whole = turn.intent.kind in (QUESTION, SKIP, ALL)
    return TurnOutput(
        shown=turn.shown,  # type: ignore[arg-type]
        question=case.question,
        message=turn.message,
        clarification=_clarification(turn.clarification if turn.pending else None),
        readings=_readings(turn.readings, case.question),
        dependence=conversation.dependence,
        tentative=turn.is_tentative,
        possible=_readings(case.possible if is_whole else (), case.question),
        nearest=tuple(_evidence(Span(hit.passage, 0, 0)) for hit in nearest),
        notes=case.notes,
        stopped=case.stopped,
        conversation=conversation.id,
        index=kept.index,
        case=kept.case_id,
    )


def explain_output(served: ServedCase) -> ExplainOutput:
    """The long answer of a case."""
    case, answer = served.case, served.case.long_answer
    sentences = []
    for citation in answer.sentences if answer else ():
        ids = tuple(passage.id for passage in citation.passages)
        sentences.append(SentenceOutput(citation.sentence, ids))
    cited = answer.passages if answer else ()
    return ExplainOutput(
        question=case.question,
        text=answer.cited_text if answer else "",
        sentences=tuple(sentences),
        sources=tuple(SourceOutput(one.id, one.title) for one in cited),
        stopped=case.stopped,
        case=served.id,
    )


def _clarification(asked: Clarification | None) -> ClarificationOutput | None:
    if asked is None:
        return None
    options = [OptionOutput(one.id, one.label, one.description) for one in asked.options]
    return ClarificationOutput(f"{asked.lead}?", tuple(options))


def _readings(readings: Sequence[Reading], asked: str) -> tuple[ReadingOutput, ...]:
    rows = []
    for one in readings:
        spans: dict[str, Span] = {}
        for span in one.evidence:
            spans.setdefault(span.passage.id, span)
        rows.append(
            ReadingOutput(
                question=one.question,
                answer=one.answer,
                confidence=round(one.confidence, 3),
                label=one.label,
                source=one.source,
                told_apart=one.told_apart(asked),
                evidence=tuple(map(_evidence, spans.values()))[:_MOST_EVIDENCE],
            )
        )
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
    blocks = [output.message]
    if output.clarification is not None:
        blocks += _question_back(output, output.clarification, has_buttons)
    elif output.shown == "nothing":
        blocks += _nothing(output)
    else:
        blocks += _answers(output)
    if output.shown == "more":
        blocks.append(f"Ask the user, then call {_reply(output)}.")
    blocks += [f"Note: {note}" for note in output.notes]
    if output.stopped and output.readings:
        blocks.append("The time was up before all was read: there may be more readings.")
    return _text(blocks)


def _text(blocks: Iterable[str]) -> str:
    return "\n\n".join(block for block in blocks if block)


def unasked_text(output: TurnOutput) -> str:
    """For who wanted to know what to ask: there is nothing to ask."""
    return f"There is no need to ask back.\n\n{turn_text(output)}"


def _answers(output: TurnOutput) -> Iterable[str]:
    """The answers, and what is merely possible."""
    readings, possible = output.readings, output.possible
    is_possible = output.shown == "possible" and readings
    yield "Not probable, but possible:" if is_possible else output.dependence
    yield from _listed(readings, "{}. ", "Perhaps: " if output.tentative else "")
    if possible and readings:
        names = "; ".join(one.answer for one in possible[:_MOST_POSSIBLE])
        more = len(possible) - _MOST_POSSIBLE
        rest = f" and {more} more" if more > 0 else ""
        yield f"Not probable enough to count as an answer: {names}{rest}."


def _question_back(
    output: TurnOutput, asked: ClarificationOutput, has_buttons: bool
) -> Iterable[str]:
    """The options, how to hand the choice back, and what to do where nobody can be asked."""
    lines = [asked.question]
    for option in asked.options:
        # What describes an option is in the readings, too, where they follow.
        is_described = option.description and not output.readings
        about = f" – {option.description}" if is_described else ""
        lines.append(f"{option.id}. {option.label}{about}")
    ask, then = "Ask the user which one they mean:", "Then"
    if has_buttons:
        ask = "The user sees these options as buttons; wait for the choice:"
        then = "If they choose in words instead,"
    yield f"“{output.question}” has several readings. {ask}"
    yield "\n".join(lines)
    yield f"{then} call {_reply(output)}."
    if output.readings:
        yield "Only if nobody can be asked, give every reading:"
        yield from _listed(output.readings, "- ")


def _reply(output: TurnOutput) -> str:
    return f'`reply` with conversation "{output.conversation}" and what the user says as `text`'


def _nothing(output: TurnOutput) -> Iterable[str]:
    if output.stopped:
        yield _LATE
        return
    yield f"The corpus has no probable answer to “{output.question}”."
    if output.nearest:
        lines = [f"- {one}: {one.quote}" for one in output.nearest]
        yield "\n".join(["The nearest passages:", *lines])
    yield (
        "Say so. Call `search` with other words; or ask the user to say more about what they mean, "
        f"and call {_reply(output)}."
    )


def _listed(readings: Sequence[ReadingOutput], mark: str, perhaps: str = "") -> Iterable[str]:
    """A block for each reading; a mark before each of several."""
    for number, one in enumerate(readings, 1):
        head = mark.format(number) if len(readings) > 1 else ""
        about = f" – {one.told_apart}" if one.told_apart else ""
        quote = f"{head}{perhaps}{one.answer}{about} ({one.confidence:.0%})"
        for evidence in one.evidence[:1]:
            quote += f"\n   “{evidence.quote}” {evidence}"
        yield quote


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
    numbered = enumerate(output.hits, 1)
    return _text(f"{number}. {_passage(hit.passage)}" for number, hit in numbered)


def read_text(output: PassageInContext) -> str:
    """The passage between its neighbours, as they follow each other in the document."""
    before = [f"(before) {_passage(one)}" for one in output.before]
    after = [f"(after) {_passage(one)}" for one in output.after]
    return _text([*before, _passage(output.passage), *after])


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

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


_INDEX = Field("", max_length=100, description="Which index is asked; leave it out for the first.")


class QuestionArguments(_Arguments):
    question: Question
    """One question in plain words, as the user put it. Do not make it more specific yourself."""
    index: str = _INDEX
    threshold: Probability | SkipJsonSchema[None] = None
    """The least probability of an answer that is given; leave it out, as a rule."""

    def request(self, **more: Any) -> AskRequest:
        """What the service is asked."""
        return AskRequest(**self.model_dump(exclude={"ask_back"}), **more)


class AskArguments(QuestionArguments):
    ask_back: bool = True
    """Whether the user may be asked which reading they mean. false: give every reading at once."""


def _as_text(value: object) -> object:
    """The number of an option is as good as its id."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


OptionId = Annotated[str, Field(max_length=20), BeforeValidator(_as_text)]


class ReplyArguments(_Arguments):
    conversation: str = Field(max_length=100)
    """The id that `ask`, `clarify` or `reply` gave."""
    text: Annotated[str, Field(max_length=LONGEST_REPLY)] | SkipJsonSchema[None] = Field(
        None,
        description="What the user said, word for word: a number, a few words, several options, “all”, "
        "“none of these”, or a new question.",
    )
    options: Annotated[list[OptionId], Field(max_length=50)] | SkipJsonSchema[None] = None
    """In place of `text`: the ids of the chosen options. An empty list: no preference, give every reading."""


class SearchArguments(_Arguments):
    query: Question
    """A question, or words to look for."""
    k: int = Field(5, ge=1, le=_MOST_HITS)
    """Passages to find."""
    method: Method | SkipJsonSchema[None] = None
    """By words (bm25), by meaning (dense) or both (hybrid); leave it out for the best that there is."""
    index: str = _INDEX


class ReadArguments(_Arguments):
    passage: str = Field(min_length=1, max_length=1000)
    """A passage's id, from evidence, a source or a search hit."""
    index: str = _INDEX


def parse(model: type[Arguments], given: Mapping[str, Any] | None) -> Arguments:
    """The arguments of a call; a `ToolFault` names every one that is wrong."""
    try:
        return model.model_validate(given or {})
    except ValidationError as error:
        problems = [_explain(one) for one in error.errors()[:5]]
        known = ", ".join(model.model_fields)
        raise ToolFault(f"{' '.join(problems)} The arguments are: {known}.") from None


_WRONG = {
    "missing": "The argument '{}' is missing.",
    "extra_forbidden": "There is no argument '{}'.",
    "string_too_short": "The argument '{}' is empty.",
}


def _explain(error: Any) -> str:
    """One sentence about one argument, without what was given."""
    name = ".".join(str(part)[:40] for part in error["loc"]) or "arguments"
    if error["type"] in _WRONG:
        return _WRONG[error["type"]].format(name)
    if error["type"] == "string_too_long" and name in ("question", "query"):
        bound = f"ask one question of at most {LONGEST_QUESTION:,} characters"
        return f"The argument '{name}' is too long: {bound}."
    message = str(error["msg"]).removeprefix("Value error, ")[:200].rstrip(".")
    return f"The argument '{name}' is wrong: {message}."
