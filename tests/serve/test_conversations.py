"""Conversations over HTTP: the question back, replies in words and by id, resuming, two replies at once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_service import QUESTION
from test_serve_ask import active, events

from patience import wait_for
from whichsense.conversation import Conversation
from whichsense.serve.settings import KeyFile
from whichsense.serve.state import Database

Start = Callable[..., Any]
PATH = "/v1/conversations"


def begin(client: Any, **headers: str) -> tuple[str, Conversation]:
    response = client.post(PATH, json={"question": QUESTION}, headers=headers)
    assert response.status_code == 200, response.text
    body = response.json()
    return f"{PATH}/{body['id']}", Conversation.from_json(body["conversation"])


def test_an_ambiguous_question_is_asked_back_and_a_reply_chooses(client: Any) -> None:
    path, conversation = begin(client)
    assert conversation.last.pending and len(conversation.last.readings) == 2
    body = client.post(f"{path}/replies", json={"text": "the Dark Knight"}).json()
    last = Conversation.from_json(body["conversation"]).last
    assert [reading.answer for reading in last.readings] == ["Heath Ledger"]
    resumed = client.get(path).json()
    assert resumed == body, "it is resumed as it was left"
    case = client.get(f"/v1/cases/{body['case_id']}").json()["case"]
    assert case["question"] == QUESTION, "the question has its trace"


def test_options_are_chosen_by_id_and_the_story_is_told(client: Any) -> None:
    path, conversation = begin(client)
    first = conversation.clarification.options[0]  # type: ignore[union-attr]
    body = client.post(f"{path}/replies", json={"options": [first.id]}).json()
    last = Conversation.from_json(body["conversation"]).last
    assert last.readings == first.readings
    body = client.post(f"{path}/replies", json={"explain": True}).json()
    told = Conversation.from_json(body["conversation"]).last.long_answer
    assert told and len(told.sentences) == 2
    wrong = client.post(f"{path}/replies", json={"options": ["9"]})
    assert wrong.status_code == 409 and "no option" in wrong.json()["title"]
    both = {"options": ["1"], "text": "x"}
    assert client.post(f"{path}/replies", json=both).status_code == 422
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_a_new_question_is_a_new_case(client: Any) -> None:
    path, _ = begin(client)
    before = client.get(path).json()["case_id"]
    reply = {"text": "What is a puma?", "stream": True}
    with client.stream("POST", f"{path}/replies", json=reply) as response:
        seen = list(events(response.iter_lines()))
    assert [name for name, _ in seen[:1]] == ["stage"] and seen[-1][0] == "done"
    assert seen[-1][1]["case_id"] != before
    assert client.get(path).json() == seen[-1][1]


def test_of_two_replies_at_once_one_is_told(start: Start, let_go: threading.Event) -> None:
    client = start(parallel=2)
    path, _ = begin(client)
    statuses: list[int] = []

    def reply(word: str) -> None:
        said = {"text": f"What about a puma {word} Wait"}
        statuses.append(client.post(f"{path}/replies", json=said).status_code)

    threads = [threading.Thread(target=reply, args=(word,)) for word in "ab"]
    for thread in threads:
        thread.start()
    wait_for(lambda: statuses or active(client) == 2)
    let_go.set()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 409]


def test_a_conversation_belongs_to_its_key(start: Start, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    own, other = keys.add("own", ["ask"]), keys.add("other", ["ask"])
    client = start()
    path, _ = begin(client, Authorization=f"Bearer {own}")
    seen = client.get(path, headers={"Authorization": f"Bearer {other}"})
    assert seen.status_code == 404


def test_a_conversation_goes_on_when_the_disk_is_full(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    rows = Database.rows

    def full(self: Database, statement: str, values: Any = ()) -> Any:
        if statement.startswith(("INSERT", "UPDATE conversations")):
            raise sqlite3.OperationalError("database or disk is full")
        return rows(self, statement, values)

    monkeypatch.setattr(Database, "rows", full)
    path, _ = begin(client)
    said = {"text": "the Dark Knight"}
    assert client.post(f"{path}/replies", json=said).status_code == 200
    monkeypatch.undo()
    assert client.post(f"{path}/replies", json={"explain": True}).status_code == 200
    assert client.get(path).json()["conversation"]["turns"][-1]["long_answer"]
