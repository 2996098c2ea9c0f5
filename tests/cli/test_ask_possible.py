"""whichsense ask: what is merely possible is kept apart, folded, and shown on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from whichsense.cli import main
from whichsense.cli.ask import format_case
from whichsense.pipeline import Pipeline
from whichsense.testing import (
    FakeDisambiguator,
    FakeReader,
    FakeRetriever,
    FakeVerifier,
    passage_hit,
)
from whichsense.types import FOR_PEOPLE, Case, Reading, Span

QUESTION = "Who directed the film Dune?"
HITS = [
    passage_hit("David Lynch directed the film Dune of 1984.", "Dune (1984 film)"),
    passage_hit("In 1984 came a film by David Lynch.", "David Lynch"),
    passage_hit("Denis Villeneuve directed the film of 2021.", "Dune (2021 film)"),
    passage_hit("Neither Ann Lee\x1b[31m nor Bob Ray directed it.", "Rumours\x1b[31m"),
]
ANSWERS = {
    "1984": "David Lynch",
    "2021": "Denis Villeneuve",
    "Neither": "Ann Lee",
    "nor": "Bob Ray",
}
Ask = Callable[..., str]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Ask a pipeline of fakes that keeps apart what has less than some confidence. Lynch has 2 of 5 spans, others 1."""

    def call(probable: float, *arguments: str) -> str:
        def load(system: str, index: object, **settings: Any) -> Pipeline:
            return Pipeline(
                FakeRetriever(HITS),
                reader=FakeReader(ANSWERS),
                disambiguator=FakeDisambiguator(),
                verifier=FakeVerifier(probable),
                policy=replace(FOR_PEOPLE, threshold=settings["threshold"]),
            )

        monkeypatch.setattr("whichsense.systems.load", load)
        with pytest.raises(SystemExit) as stopped:
            main(["ask", QUESTION, "--system", "fakes.toml", *arguments])
        assert not stopped.value.code
        return capsys.readouterr().out

    return call


def test_what_is_merely_possible_is_folded(ask: Ask) -> None:
    out = ask(0.3)
    assert out.splitlines()[0] == QUESTION
    assert "  1. Perhaps: David Lynch  40%" in out
    assert "  + 3 more that are merely possible (--all shows them)\n" in out
    assert "Villeneuve" not in out and "Nearest" not in out
    assert "possible" not in ask(0.0)
    one_apart = Case(
        QUESTION,
        readings=(Reading(QUESTION, "a"), Reading(QUESTION, "b")),
        possible=(Reading(QUESTION, "c"),),
    )
    text = format_case(one_apart)
    assert "probable" not in text.splitlines()[0]
    assert "  + 1 more that is merely possible (--all shows it)\n" in text


def test_all_shows_what_is_merely_possible_numbered_on(ask: Ask) -> None:
    lines = ask(0.3, "--all").splitlines()
    heading = lines.index("Merely possible:")
    assert lines[heading + 1 : heading + 3] == [
        "  2. Denis Villeneuve  20%",
        "     Who directed the film Dune (Dune (2021 film))?",
    ]
    assert "  4. Bob Ray  20%" in lines and not any("+ 3" in line for line in lines)
    assert ask(0.0, "--all") == ask(0.0)


def test_a_reading_without_a_rewrite_shows_its_source(ask: Ask) -> None:
    lines = ask(0.3, "--all").splitlines()
    place = lines.index("  3. Ann Lee  20%")
    assert lines[place + 1] == "     from “Rumours[31m”"
    assert "*Ann Lee*" in lines[place + 2]


def test_k_limits_only_what_is_probable(ask: Ask) -> None:
    assert "  2. " not in ask(0.0, "--k", "1")
    case = Case.from_json(json.loads(ask(0.3, "--k", "1", "--json")))
    assert len(case.readings) == 1 and len(case.possible) == 3
    assert "  4. Bob Ray  20%" in ask(0.3, "--k", "1", "--all")


def test_json_carries_what_is_possible_with_its_source(ask: Ask) -> None:
    plain = json.loads(ask(0.3, "--json"))
    answers = [reading["answer"] for reading in plain["possible"]]
    assert answers == ["Denis Villeneuve", "Ann Lee", "Bob Ray"]
    unwritten = plain["possible"][1]
    assert unwritten["question"] == QUESTION
    assert unwritten["source"] == HITS[3].passage.title
    assert unwritten["asked_again"] is None
    all_of_it = json.loads(ask(0.3, "--json", "--all"))
    assert all_of_it["possible"] == plain["possible"]


def test_where_no_answer_is_probable_the_best_one_is_tentative(ask: Ask) -> None:
    lines = ask(0.9).splitlines()
    assert lines[:2] == [QUESTION, "  1. Perhaps: David Lynch  40%"]
    assert "  + 3 more that are merely possible (--all shows them)" in lines
    lines = ask(0.9, "--all").splitlines()
    assert "  2. Denis Villeneuve  20%" in lines


def test_a_threshold_takes_the_place_of_the_providers(ask: Ask) -> None:
    case = Case.from_json(json.loads(ask(0.9, "--threshold", "0.1", "--json")))
    assert len(case.readings) == 4 and case.possible == ()
    case = Case.from_json(json.loads(ask(0.1, "--threshold", "0.3", "--json")))
    assert len(case.readings) == 1 and len(case.possible) == 3


def test_an_only_probable_reading_is_told_from_what_is_possible() -> None:
    reading = Reading(QUESTION, "David Lynch", confidence=0.8)
    possible = (Reading(QUESTION, "Ann Lee", confidence=0.1),)
    text = format_case(Case(QUESTION, readings=(reading,), possible=possible))
    assert text.splitlines()[0].endswith("(one reading is probable)")


def test_an_answer_in_a_title_is_marked_there() -> None:
    passage = HITS[1].passage
    reading = Reading("Who made it?", "david lynch", (Span(passage, 0, 0),), 0.9)
    shown = format_case(Case("Who made it?", readings=(reading,)))
    assert f"{passage.text}  [*David Lynch*]" in shown
