"""The tools and resources of the Model Context Protocol: calls, answers, the question back to the person."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

from mcp.server.apps import APP_MIME_TYPE, client_supports_apps
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from whichsense import types
from whichsense.conversation import ServedConversation, show_readings
from whichsense.conversation.turns import LONGEST_REPLY, check_reply
from whichsense.errors import BadInput
from whichsense.serve.answering import Running
from whichsense.serve.events import Event, describe_stage
from whichsense.serve.mcp_outputs import (
    AskArguments,
    ExplainOutput,
    QuestionArguments,
    ReadArguments,
    ReplyArguments,
    SearchArguments,
    SearchOutput,
    ToolFault,
    TurnOutput,
    explain_output,
    explain_text,
    parse,
    read_text,
    schema_of,
    search_text,
    turn_output,
    turn_text,
    unasked_text,
)
from whichsense.serve.problems import Refused
from whichsense.serve.routes import in_context
from whichsense.serve.schemas import ChooseRequest, ReplyRequest, SayRequest
from whichsense.serve.service import Caller, Service
from whichsense.types import Clarification, Option, PassageInContext, ServedCase

# One call of a tool: who calls, what can be told of progress, and the answer of the service.

Context = ServerRequestContext[Any, Any]
_MODERN = "2026-07-28"  # from here on, a question back is a result
_POLL = 0.1  # seconds between looks whether the models are there
_LONGEST_ID = 100


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that is being answered."""

    service: Service
    caller: Caller
    context: Context
    params: CallToolRequestParams
    _steps: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def is_stateless(self) -> bool:
        """Whether the client is asked by a result rather than by a request."""
        return is_version_at_least(self.context.protocol_version, _MODERN)

    async def wait_until_ready(self) -> None:
        """A client that starts the program asks before the models are loaded."""
        ends_at = time.monotonic() + self.service.settings.deadline
        if not self.service.engines.is_ready:
            await self.tell("Loading the models")
        while not self.service.engines.is_ready:
            if time.monotonic() > ends_at or self.service.failure is not None:
                raise ToolFault("The models are not loaded. Call again in a minute.")
            await asyncio.sleep(_POLL)

    async def begin(self, asked: QuestionArguments) -> ServedConversation:
        """A new conversation about a question."""
        begin = self.service.begin
        return await self._kept(begin(asked.request(), self.caller, **self._following()))

    async def reply(self, kept: ServedConversation, said: ReplyRequest) -> ServedConversation:
        """The conversation with one more turn."""
        reply = self.service.reply
        return await self._kept(reply(kept, said, self.caller, **self._following()))

    async def explain(self, asked: QuestionArguments) -> ServedCase:
        wanted = asked.request(explain=True)
        running = self.service.ask(wanted, self.caller, **self._following())
        body = await self._finish(running)
        return await self.service.briefly(lambda: ServedCase.from_json(json.loads(body)))

    async def find(self, conversation_id: str) -> ServedConversation | None:
        """A conversation that this caller may see."""
        if len(conversation_id) > _LONGEST_ID:
            return None
        return await self.service.conversation(conversation_id, self.caller)

    async def tell(self, message: str) -> None:
        """Report progress, if the client wants to know of it."""
        session = self.context.session
        await session.report_progress(next(self._steps), message=message)

    def _following(self) -> dict[str, Any]:
        """Stages are published for clients that want to know of them."""
        meta: Mapping[str, Any] = self.context.meta or {}
        headers = getattr(self.context.request, "headers", None)
        return {"streamed": "progress_token" in meta, "parent": headers}

    async def _kept(self, running: Running) -> ServedConversation:
        body = await self._finish(running)
        owner = running.origin.owner
        return await self.service.briefly(
            lambda: ServedConversation.from_json(json.loads(body), owner)
        )

    async def _finish(self, running: Running) -> str:
        """The JSON of an answer. A client that goes away, or cancels, stops its work."""
        events = running.follow(heartbeat=self.service.settings.heartbeat)
        try:
            async with contextlib.aclosing(events) as stream:
                async for event in stream:
                    await self._report(event)
        finally:
            if not running.ended:
                self.service.answers.cancel(running)
        return running.result()

    async def _report(self, event: Event | None) -> None:
        if event is None:
            await self.tell("Still at work")
        elif event.name == "stage":
            stage = json.loads(event.data)
            message = describe_stage(stage["stage"], stage["counts"])
            if message:
                await self.tell(message)


# The question back to the person, in the best way that the client has.
#
# A form where the client can elicit: by a live request in the older protocol, by a result in the
# stateless one, whose next call brings the reply. Else buttons, where it shows apps; else numbered
# text, which the model passes on. What is declined, cancelled or not understood gives every reading.

