"""A whole pass, by program and in a browser: two generators and a validator over questions of the sample."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import client, served
from patience import LONGEST
from whichsense.lab.datasets import load
from whichsense.studio import Project, Settings, Studio, create_project
from whichsense.studio.exports import export_to
from whichsense.studio.following import next_rows
from whichsense.studio.imports import import_project

BY_PROGRAM = 20
BY_KEYBOARD = int(os.environ.get("WHICHSENSE_QUESTIONS", "4"))
"""Questions of the pass in a browser. With WHICHSENSE_QUESTIONS=20 it is as long as the one by program."""
CHROMIUM = os.environ.get("WHICHSENSE_CHROMIUM") or shutil.which("chromium")
playwright = (
    importlib.import_module("playwright.sync_api")
    if importlib.util.find_spec("playwright")
    else None
)


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


class Program:
    """Annotates over HTTP."""

    def __init__(self, address: str, key: str) -> None:
        self.client = client(address, key)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def take(self) -> dict[str, Any] | None:
        view: dict[str, Any] | None = self.client.post("/v1/take", json={}).json()["view"]
        return view

    def read_a_page(self, view: dict[str, Any]) -> None:
        path = f"/v1/items/{view['item']}"
        query = {"query": view["body"]["question"], "k": 3}
        hits = self.client.post(f"{path}/search", json=query).json()["hits"]
        self.client.post(f"{path}/view", json={"passage": hits[0]["id"]})

    def write(self, view: dict[str, Any], value: dict[str, Any]) -> None:
        change = {"version": 0, "set": value}
        self.client.post(f"/v1/items/{view['item']}/save", json=change)

    def choose(self, view: dict[str, Any], better: int) -> None:
        self.write(view, {"verdict": "better", "better": better})

    def submit(self, view: dict[str, Any]) -> None:
        path = f"/v1/items/{view['item']}/submit"
        answer = self.client.post(path, json={"version": 1})
        assert answer.status_code == 200, answer.text


class Person:
    """Annotates in a browser, with the keyboard alone."""

    def __init__(self, address: str, key: str) -> None:
        self.link = f"{address}/#invitation={key}"

    def __enter__(self) -> Person:
        self.driver = playwright.sync_playwright().start()
        self.browser = self.driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        self.page = self.browser.new_page()
        self.page.set_default_timeout(1000 * LONGEST)
        self.page.goto(self.link)
        self.page.locator(".begin").wait_for()
        self.go_on("Enter")
        return self

    def __exit__(self, *_: object) -> None:
        self.browser.close()
        self.driver.stop()

    def take(self) -> dict[str, Any] | None:
        """What the page shows; what is asked is the page's own business."""
        if "/item/" not in self.page.url:
            return None
        number = int(self.page.url.rpartition("/")[2])
        view: dict[str, Any] = self.page.evaluate(
            "number => fetch(`/v1/items/${number}`).then(got => got.json())", number
        )
        self.page.wait_for_function(
            "asked => document.title.startsWith(asked)", arg=view["body"]["question"]
        )
        return view

    def go_on(self, key: str) -> None:
        """Press a key that leads to another page."""
        before = self.page.url
        self.press(key)
        self.page.wait_for_function("before => location.href !== before", arg=before)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.press("Control+a")
        self.page.keyboard.insert_text(text)

    def tab_to(self, selector: str) -> None:
        for _ in range(50):
            self.press("Tab")
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"the Tab key never comes to {selector}")

    def read_a_page(self, view: dict[str, Any]) -> None:
        self.press("/")
        self.type(view["body"]["question"])
        self.press("Enter")
        self.page.locator(".hit").first.wait_for()
        self.tab_to(".hit")
        self.press("Enter")
        self.page.locator(".document").wait_for()

    def write(self, view: dict[str, Any], value: dict[str, Any]) -> None:
        if value["outcome"] == "single":
            self.press("1")
            self.tab_to(".form textarea")
            self.write_names(value["answers"])
            return
        self.press("2")
        for number, pair in enumerate(value["pairs"]):
            if number < 2:
                self.tab_to(".entry .field:first-child textarea")
            else:
                self.press("Escape", "a")
            self.type(pair["question"])
            self.press("Enter")
            self.write_names(pair["answers"])

    def write_names(self, names: list[str]) -> None:
        for number, name in enumerate(names):
            if number:
                self.tab_to("[data-add-name]")
                self.press("Enter")
            self.type(name)

    def choose(self, view: dict[str, Any], better: int) -> None:
        self.press("2")
        self.page.get_by_role("group", name="Which one?").wait_for()
        self.press("Tab", str(better + 1))

    def submit(self, view: dict[str, Any]) -> None:
        self.page.locator(".state:text-is('Saved')").wait_for()
        self.go_on("Control+Enter")


