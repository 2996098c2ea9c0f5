"""A whole pass by program, over HTTP: two generators and a validator over questions of the sample."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import client, served
from whichsense.lab.datasets import load
from whichsense.studio import Project, Settings, Studio, create_project
from whichsense.studio.exports import export_to
from whichsense.studio.following import next_rows
from whichsense.studio.imports import import_project

COUNT = 20


def run(*arguments: str) -> Any:
    command = [sys.executable, "-m", "whichsense", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def form(annotation: Any) -> dict[str, Any]:
    """What a generator types who finds what the sample's annotator found."""
    if annotation.is_single:
        return {"outcome": "single", "answers": list(annotation.answers[0])}
    pairs = [
        {"question": one.question, "answers": list(dict.fromkeys(one.answers))}
        for one in annotation.pairs
    ]
    return {"outcome": "several", "pairs": pairs}


def submit(person: Any, view: dict[str, Any], value: dict[str, Any]) -> None:
    path = f"/v1/items/{view['item']}"
    saved = person.post(f"{path}/save", json={"version": 0, "set": value}).json()
    answer = person.post(f"{path}/submit", json={"version": saved["draft"]["version"]})
    assert answer.status_code == 200, answer.text


def generate(studio: Studio, questions: list[Any]) -> None:
    """The first generator finds all of it; the second only the first answer of every fourth question."""
    by_id = {one.id: one for one in questions}
    for who in ("first", "second"):
        key = studio.members.invite(who)
        with served(studio) as address, client(address, key) as person:
            while view := person.post("/v1/take", json={}).json()["view"]:
                path = f"/v1/items/{view['item']}"
                query = {"query": view["body"]["question"], "k": 3}
                hits = person.post(f"{path}/search", json=query).json()["hits"]
                person.post(f"{path}/view", json={"passage": hits[0]["id"]})
                question = by_id[view["body"]["id"]]
                annotation = question.annotations[0]
                value = form(annotation)
                if who == "second" and view["item"] % 4 == 0:
                    first = list(annotation.answers[0])
                    value = {"outcome": "single", "answers": first}
                submit(person, view, value)


def test_a_whole_pass(tmp_path: Path) -> None:
    questions = [one for one in load("sample/questions") if one.several][:COUNT]
    rows = [{"id": one.id, "question": one.text} for one in questions]
    settings = Settings(kind="generate", overlap=2)
    generation = Studio(create_project(tmp_path / "generation", settings, rows))
    generate(generation, questions)
    assert generation.status()["annotations"] == {"done": 40, "held": 0, "free": 0}
    made = next_rows(generation, "validate")
    settings = Settings(kind="validate")
    validation = Studio(create_project(tmp_path / "validation", settings, made))
    # Validation is skipped where the generators agree, as in the paper.
    assert validation.status()["items"] == {"agreed": 15, "work": 5}
    key = validation.members.invite("validator")
    with served(validation) as address, client(address, key) as person:
        while view := person.post("/v1/take", json={}).json()["view"]:
            assert view["body"]["pages"] and len(view["body"]["annotations"]) == 2
            submit(person, view, {"verdict": "better", "better": 0})
    light, statement = export_to(validation, "ambignq", tmp_path / "light")
    full = export_to(validation, "ambignq-full", tmp_path / "full")[0]
    # It loads, it scores, and it counts as the paper counts.
    [checked] = run("data", "check", str(light))
    assert checked["ok"] and checked["count"] == COUNT
    perfect = {
        one.id: [
            {"question": pair.question, "answer": pair.answers[0]}
            for pair in one.annotations[0].pairs
        ]
        for one in questions
    }
    predicted = tmp_path / "predicted.json"
    predicted.write_text(json.dumps(perfect))
    scored = run("score", "ambignq", str(light), str(predicted))
    assert scored["f1_ans"] == scored["f1_edit"] == 1.0
    said = statement.read_text()
    assert "| validation skipped, annotations equal | 15 (75%) |" in said
    assert "| one passed | 5 (25%) |" in said
    sizes = [len(one.annotations[0].pairs) for one in questions]
    assert f"| … with 2 | {sizes.count(2)} ({sizes.count(2) / COUNT:.0%}) |" in said
    searched = json.loads(full.read_text())
    assert all(len(row["used_queries"]) >= 2 for row in searched)
    assert all(row["viewed_doc_titles"] for row in searched)
    # The release is a project again, which says the same.
    again = Studio(import_project(tmp_path / "again", [light], "ambignq"))
    assert (
        export_to(again, "ambignq", tmp_path / "twice")[0].read_bytes()
        == light.read_bytes()
    )
    for studio in (generation, validation, again):
        studio.close()
    assert Project.open(tmp_path / "again").kind.name == "generate"