Way = Literal["form", "buttons", "text"]
_ALL = "all"
_EVERY_READING = ChooseRequest(options=[])
_KEY = "which"  # of the question, and of its field in the form
_WORDS = "words"
_TITLED = "2025-11-25"  # from here on, options have titles and several may be chosen
_PATIENCE = 600.0  # seconds for which an older client may take its time
_MOST_QUESTIONS = 5  # in one conversation
_LONGEST_TITLE = 100
_log = logging.getLogger("whichsense.serve")


def way_of(call: Call) -> Way:
    """How this client's user is asked."""
    session = call.context.session
    capabilities = session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    # A client of 2025-06-18 declares no mode: it has forms.
    has_forms = elicitation is not None and (
        elicitation.form is not None or elicitation.url is None
    )
    if has_forms and (call.is_stateless or session.can_send_request):
        return "form"
    return "buttons" if client_supports_apps(call.context) else "text"


async def resumed(call: Call) -> ServedConversation | None:
    """The conversation that a stateless client's call goes on with; None for a first call.

    The state is the conversation's id, which cannot be guessed and is looked up for this caller alone. Any worker
    finds it.
    """
    state = call.params.request_state
    return await call.find(state) if state else None


async def settle(call: Call, kept: ServedConversation) -> ServedConversation | InputRequiredResult:
    """Ask the user by forms until nothing is pending. What a stateless client has to ask first is returned."""
    given = (call.params.input_responses or {}).get(_KEY)
    while kept.conversation.last.pending:
        clarification = kept.conversation.last.clarification
        assert clarification is not None
        questions = sum(turn.pending for turn in kept.conversation.turns)
        if questions > _MOST_QUESTIONS:
            return await call.reply(kept, _EVERY_READING)
        question = kept.conversation.case.question if kept.conversation.case else ""
        form = _form(question, clarification, call.context.protocol_version)
        if not call.is_stateless:
            given = await _elicited(call, form)
        elif given is None:
            asked = ElicitRequest(params=form)
            return InputRequiredResult(
                input_requests={_KEY: asked}, request_state=kept.conversation.id
            )
        kept = await call.reply(kept, understood(given, clarification))
        given = None
    return kept


