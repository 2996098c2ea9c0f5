"""The clarifying conversation over /mcp: real clients of both versions, a real server, three ways to ask."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra 'serve'")

from fake_service import HELD, QUESTION
from mcp import Client
from mcp_clients import MODES, OLDER, User, accepts, answers, call, refuses, talk, text_of
from mcp_types import ElicitResult

from patience import LONGEST
from whichsense.serve.mcp_tools import _form, understood
from whichsense.types import Clarification, Option

BOTH = ["Jack Nicholson", "Heath Ledger"]
ASK = {"question": QUESTION}
Start = Callable[..., Any]


@pytest.fixture(scope="module")
def url(client: Any) -> str:
    return f"{client.base_url}/mcp"


@pytest.mark.parametrize("mode", MODES)
def test_a_form_asks_and_the_choice_is_answered(url: str, mode: str) -> None:
    user = accepts(which="2")
    result = call(url, "ask", ASK, mode=mode, user=user)
    assert answers(result) == ["Heath Ledger"]
    (form,) = user.asked
    assert form.message == f"“{QUESTION}” can mean several things. Which reading?"
    which = form.requested_schema["properties"]["which"]
    titles = {one["const"]: one["title"] for one in which["oneOf"]}
    assert list(titles) == ["1", "2", "all"] and "Dark Knight" in titles["2"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (accepts(which="all"), BOTH),
        (accepts(), BOTH),
        (accepts(words="the dark knight"), ["Heath Ledger"]),
        (accepts(which="1", words="both of them"), BOTH),
        (accepts(which="Batman"), ["Jack Nicholson"]),
        (refuses("decline"), BOTH),
        (refuses("cancel"), BOTH),
    ],
)
def test_all_replies_to_a_form(url: str, mode: str, user: User, expected: list[str]) -> None:
    again = User(list(user.replies))
    assert answers(call(url, "ask", ASK, mode=mode, user=again)) == expected
    assert len(again.asked) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_question_with_odd_characters_is_asked_back_once(url: str, mode: str) -> None:
    user = accepts(which="2")
    odd = {"question": "Who played\u200b \x00the\tJoker?\ufeff"}
    assert answers(call(url, "ask", odd, mode=mode, user=user)) == ["Heath Ledger"]
    assert len(user.asked) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_reply_that_fits_nothing_is_asked_again_and_then_all_is_shown(
    url: str, mode: str
) -> None:
    unclear = ElicitResult(action="accept", content={"words": "hm, xyzzy"})
    user = User([unclear, unclear])
    result = call(url, "ask", ASK, mode=mode, user=user)
    assert answers(result) == BOTH and len(user.asked) == 2
    assert "fits none" in result.structured_content["message"]


def test_a_client_that_fails_at_its_form_gets_all_readings(url: str) -> None:
    class Failing(User):
        async def __call__(self, context: Any, params: Any) -> ElicitResult:
            raise RuntimeError("no screen")

    assert answers(call(url, "ask", ASK, mode=OLDER, user=Failing([]))) == BOTH


def test_a_user_who_takes_time_is_waited_for(start: Start) -> None:
    waiting = "Waiting for the user"
    seen: list[str | None] = []

    class Slow(User):
        async def __call__(self, context: Any, params: Any) -> ElicitResult:
            async with asyncio.timeout(LONGEST):
                while seen.count(waiting) < 2:
                    await asyncio.sleep(0.02)
            return await super().__call__(context, params)

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async def conversation(client: Client) -> None:
        result = await client.call_tool("ask", ASK, progress_callback=progress)
        assert answers(result) == ["Heath Ledger"]

    address = start(heartbeat=0.2).base_url
    user = Slow(accepts(which="2").replies)
    talk(f"{address}/mcp", conversation, mode=OLDER, user=user)
    assert seen.count(waiting) >= 2


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_is_late_says_so(start: Start, mode: str, let_go: threading.Event) -> None:
    texts: list[str] = []

    def is_told(tool: str, seconds: float) -> bool:
        url = f"{start(deadline=seconds).base_url}/mcp"
        texts.append(text_of(call(url, tool, {"question": HELD}, mode=mode)))
        return texts[-1].startswith("The time was up")

    for tool in ("ask", "explain"):  # a busy machine may not even begin in time
        assert any(is_told(tool, seconds) for seconds in (0.3, 3, 30)), texts


@pytest.mark.parametrize("mode", MODES)
def test_without_forms_options_are_numbered_and_reply_chooses(url: str, mode: str) -> None:
    async def conversation(client: Client) -> None:
        asked = await client.call_tool("ask", ASK)
        turn = asked.structured_content
        assert turn["shown"] == "clarification"
        text = text_of(asked)
        assert "1. " in text and "2. " in text and turn["conversation"] in text
        assert "`reply`" in text and "Heath Ledger" in text, "for who cannot ask"
        for reply, expected in (
            ({"text": "2"}, ["Heath Ledger"]),
            ({"text": "the one of 1989, Batman"}, ["Jack Nicholson"]),
            ({"options": ["1", 2]}, BOTH),
            ({"options": []}, BOTH),
            ({"text": "What is a puma?"}, []),
        ):
            given = {"conversation": turn["conversation"], **reply}
            assert answers(await client.call_tool("reply", given)) == expected

    talk(url, conversation, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_clarify_asks_nobody_and_gives_no_answer(url: str, mode: str) -> None:
    user = User([])

    async def conversation(client: Client) -> None:
        asked = await client.call_tool("clarify", ASK)
        turn = asked.structured_content
        assert len(turn["clarification"]["options"]) == 2 and not turn["readings"]
        assert "Ledger" not in text_of(asked)
        given = {"conversation": turn["conversation"], "options": ["2"]}
        assert answers(await client.call_tool("reply", given)) == ["Heath Ledger"]
        plain = await client.call_tool("clarify", {"question": "What is a puma?"})
        assert plain.structured_content["clarification"] is None

    talk(url, conversation, mode=mode, user=user)
    assert not user.asked


@pytest.mark.parametrize("mode", MODES)
def test_who_may_not_be_asked_gets_every_reading(url: str, mode: str) -> None:
    user = User([])
    result = call(url, "ask", ASK | {"ask_back": False}, mode=mode, user=user)
    assert answers(result) == BOTH and not user.asked
    assert result.structured_content["shown"] == "readings"


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_shows_apps_gets_buttons(url: str, mode: str) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        uri = (tools["ask"].meta or {})["ui"]["resourceUri"]
        assert tools["search"].meta is None
        (listed,) = (await client.list_resources()).resources
        assert listed.uri == uri
        (page,) = (await client.read_resource(uri)).contents
        assert page.mime_type == "text/html;profile=mcp-app"
        assert "ui/initialize" in str(getattr(page, "text", ""))
        asked = await client.call_tool("ask", ASK)
        assert asked.structured_content["shown"] == "clarification"
        assert "buttons" in text_of(asked)

    talk(url, conversation, mode=mode, apps=True)

    async def without(client: Client) -> None:
        assert all(tool.meta is None for tool in (await client.list_tools()).tools)
        assert not (await client.list_resources()).resources
        assert "buttons" not in text_of(await client.call_tool("ask", ASK))

    talk(url, without, mode=mode)


def test_a_state_that_is_not_ours_begins_anew(url: str) -> None:
    async def conversation(client: Client) -> None:
        session = client.session
        decline: Any = {"which": ElicitResult(action="decline")}
        asked = await session.call_tool("ask", ASK, allow_input_required=True)
        state = asked.request_state  # type: ignore[union-attr]
        puma = {"question": "What is a puma?"}
        for arguments, sent, kind in (
            (ASK, "0" * 32, "complete"),
            (ASK, "x" * 5000, "complete"),
            (puma, state, "complete"),
            (ASK, state, "complete"),
            (ASK, state, "complete"),  # the same once more: a client that tried again
        ):
            result = await session.call_tool(
                "ask",
                arguments,
                input_responses=decline,
                request_state=sent,
                allow_input_required=True,
            )
            assert result.result_type == kind
            if arguments is ASK:
                assert answers(result) == BOTH  # type: ignore[arg-type]

    talk(url, conversation, user=User([]))


def test_forms_of_three_options_and_of_older_clients() -> None:
    options = tuple(Option(str(one), f"the film of {one}", "x" * 200) for one in (1, 2, 3))
    asked = Clarification("Film", "Which film: a, b, or c?", "film", options)
    which = _form("Who?", asked, "2026-07-28").requested_schema["properties"]["which"]
    assert which["type"] == "array"
    assert [one["const"] for one in which["items"]["anyOf"]] == ["1", "2", "3", "all"]
    assert all(len(one["title"]) <= 102 for one in which["items"]["anyOf"])
    older = _form("Who?", asked, "2025-06-18").requested_schema["properties"]["which"]
    assert older["enum"] == ["1", "2", "3", "all"] and len(older["enumNames"]) == 4

    def chosen(which: Any) -> Any:
        result = ElicitResult(action="accept", content={"which": which})
        return understood(result, asked)

    assert chosen(["3", "1"]).options == ["1", "3"]
    assert chosen(["1", "2", "3"]).text == chosen(["1", "all"]).text == "all"
    assert chosen("the second").text == "the second"
    assert chosen(None).options == chosen([]).options == []
    assert understood("nonsense", asked).options == []
