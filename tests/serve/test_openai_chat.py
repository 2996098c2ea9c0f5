"""Chat completions with OpenAI's own client: the clarifying conversation, citations, streams."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_service import HELD, QUESTION
from openai_clients import Chat, connect, openai
from test_serve_ask import active, left_alone

from patience import wait_for
from whichsense.serve import events

Start = Callable[..., Any]


@pytest.fixture
def api(client: Any) -> Any:
    return connect(client)


def test_models_are_listed(api: Any) -> None:
    names = [model.id for model in api.models.list()]
    assert names == ["whichsense", "whichsense-readings", "whichsense-explain"]
    assert api.models.retrieve("whichsense").owned_by == "whichsense"
    with pytest.raises(openai.NotFoundError, match="Use one of: whichsense"):
        api.models.retrieve("gpt-9")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("1", ["Jack Nicholson"]),
        ("2.", ["Heath Ledger"]),
        ("the Dark Knight", ["Heath Ledger"]),
        ("dark knight please", ["Heath Ledger"]),
        ("1 and 2", ["Jack Nicholson", "Heath Ledger"]),
        ("all", ["Jack Nicholson", "Heath Ledger"]),
    ],
)
def test_a_question_back_is_answered_by_a_reply(
    api: Any, reply: str, answers: list[str], stream: bool
) -> None:
    chat = Chat(api, stream=stream)
    asked = chat.say(QUESTION)
    assert asked.startswith("**Which") and "\n1. **" in asked and "\n2. **" in asked
    assert "Reply with a number" in asked and not chat.annotations
    told = chat.say(reply)
    for answer in ("Jack Nicholson", "Heath Ledger"):
        assert (f"**{answer}**" in told) == (answer in answers)
    assert "played the Joker in" in told, "the evidence is quoted"


def test_options_that_are_asked_about_come_with_their_evidence(api: Any) -> None:
    chat = Chat(api)
    asked = chat.say(QUESTION)
    told = chat.say("What is the difference?")
    assert told.count("\n1. **") == 1 and "in 1989.” [1]\n" in told
    assert told.count("Reply with a number") == 1 and told != asked
    assert len(citations(chat)) == 2
    assert "That fits none" in chat.say("quite purple")
    assert "**Heath Ledger**" in chat.say("2")


def test_a_new_question_begins_anew(api: Any) -> None:
    chat = Chat(api)
    chat.say(QUESTION)
    assert "Reply with" not in chat.say("What is a puma?")
    chat.say("Who played the Joker then?")
    assert "**Jack Nicholson**" in chat.say("the one of Batman (film)")


def citations(chat: Chat) -> list[tuple[str, str, str]]:
    """The text, title and address of each citation."""
    text = chat.messages[-1]["content"]
    cited = []
    for annotation in chat.annotations:
        place = annotation if isinstance(annotation, dict) else annotation.url_citation
        place = place if isinstance(place, dict) else place.model_dump()
        words = text[place["start_index"] : place["end_index"]]
        cited.append((words, place["title"], place["url"]))
    return cited


@pytest.mark.parametrize("stream", [False, True])
def test_citations_stand_at_their_numbers(client: Any, api: Any, stream: bool) -> None:
    chat = Chat(api, stream=stream)
    chat.say(QUESTION)
    chat.say("all")
    cited = citations(chat)
    assert [words for words, _, _ in cited] == ["[1]", "[2]", "[1]", "[2]"]
    titles = {words: title for words, title, _ in cited}
    assert titles == {"[1]": "Batman (film)", "[2]": "The Dark Knight"}
    for _, title, url in cited:
        assert client.get(url).json()["passage"]["title"] == title


def test_the_other_models_never_ask(api: Any) -> None:
    listed = Chat(api, "whichsense-readings").say(QUESTION)
    assert "1. **Jack Nicholson** [1]" in listed and "2. **Heath Ledger**" in listed
    chat = Chat(api, "whichsense-explain")
    story = chat.say(QUESTION)
    assert "[1]" in story and "[2]" in story and "Reply with" not in story
    assert len(citations(chat)) >= 4
    assert "**Heath Ledger**" in chat.say("the Dark Knight")


def test_the_system_message_is_not_the_question(api: Any) -> None:
    told = {"role": "system", "content": "What is a puma? Speak like a pirate."}
    asked = [told, {"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    done = api.chat.completions.create(model="whichsense", messages=asked)
    assert done.choices[0].message.content.startswith("**Which")
    assert done.choices[0].finish_reason == "stop"
    usage = done.usage
    assert usage.prompt_tokens > 10
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_chunks(api: Any) -> None:
    chunks = list(
        api.chat.completions.create(
            model="whichsense",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[-3:-1]] == [None, "stop"]
    assert not chunks[-1].choices and chunks[-1].usage.completion_tokens > 10
    assert all(not hasattr(chunk, "event") for chunk in chunks)


def test_a_conversation_is_held_again_where_it_is_not_kept(start: Start, tmp_path: Path) -> None:
    api = connect(start())
    chat = Chat(api)
    chat.say(QUESTION)
    with sqlite3.connect(tmp_path / "traces.sqlite") as database:
        kept = database.execute("DELETE FROM conversations").rowcount
    database.close()
    assert kept == 1
    assert "**Heath Ledger**" in chat.say("2")
    other = Chat(api)
    other.say(QUESTION, store=False)
    assert "**Jack Nicholson**" in other.say("1", store=False)
    shortened = [{"role": "assistant", "content": "Which one do you mean?"}]
    changed = Chat(api)
    changed.messages = [{"role": "user", "content": QUESTION}, *shortened]
    assert "**Heath Ledger**" in changed.say("the Dark Knight")


def count_stage(client: Any, stage: str) -> int:
    """How often a stage has run."""
    wanted = f'whichsense_stage_seconds_count{{stage="{stage}"}} '
    for line in client.get("/metrics").text.splitlines():
        if line.startswith(wanted):
            return int(float(line.removeprefix(wanted)))
    return 0


def test_a_conversation_is_found_by_its_messages(start: Start) -> None:
    client = start()
    chat = Chat(connect(client))
    chat.say(QUESTION)
    chat.say("2")
    assert "**Jack Nicholson**" in chat.say("the other one")
    # The same beginning may be gone on with twice.
    chat.messages = chat.messages[:2]
    assert "**Jack Nicholson**" in chat.say("1")
    assert count_stage(client, "disambiguate") == 1, "the question is not asked again"
    assert len(client.get("/v1/cases").json()["cases"]) == 1


def test_keys(start: Start, tmp_path: Path) -> None:
    from whichsense.serve.settings import KeyFile

    keys = KeyFile(tmp_path)
    own, other = keys.add("own", ["ask"]), keys.add("other", ["ask"])
    client = start()
    with pytest.raises(openai.AuthenticationError) as caught:
        Chat(connect(client, "ws_wrong")).say(QUESTION)
    assert caught.value.code == "invalid_api_key" and "keys add" in str(caught.value)
    chat = Chat(connect(client, own))
    chat.say(QUESTION)
    assert "**Heath Ledger**" in chat.say("2")
    api = connect(client, own)
    first = api.responses.create(model="whichsense", input=QUESTION)
    with pytest.raises(openai.BadRequestError, match="no response"):
        connect(client, other).responses.create(
            model="whichsense", input="2", previous_response_id=first.id
        )


def test_rates(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from whichsense.serve.settings import KeyFile

    now = time.time()  # no time passes
    monkeypatch.setattr(events, "time", SimpleNamespace(time=lambda: now))
    key = KeyFile(tmp_path).add("slow", ["ask"], rate=4)
    api = connect(start(), key)
    Chat(api).say(QUESTION)
    with pytest.raises(openai.RateLimitError) as caught:
        Chat(api).say(QUESTION)
    assert int(caught.value.response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_stops_its_work(
    start: Start, stream: bool, let_go: threading.Event
) -> None:
    client = start(parallel=1, rejoin=600)
    body = {
        "model": "whichsense",
        "messages": [{"role": "user", "content": HELD}],
        "stream": stream,
    }
    with left_alone(client, "/v1/chat/completions", body):
        wait_for(lambda: active(client) == 1)
    wait_for(lambda: active(client) == 0)


def test_a_full_queue_and_silence(start: Start, let_go: threading.Event) -> None:
    client = start(parallel=1, queue=0, heartbeat=0.1)
    api = connect(client)
    body = {"model": "whichsense", "messages": [{"role": "user", "content": HELD}], "stream": True}
    lines: list[str] = []

    def pings() -> int:
        return sum(line.startswith(":") for line in lines)

    def follow() -> None:
        with client.stream("POST", "/v1/chat/completions", json=body) as response:
            for line in response.iter_lines():
                lines.append(line)

    thread = threading.Thread(target=follow)
    thread.start()
    wait_for(lambda: active(client) == 1)
    with pytest.raises(openai.RateLimitError, match="Ask again in"):
        Chat(api).say(QUESTION)
    wait_for(lambda: pings() >= 3)
    let_go.set()
    thread.join()
    assert lines[-2:] == ["data: [DONE]", ""]


def test_a_failure_in_a_stream_is_an_error(api: Any) -> None:
    with pytest.raises(openai.APIError, match="failed at this request"):
        Chat(api, stream=True).say("Who can fail?")
    with pytest.raises(openai.InternalServerError) as caught:
        Chat(api).say("Who can fail?")
    assert "secret" not in str(caught.value)
