"""The tools. Their descriptions are written for the models that call them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_types import (
    CallToolResult,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import is_version_at_least

from whichsense import records
from whichsense.conversation import show_readings
from whichsense.conversation.records import check_reply
from whichsense.errors import BadInput
from whichsense.serve.answering.dialogue import Reply
from whichsense.serve.mcp import arguments as given
from whichsense.serve.mcp import outputs, resources, texts
from whichsense.serve.mcp.asking import resumed, settle, way_of
from whichsense.serve.mcp.calls import Call
from whichsense.serve.mcp.errors import ToolFault
from whichsense.serve.mcp.json_schema import schema_of
from whichsense.serve.routes.search import neighbours
from whichsense.serve.state.conversations import KeptConversation

Answer = CallToolResult | InputRequiredResult
_LINKED = "2025-06-18"  # from here on, a result may link to resources
_MOST_LINKS = 10

_ASK = """\
Answer a question from this corpus in every sense that it has, each answer with its evidence and how sure it is. \
Use it for every factual question that the corpus may answer, above all short or vague ones \
("Who played the Joker?", "How many days of leave are there?"). \
If the question is ambiguous, the user is asked which reading they mean: by a form where the client has one, else you \
get numbered options to pass on, and then call `reply`. Give no answer that is not among the readings."""
_CLARIFY = """\
Find out whether a question is ambiguous in this corpus, and by what its readings differ: the question to ask the \
user, with numbered options. Nobody is asked yet: put the question to the user, then call `reply` with what they \
say. Use `ask` if you want answers at once."""
_REPLY = """\
Go on with a conversation that `ask` or `clarify` began: give the user's choice among the options, in their own words \
or by ids, and get the answers for it. Several options, "all", "none of these" and new questions are understood, too."""
_EXPLAIN = """\
Tell the whole story of a question in one paragraph that covers all of its readings, with a numbered source for every \
sentence. Use it if the user wants an overview or an explanation rather than one answer."""
_SEARCH = """\
Find the passages of this corpus that may answer a question, best first, with their whole text. Use it to look at the \
evidence yourself, or with other words where `ask` found no answer."""
_READ = """\
Read one passage by its id, with what stands before and after it in its document. Use it to check a quote or to see \
its context."""


@dataclass(frozen=True, slots=True)
class _Tool:
    title: str
    description: str
    arguments: Any
    output: Any
    run: Callable[[Call, Any], Awaitable[Answer]]
    has_app: bool = False
    """Whether a client that shows apps shows the result by one."""


def definitions(*, with_apps: bool) -> list[Tool]:
    """The tools as clients list them."""
    tools = []
    for name, tool in _TOOLS.items():
        hints = ToolAnnotations(
            title=tool.title, read_only_hint=True, open_world_hint=False
        )
        tools.append(
            Tool(
                name=name,
                title=tool.title,
                description=tool.description,
                input_schema=schema_of(tool.arguments),
                output_schema=schema_of(tool.output),
                annotations=hints,
                _meta=resources.app_meta() if with_apps and tool.has_app else None,
            )
        )
    return tools


def input_schema(name: str) -> dict[str, Any] | None:
    tool = _TOOLS.get(name)
    return schema_of(tool.arguments) if tool else None


async def run(name: str, call: Call) -> Answer:
    """What a tool gives. Raises `ToolFault` where it is not called as it can be."""
    tool = _TOOLS[name]
    arguments = given.parse(tool.arguments, call.params.arguments)
    await call.wait_until_ready()
    return await tool.run(call, arguments)


async def _ask(call: Call, arguments: given.AskArguments) -> Answer:
    kept = await resumed(call)
    question = check_reply(arguments.question)
    if kept is None or kept.conversation.turns[0].said != question:
        kept = await call.begin(question)
    if kept.conversation.last.pending and not arguments.ask_back:
        every = show_readings(kept.conversation)
        return await _shown(call, replace(kept, conversation=every))
    return await _settled(call, kept)


async def _clarify(call: Call, arguments: given.QuestionArguments) -> Answer:
    kept = await call.begin(arguments.question)
    output = await call.briefly(lambda: outputs.turn_output(kept))
    if output.clarification is None:
        return _turn(call, output, texts.unasked_text(output))
    return _turn(call, outputs.without_answers(output))


