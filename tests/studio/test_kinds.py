"""Forms of every kind: what is complete, and what is wrong with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whichsense.errors import BadConfig, BadInput, DamagedData, NoIndex
from whichsense.studio import KINDS, Project, Settings, create_project
from whichsense.studio.items import load_items

READINGS = [
    {"question": "Who won the cup in 1990?", "answers": ["Ann Lee", "Lee"]},
    {"question": "Who won the cup in 1991?", "answers": ["Bo Ray"]},
]
PAIRS = [{"question": one["question"], "answers": one["answers"]} for one in READINGS]
SINGLE = {"outcome": "single", "answers": ["Ann Lee"]}
OPTIONS = [{"text": "1990", "reading": 0}, {"text": "1991", "reading": 1}]
MARKS = {"answer": True, "true": True, "apart": False, "fluent": True}
TEXTS = ["Ann Lee won in 1990 and Bo Ray in 1991.", "It was Ann Lee."]
ITEM: dict[str, Any] = {
    "id": "cup",
    "question": "Who won the cup?",
    "readings": READINGS,
    "annotations": [SINGLE, {"outcome": "several", "pairs": PAIRS}],
    "clarification": "In which year: 1990, or 1991?",
    "answers": TEXTS,
}
COMPLETE: dict[str, dict[str, Any]] = {
    "generate": {"outcome": "several", "pairs": PAIRS},
    "validate": {"verdict": "better", "better": 1},
    "clarification": {"action": "revise", "lead": "In which year", "options": OPTIONS},
    "preference": {"choice": "clarification", "reason": "It is quicker to read one answer."},
    "long-answer": {"text": TEXTS[0]},
    "compare": {
        **dict.fromkeys(("overall", "comprehensive", "ambiguity"), "first"),
        "fluent": "tie",
        "found": [{"answers": ["Ann Lee", "Bo Ray"]}, {"answers": ["Ann Lee", ""]}],
    },
    "readings": {"marks": [MARKS, MARKS]},
}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("generate", {"outcome": None}, "missing"),
    ("generate", {"pairs": [PAIRS[0], PAIRS[0]]}, "duplicate"),
    (
        "generate",
        {"pairs": [PAIRS[0], {"question": "who won THE cup", "answers": ["x"]}]},
        "unchanged",
    ),
    (
        "generate",
        {"pairs": [PAIRS[0], {"question": "Who won it?", "answers": ["lee"]}]},
        "shared-answer",
    ),
    ("generate", {"pairs": [PAIRS[0], {"question": "Who won it?", "answers": [" "]}]}, "empty"),
    ("generate", {"outcome": "nothing"}, "missing"),
    ("validate", {"better": 2}, "missing"),
    ("validate", {"verdict": "new", **SINGLE}, "not-new"),
    ("clarification", {"lead": "The year"}, "form"),
    ("clarification", {"options": [OPTIONS[0]]}, "no-option"),
    (
        "clarification",
        {"options": [{"text": "year 1990", "reading": 0}, OPTIONS[1]]},
        "repeats-category",
    ),
    ("clarification", {"options": [OPTIONS[0], {"text": "1991", "reading": 0}]}, "tied-twice"),
    ("clarification", {"options": [OPTIONS[0], {"text": "1991"}]}, "untied"),
    ("clarification", {"excluded": [1]}, "excluded"),
    (
        "clarification",
        {"options": [{"text": "1990, or 1989", "reading": 0}, OPTIONS[1]]},
        "unreadable",
    ),
    ("preference", {"reason": "Yes."}, "short"),
    ("long-answer", {"text": TEXTS[1]}, "missing-answer"),
    ("long-answer", {"knowledge": [{"content": "It began in 1980."}]}, "no-source"),
    ("compare", {"found": [{"answers": ["Cem"]}]}, "not-there"),
    ("readings", {"marks": [MARKS, {"answer": True}]}, "missing"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_complete_form_has_no_finding(kind: str) -> None:
    assert KINDS[kind].check(ITEM, COMPLETE[kind]) == []


@pytest.mark.parametrize(("kind", "changed", "rule"), WRONG)
def test_what_is_wrong_has_a_reason(kind: str, changed: dict[str, Any], rule: str) -> None:
    findings = KINDS[kind].check(ITEM, {**COMPLETE[kind], **changed})
    assert rule in [one.rule for one in findings]
    assert all(one.reason.endswith((".", "”")) or one.where for one in findings)


def test_a_missing_answer_can_be_said_in_other_words() -> None:
    value = {"text": "Ann Lee, and a year later Mr. Ray.", "covered": [1]}
    assert KINDS["long-answer"].check(ITEM, value) == []


def test_a_draft_is_taken_apart() -> None:
    drafted = {**ITEM, "draft": "As of which year: 2017, or 2018?"}
    shown = KINDS["clarification"].shown(drafted, "ann")
    assert shown["parsed"] == {"lead": "As of which year", "options": ["2017", "2018"]}


def test_sides_are_an_annotators_own_and_are_turned_back() -> None:
    kind = KINDS["compare"]
    orders = {tuple(kind.shown(ITEM, f"ann{n}")["answers"]) for n in range(20)}
    assert len(orders) == 2
    for n in range(20):
        shown = kind.shown(ITEM, f"ann{n}")
        better = "first" if shown["answers"][0] == TEXTS[0] else "second"
        value = {"overall": better, "reason": "first"}
        assert kind.unswapped(ITEM, f"ann{n}", value) == {"overall": "first", "reason": "first"}


def test_annotators_see_no_gold_and_no_score(tmp_path: Path) -> None:
    reading = {
        **dict.fromkeys(("rewrite", "answer", "source", "title", "sentence"), "x"),
        **{"start": 0, "end": 0, "confidence": 0.9, "asked_again": None, "marks": {}},
    }
    form = {
        "rubric": {},
        "dataset": "d",
        "questions": [{"id": "1", "question": "Who?", "gold": [["x"]], "readings": [reading]}],
    }
    (tmp_path / "form.json").write_text(json.dumps(form))
    item = load_items(tmp_path / "form.json", KINDS["readings"])[0]
    shown = KINDS["readings"].shown(item.body, "ann")
    assert set(shown) == {"id", "question", "readings"}
    assert "confidence" not in shown["readings"][0]


def test_rows_of_released_datasets(tmp_path: Path) -> None:
    ambignq = {
        "id": "7",
        "question": "Who won?",
        "annotations": [
            {"type": "singleAnswer", "answer": ["Ann"]},
            {
                "type": "multipleQAs",
                "qaPairs": [{"question": "Who won in 1990?|x", "answer": ["Ann"]}] * 2,
            },
        ],
        "viewed_doc_titles": ["Cup"],
    }
    asqa = {
        "ambiguous_question": "Who won?",
        "qa_pairs": [
            {
                "question": "Who won in 1990?",
                "short_answers": ["Ann"],
                "context": "Ann won.",
                "wikipage": "Cup",
            }
        ],
    }
    (tmp_path / "a.json").write_text(json.dumps([ambignq]))
    (tmp_path / "b.json").write_text(json.dumps({"-3": asqa}))
    first = load_items(tmp_path / "a.json", KINDS["validate"])[0].body
    assert first["annotations"][0] == {"outcome": "single", "answers": ["Ann"]}
    assert first["pages"] == ["Cup"]
    second = load_items(tmp_path / "b.json", KINDS["long-answer"])[0].body
    assert second["id"] == "-3"
    assert second["readings"][0]["context"] == {"title": "Cup", "text": "Ann won."}
    with pytest.raises(BadInput, match="'annotations'"):
        load_items(tmp_path / "b.json", KINDS["validate"])


def test_a_project_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("Who won?\n\nWho lost?\n")
    with pytest.raises(BadConfig, match="Did you mean 'generate'"):
        Settings(kind="generat")
    project = create_project(tmp_path / "cup", Settings(kind="generate"), tmp_path / "q.txt")
    assert Project.open(project.folder) == project
    with pytest.raises(BadInput, match="project already"):
        create_project(tmp_path / "cup", Settings(kind="generate"), tmp_path / "q.txt")
    with pytest.raises(BadInput, match="studio new"):
        Project.open(tmp_path)
    text = (tmp_path / "cup" / "project.toml").read_text()
    (tmp_path / "cup" / "project.toml").write_text(text.replace("overlap", "overlp"))
    with pytest.raises(BadConfig, match="overlap"):
        Project.open(tmp_path / "cup")


def test_what_qualifies_is_right_itself(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("Who won?\n")
    row = {"question": "Who lost?", "value": {"outcome": "single", "answers": []}}
    (tmp_path / "gold.jsonl").write_text(json.dumps(row))
    qualifying = {"gold": tmp_path / "gold.jsonl"}
    with pytest.raises(BadInput, match="answers: The answer is empty"):
        create_project(
            tmp_path / "a", Settings(kind="generate"), tmp_path / "q.txt", qualifying=qualifying
        )


BROKEN: list[tuple[str, Any, str]] = [
    ("clarification", {"readings": "abc"}, "'readings' must be a list"),
    ("clarification", {"readings": [{"question": "Who?"}]}, "no field 'answers'"),
    ("readings", {"readings": [{"answer": "x"}]}, "no field 'rewrite'"),
    ("readings", {}, "No question has a reading to judge"),
    ("validate", {"annotations": [{"type": "x"}]}, "no annotation in AmbigNQ's form"),
    ("validate", {"annotations": [{"outcome": "several", "pairs": 5}]}, "This is not a list"),
]


@pytest.mark.parametrize(("kind", "row", "told"), BROKEN)
def test_a_broken_row_is_named(tmp_path: Path, kind: str, row: Any, told: str) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "Who won?", **row}))
    with pytest.raises((BadInput, DamagedData), match=told):
        create_project(tmp_path / "a", Settings(kind=kind), tmp_path / "q.jsonl")


def test_what_a_project_needs_is_looked_for_at_once(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("Who won?\n")
    missing = Settings(kind="generate", index=str(tmp_path / "nowhere"))
    with pytest.raises(NoIndex, match="nowhere"):
        create_project(tmp_path / "a", missing, tmp_path / "q.txt")
    away = Settings(kind="generate", database="postgresql://nobody@127.0.0.1:1/x")
    with pytest.raises(BadConfig, match="cannot be opened"):
        create_project(tmp_path / "a", away, tmp_path / "q.txt")
    assert not (tmp_path / "a").exists()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "studio.sqlite").write_text("no database " * 100)
    with pytest.raises(BadConfig, match="not a database"):
        create_project(tmp_path / "a", Settings(kind="generate"), tmp_path / "q.txt")
    with pytest.raises(BadInput, match="Suggestions are an object"):
        create_project(
            tmp_path / "b",
            Settings(kind="generate"),
            tmp_path / "q.txt",
            suggested=[1],  # type: ignore[arg-type]
        )
