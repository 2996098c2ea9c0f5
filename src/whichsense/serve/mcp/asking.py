"""The question back to the person, in the best way that the client has.

A form where the client can elicit: by a live request in the older protocol, by a result in the stateless one, whose
next call brings the reply. Else buttons, where it shows apps; else numbered text, which the model passes on. What is
declined, cancelled or not understood gives every reading.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Literal

from mcp.server.apps import client_supports_apps
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from whichsense.conversation.records import LONGEST_REPLY
from whichsense.serve.answering.dialogue import Reply
from whichsense.serve.mcp.calls import Call
from whichsense.serve.state.conversations import KeptConversation
from whichsense.types import Clarification, Option

Way = Literal["form", "buttons", "text"]
_ALL = "all"
_EVERY_READING = Reply(options=())
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


async def resumed(call: Call) -> KeptConversation | None:
    """The conversation that a stateless client's call goes on with; None for a first call.

    The state is the conversation's id, which cannot be guessed and is looked up for this caller alone. Any worker
    finds it.
    """
    state = call.params.request_state
    return await call.find(state) if state else None


async def settle(
    call: Call, kept: KeptConversation
) -> KeptConversation | InputRequiredResult:
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


def _form(
    asked: str, clarification: Clarification, version: str
) -> ElicitRequestFormParams:
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
    words = {
        "type": "string",
        "title": "Or in your own words",
        "maxLength": LONGEST_REPLY,
    }
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


def understood(result: Any, clarification: Clarification) -> Reply:
    """What was filled in. Words of the user's own come before a choice; a choice that there is not is taken as words.

    >>> asked = Clarification("Film", "Which film: A, or B?", "film", (Option("1", "A"), Option("2", "B")))
    >>> understood(ElicitResult(action="accept", content={"which": ["2"]}), asked)
    Reply(text='', options=('2',), explain=False)
    >>> understood(ElicitResult(action="decline"), asked)
    Reply(text='', options=(), explain=False)
    """
    if not isinstance(result, ElicitResult) or result.action != "accept":
        return _EVERY_READING
    content = result.content or {}
    words = content.get(_WORDS)
    if isinstance(words, str) and words.strip():
        return Reply(text=words[:LONGEST_REPLY])
    which = content.get(_KEY)
    chosen = which if isinstance(which, list) else [str(which)] if which else []
    ids = [option.id for option in clarification.options]
    if _ALL in chosen or set(ids) <= set(chosen):
        return Reply(text=_ALL)
    if not set(chosen) <= set(ids):
        return Reply(text=", ".join(chosen)[:LONGEST_REPLY])
    return Reply(options=tuple(one for one in ids if one in chosen))
