"""Clarification questions made from gold readings, and the data command that writes them."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from whichsense.cli import command
from whichsense.lab.datasets import Annotation, ClarifiedQuestion, QAPair, Question
from whichsense.lab.evaluation.components import gold_case, make_clarifications

FILM = QAPair(("Ann Ray",), ("Who wrote the film Dune?",))
BOOK = QAPair(("Bo Finch",), ("Who wrote the book Dune?",))
PLAY = QAPair(("Cy Moor", "Moor"), ("Who wrote the play Dune?",))
AGAIN = QAPair(("moor",), ("Who wrote Dune for the stage?",))


def question(*annotations: tuple[QAPair, ...]) -> Question:
    every = tuple(Annotation("multipleQAs", pairs) for pairs in annotations)
    return Question("7", "Who wrote Dune?", every)


def test_records_have_the_form_of_cambignq() -> None:
    (record,) = make_clarifications([question((FILM, BOOK))])
    assert record["clarification_question"].endswith("the film, or the book?")
    assert record["options"] == ["the film", "the book"]
    answers = [item["answer"] for item in record["clarification_answers"]]
    assert answers == [["Ann Ray"], ["Bo Finch"]]


def test_questions_without_several_readings_are_left_out() -> None:
    single = Question("1", "Who?", (Annotation("singleAnswer", (FILM,)),))
    assert make_clarifications([single, Question("2", "When?")]) == []


def test_readings_of_the_same_id() -> None:
    bare = ClarifiedQuestion("7", "Who wrote Dune?", (), clarification="Which one: a?")
    assert gold_case(bare) is None
    annotated = question((FILM, PLAY), (BOOK, AGAIN))
    case = gold_case(bare, {"7": annotated})
    assert case is not None
    assert [reading.answer for reading in case.readings] == ["Ann Ray", "Cy Moor", "Bo Finch"]


def test_the_command_writes_records_and_where_they_are_from(tmp_path: Path) -> None:
    pairs = []
    for pair in (FILM, BOOK):
        pairs.append({"question": pair.question, "answer": list(pair.answers)})
    annotation = {"type": "multipleQAs", "qaPairs": pairs}
    row = {"id": "7", "question": "Who wrote Dune?", "annotations": [annotation]}
    source = tmp_path / "questions.json"
    source.write_text(json.dumps([row]), encoding="utf-8")
    out = tmp_path / "silver.json"
    arguments = ["data", "make-clarifications", str(source), "--out", str(out)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    (record,) = json.loads(out.read_text(encoding="utf-8"))
    assert record["options"] == ["the film", "the book"]
    origin = json.loads((tmp_path / "silver.json.provenance.json").read_text("utf-8"))
    assert list(origin["data"]) == ["questions.json"]