async def _elicited(call: Call, form: ElicitRequestFormParams) -> ElicitResult:
    """What the user of an older client says. A client that fails at it has not asked: that is a cancel."""
    filling = asyncio.create_task(
        call.context.session.elicit_form(
            form.message, form.requested_schema, call.context.request_id
        )
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            # Progress keeps a client from giving the call up while its user thinks.
            while not filling.done():
                await asyncio.wait({filling}, timeout=call.service.settings.heartbeat)
                if not filling.done():
                    await call.tell("Waiting for the user")
            return filling.result()
    except (MCPError, ValidationError, TimeoutError) as error:
        _log.info("a client did not ask its user: %s", type(error).__name__)
        return ElicitResult(action="cancel")
    finally:
        filling.cancel()


def _form(asked: str, clarification: Clarification, version: str) -> ElicitRequestFormParams:
    """One field for the choice, one for words of the user's own."""
    titles = {option.id: _title(option) for option in clarification.options}
    titles[_ALL] = "All of them"
    question = f"{clarification.lead}?"
    which: dict[str, Any] = {"title": question}
    titled = [{"const": key, "title": title} for key, title in titles.items()]
    if not is_version_at_least(version, _TITLED):
        which |= {"type": "string", "enum": list(titles)}
        which["enumNames"] = list(titles.values())
    elif len(clarification.options) > 2:
        which |= {"type": "array", "items": {"anyOf": titled}}
        which["description"] = "One or several."
    else:
        which |= {"type": "string", "oneOf": titled}
    words = {"type": "string", "title": "Or in your own words", "maxLength": LONGEST_REPLY}
    schema = {"type": "object", "properties": {_KEY: which, _WORDS: words}}
    message = f"“{asked}” can mean several things. {question}"
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def _title(option: Option) -> str:
    """The label, and the title of the text that it is about where that says more, and not the answer itself."""
    for reading in option.readings[:1]:
        for span in reading.evidence[:1]:
            title = span.passage.title
            says_more = title.lower() not in option.label.lower()
            if says_more and reading.answer.lower() not in title.lower():
                return f"{option.label} – {title}"[:_LONGEST_TITLE]
    return option.label


def understood(result: Any, clarification: Clarification) -> ReplyRequest:
    """What was filled in. Words of the user's own come before a choice; a choice that there is not is taken as words.

    >>> asked = Clarification("Film", "Which film: A, or B?", "film", (Option("1", "A"), Option("2", "B")))
    >>> understood(ElicitResult(action="accept", content={"which": ["2"]}), asked).options
    ['2']
    >>> understood(ElicitResult(action="decline"), asked).options
    []
    """
    if not isinstance(result, ElicitResult) or result.action != "accept":
        return _EVERY_READING
    content = result.content or {}
    words = content.get(_WORDS)
    if isinstance(words, str) and words.strip():
        return SayRequest(text=words[:LONGEST_REPLY])
    return _chosen(content.get(_KEY), clarification)


def _chosen(which: Any, clarification: Clarification) -> ReplyRequest:
    chosen = which if isinstance(which, list) else [str(which)] if which else []
    ids = [option.id for option in clarification.options]
    if _ALL in chosen or set(ids) <= set(chosen):
        return SayRequest(text=_ALL)
    if not set(chosen) <= set(ids):
        return SayRequest(text=", ".join(chosen)[:LONGEST_REPLY])
    return ChooseRequest(options=[one for one in ids if one in chosen])


# Resources: every passage by its id, and the app with buttons.

APP = "ui://whichsense/readings.html"
_PASSAGES = "whichsense://passages/"
_TEXT = "text/plain"
_LONGEST_URI = 3_000


@lru_cache(1)
def _app_page() -> str:
    page = Path(__file__).parent / "mcp" / "app" / "readings.html"
    return page.read_text("utf-8")


async def list_resources(context: Context, params: object) -> ListResourcesResult:
    """The app, for clients that show it. Passages are too many to be listed: see the template."""
    app = Resource(
        uri=APP,
        name="readings",
        title="Readings",
        description="Options as buttons, and the answers.",
        mime_type=APP_MIME_TYPE,
    )
    return ListResourcesResult(resources=[app] if client_supports_apps(context) else [])


async def list_templates(context: Context, params: object) -> ListResourceTemplatesResult:
    """The address of a passage."""
    passages = ResourceTemplate(
        uri_template=_PASSAGES + "{index}/{id}",
        name="passage",
        title="Passage",
        description="A passage of an index by its id.",
        mime_type=_TEXT,
    )
    return ListResourceTemplatesResult(resource_templates=[passages])


async def read_resource(service: Service, caller: Caller, uri: str) -> ReadResourceResult:
    """A resource by its address."""
    about: dict[str, Any] = {"mime_type": _TEXT}
    text = ""
    if uri == APP:
        border = {"ui": {"prefersBorder": False}}
        text, about = _app_page(), {"mime_type": APP_MIME_TYPE, "_meta": border}
    elif uri.startswith(_PASSAGES) and len(uri) <= _LONGEST_URI:
        index, _, passage_id = uri.removeprefix(_PASSAGES).partition("/")
        with contextlib.suppress(Refused, BadInput):
            find = service.served(caller, unquote(index)).index.passage
            passage = await service.briefly(lambda: find(unquote(passage_id)))
            text = f"{passage.title}\n\n{passage.text}"
    if not text:
        raise MCPError(
            code=INVALID_PARAMS,
            message="There is no such resource. Take a passage's id from evidence or from a search hit.",
        )
    contents = TextResourceContents(uri=uri, text=text, **about)
    return ReadResourceResult(contents=[contents])


# The tools. Their descriptions are written for the models that call them.

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


def definitions(indexes: Sequence[str], *, with_apps: bool) -> list[Tool]:
    """The tools as clients list them; the indexes are those that the caller may name."""
    tools = []
    for name, tool in _TOOLS.items():
        hints = ToolAnnotations(title=tool.title, read_only_hint=True, open_world_hint=False)
        app = {"ui": {"resourceUri": APP}} if with_apps and tool.has_app else None
        tools.append(
            Tool(
                name=name,
                title=tool.title,
                description=tool.description,
                input_schema=_naming(indexes, schema_of(tool.arguments)),
                output_schema=schema_of(tool.output),
                annotations=hints,
                _meta=app,
            )
        )
    return tools


def _naming(indexes: Sequence[str], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose argument `index` is one of these; one index needs no such argument."""
    properties = dict(schema["properties"])
    index = properties.pop("index", None)
    if index is not None and len(indexes) > 1:
        properties["index"] = {**index, "enum": list(indexes)}
    return {**schema, "properties": properties}


def input_schema(name: str) -> dict[str, Any] | None:
    tool = _TOOLS.get(name)
    return schema_of(tool.arguments) if tool else None


async def run(name: str, call: Call) -> Answer:
    """What a tool gives. Raises `ToolFault` where it is not called as it can be."""
    tool = _TOOLS[name]
    arguments = parse(tool.arguments, call.params.arguments)
    await call.wait_until_ready()
    return await tool.run(call, arguments)


async def _ask(call: Call, arguments: AskArguments) -> Answer:
    kept = await resumed(call)
    question = check_reply(arguments.question)
    if kept is None or kept.conversation.turns[0].said != question:
        kept = await call.begin(arguments)
    if kept.last.pending and not arguments.ask_back:
        every = replace(kept, conversation=show_readings(kept.conversation))
        return _turn(call, await _output(call, every))
    return await _settled(call, kept)


async def _clarify(call: Call, arguments: QuestionArguments) -> Answer:
    output = await _output(call, await call.begin(arguments))
    if output.clarification is None:
        return _turn(call, output, unasked_text(output))
    return _turn(call, replace(output, readings=(), possible=(), tentative=False))


async def _reply(call: Call, arguments: ReplyArguments) -> Answer:
    kept = await resumed(call)
    if kept is None or kept.id != arguments.conversation:
        kept = await call.find(arguments.conversation)
        if kept is None:
            raise ToolFault(
                "There is no such conversation; it may have been deleted. Call `ask` with the question again."
            )
        kept = await call.reply(kept, _said(arguments))
    return await _settled(call, kept)


def _said(arguments: ReplyArguments) -> ReplyRequest:
    if arguments.options is not None:
        return ChooseRequest(options=arguments.options)
    if arguments.text is None:
        raise ToolFault("Give what the user said as `text`, or ids as `options`.")
    return SayRequest.model_construct(text=arguments.text)  # checked by `converse`


async def _explain(call: Call, arguments: QuestionArguments) -> Answer:
    served = await call.explain(arguments)
    output = await call.service.briefly(lambda: explain_output(served))
    links = {source.passage: source.title for source in output.sources}
    return _result(call, output, explain_text(output), links, served.index)


async def _search(call: Call, arguments: SearchArguments) -> Answer:
    index = call.service.served(call.caller, arguments.index).index
    try:
        method = index.method(arguments.method)
    except BadInput:
        raise ToolFault("This corpus has no vectors. Leave `method` out, or give bm25.") from None
    query, k = arguments.query, arguments.k
    hits = await call.service.briefly(lambda: index.search(query, k, method))
    output = SearchOutput(query, method, tuple(hits))
    return _result(call, output, search_text(output))


async def _read(call: Call, arguments: ReadArguments) -> Answer:
    index = call.service.served(call.caller, arguments.index).index
    try:
        output = await call.service.briefly(lambda: in_context(index, arguments.passage))
    except Refused as refused:
        if refused.status_code != 404:
            raise
        raise ToolFault(
            "There is no passage with this id. Take it, whole, from evidence, a source or a search hit."
        ) from None
    return _result(call, output, read_text(output))


async def _settled(call: Call, kept: ServedConversation) -> Answer:
    """The user is asked by forms if the client has them; the rest is shown."""
    settled = await settle(call, kept) if way_of(call) == "form" else kept
    if isinstance(settled, InputRequiredResult):
        return settled
    return _turn(call, await _output(call, settled))


async def _output(call: Call, kept: ServedConversation) -> TurnOutput:
    """The last turn of a conversation."""
    return await call.service.briefly(lambda: turn_output(kept))


def _turn(call: Call, output: TurnOutput, text: str = "") -> CallToolResult:
    """A turn with its text, and links to the best evidence of each reading."""
    has_buttons = way_of(call) == "buttons"
    text = text or turn_text(output, has_buttons=has_buttons)
    links = {}
    for reading in output.readings:
        for evidence in reading.evidence[:1]:
            links[evidence.passage] = evidence.title
    return _result(call, output, text, links, output.index)


def _result(
    call: Call, output: object, text: str, links: Mapping[str, str] | None = None, index: str = ""
) -> CallToolResult:
    """A record as structured output, as text, and links to the passages of an index that it rests on."""
    content: list[TextContent | ResourceLink] = [TextContent(text=text)]
    if is_version_at_least(call.context.protocol_version, _LINKED):
        for passage_id, title in list((links or {}).items())[:_MOST_LINKS]:
            uri = f"{_PASSAGES}{quote(index, safe='')}/{quote(passage_id, safe='')}"
            name = title or passage_id
            content.append(ResourceLink(uri=uri, name=name, mime_type=_TEXT))
    return CallToolResult(content=list(content), structured_content=types.encode(output))


_TOOLS = {
    "ask": _Tool("Ask", _ASK, AskArguments, TurnOutput, _ask, has_app=True),
    "clarify": _Tool("Clarify", _CLARIFY, QuestionArguments, TurnOutput, _clarify, has_app=True),
    "reply": _Tool("Reply", _REPLY, ReplyArguments, TurnOutput, _reply),
    "explain": _Tool("Explain", _EXPLAIN, QuestionArguments, ExplainOutput, _explain),
    "search": _Tool("Search", _SEARCH, SearchArguments, SearchOutput, _search),
    "read": _Tool("Read", _READ, ReadArguments, PassageInContext, _read),
}
NAMES = tuple(_TOOLS)
