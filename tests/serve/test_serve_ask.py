"""Ask, search, passages: answers, streams, refusals."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fake_service import HELD, QUESTION

from patience import LONGEST, wait_for
from whichsense import types
from whichsense.types import Case, Hit, ServedCase

Start = Callable[..., Any]


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """The events of a stream; comments are named "ping"."""
    name = ""
    for line in lines:
        if line.startswith(":"):
            yield "ping", None
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def ask(client: Any, question: str = QUESTION, **options: Any) -> Any:
    return client.post("/v1/ask", json={"question": question, **options})


@contextlib.contextmanager
def left_alone(client: Any, path: str, body: Any) -> Iterator[None]:
    """Asks, and goes away without an answer when the block ends."""
    host, port = client.base_url.host, client.base_url.port
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(sent)}\r\n"
    with socket.create_connection((host, port), timeout=LONGEST) as raw:
        raw.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + sent)
        yield


def stream(client: Any, question: str = QUESTION, **options: Any) -> Any:
    body = {"question": question, "stream": True, **options}
    return client.stream("POST", "/v1/ask", json=body)


def test_an_answer_is_a_case(client: Any) -> None:
    response = ask(client)
    assert response.status_code == 200
    answer = ServedCase.from_json(response.json())
    answers = {reading.answer for reading in answer.case.readings}
    assert answers == {"Jack Nicholson", "Heath Ledger"}
    assert answer.case.clarification is None and answer.case.long_answer is None


def test_clarification_and_long_answer_are_options_of_the_same_case(client: Any) -> None:
    body = ask(client, clarify=True, explain=True).json()
    case = Case.from_json(body["case"])
    assert case.clarification and len(case.clarification.options) == 2
    assert case.long_answer and len(case.long_answer.sentences) == 2
    assert list(case.spent)[-2:] == ["clarify", "summarize"]


def test_every_stage_is_an_event(client: Any) -> None:
    with stream(client, clarify=True) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        seen = list(events(response.iter_lines()))
    names = [data["stage"] for name, data in seen if name == "stage"]
    assert names == ["retrieve", "rerank", "read", "disambiguate", "verify", "clarify"]
    first, last = seen[0][1], seen[-1]
    assert first["hits"] and first["counts"]["passages"] == len(first["hits"])
    assert last[0] == "done"
    answer = ServedCase.from_json(last[1])
    assert response.headers["location"] == f"/v1/cases/{answer.id}"


def test_silence_is_filled_with_heartbeats(start: Start, let_go: threading.Event) -> None:
    client = start(heartbeat=0.1)
    names = []
    with stream(client, HELD) as response:
        for name, _ in events(response.iter_lines()):
            names.append(name)
            if names.count("ping") == 2:
                let_go.set()
    assert names.count("ping") >= 2 and names[-1] == "done"


def test_search(client: Any) -> None:
    response = client.post("/v1/search", json={"question": "large cat", "k": 1})
    body = response.json()
    (hit,) = [types.decode(Hit, one) for one in body["hits"]]
    assert hit.passage.title == "Puma" and body["method"] == "bm25"


def test_a_passage_comes_with_its_neighbours(start: Start, tmp_path: Any) -> None:
    from whichsense.index import Index

    words = " ".join(f"word{number}" for number in range(500))
    record = {"id": "long/one", "title": "Long", "text": words}
    Index.build([record], tmp_path / "long").close()
    client = start(index=str(tmp_path / "long"))
    body = client.get("/v1/passages/long/one%231").json()
    assert body["passage"]["id"] == "long/one#1"
    assert [one["id"] for one in body["before"]] == ["long/one#0"]
    assert [one["id"] for one in body["after"]] == ["long/one#2", "long/one#3"]
    assert client.get("/v1/passages/none").status_code == 404


def test_a_deadline_gives_what_is_there(client: Any, let_go: threading.Event) -> None:
    for seconds in (0.3, 3, 30, 300):  # time to search, however busy the machine is
        case = Case.from_json(ask(client, HELD, seconds=seconds).json()["case"])
        assert case.stopped == "deadline" and not case.readings
        if case.hits:
            return
    pytest.fail("it has no hits")


def test_a_full_queue_is_told_with_the_time_to_wait(start: Start, let_go: threading.Event) -> None:
    client = start(parallel=1, queue=1)
    threads = [threading.Thread(target=ask, args=(client, HELD)) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_for(lambda: active(client) == 2)
    response = ask(client)
    let_go.set()
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) >= 1
    assert response.json()["type"].endswith("queue-full")
    for thread in threads:
        thread.join()


def test_a_deadline_in_the_queue_is_a_429(start: Start, let_go: threading.Event) -> None:
    client = start(parallel=1)
    busy = threading.Thread(target=ask, args=(client, HELD))
    busy.start()
    wait_for(lambda: active(client) == 1)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(ask, client, seconds=0.1)
        wait_for(lambda: active(client) == 2)
        time.sleep(0.2)  # its deadline passes while it waits
        let_go.set()
        response = late.result()
    assert response.status_code == 429 and "Retry-After" in response.headers
    busy.join()


def test_a_client_that_goes_away_stops_its_work(start: Start, let_go: threading.Event) -> None:
    client = start(parallel=1)
    with left_alone(client, "/v1/ask", {"question": HELD}):
        wait_for(lambda: active(client) == 1)
    wait_for(lambda: active(client) == 0)
    assert ask(client).status_code == 200
    outcome = 'whichsense_answers_total{outcome="cancelled"} 1.0'
    assert outcome in client.get("/metrics").text
    assert client.get("/v1/cases").json()["cases"][0]["question"] == QUESTION


def test_an_error_shows_nothing_of_the_inside(start: Start) -> None:
    response = ask(start(), "will fail")
    assert response.status_code == 500
    assert response.json()["instance"].startswith("urn:whichsense:case:")
    assert "secret" not in response.text and "Traceback" not in response.text


def active(client: Any) -> int:
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("whichsense_answers_active "):
            return int(float(line.split()[1]))
    return 0


def test_a_search_is_of_the_newest_generation(start: Start, tmp_path: Any) -> None:
    from whichsense import index as indexes
    from whichsense.index import Index

    folder = tmp_path / "own"
    Index.build([{"title": "Puma", "text": "A large cat."}], folder).close()
    client = start(index=str(folder))
    body = {"question": "large cat"}
    assert len(client.post("/v1/search", json=body).json()["hits"]) == 1
    more = tmp_path / "more.jsonl"
    more.write_text('{"title": "Lynx", "text": "Another large cat."}\n')
    indexes.add([str(more)], folder)
    wait_for(lambda: client.get("/v1/info").json()["passages"] == 2)
    assert len(client.post("/v1/search", json=body).json()["hits"]) == 2
