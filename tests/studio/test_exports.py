"""Exports and imports: identical there and back, whatever the text is; and data that the laboratory reads."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from test_kinds import ITEM, MARKS, OPTIONS, READINGS

from conftest import PEOPLE, Make, annotate, client, served
from whichsense.errors import BadInput
from whichsense.lab.datasets import load, load_questions
from whichsense.lab.datasets.records import ClarifiedQuestion, FullQuestion, LongQuestion
from whichsense.studio import Studio, adjudication, reports
from whichsense.studio.exports import default_format, export_files, export_to
from whichsense.studio.following import next_rows
from whichsense.studio.imports import import_project

HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "\u202e\u05d8\u05e7\u05e1\u05d8\u202c \u2066right to left\u2069",
    "nul \x00 and \x1b[31m bell \x07",
    "🙂 👩‍👩‍👧 e\u0301 \ufeff half \ud800",
    "x" * 2**20,
    '=cmd|" /C calc"!A0 ${jndi:ldap://x} {{7*7}} %s \\" \' ; DROP TABLE events',
]


def hostile_values(kind: str) -> list[dict[str, Any]]:
    """Forms of a kind, each with another text."""
    values: list[dict[str, Any]] = []
    for text in HOSTILE:
        if kind == "generate":
            pairs = [{"question": f"{one}?", "answers": [text, "b"]} for one in (text, "c")]
            values.append({"outcome": "several", "pairs": pairs, "remark": text})
        elif kind == "clarification":
            options = [{**one, "text": f"{n} {text}"} for n, one in enumerate(OPTIONS)]
            values.append({"action": "revise", "lead": f"Which {text}", "options": options})
        elif kind == "long-answer":
            pieces = [{"content": text, "source": text}]
            values.append({"text": f"Ann Lee, Bo Ray: {text}", "knowledge": pieces})
        else:
            values.append({"marks": [MARKS, MARKS], "remark": text})
    return values


def hostile_project(make: Make, kind: str, url: str = "") -> Studio:
    rows = []
    for number, text in enumerate(HOSTILE):
        row = {**ITEM, "id": f"{number} {text[:99]}", "question": f"Who won {text}?"}
        row["readings"] = [
            {**one, "rewrite": text, "answer": "x", "source": "", "title": text, "sentence": text,
             "start": 0, "end": 0, "confidence": 0.5, "asked_again": None}
            for one in READINGS
        ]  # fmt: skip
        rows.append(row if kind != "generate" else {"id": row["id"], "question": row["question"]})
    studio = make(kind, rows, overlap=1, database=url)
    ann = studio.members.all()[0] if studio.members.all() else PEOPLE[0]
    for number, value in enumerate(hostile_values(kind), 1):
        studio.take(ann, number)
        if studio.kind.searches:
            studio.search(ann, number, f"cup {HOSTILE[number - 1][:500]}".replace("\ud800", ""), 3)
            hit = studio.index.search("cup", 1)[0]
            studio.read_page(ann, number, hit.passage.id)
        studio.save(ann, number, 0, value)
        studio.submit(ann, number, 1)
    return studio


def imported(folder: Path, files: list[Path], form: str, url: str = "") -> Studio:
    return Studio(import_project(folder, files, form, url))


KIND_OF = {
    "ambignq": "generate",
    "ambignq-full": "generate",
    "cambignq": "clarification",
    "asqa": "long-answer",
    "readings": "readings",
}


@pytest.mark.parametrize("form", KIND_OF)
def test_an_import_exports_the_same(form: str, make: Make, tmp_path: Path) -> None:
    studio = hostile_project(make, KIND_OF[form])
    files = export_to(studio, form, tmp_path / "out")[:-1]
    again = imported(tmp_path / "again", files, form)
    try:
        assert data_of(again, form) == data_of(studio, form)
        assert len(reports.agreement(again)["rows"]) == len(HOSTILE)
    finally:
        again.close()


def data_of(studio: Studio, form: str) -> dict[str, bytes]:
    files = export_files(studio, form)
    assert files.pop("statement.md").startswith(b"# Data statement: ")
    return files


def test_everything_comes_back_with_every_event(
    make: Make, tmp_path: Path, database_url: str
) -> None:
    studio = hostile_project(make, "generate")
    studio.take(PEOPLE[1], 1)  # nothing left: overlap 1
    [file, _] = export_to(studio, "jsonl", tmp_path / "out")
    again = imported(tmp_path / "again", [file], "jsonl", database_url)
    try:
        assert data_of(again, "jsonl") == data_of(studio, "jsonl")
        assert data_of(again, "ambignq-full") == data_of(studio, "ambignq-full")
        assert again.status()["annotations"] == studio.status()["annotations"]
    finally:
        again.close()


def test_the_laboratory_reads_an_export(make: Make, tmp_path: Path) -> None:
    studio = make("generate", overlap=2)
    pairs = [
        {"question": "In 1990?", "answers": ["Ann Lee", "Lee"]},
        {"question": "In 1991?", "answers": ["Bo"]},
    ]
    annotate(studio, PEOPLE[0], 1, {"outcome": "several", "pairs": pairs})
    annotate(studio, PEOPLE[1], 1, {"outcome": "single", "answers": ["Bo"]})
    annotate(studio, PEOPLE[0], 2, {"outcome": "nothing", "why_nothing": "subjective"})
    light, statement = export_to(studio, "ambignq", tmp_path)
    [question] = load_questions(str(light))[0]
    assert question.answers == (("Ann Lee", "Lee"), ("Bo",)) and not question.is_ambiguous
    assert "2 annotators" in statement.read_text() and "F1ans" in statement.read_text()
    full = export_to(studio, "ambignq-full", tmp_path)[0]
    assert [type(one) for one in load(str(full))] == [FullQuestion]


def test_other_releases_are_read_by_path(make: Make, tmp_path: Path) -> None:
    asked = make("clarification", [ITEM])
    annotate(asked, PEOPLE[0], 1, {"action": "revise", "lead": "In which year", "options": OPTIONS})
    path = export_to(asked, "cambignq", tmp_path)[0]
    [clarified] = load(str(path), ClarifiedQuestion)
    assert clarified.clarification == "In which year: 1990, or 1991?"
    assert clarified.options == ("1990", "1991") and clarified.is_ambiguous
    told = make("long-answer", [ITEM], overlap=2)
    for who in PEOPLE[:2]:
        annotate(told, who, 1, {"text": "Ann Lee won in 1990 and Bo Ray in 1991."})
    path = export_to(told, "asqa", tmp_path)[0]
    [long] = load(str(path), LongQuestion)
    assert len(long.long_answers) == 2 and load_questions(str(path))[0] == [long]


def test_what_is_decided_is_what_is_exported(make: Make) -> None:
    studio = make("generate", overlap=2)
    for who, answer in zip(PEOPLE, ("Ann Lee", "Bo Ray"), strict=False):
        annotate(studio, who, 1, {"outcome": "single", "answers": [answer]})
    judge = PEOPLE[2]
    adjudication.decide(studio, judge, 1, 0, accept="ben")
    [row] = json.loads(data_of(studio, "ambignq")["ambignq.json"])
    assert row["annotations"] == [{"type": "singleAnswer", "answer": ["Bo Ray"]}]
    with pytest.raises(BadInput, match="Export it as ambignq"):
        export_files(studio, "asqa")
    assert default_format(studio.kind) == "ambignq"


def test_over_http_for_owners(make: Make) -> None:
    studio = make("generate")
    annotate(studio, PEOPLE[0], 1, {"outcome": "single", "answers": ["Ann Lee"]})
    owner, jo = (studio.members.invite(role, role) for role in ("owner", "adjudicator"))
    with served(studio) as address, client(address, owner) as o, client(address, jo) as j:
        assert j.get("/v1/export/ambignq").status_code == 403
        assert o.get("/v1/export/exe").status_code == 404
        answer = o.get("/v1/export/ambignq")
        assert answer.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(BytesIO(answer.content)) as archive:
            assert archive.namelist() == ["ambignq.json", "statement.md"]
        assert o.get("/v1/export/ambignq").content == answer.content


def test_a_chain_from_generation_to_preference(make: Make) -> None:
    studio = make("generate", overlap=2)
    pairs = [
        {"question": "In 1990?", "answers": ["Ann Lee"]},
        {"question": "In 1991?", "answers": ["Bo"]},
    ]
    both = {"outcome": "several", "pairs": pairs}
    for who in PEOPLE[:2]:
        annotate(studio, who, 1, both)
    annotate(studio, PEOPLE[0], 2, both)
    annotate(studio, PEOPLE[1], 2, {"outcome": "single", "answers": ["Ann Lee"]})
    annotate(studio, PEOPLE[0], 3, both)  # incomplete: it waits
    rows = next_rows(studio, "validate")
    assert [(row["id"], row["agreed"]) for row in rows] == [("q1", True), ("q2", False)]
    validation = make("validate", rows)
    assert validation.status()["items"] == {"agreed": 1, "work": 1}
    view = validation.take(PEOPLE[2])
    assert view is not None and view["body"]["id"] == "q2"
    annotate(validation, PEOPLE[2], 2, {"verdict": "better", "better": 0})
    made = json.loads(data_of(validation, "ambignq")["ambignq.json"])
    assert [len(row["annotations"]) for row in made] == [2, 1]
    statement = export_files(validation, "ambignq")["statement.md"].decode()
    assert "| validation skipped, annotations equal | 1 (50%) |" in statement
    assert "| … with 2 | 2 (100%) |" in statement
    asked = make("clarification", next_rows(validation, "clarification"))
    annotate(asked, PEOPLE[0], 1, {"action": "revise", "lead": "In which year", "options": OPTIONS})
    [row] = next_rows(asked, "preference")
    assert row["clarification"] == "In which year: 1990, or 1991?"
    with pytest.raises(BadInput, match="comes preference"):
        next_rows(asked, "compare")
