"""Responses with OpenAI's own client: previous_response_id, lists of input, the order of a stream's events."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_service import QUESTION
from openai_clients import connect, openai
from test_serve_workers import service

from patience import LONGEST

MODEL = "whichsense"


@pytest.fixture
def api(client: Any) -> Any:
    return connect(client)


def test_a_conversation_by_ids(api: Any) -> None:
    first = api.responses.create(
        model=MODEL, input=QUESTION, instructions="What is a puma?", metadata={"a": "b"}
    )
    assert first.output_text.startswith("**Which") and first.metadata == {"a": "b"}
    second = api.responses.create(
        model=MODEL, input="the Dark Knight", previous_response_id=first.id
    )
    assert "**Heath Ledger** [1]" in second.output_text
    assert second.previous_response_id == first.id and second.id != first.id
    third = api.responses.create(
        model=MODEL, input=[{"role": "user", "content": "1 and 2"}], previous_response_id=second.id
    )
    assert "**Jack Nicholson**" in third.output_text
    assert "**Heath Ledger**" in third.output_text
    fresh = api.responses.create(
        model=MODEL, input="Who wrote Dune?", previous_response_id=third.id
    )  # which names something itself, so that it is not asked about the Joker
    assert "Joker" not in fresh.output_text
    usage = second.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens > 10


def test_a_conversation_as_a_list(api: Any) -> None:
    said: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
    ]
    for store in (True, False):
        first = api.responses.create(model=MODEL, input=said, store=store)
        assert first.output_text.startswith("**Which") and first.store is store
        output = [item.model_dump() for item in first.output]
        more = [*said, *output, {"role": "user", "content": "2"}]
        second = api.responses.create(model=MODEL, input=more, store=store)
        assert "**Heath Ledger**" in second.output_text
    with pytest.raises(openai.BadRequestError, match="store=false") as caught:
        api.responses.create(model=MODEL, input="2", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"


def test_citations(client: Any, api: Any) -> None:
    response = api.responses.create(model="whichsense-readings", input=QUESTION)
    (part,) = response.output[0].content
    places = [part.text[one.start_index : one.end_index] for one in part.annotations]
    assert places == ["[1]", "[2]", "[1]", "[2]"]
    for one in part.annotations:
        assert client.get(one.url).json()["passage"]["title"] == one.title


def test_the_events_of_a_stream(api: Any) -> None:
    events = []
    with api.responses.stream(model="whichsense-readings", input=QUESTION) as stream:
        for event in stream:
            events.append(event)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    names = [event.type.removeprefix("response.") for event in events]
    order = list(dict.fromkeys(names))
    assert order == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    deltas = [event for event in events if event.type.endswith("text.delta")]
    assert deltas[-1].snapshot == final.output_text and len(deltas) > 3
    cited = [event for event in events if event.type.endswith("annotation.added")]
    assert [event.annotation_index for event in cited] == [0, 1, 2, 3]
    annotations = final.output[0].content[0].annotations
    assert [event.annotation.start_index for event in cited] == [
        one.start_index for one in annotations
    ]
    assert final.status == "completed" and final.usage.output_tokens > 10


def test_a_streamed_response_can_be_followed(api: Any) -> None:
    with api.responses.stream(model=MODEL, input=QUESTION) as stream:
        first = stream.get_final_response()
    second = api.responses.create(
        model=MODEL, input="2", previous_response_id=first.id, stream=True
    )
    (done,) = [event for event in second if event.type == "response.completed"]
    assert "**Heath Ledger**" in done.response.output_text


def test_a_failure_in_a_stream(api: Any) -> None:
    events = list(api.responses.create(model=MODEL, input="Who can fail?", stream=True))
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.code == "server_error"
    assert "secret" not in events[-1].model_dump_json()


@pytest.mark.parametrize("traces", [True, False])
def test_any_worker_goes_on_with_a_conversation(tmp_path: Path, traces: bool) -> None:
    with service(tmp_path, workers=2, traces=traces) as (_, address):
        for _ in range(4):
            # A connection stays with its worker: each request has one of its own.
            said: list[Any] = [{"role": "user", "content": QUESTION}]
            with httpx2.Client(base_url=address, timeout=LONGEST) as client:
                first = connect(client).responses.create(model=MODEL, input=QUESTION)
            said.append({"role": "assistant", "content": first.output_text})
            said.append({"role": "user", "content": "2"})
            with httpx2.Client(base_url=address, timeout=LONGEST) as client:
                api = connect(client)
                by_id = api.responses.create(model=MODEL, input="2", previous_response_id=first.id)
                by_messages = api.chat.completions.create(model=MODEL, messages=said)
            told = by_messages.choices[0].message.content
            assert "**Heath Ledger**" in by_id.output_text and told == by_id.output_text


def test_the_async_client(client: Any) -> None:
    async def talk() -> str:
        address = f"{client.base_url}/v1"
        async with openai.AsyncOpenAI(base_url=address, api_key="none") as api:
            async with api.responses.stream(model=MODEL, input=QUESTION) as stream:
                first = await stream.get_final_response()
            said = [
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": first.output_text},
                {"role": "user", "content": "2"},
            ]
            text = ""
            async for chunk in await api.chat.completions.create(
                model=MODEL, messages=said, stream=True
            ):
                text += chunk.choices[0].delta.content or ""
            return text

    assert "**Heath Ledger**" in asyncio.run(talk())