async def _reply(call: Call, arguments: given.ReplyArguments) -> Answer:
    kept = await resumed(call)
    if kept is None or kept.conversation.id != arguments.conversation:
        kept = await call.find(arguments.conversation)
        if kept is None:
            raise ToolFault(
                "There is no such conversation; it may have been deleted. Call `ask` with the question again."
            )
        kept = await call.reply(kept, _said(arguments))
    return await _settled(call, kept)


def _said(arguments: given.ReplyArguments) -> Reply:
    if arguments.options is not None:
        return Reply(options=tuple(arguments.options))
    if arguments.text is None:
        raise ToolFault("Give what the user said as `text`, or ids as `options`.")
    return Reply(text=arguments.text)


async def _explain(call: Call, arguments: given.QuestionArguments) -> Answer:
    served = await call.explain(arguments.question)
    output = await call.briefly(lambda: outputs.explain_output(served))
    links = {source.passage: source.title for source in output.sources}
    return _result(call, output, texts.explain_text(output), links)


async def _search(call: Call, arguments: given.SearchArguments) -> Answer:
    index = call.service.served.index
    try:
        method = index.method(arguments.method)
    except BadInput:
        raise ToolFault(
            "This corpus has no vectors. Leave `method` out, or give bm25."
        ) from None
    query = arguments.query
    hits = await call.briefly(lambda: index.search(query, arguments.k, method))
    output = outputs.search_output(query, method, hits)
    return _result(call, output, texts.search_text(output))


async def _read(call: Call, arguments: given.ReadArguments) -> Answer:
    index = call.service.served.index
    rows = await call.briefly(lambda: neighbours(index, arguments.passage))
    if rows is None:
        raise ToolFault(
            "There is no passage with this id. Take it, whole, from evidence, a source or a search hit."
        )
    before, passage, after = rows
    output = outputs.ReadOutput(
        tuple(outputs.passage_output(one) for one in before),
        outputs.passage_output(passage),
        tuple(outputs.passage_output(one) for one in after),
    )
    return _result(call, output, texts.read_text(output))


async def _settled(call: Call, kept: KeptConversation) -> Answer:
    """The user is asked by forms if the client has them; the rest is shown."""
    if way_of(call) != "form":
        return await _shown(call, kept)
    settled = await settle(call, kept)
    if isinstance(settled, InputRequiredResult):
        return settled
    return await _shown(call, settled)


async def _shown(call: Call, kept: KeptConversation) -> CallToolResult:
    """The last turn of a conversation."""
    return _turn(call, await call.briefly(lambda: outputs.turn_output(kept)))


def _turn(call: Call, output: outputs.TurnOutput, text: str = "") -> CallToolResult:
    """A turn with its text, and links to the best evidence of each reading."""
    has_buttons = way_of(call) == "buttons"
    text = text or texts.turn_text(output, has_buttons=has_buttons)
    links = {}
    for reading in output.readings:
        for evidence in reading.evidence[:1]:
            links[evidence.passage] = evidence.title
    return _result(call, output, text, links)


def _result(
    call: Call, output: object, text: str, links: Mapping[str, str] | None = None
) -> CallToolResult:
    """A record as structured output, as text, and links to the passages that it rests on."""
    content: list[TextContent | ResourceLink] = [TextContent(text=text)]
    if is_version_at_least(call.context.protocol_version, _LINKED):
        for passage_id, title in list((links or {}).items())[:_MOST_LINKS]:
            content.append(resources.link(passage_id, title))
    return CallToolResult(
        content=list(content), structured_content=records.encode(output)
    )


_TOOLS = {
    "ask": _Tool(
        "Ask", _ASK, given.AskArguments, outputs.TurnOutput, _ask, has_app=True
    ),
    "clarify": _Tool(
        "Clarify",
        _CLARIFY,
        given.QuestionArguments,
        outputs.TurnOutput,
        _clarify,
        has_app=True,
    ),
    "reply": _Tool("Reply", _REPLY, given.ReplyArguments, outputs.TurnOutput, _reply),
    "explain": _Tool(
        "Explain", _EXPLAIN, given.QuestionArguments, outputs.ExplainOutput, _explain
    ),
    "search": _Tool(
        "Search", _SEARCH, given.SearchArguments, outputs.SearchOutput, _search
    ),
    "read": _Tool("Read", _READ, given.ReadArguments, outputs.ReadOutput, _read),
}
NAMES = tuple(_TOOLS)
