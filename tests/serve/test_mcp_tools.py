"""The tools over /mcp: what they give, progress, keys, refusals, several workers."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra 'serve'")

import jsonschema
from fake_service import HELD, QUESTION
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_clients import MODES, OLDER, User, accepts, answers, call, talk, text_of
from test_serve_ask import active
from test_serve_workers import service

from patience import LONGEST, wait_for
from whichsense.serve.settings import KeyFile

Start = Callable[..., Any]
ASK = {"question": QUESTION}
SECRETS = re.compile(r"Traceback|hidden|/(?:root|home|tmp|usr|work)/|\.py\b|\.sqlite")


def url_of(client: Any) -> str:
    return f"{client.base_url}/mcp"


@pytest.mark.parametrize("mode", MODES)
def test_structured_output_fits_its_schema(client: Any, mode: str) -> None:
    async def conversation(session: Client) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert list(tools) == ["ask", "clarify", "reply", "explain", "search", "read"]
        asked = await session.call_tool("ask", ASK)
        talk_id = asked.structured_content["conversation"]
        hits = await session.call_tool("search", {"query": "puma", "k": 1})
        passage = hits.structured_content["hits"][0]["passage"]["id"]
        for name, arguments in (
            ("ask", ASK),
            ("ask", {"question": "Is there zzz?"}),
            ("clarify", ASK),
            ("reply", {"conversation": talk_id, "text": "2"}),
            ("reply", {"conversation": talk_id, "text": "none of these"}),
            ("explain", ASK),
            ("explain", {"question": "Is there zzz?"}),
            ("search", {"query": "puma"}),
            ("search", {"query": "zzzz"}),
            ("read", {"passage": passage}),
        ):
            result = await session.call_tool(name, arguments)
            assert not result.is_error and text_of(result), (name, arguments)
            schema = tools[name].output_schema
            assert schema is not None and schema["type"] == "object"
            jsonschema.validate(result.structured_content, schema)
            jsonschema.validate(arguments, tools[name].input_schema)
            hints = tools[name].annotations
            assert hints and hints.read_only_hint and hints.open_world_hint is False
            assert not SECRETS.search(text_of(result))

    talk(url_of(client), conversation, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_stages_are_progress_and_passages_are_links(client: Any, mode: str) -> None:
    seen: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, message))

    async def conversation(session: Client) -> None:
        result = await session.call_tool("explain", ASK, progress_callback=progress)
        links = [one for one in result.content if one.type == "resource_link"]
        assert len(links) == 2
        (passage,) = (await session.read_resource(links[1].uri)).contents
        assert "Heath Ledger" in str(getattr(passage, "text", ""))
        with pytest.raises(MCPError, match="no such resource"):
            await session.read_resource("whichsense://passages/none")
        templates = (await session.list_resource_templates()).resource_templates
        assert templates[0].uri_template == "whichsense://passages/{index}/{id}"

    talk(url_of(client), conversation, mode=mode)
    steps = [step for step, _ in seen]
    assert steps == sorted(set(steps)), "progress never goes back"
    assert seen[0][1] == "Found 2 passages"
    assert seen[-1][1] == "Wrote the long answer"


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {}, "'question' is missing"),
    ("ask", {"question": ""}, "'question' is empty"),
    ("ask", {"question": "  \n "}, "'question' is wrong"),
    ("ask", {"question": "a" * 2001}, "too long"),
    ("ask", {"question": 7}, "'question' is wrong"),
    ("ask", {"question": "a?", "depth": 3}, "no argument 'depth'"),
    ("ask", {"question": "please fail"}, "The service failed"),
    ("reply", {"conversation": "nope", "text": "1"}, "no such conversation"),
    ("reply", {"conversation": "x" * 200}, "'conversation' is wrong"),
    ("search", {"query": "puma", "k": 1000}, "'k' is wrong"),
    ("search", {"query": "puma", "method": "dense"}, "no vectors"),
    ("read", {"passage": "../../etc/passwd"}, "no passage with this id"),
    ("read", {"passage": "x" * 1001}, "'passage' is wrong"),
]


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_given_is_a_tool_error_that_says_what_to_do(client: Any, mode: str) -> None:
    async def conversation(session: Client) -> None:
        for tool, arguments, expected in WRONG:
            result = await session.call_tool(tool, arguments)
            assert result.is_error and expected in text_of(result), text_of(result)
            assert not SECRETS.search(text_of(result)), text_of(result)

    talk(url_of(client), conversation, mode=mode)


def test_a_wrong_reply_names_the_options(client: Any) -> None:
    async def conversation(session: Client) -> None:
        asked = await session.call_tool("ask", ASK)
        given = {"conversation": asked.structured_content["conversation"]}
        wrong = await session.call_tool("reply", given | {"options": ["9"]})
        assert wrong.is_error and "There are: 1, 2." in text_of(wrong)
        empty = await session.call_tool("reply", given)
        assert empty.is_error and "`text`" in text_of(empty)
        with pytest.raises(MCPError, match="There are: ask"):
            await session.call_tool("delete_everything", {})

    talk(url_of(client), conversation)


def test_a_full_queue_says_when_to_call_again(start: Start, let_go: threading.Event) -> None:
    client = start(parallel=1, queue=0)

    async def conversation(session: Client) -> list[Any]:
        left = 3

        async def ask() -> Any:
            nonlocal left
            result = await session.call_tool("ask", {"question": HELD})
            left -= 1
            if left == 1:
                let_go.set()
            return result

        async with asyncio.timeout(LONGEST):
            return await asyncio.gather(*(ask() for _ in range(3)))

    results = talk(url_of(client), conversation)
    refused = [text_of(one) for one in results if one.is_error]
    assert len(refused) == 2
    assert all("Ask again in" in one for one in refused)


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_goes_away_stops_its_work(
    start: Start, mode: str, let_go: threading.Event
) -> None:
    client = start(parallel=1, queue=0)

    async def conversation(session: Client) -> None:
        call = asyncio.create_task(session.call_tool("ask", {"question": HELD}))
        await asyncio.to_thread(wait_for, lambda: active(client) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    talk(url_of(client), conversation, mode=mode)
    body = {"question": QUESTION}
    wait_for(lambda: client.post("/v1/ask", json=body).status_code == 200)


@pytest.mark.parametrize("mode", MODES)
def test_keys_are_needed_as_on_other_paths(start: Start, tmp_path: Path, mode: str) -> None:
    keys = KeyFile(tmp_path)
    own, other = keys.add("own", ["ask"]), keys.add("other", ["ask"])
    client = start()
    response = client.post("/mcp", json={})
    assert response.status_code == 401 and response.json()["fix"]

    def called(key: str, tool: str, arguments: Any) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        return call(url_of(client), tool, arguments, mode=mode, headers=headers)

    asked = called(own, "ask", ASK)
    given = {"conversation": asked.structured_content["conversation"], "text": "2"}
    refused = called(other, "reply", given)
    assert refused.is_error and "no such conversation" in text_of(refused)
    assert answers(called(own, "reply", given)) == ["Heath Ledger"]
    case = asked.structured_content["case"]
    headers = {"Authorization": f"Bearer {own}"}
    assert client.get(f"/v1/cases/{case}", headers=headers).status_code == 200


def test_a_session_belongs_to_the_key_that_began_it(start: Start, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    own, other = keys.add("own", ["ask"]), keys.add("other", ["ask"])
    client = start()
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    }
    accept = {"Accept": "application/json, text/event-stream"}

    def post(key: str, body: Any, **headers: str) -> Any:
        given = accept | {"Authorization": f"Bearer {key}"} | headers
        return client.post("/mcp", json=body, headers=given)

    session = post(own, hello).headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    known = {"mcp-session-id": session}
    assert post(own, listing, **known).status_code == 200
    assert post(other, listing, **known).status_code == 404


def test_hostile_requests_get_an_answer(client: Any) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    json_type = accept | {"Content-Type": "application/json"}
    modern = json_type | {"MCP-Protocol-Version": "2026-07-28"}
    bodies = [
        b"",
        b"null",
        b"[" * 5000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "../../x", "params": []}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": 7}}',
        b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}',
        b'"\\ud800"',
        b"\xff\xfe",
    ]
    for headers in (json_type, modern, json_type | {"Mcp-Session-Id": "\x7f" * 50}):
        for body in bodies:
            response = client.post("/mcp", content=body, headers=headers)
            assert 400 <= response.status_code < 500, (headers, body, response.text)
            assert not SECRETS.search(response.text), response.text
    large = json.dumps({"jsonrpc": "2.0", "x": "a" * 70_000})
    assert client.post("/mcp", content=large, headers=modern).status_code == 413
    assert client.post("/mcp", content=b"{}", headers=accept).status_code in (400, 415)
    assert client.put("/mcp", json={}).status_code == 405
    elsewhere = modern | {"Host": "evil.example"}
    assert client.post("/mcp", content=b"{}", headers=elsewhere).status_code == 421
    page = modern | {"Origin": "https://evil.example"}
    assert client.post("/mcp", content=b"{}", headers=page).status_code == 403
    assert answers(call(url_of(client), "ask", ASK, user=accepts(which="2")))


def test_a_host_name_that_was_allowed_is_served(start: Start) -> None:
    client = start(hosts=("answers.example",))
    headers = {"Host": "answers.example"}
    result = call(url_of(client), "ask", ASK, user=accepts(which="1"), headers=headers)
    assert answers(result) == ["Jack Nicholson"]


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_waits_for_no_stream(tmp_path: Path, mode: str) -> None:
    # Whoever waited for a stream would wait for longer than the test does.
    with service(tmp_path, grace=2 * LONGEST) as (process, address):

        async def conversation(session: Client) -> None:
            await session.call_tool("search", {"query": "puma"})
            await asyncio.sleep(0.3)  # an older client opens a stream for what comes
            process.terminate()
            await asyncio.to_thread(process.wait, LONGEST)

        talk(f"{address}/mcp", conversation, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_two_workers_hold_one_conversation(tmp_path: Path, mode: str) -> None:
    """Each request is a new connection: any worker may get it."""
    with service(tmp_path, workers=2) as (_, address):
        server = f"{address}/mcp"
        options: Any = {"mode": mode, "headers": {"Connection": "close"}}
        seen: list[str | None] = []

        async def progress(done: float, total: Any, message: str | None) -> None:
            seen.append(message)

        async def conversation(session: Client) -> None:
            for _ in range(4):
                result = await session.call_tool("ask", ASK, progress_callback=progress)
                assert answers(result) == ["Heath Ledger"]

        if mode != OLDER:  # which needs a session for a form
            user = User([accepts(which="2").replies[0]] * 4)
            talk(server, conversation, user=user, **options)
            assert len(user.asked) == 4 and "Found 2 passages" in seen

        async def numbered(session: Client) -> None:
            asked = await session.call_tool("ask", ASK)
            given = {"conversation": asked.structured_content["conversation"]}
            result = await session.call_tool("reply", given | {"text": "2"})
            assert answers(result) == ["Heath Ledger"]

        talk(server, numbered, **options)
