"""Cases: rejoin, replay, cancel, feedback, ownership; traces that are off, and a full disk."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_service import HELD
from test_serve_ask import active, ask, events, stream

from patience import wait_for
from whichsense.serve.state import Database, Traces
from whichsense.types import Case, ServedCase

Start = Callable[..., Any]
EVENTS = {"Accept": "text/event-stream"}


def follow(client: Any, case_id: str, after: str = "") -> list[tuple[str, Any]]:
    headers = EVENTS | ({"Last-Event-ID": after} if after else {})
    with client.stream("GET", f"/v1/cases/{case_id}", headers=headers) as response:
        assert response.status_code == 200
        return list(events(response.iter_lines()))


def test_a_running_answer_is_rejoined(start: Start, let_go: threading.Event) -> None:
    client = start()
    with stream(client, HELD) as response:
        case_id = response.headers["location"].rpartition("/")[2]
        next(events(response.iter_lines()))
    state = client.get(f"/v1/cases/{case_id}").json()
    assert state["state"] == "running" and state["case"] is None
    let_go.set()
    rejoined = follow(client, case_id, after="2")
    stages = [data["stage"] for name, data in rejoined if name == "stage"]
    assert stages == ["read", "disambiguate", "verify"]
    assert rejoined[-1][0] == "done"


def test_a_finished_answer_is_replayed(client: Any) -> None:
    answer = ServedCase.from_json(ask(client).json())
    state = client.get(f"/v1/cases/{answer.id}").json()
    assert state["state"] == "finished" and Case.from_json(state["case"]) == answer.case
    replayed = follow(client, answer.id)
    assert [name for name, _ in replayed] == ["stage"] * 5 + ["done"]
    assert ServedCase.from_json(replayed[-1][1]) == answer
    assert follow(client, answer.id, after="not a number")[-1][0] == "done"


def test_a_stream_that_nobody_follows_stops(start: Start, let_go: threading.Event) -> None:
    client = start(rejoin=0.2)
    with stream(client, HELD) as response:
        next(events(response.iter_lines()))
        assert active(client) == 1
    wait_for(lambda: active(client) == 0)


def test_an_answer_is_cancelled(start: Start, let_go: threading.Event) -> None:
    client = start()
    with stream(client, HELD) as response:
        lines = events(response.iter_lines())
        next(lines)
        location = response.headers["location"]
        assert client.delete(location).status_code == 204
        name, problem = list(lines)[-1]
    assert name == "problem" and problem["type"].endswith("cancelled")
    wait_for(lambda: active(client) == 0)


def test_feedback_is_kept_beside_the_case(client: Any) -> None:
    case_id = ask(client).json()["id"]
    path = f"/v1/cases/{case_id}"
    said = {"verdict": "down", "about": "answer", "correction": "Heath Ledger"}
    assert client.post(f"{path}/feedback", json={"verdict": "up"}).status_code == 200
    kept = client.post(f"{path}/feedback", json=said).json()["feedback"]
    assert kept[1] | said == kept[1]
    (summary,) = [one for one in client.get("/v1/cases").json()["cases"] if one["id"] == case_id]
    assert (summary["up"], summary["down"]) == (1, 1)
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert client.post(f"{path}/feedback", json=said).status_code == 404


def test_traces_are_off_with_one_setting(start: Start, tmp_path: Path) -> None:
    client = start(traces=False)
    case_id = ask(client).json()["id"]
    assert client.get(f"/v1/cases/{case_id}").status_code == 200, "it can be rejoined"
    assert not list(tmp_path.glob("*.sqlite*"))


def test_answers_go_on_when_the_disk_is_full(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    rows = Database.rows

    def full(self: Database, statement: str, values: Any = ()) -> Any:
        if "INTO traces" in statement:
            raise sqlite3.OperationalError("database or disk is full")
        return rows(self, statement, values)

    monkeypatch.setattr(Database, "rows", full)
    assert ask(client).status_code == 200
    with stream(client) as response:
        assert list(events(response.iter_lines()))[-1][0] == "done"
    rejoined = client.get(response.headers["location"]).json()
    assert rejoined["state"] == "finished", "for a while, without its trace"
    assert client.get("/readyz").json()["traces"] == "2 lost: database or disk is full"
    assert "whichsense_traces_lost_total 2.0" in client.get("/metrics").text
    monkeypatch.undo()
    assert ask(client).status_code == 200
    assert client.get("/readyz").json()["traces"] == "kept"
    traces = Traces(tmp_path / "traces.sqlite")
    (gap,) = traces.gaps()
    assert gap.lost == 2 and "full" in gap.reason
    assert len(traces.summaries()) == 1
    traces.close()


def test_a_real_full_disk(tmp_path: Path) -> None:
    """SQLite itself says so: its file may not grow."""
    traces = Traces(tmp_path / "traces.sqlite")
    traces._database.rows("PRAGMA max_page_count = 12")
    case = Case("x" * 20_000 + str(time.time()))
    kept = [traces.add(ServedCase(str(number), case), "") for number in range(6)]
    assert True in kept and False in kept
    assert traces.gap and "full" in traces.gap.reason
    traces._database.rows("PRAGMA max_page_count = 10000")
    assert traces.add(ServedCase("last", case), "")
    assert traces.gaps()[0].lost == kept.count(False)
    traces.close()


def test_many_clients_at_once(client: Any) -> None:
    statuses: list[int] = []

    def some() -> None:
        for _ in range(5):
            statuses.append(ask(client).status_code)

    threads = [threading.Thread(target=some) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 429} and statuses.count(200) >= 40


def test_cases_are_filtered_and_what_was_said_is_read(client: Any) -> None:
    right, wrong = ask(client).json()["id"], ask(client).json()["id"]
    body = {"verdict": "down", "about": "answer", "correction": "Neither of them."}
    client.post(f"/v1/cases/{wrong}/feedback", json=body)
    client.post(f"/v1/cases/{right}/feedback", json={"verdict": "up"})

    def listed(**chosen: str) -> set[str]:
        cases = client.get("/v1/cases", params=chosen).json()["cases"]
        return {one["id"] for one in cases}

    assert wrong in listed(kind="wrong") and right not in listed(kind="wrong")
    assert {wrong, right} <= listed(kind="judged")
    assert wrong not in listed(kind="unanswered") | listed(kind="stopped")
    assert right in listed(containing="PLAYED the") and not listed(containing="zebra")
    newest = client.get("/v1/cases", params={"limit": 1}).json()["cases"][0]
    assert newest["system"] == "compact" and newest["spent"].keys() >= {"retrieve"}
    (said,) = client.get(f"/v1/cases/{wrong}/feedback").json()["feedback"]
    assert said["correction"] == "Neither of them."
    assert client.get("/v1/cases/none/feedback").status_code == 404


def test_traces_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    traces = Traces(path)
    for column in ("system", "spent", "place"):
        traces._database.rows(f"ALTER TABLE traces DROP COLUMN {column}")
    traces.close()
    traces = Traces(path)
    assert traces.add(ServedCase("one", Case("Who?"), "compact"), "")
    assert traces.summaries()[0].system == "compact"
    traces.close()
