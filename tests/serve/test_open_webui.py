"""Open WebUI's requests: event chunks, and the prompts that it sends on its own. Written after its version 0.12."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import QUESTION
from openai_clients import Chat, connect

CHAT = "/v1/chat/completions"
KNOWN = {"X-OpenWebUI-Chat-Id": "7"}
TITLE = """### Task:
Generate a concise title summarizing the chat history.
### Guidelines:
- Your entire response must consist solely of the JSON object.
### Output:
JSON format: { "title": "your concise title here" }
### Examples:
- { "title": "Stock Trends" },
### Chat History:
<chat_history>
%s
</chat_history>"""
TAGS = TITLE.replace('"title": "your', '"tags": ["tag1", "tag2"], "x": "your')
FOLLOW_UPS = """### Task:
Predict 3-5 useful messages this user might naturally send next.
### Output:
JSON format: { "follow_ups": ["Suggested next message 1", "Suggested next message 2"] }
### Chat History:
<chat_history>
%s
</chat_history>"""
QUERIES = """### Task:
Analyze the chat history to determine the necessity of generating search queries.
- When generating search queries, respond in the format: { "queries": ["query1", "query2"] }
### Chat History:
<chat_history>
%s
</chat_history>
"""
AUTOCOMPLETE = """### Task:
You are an autocompletion system.
5. If unsure, return: `{ "text": "" }`.
### Context:
<chat_history>
%s
</chat_history>
<type>search query</type>
<text>Who pla</text>
"""
ATTACHED = """### Task:
Respond to the user query using the provided context.
### Output:
Provide a clear and direct response to the user's query.
<context>
<source id="1" name="notes.txt">{ "title": "a trap" } What is a puma?</source>
</context>

%s"""


@pytest.fixture
def api(client: Any) -> Any:
    return connect(client)


def history(chat: Chat) -> str:
    """A chat as the prompts have it."""
    lines = []
    for message in chat.messages:
        lines.append(f"{message['role'].upper()}: {message['content']}")
    return "\n".join(lines)


def ask_task(api: Any, prompt: str) -> Any:
    said = [{"role": "user", "content": prompt}]
    done = api.chat.completions.create(model="whichsense", messages=said)
    return json.loads(done.choices[0].message.content)


def test_its_own_prompts_are_no_questions(client: Any, api: Any) -> None:
    chat = Chat(api)
    chat.say(QUESTION)
    before = len(client.get("/v1/cases").json()["cases"])
    pending = history(chat)
    assert ask_task(api, TITLE % pending) == {"title": QUESTION}
    offered = ask_task(api, FOLLOW_UPS % pending)["follow_ups"]
    assert len(offered) == 2
    assert ask_task(api, TAGS % pending) == {"tags": []}
    assert ask_task(api, QUERIES % pending) == {"queries": []}
    assert ask_task(api, AUTOCOMPLETE % pending) == {"text": ""}
    assert len(client.get("/v1/cases").json()["cases"]) == before
    told = chat.say(offered[1])
    assert "**Heath Ledger**" in told and "Nicholson" not in told
    assert ask_task(api, FOLLOW_UPS % history(chat)) == {"follow_ups": []}


def test_a_task_is_streamed_and_answered_as_a_response(client: Any, api: Any) -> None:
    prompt = TITLE % f"USER: {QUESTION}\nASSISTANT: Which?\nUSER: 2"
    text = Chat(api, stream=True).say(prompt)
    assert json.loads(text) == {"title": QUESTION}
    response = api.responses.create(model="whichsense", input=prompt)
    assert json.loads(response.output_text) == {"title": QUESTION}


def test_a_title_for_librechat(client: Any, api: Any) -> None:
    prompt = (
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions."
        f" Only return the title itself.\n\nConversation:\nUser: {QUESTION}\nAI: Which?"
    )
    assert Chat(api).say(prompt) == QUESTION
    said = "Provide a concise, 5-word-or-less title for the conversation."
    assert Chat(api).say(said) != "", "what has no conversation behind it is a question"


def test_what_stands_behind_attached_documents_is_the_question(api: Any) -> None:
    chat = Chat(api)
    asked = chat.say(ATTACHED % QUESTION)
    assert asked.startswith("**Which")
    # In later requests the message is as it was typed.
    chat.messages[0]["content"] = QUESTION
    assert "**Heath Ledger**" in chat.say(ATTACHED % "the Dark Knight")


def events(client: Any, messages: list[Any], **headers: str) -> tuple[list[Any], str]:
    """The events of a streamed completion, and its text."""
    body = {"model": "whichsense", "messages": messages, "stream": True}
    seen, text = [], ""
    with client.stream("POST", CHAT, json=body, headers=headers) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                chunk = json.loads(line.removeprefix("data: "))
                if "event" in chunk:
                    seen.append(chunk["event"])
                for choice in chunk["choices"]:
                    text += choice["delta"].get("content", "")
                    assert "annotations" not in choice["delta"]
    return seen, text


def test_event_chunks(client: Any) -> None:
    said: list[Any] = [{"role": "user", "content": QUESTION}]
    seen, text = events(client, said, **KNOWN)
    statuses = [one["data"] for one in seen if one["type"] == "status"]
    assert "Found 2 candidate answers" in [one["description"] for one in statuses]
    assert [one["done"] for one in statuses] == [False] * (len(statuses) - 1) + [True]
    (offered,) = [one for one in seen if one["type"] == "chat:message:follow_ups"]
    label = offered["data"]["follow_ups"][1]
    said += [{"role": "assistant", "content": text}, {"role": "user", "content": label}]
    seen, text = events(client, said, **KNOWN)
    (source,) = [one["data"] for one in seen if one["type"] == "source"]
    assert source["source"]["name"] == "The Dark Knight" and "[1]" in text
    assert source["document"] == ["Heath Ledger played the Joker in 2008."]
    assert source["metadata"][0]["source"] == source["source"]["url"]
    unknown, _ = events(client, said[:1])
    assert unknown == []


def test_the_openai_client_takes_event_chunks(client: Any) -> None:
    """An Open WebUI in between may pass its headers on."""
    api = connect(client).with_options(default_headers=KNOWN)
    said = [{"role": "user", "content": QUESTION}]
    text = ""
    chunks = api.chat.completions.create(model="whichsense", messages=said, stream=True)
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
    assert text.startswith("**Which")
