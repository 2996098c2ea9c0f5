"""Statistics: counted by hand on small data, drawn as well-formed pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from whichsense.lab.evaluation.report import to_html, to_svg
from whichsense.lab.evaluation.stats import Statistics, Table, statistics


def put(folder: Path, name: str, rows: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows))


def single(*answers: str) -> dict[str, Any]:
    return {"type": "singleAnswer", "answer": list(answers)}


def multi(**answers: str) -> dict[str, Any]:
    pairs = [
        {"question": f"Who dug it in {year[1:]}?", "answer": [answer]}
        for year, answer in answers.items()
    ]
    return {"type": "multipleQAs", "qaPairs": pairs}


def table(found: Statistics, start: str) -> Table:
    return next(table for table in found.tables if table.title.startswith(start))


def value(found: Statistics, start: str, row: str) -> Any:
    return next(cells[1] for cells in table(found, start).rows if cells[0] == row)


@pytest.fixture
def ambignq(tmp_path: Path) -> Statistics:
    notes = [
        [single("Ann")],
        [multi(y1901="Ann", y1902="Bob"), multi(y1901="Ann", y1902="Bob", y1903="Cid")],
        [single("Ann"), multi(y1901="Ann", y1902="Bob")],
        [multi(y1="A", y2="B", y3="C", y4="D", y5="E")],
    ]
    rows = [
        {"id": str(n), "question": "Who dug it?", "annotations": given}
        for n, given in enumerate(notes)
    ]
    put(tmp_path, "ambignq/dev.json", rows)
    return statistics("ambignq/dev", tmp_path)


def test_ambignq_table_2_takes_the_minimum(ambignq: Statistics) -> None:
    ours, paper = table(ambignq, "Answers per question").rows
    assert ours == ("dev", 4, 50.0, 25.0, 0.0, 25.0)
    assert paper == ("paper, dev", 2002, 49, 23, 14, 13)


def test_edits_count_once_for_a_question_and_group_numbers(ambignq: Statistics) -> None:
    chart = next(chart for chart in ambignq.charts if "frequent edits" in chart.title)
    assert chart.bars == (
        ("+####", pytest.approx(200 / 3)),
        ("+#", pytest.approx(100 / 3)),
    )
    assert value(ambignq, "Edits", "% covered by the top 100") == 100
    kinds = dict(
        next(chart for chart in ambignq.charts if chart.title == "Kinds of edits").bars
    )
    assert (
        kinds["adds a number"],
        kinds["only adds words"],
        kinds["replaces words"],
    ) == (100, 100, 0)


def test_agreement_of_answers(ambignq: Statistics) -> None:
    assert value(ambignq, "Agreement", "questions with two annotations or more") == 2
    # said: several, several, and one, several; each pair in both orders
    assert value(ambignq, "Agreement", "kappa: one answer or several") == pytest.approx(
        (0.5 - 0.625) / (1 - 0.625)
    )
    # 2 of 2 and 3: F1 0.8 both ways; 1 of 1 and 2: F1 2/3 both ways
    assert value(
        ambignq, "Agreement", "F1ans of each annotation against each other"
    ) == pytest.approx(100 * (0.8 + 2 / 3) / 2)


def test_the_full_release_also_tells_how_annotators_searched(tmp_path: Path) -> None:
    search = {"query": "dig", "results": []}
    row = {
        "id": "1",
        "question": "Who dug it?",
        "annotations": [multi(y1901="Ann", y1902="Bob")],
        "nq_answer": ["Ann"],
    }
    put(
        tmp_path,
        "ambignq-full/dev.json",
        [{**row, "viewed_doc_titles": ["A", "B", "A"], "used_queries": [search] * 9}],
    )
    charts = {
        chart.title: dict(chart.bars)
        for chart in statistics("ambignq-full/dev", tmp_path).charts
    }
    assert charts["Pages viewed (figure 2a)"]["2"] == 100
    assert charts["Search queries (figure 2b)"]["6+"] == 100


def test_situated_questions_have_edits_and_conditions_have_none(tmp_path: Path) -> None:
    row = {"id": 1, "question": "who leads", "edited_question": "who leads as of 1999", "date": "1999",
           "answer": ["Ann"], "any_answer": ["Ann"]}  # fmt: skip
    (tmp_path / "situatedqa").mkdir()
    (tmp_path / "situatedqa" / "temp.dev.jsonl").write_text(json.dumps(row))
    charts = {
        chart.title: dict(chart.bars)
        for chart in statistics("situatedqa/temp.dev", tmp_path).charts
    }
    assert charts["Kinds of edits"]["adds a number"] == 100
    conditions = [
        {"condition": "once", "groundtruth": ["Ann did."], "citations": []}
    ] * 2
    put(
        tmp_path,
        "condambigqa/open.json",
        [{"id": "c", "question": "Who?", "properties": conditions, "ctxs": []}],
    )
    found = statistics("condambigqa/open", tmp_path)
    assert table(found, "Answers per question").rows == (("open", 1, 0, 100, 0, 0),)
    assert not [chart for chart in found.charts if "edits" in chart.title]


def test_cambignq(tmp_path: Path) -> None:
    base = {
        "question": "Who?",
        "dqs": ["Who in 1?", "Who in 2?"],
        "clarification_answers": [["A"], ["B"]],
    }
    asked = [
        "Which version: the old film, or the book?",
        "Which version: film or play?",
        "Which day: Monday, or Friday?",
    ]
    put(
        tmp_path,
        "cq_dev.json",
        [
            {**base, "id": str(n), "clarification_question": q}
            for n, q in enumerate(asked)
        ],
    )
    found = statistics("cambignq/dev", tmp_path)
    ours, paper = table(found, "Clarification questions").rows
    assert ours == ("dev", 3, pytest.approx(18 / 3), 2, 2, pytest.approx(9 / 6))
    assert paper == ("paper, dev", 461, 15.9, 2.5, 3.3, 3.8)
    assert value(found, "Categories", "most frequent (table 10)") == "version, day"
    assert value(found, "Categories", "that occur once") == 1
    assert found.charts[0].bars == (("version", 2), ("day", 1))
    assert found.charts[1].bars == (("2", 100),)


def test_asqa(tmp_path: Path) -> None:
    row = {
        "sample_id": "1",
        "ambiguous_question": "Who dug it?",
        "qa_pairs": [
            {
                "question": "Who first?",
                "short_answers": ["Ann"],
                "context": "Ann dug a hole.",
            },
            {
                "question": "Who then?",
                "short_answers": ["Bob"],
                "context": "No context provided",
            },
        ],
        "annotations": [
            {"long_answer": "Ann dug, then Bob.", "knowledge": []},
            {
                "long_answer": "Ann dug, then Bob.",
                "knowledge": [{"content": "Bob too.", "wikipage": "Bob"}],
            },
        ],
    }
    put(tmp_path, "asqa/dev.json", [row])
    found = statistics("asqa/dev", tmp_path)
    assert table(found, "Size").rows[0] == ("dev", 1, 2)
    assert value(found, "Lengths", "words in a long answer") == 4
    assert value(found, "Evidence", "% of answer tokens in it") == 100
    assert value(found, "Evidence", "% of tokens in that") == pytest.approx(
        100 * (2 / 4 + 3 / 4) / 2
    )
    assert value(found, "Agreement", "ROUGE-L of two answers") == pytest.approx(100)


def test_charts_are_well_formed_and_escape_what_they_show(
    ambignq: Statistics, tmp_path: Path
) -> None:
    root = ElementTree.fromstring(to_svg(ambignq))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    asked = {
        "clarification_question": "Which <b> & 'c': a, or b?",
        "clarification_answers": [["A"], ["B"]],
    }
    put(
        tmp_path,
        "cq_dev.json",
        [{"id": "1", "question": "Who?", "dqs": ["x", "y"], **asked}],
    )
    found = statistics("cambignq/dev", tmp_path)
    assert "<b>" not in to_svg(found)
    ElementTree.fromstring(to_svg(found))
    page = to_html(found)
    assert "Which <b>" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), (
        "nothing is loaded from elsewhere"
    )


def test_statistics_of_plain_questions_and_of_nothing(tmp_path: Path) -> None:
    put(
        tmp_path,
        "webquestions/train.json",
        [{"qId": "w", "qText": "who dug?", "answers": ["Ann", "Anna"]}],
    )
    put(tmp_path, "webquestions/val.json", [])
    found = statistics("webquestions/train", tmp_path)
    assert value(found, "In general", "aliases of an answer") == 2
    assert found.release == "unknown"
    assert (
        value(statistics("webquestions/val", tmp_path), "In general", "questions") == 0
    )
    json.dumps(found.to_json())
