"""What the OpenAI-compatible face refuses and how, what it ignores, and hostile bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import QUESTION
from openai_clients import connect, openai

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
ASKED = {"role": "user", "content": QUESTION}


@pytest.fixture
def api(client: Any) -> Any:
    return connect(client)


def chat(api: Any, **options: Any) -> Any:
    asked: dict[str, Any] = {"model": "whichsense", "messages": [ASKED], **options}
    return api.chat.completions.create(**asked)


def test_what_means_nothing_here_is_ignored(api: Any) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    done = chat(
        api,
        temperature=0.3,
        top_p=0.5,
        seed=1,
        max_tokens=5,
        n=1,
        stop=["."],
        tools=[tool],
        tool_choice="auto",
        response_format={"type": "text"},
        extra_body={"chat_id": "x", "unheard_of": {"a": [1]}},
    )
    assert done.choices[0].message.content.startswith("**Which")
    assert not done.choices[0].message.tool_calls


@pytest.mark.parametrize(
    ("options", "param", "fix"),
    [
        ({"n": 2}, "n", "Ask for one"),
        ({"response_format": {"type": "json_object"}}, "response_format", "/v1/ask"),
        ({"tool_choice": "required"}, "tool_choice", "No tool"),
        ({"modalities": ["audio"]}, "modalities", "text"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages", "'user'"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages", "Ask something"),
        ({"messages": [{"role": "user", "content": "x" * 3000}]}, "messages", "2,000"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role", "user"),
        ({"messages": "Who?"}, "messages", "list"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    api: Any, options: dict[str, Any], param: str, fix: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat(api, **options)
    error = caught.value
    assert error.param == param and fix in str(error), str(error)
    assert error.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ],
)
def test_responses_refuse_too(api: Any, options: dict[str, Any], param: str) -> None:
    asked = {"model": "whichsense", "input": QUESTION, **options}
    with pytest.raises(openai.BadRequestError) as caught:
        api.responses.create(**asked)
    assert caught.value.param == param


def test_images_are_refused_in_the_last_message_alone(api: Any) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text = {"type": "text", "text": QUESTION}
    seen = {"role": "user", "content": [text, image]}
    with pytest.raises(openai.BadRequestError, match="Only text is read"):
        chat(api, messages=[seen])
    answered = {"role": "assistant", "content": "Which one?"}
    chosen = {"role": "user", "content": "the Dark Knight"}
    done = chat(api, messages=[seen, answered, chosen])
    assert "**Heath Ledger**" in done.choices[0].message.content


def test_an_unknown_model_is_not_found(api: Any) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        chat(api, model="gpt-9")
    assert caught.value.code == "model_not_found" and "whichsense-" in str(caught.value)


def test_a_long_history_is_read_and_a_huge_one_refused(client: Any, api: Any) -> None:
    long = []
    for number in range(100):
        long.append({"role": "user", "content": f"{number} " + "words " * 300})
        long.append({"role": "assistant", "content": "words " * 300})
    done = chat(api, messages=[*long, ASKED])
    assert done.choices[0].message.content.startswith("**Which")
    huge = {"role": "assistant", "content": "x" * 2**20}
    response = client.post(CHAT, json={"model": "whichsense", "messages": [huge, ASKED]})
    assert response.status_code == 413
    assert "begin a new chat" in response.json()["error"]["message"].lower()


def test_every_error_has_openais_shape(client: Any) -> None:
    good = {"model": "whichsense", "messages": [ASKED]}
    responses = [
        client.post(CHAT, content=b"{", headers={"Content-Type": "application/json"}),
        client.post(CHAT, content=b"x", headers={"Content-Type": "text/plain"}),
        client.get(CHAT),
        client.delete("/v1/models"),
        client.get("/v1/models/none"),
        client.post(CHAT, json=good, headers={"Host": "evil.example"}),
        client.post(CHAT, json=good, headers={"Origin": "https://evil.example"}),
        client.post(RESPONSES, json={"model": 1, "input": {}}),
    ]
    statuses = [400, 415, 405, 405, 404, 421, 403, 400]
    assert [response.status_code for response in responses] == statuses
    for response in responses:
        assert response.headers["content-type"] == "application/json"
        error = response.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"] and error["code"]
    problem = client.post("/v1/ask", json={})
    assert problem.headers["content-type"] == "application/problem+json"


def hostile_bodies() -> list[bytes]:
    deep = "[" * 5_000 + "]" * 5_000
    texts = [
        '{"model": "whichsense", "messages": null}',
        '{"model": null, "messages": [{}]}',
        '{"model": "whichsense", "messages": [{"role": "user", "content": {"a": 1}}]}',
        '{"model": "whichsense", "messages": [{"role": "user", "content": [1, null]}]}',
        '{"model": "whichsense", "messages": [{"role": "user", "content": [{"type": "text"}]}]}',
        '{"model": "whichsense", "messages": [{"role": "user", "content": "\\ud800 who?"}]}',
        '{"model": "whichsense", "messages": [{"role": "user", "content": "x"}], "n": 1e400}',
        '{"model": "whichsense", "input": [{"type": "reasoning"}, {"role": "user"}]}',
        '{"model": "whichsense", "input": [[], 1]}',
        '{"model": "whichsense", "input": "x", "previous_response_id": "../../etc/passwd"}',
        f'{{"model": "whichsense", "input": {deep}}}',
        f'{{"model": "{"m" * 5_000}", "input": "x"}}',
        "[]",
        "null",
        '"\\u0000"',
    ]
    return [text.encode() for text in texts] + [b"\xff\xfe", b""]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("number", range(len(hostile_bodies())))
def test_hostile_bodies_are_refused(client: Any, path: str, number: int) -> None:
    headers = {"Content-Type": "application/json"}
    body = hostile_bodies()[number]
    response = client.post(path, content=body, headers=headers)
    assert response.status_code in (400, 404), response.text
    message = response.json()["error"]["message"]
    assert len(message) < 6_000 and "Traceback" not in message


def test_markup_in_passages_stays_text(tmp_path: Any, start: Any) -> None:
    from whichsense.index import Index

    text = "Heath Ledger played the <b>Joker</b> *well* [9] in 2008."
    folder = tmp_path / "own"
    Index.build([{"title": "A [link](http://x)", "text": text}], folder).close()
    api = connect(start(index=str(folder)))
    content = chat(api, model="whichsense-readings").choices[0].message.content
    assert r"\<b>Joker\</b> \*well\* \[9\]" in content
    assert r"A \[link\](http://x)" in content
    assert json.dumps(content)
