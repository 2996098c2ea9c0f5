"""The table of filled forms, against numbers that were worked out by hand, and what is wrong with a form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from whichsense.cli.evaluate import command
from whichsense.errors import BadInput
from whichsense.evaluation.readings.form import (
    Form,
    JudgedQuestion,
    Marks,
    ShownReading,
)
from whichsense.evaluation.readings.result import ReadingsResult, evaluate_forms
from whichsense.types import AskedAgain

# Confidence, and the own answer's probability when asked again, of the four readings of two questions.
SCORES = ((0.9, 0.95), (0.4, 0.6), (0.6, None), (0.1, 0.2))
# The marks of the four readings: answer, true, apart, fluent.
ANN = ("yyyy", "yyyn", "nnyy", "yyny")
BEN = ("yyyy", "ynyn", "nnyy", "yyyy")


def reading(number: int, letters: str) -> ShownReading:
    confidence, own = SCORES[number]
    given = {"y": True, "n": False, "-": None}
    return ShownReading(
        rewrite=f"Who came {number}?",
        answer=f"Ann {number}",
        source="",
        title="Title",
        sentence="",
        start=0,
        end=0,
        confidence=confidence,
        asked_again=None if own is None else AskedAgain(own, 0.1, 0.5),
        marks=Marks(*(given[letter] for letter in letters)),
    )


def write(
    path: Path, marks: Sequence[str], *, empty: int = 1, reader: str = ""
) -> Path:
    """A form of two questions with two readings each, and some that got none."""
    readings = [reading(number, letters) for number, letters in enumerate(marks)]
    questions = []
    for start in range(0, len(readings), 2):
        own = tuple(readings[start : start + 2])
        questions.append(JudgedQuestion(f"q{start}", "Who?", (("Ann",),), own))
    for number in range(empty):
        questions.append(JudgedQuestion(f"empty{number}", "Who else?", (), ()))
    form = Form(
        dataset="mine",
        seed=5,
        several=False,
        available=9,
        asked=3,
        one_reading=0,
        no_reading=empty,
        questions=tuple(questions),
        reader=reader,
        provenance={"commit": "abc"},
    )
    path.write_text(json.dumps(form.to_json()))
    return path


@pytest.fixture
def result(tmp_path: Path) -> ReadingsResult:
    ann = write(tmp_path / "a.json", ANN, reader="Ann")
    return evaluate_forms([ann, write(tmp_path / "ben.json", BEN)])


def test_shares_by_reader_and_their_mean(result: ReadingsResult) -> None:
    names = ("answer", "true", "apart", "fluent", "correct", "good")
    expected = {
        "Ann": (0.75, 0.75, 0.75, 0.75, 0.5, 0.25),
        "ben": (0.75, 0.5, 1.0, 0.75, 0.5, 0.5),
        "mean": (0.75, 0.625, 0.875, 0.75, 0.5, 0.375),
    }
    rows = (*result.readers, result.mean)
    assert [row.name for row in rows] == list(expected)
    for row in rows:
        assert row.shown == 4
        assert tuple(row.metrics[name] for name in names) == expected[row.name]
        # Two correct readings in three questions, of which one got no reading.
        assert row.metrics["correct_per_question"] == pytest.approx(2 / 3)
        for name, (low, high) in row.intervals.items():
            assert low <= row.metrics[name] <= high
    assert result.provenance["form"] == {"commit": "abc"}


def test_intervals_are_over_questions(tmp_path: Path) -> None:
    # All readings of one question are correct, none of the other: a quarter of the resamples hold only one of them.
    form = write(tmp_path / "a.json", ("yyyy", "yyyy", "nyyy", "nyyy"), empty=0)
    intervals = evaluate_forms([form]).mean.intervals
    assert intervals["correct"] == (0.0, 1.0)
    assert intervals["correct_per_question"] == (0.0, 2.0)
    assert intervals["fluent"] == (1.0, 1.0)


def test_agreement_of_two_readers(result: ReadingsResult) -> None:
    expected = {
        "answer": (1.0, 1.0),
        "true": (0.75, 0.5),
        "apart": (0.75, 0.0),
        "fluent": (1.0, 1.0),
        "correct": (0.5, 0.0),
        "good": (0.75, 0.5),
    }
    table = {name: (one.equal, one.kappa) for name, one in result.agreement.items()}
    assert table == expected


def test_agreement_of_more_readers_is_the_mean_over_pairs(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.json", ANN), write(tmp_path / "b.json", BEN)]
    paths.append(write(tmp_path / "c.json", ANN))
    agreement = evaluate_forms(paths).agreement["true"]
    assert agreement.equal == pytest.approx((0.75 + 1 + 0.75) / 3)
    assert agreement.kappa == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert evaluate_forms(paths[:1]).agreement == {}


def test_how_well_scores_predict_a_correct_reading(result: ReadingsResult) -> None:
    confidence = result.areas["confidence"]
    # Correct .9 .4 .9 .1 against .6 .1 .4 .6: 10 of 16; with right answers against .1 .4: 6 of 8.
    assert (confidence.readings, confidence.all) == (4, 0.625)
    assert confidence.right_answer == 0.75
    again = result.areas["asked_again"]
    # Correct .95 .6 .95 .2 against .2 .6.
    assert (again.readings, again.all) == (3, 0.75)


def test_bands_of_confidence(result: ReadingsResult) -> None:
    bands = {}
    for band in result.bands:
        bands[band.low, band.high] = (band.shown, band.metrics["apart"])
    assert bands == {(0.5, None): (2, 1.0), (0.3, 0.5): (1, 1.0), (0.0, 0.15): (1, 0.5)}


def test_marks_that_are_missing_are_counted(tmp_path: Path) -> None:
    form = write(tmp_path / "a.json", ("yyyy", "y--n", "nnyy", "yyn-"))
    with pytest.raises(
        BadInput, match=r"3 of 16 marks .* first 'true' of question 1, reading 2\."
    ):
        evaluate_forms([form])


def test_forms_of_other_questions_or_readings_are_refused(tmp_path: Path) -> None:
    ann = write(tmp_path / "a.json", ANN)
    longer = write(tmp_path / "b.json", BEN, empty=2)
    with pytest.raises(BadInput, match=r"has 4 questions, not 3\. Give only forms"):
        evaluate_forms([ann, longer])
    body = json.loads(ann.read_text())
    body["questions"][1]["readings"][0]["rewrite"] = "Who went?"
    other = tmp_path / "c.json"
    other.write_text(json.dumps(body))
    with pytest.raises(BadInput, match=r"c\.json' is not the form of .* question 2 "):
        evaluate_forms([ann, other])


@pytest.mark.parametrize(
    "change, said",
    [
        ({"schema": 7}, "not a form of schema 1"),
        ({"questions": {}}, "not a list"),
        ({"extra": 1}, "no field 'extra'"),
    ],
)
def test_files_that_are_no_forms(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.json", ANN)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BadInput, match=rf"is not a form.*{said}.*Draw one with"):
        evaluate_forms([path])


def test_a_form_without_readings_has_nothing_to_count(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="shows no reading"):
        evaluate_forms([write(tmp_path / "a.json", ())])


def test_the_command_prints_the_table(tmp_path: Path) -> None:
    ann = write(tmp_path / "ann.json", ANN)
    ben = write(tmp_path / "ben.json", BEN)
    out = tmp_path / "result.json"
    arguments = ["readings", "--filled", str(ann), str(ben), "--out", str(out)]
    printed = CliRunner().invoke(command, arguments, catch_exceptions=False).stdout
    rows = [line.split() for line in printed.splitlines()]
    assert ["mean", "4", "0.75", "0.62", "0.88", "0.75", "0.50", "0.38", "0.67"] in rows
    assert ["kappa", "1.00", "0.50", "0.00", "1.00", "0.00", "0.50"] in rows
    assert ["confidence", "4", "0.62", "0.75"] in rows
    as_json = CliRunner().invoke(command, [*arguments, "--json"]).stdout
    written = json.loads(out.read_text())
    assert json.loads(as_json)["mean"] == written["mean"]


def test_the_command_says_what_to_give(tmp_path: Path) -> None:
    form = write(tmp_path / "form.json", ANN)
    before = form.read_text()
    for arguments, said in (
        ([], "Give --dataset NAME"),
        ([str(form)], "or --filled FORMS"),
        (["--filled", str(form), "--dataset", "x"], "either --dataset NAME or"),
        (["--filled", str(form), "--out", str(form)], "Give another --out"),
    ):
        done = CliRunner().invoke(command, ["readings", *arguments])
        assert done.exit_code == 2 and said in done.output
    assert form.read_text() == before