Hands = type[Program] | type[Person]


@pytest.fixture(params=[Program, pytest.param(Person, marks=pytest.mark.slow)])
def hands(request: pytest.FixtureRequest) -> Hands:
    if request.param is Person and (playwright is None or CHROMIUM is None):
        pytest.skip("needs playwright and chromium")
    own: Hands = request.param
    return own


def generate(studio: Studio, questions: list[Any], hands: Hands) -> None:
    """The first generator finds all of it; the second only the first answer of every fourth question."""
    by_id = {one.id: one for one in questions}
    for who in ("first", "second"):
        key = studio.members.invite(who)
        with served(studio) as address, hands(address, key) as person:
            while view := person.take():
                person.read_a_page(view)
                value = form(by_id[view["body"]["id"]].annotations[0])
                if who == "second" and view["item"] % 4 == 0:
                    first = value["pairs"][0]["answers"]
                    value = {"outcome": "single", "answers": first}
                person.write(view, value)
                person.submit(view)


def test_a_whole_pass(tmp_path: Path, hands: Hands) -> None:
    count = BY_PROGRAM if hands is Program else BY_KEYBOARD
    questions = [one for one in load("sample/questions") if one.several][:count]
    rows = [{"id": one.id, "question": one.text} for one in questions]
    settings = Settings(kind="generate", overlap=2, require_search=True)
    generation = Studio(create_project(tmp_path / "generation", settings, rows))
    generate(generation, questions, hands)
    assert generation.status()["annotations"] == {"done": 2 * count, "held": 0, "free": 0}
    made = next_rows(generation, "validate")
    settings = Settings(kind="validate")
    validation = Studio(create_project(tmp_path / "validation", settings, made))
    # Validation is skipped where the generators agree, as in the paper.
    differ = count // 4
    assert validation.status()["items"] == {"agreed": count - differ, "work": differ}
    key = validation.members.invite("validator")
    with served(validation) as address, hands(address, key) as person:
        while view := person.take():
            assert view["body"]["pages"] and len(view["body"]["annotations"]) == 2
            person.choose(view, better=0)
            person.submit(view)
    light, statement = export_to(validation, "ambignq", tmp_path / "light")
    full = export_to(validation, "ambignq-full", tmp_path / "full")[0]
    # It loads, it scores, and it counts as the paper counts.
    [checked] = run("data", "check", str(light))
    assert checked["ok"] and checked["count"] == count
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
    skipped = f"{count - differ} ({(count - differ) / count:.0%})"
    assert f"| validation skipped, annotations equal | {skipped} |" in said
    assert f"| one passed | {differ} ({differ / count:.0%}) |" in said
    sizes = [len(one.annotations[0].pairs) for one in questions]
    assert f"| … with 2 | {sizes.count(2)} ({sizes.count(2) / count:.0%}) |" in said
    searched = json.loads(full.read_text())
    assert all(len(row["used_queries"]) >= 2 for row in searched)
    assert all(row["viewed_doc_titles"] for row in searched)
    # The release is a project again, which says the same.
    again = Studio(import_project(tmp_path / "again", [light], "ambignq"))
    assert export_to(again, "ambignq", tmp_path / "twice")[0].read_bytes() == light.read_bytes()
    for studio in (generation, validation, again):
        studio.close()
    assert Project.open(tmp_path / "again").kind.name == "generate"
