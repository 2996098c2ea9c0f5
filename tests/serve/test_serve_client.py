"""The clients, sync and async, against a real server; and the commands over what it leaves."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_service import QUESTION

from whichsense import Client
from whichsense.cli import command
from whichsense.client import AsyncClient, ServiceError
from whichsense.serve.state import FILE, Conversations
from whichsense.types import Case

Start = Callable[..., Any]


@pytest.fixture
def address(client: Any) -> str:
    return str(client.base_url)


def test_the_client_gives_records(address: str) -> None:
    with Client(address) as client:
        answer = client.ask(QUESTION, clarify=True)
        assert answer.case.clarification is not None
        assert client.case(answer.id) == answer.case
        (hit,) = client.search("large cat", k=1)
        assert client.passage(hit.passage.id).passage == hit.passage
        client.feedback(answer.id, "up")
        client.delete(answer.id)
        with pytest.raises(ServiceError, match="no such case") as caught:
            client.case(answer.id)
        assert caught.value.status == 404


def test_a_service_that_is_not_there_is_named() -> None:
    with socket.socket() as free:  # bound and not listening: nobody answers
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"

        async def ask() -> None:
            async with AsyncClient(address) as client:
                await client.ask(QUESTION)

        with Client(address) as client:
            for call in (
                lambda: client.ask(QUESTION),
                lambda: list(client.stream(QUESTION)),
                lambda: asyncio.run(ask()),
            ):
                with pytest.raises(ServiceError, match="whichsense serve") as caught:
                    call()
                assert address in str(caught.value) and caught.value.status == 0


def test_the_client_streams(address: str) -> None:
    with Client(address) as client:
        seen = list(client.stream(QUESTION))
        assert [event.name for event in seen] == ["stage"] * 5 + ["done"]
        answer = seen[-1].answer
        assert [event.name for event in client.follow(answer.id, "5")] == ["done"]


def test_the_client_talks(address: str) -> None:
    with Client(address) as client:
        talk = client.begin(QUESTION)
        assert talk.last.pending and client.conversation(talk.id) == talk
        talk = client.reply(talk.id, "the Dark Knight")
        assert talk.last.readings[0].answer == "Heath Ledger"
        assert len(client.choose(talk.id, ["1", "2"]).last.readings) == 2
        assert client.explain(talk.id).last.long_answer
        traced = client.case(talk.case_id)
        assert traced.clarification  # a link to the case shows what was asked back
        assert replace(traced, clarification=None) == talk.conversation.case


def test_a_stream_that_breaks_off_is_rejoined(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx2

    lines = httpx2.Response.iter_lines
    broken = []

    def break_once(self: Any) -> Any:
        for number, line in enumerate(lines(self)):
            if number == 8 and not broken:
                broken.append(line)
                raise httpx2.ReadError("the line is dead")
            yield line

    monkeypatch.setattr(httpx2.Response, "iter_lines", break_once)
    with Client(address) as client:
        seen = list(client.stream(f"{QUESTION} 0.3"))
    assert broken
    stages = [event.data["stage"] for event in seen if event.name == "stage"]
    assert stages == ["retrieve", "rerank", "read", "disambiguate", "verify"]


def test_the_async_client_does_the_same(address: str) -> None:
    async def talk() -> None:
        async with AsyncClient(address) as client:
            answer = await client.ask(QUESTION)
            assert await client.case(answer.id) == answer.case
            assert (await client.search("large cat", k=1))[0].passage.title == "Puma"
            names = [event.name async for event in client.stream(QUESTION)]
            assert names == ["stage"] * 5 + ["done"]
            followed = [event async for event in client.follow(answer.id)]
            assert followed[-1].answer == answer
            both = await asyncio.gather(client.ask(QUESTION), client.ask(QUESTION))
            assert both[0].case.readings == both[1].case.readings
            with pytest.raises(ServiceError, match="fields"):
                await client.ask("")
            await client.feedback(answer.id, "down", "answer", "someone else")
            await client.delete(answer.id)
            talk = await client.begin(QUESTION)
            talk = await client.choose(talk.id, ["1"])
            assert talk == await client.conversation(talk.id)
            talk = await client.reply(talk.id, "What is a puma?")
            assert talk.case_id

    asyncio.run(talk())


def test_commands_read_the_traces(start: Start, tmp_path: Path) -> None:
    with Client(str(start().base_url)) as client:
        answer = client.ask(QUESTION)
        client.feedback(answer.id, "down", "answer", "someone else")
        talk = client.begin("What is a puma?")
        client.delete(talk.case_id)
    runner = CliRunner()
    state = ["--state", str(tmp_path)]

    def run(*words: str) -> str:
        done = runner.invoke(command, ["traces", *words, *state])
        assert done.exit_code == 0, done.output
        return done.output

    assert QUESTION in run("list") and "+0 -1" in run("list")
    table = json.loads(run("list", "--json"))
    assert table["cases"][0]["id"] == answer.id and table["gaps"] == []
    shown = run("show", answer.id)
    assert "Heath Ledger" in shown and "someone else" in shown
    assert Case.from_json(json.loads(run("show", answer.id, "--json"))["case"])
    run("export", "--out", str(tmp_path / "cases.jsonl"))
    (line,) = (tmp_path / "cases.jsonl").read_text().splitlines()
    assert json.loads(line)["feedback"][0]["correction"] == "someone else"
    assert "0 cases" in run("delete", "--older-than", "1d")
    assert "1 cases" in run("delete", answer.id)
    conversations = Conversations(tmp_path / FILE)
    assert conversations.find(talk.id) is not None
    run("delete", "--older-than", "0s")
    assert conversations.find(talk.id) is None, "questions are private"
    conversations.close()
    assert run("list") == ""
