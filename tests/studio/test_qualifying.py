"""Qualification: training, a test, silent control items; who falls below is paused and keeps their work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Make, client, served
from whichsense.errors import BadInput
from whichsense.studio import Settings, Studio, create_project, reports
from whichsense.studio.history import read_events
from whichsense.studio.members import Member
from whichsense.studio.project import Qualification

RIGHT = {"outcome": "single", "answers": ["Ann Lee"]}
WRONG = {"outcome": "single", "answers": ["Bo Ray"]}
ANN = Member("ann", "ann", "annotator")


@pytest.fixture
def studio(tmp_path: Path, searched: str, make: Make) -> Studio:
    qualifying = {}
    for part, count in (("training", 1), ("test", 2), ("gold", 2), ("attention", 1)):
        rows = [
            {"id": f"{part}{n}", "question": f"Who won {part} {n}?", "value": RIGHT}
            for n in range(count)
        ]
        qualifying[part] = tmp_path / f"{part}.jsonl"
        qualifying[part].write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions = tmp_path / "work.txt"
    questions.write_text("".join(f"Who won cup {n}?\n" for n in range(12)))
    rule = Qualification(threshold=0.8, floor=0.6, window=2, every=2)
    settings = Settings(kind="generate", index=searched, qualification=rule)
    return Studio(create_project(tmp_path / "q", settings, questions, qualifying=qualifying))


def answer(studio: Studio, who: Member, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Take the next item and submit a value: what the item was for, and what was answered."""
    view = studio.take(who)
    assert view is not None
    version = studio.save(who, view["item"], view["draft"]["version"], value)["draft"]["version"]
    answered = studio.submit(who, view["item"], version)
    assert view["part"] != "gold" and "gold" not in json.dumps(view["body"].get("value", ""))
    return studio.item(view["item"]).part, answered


def paused(studio: Studio, who: Member) -> str:
    with studio.database.reading() as connection:
        events = read_events(connection, 0, who.id, ("pause",))
    return str(events[-1].payload["reason"]) if events else ""


def test_training_test_and_work(studio: Studio) -> None:
    with pytest.raises(BadInput):
        studio.take(ANN, 99)
    assert studio.take(ANN, 3) is None  # no work before the test
    part, answered = answer(studio, ANN, WRONG)
    assert part == "training" and answered["feedback"]["value"] == RIGHT
    assert answered["feedback"]["says"].startswith("0% right.")
    number = next(one["item"] for one in studio.own_work(ANN))
    with pytest.raises(BadInput, match="no longer be taken back"):
        studio.reopen(ANN, number, answered["draft"]["version"])
    for _ in range(2):
        part, answered = answer(studio, ANN, RIGHT)
        assert part == "test" and "feedback" not in answered
    parts = [answer(studio, ANN, RIGHT)[0] for _ in range(10)]
    assert parts.count("work") == 7 and parts[:2] == ["work", "work"]
    assert sorted(parts[2:9:3]) == ["attention", "gold", "gold"]
    assert not paused(studio, ANN)
    # What qualifies is no work: it is not counted, not compared, not paid.
    assert studio.status()["annotations"] == {"done": 7, "held": 0, "free": 5}
    assert len(reports.agreement(studio)["rows"]) == 12
    [row] = reports.pay(studio)["rows"]
    assert row["items"] == 7


def test_who_fails_the_test_is_paused(studio: Studio) -> None:
    answer(studio, ANN, RIGHT)
    answer(studio, ANN, RIGHT)
    assert not paused(studio, ANN)
    answer(studio, ANN, WRONG)
    assert paused(studio, ANN) == "test 50% right, below 80%"


def test_who_falls_below_is_paused_and_keeps_their_work(studio: Studio) -> None:
    token = studio.members.invite("eve")
    with served(studio) as address, client(address, token) as eve:
        who = studio.members.all()[0]
        for _ in range(3):
            answer(studio, who, RIGHT)
        silent = []
        while not paused(studio, who):
            view = eve.post("/v1/take", json={}).json()["view"]
            assert view["part"] == "work"
            is_silent = studio.item(view["item"]).part != "work"
            silent.append(is_silent)
            value = WRONG if is_silent else RIGHT
            path = f"/v1/items/{view['item']}"
            eve.post(f"{path}/save", json={"version": 0, "set": value})
            assert eve.post(f"{path}/submit", json={"version": 1}).status_code == 200
        assert silent == [False, False, True]
        refused = eve.post("/v1/take", json={})
        assert refused.status_code == 403
        assert "control items 0% right, below 60%" in refused.json()["title"]
        assert len(eve.get("/v1/work").json()["items"]) == 6
        [row] = studio.status()["members"]
        assert row["submitted"] == 2 and row["scores"]["test"] == 1.0


def test_owners_are_not_examined(studio: Studio) -> None:
    view = studio.take(Member("olga", "olga", "owner"))
    assert view is not None and studio.item(view["item"]).part == "work"
