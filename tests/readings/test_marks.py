"""The table of filled forms, against numbers that were worked out by hand, and what is wrong with a form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from whichsense.cli.evaluate import command
from whichsense.errors import BadInput
from whichsense.lab.evaluation.judging import (
    Form,
    JudgedQuestion,
    Marks,
    ReadingsResult,
    ShownReading,
    evaluate_forms,
)
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
    path: Path,
    marks: Sequence[str],
    *,
    empty: int = 1,
    reader: str = "",
    draw: str = "all",
    gold: Sequence[tuple[tuple[str, ...], ...]] = (),
) -> Path:
    """A form of two questions with two readings each, and some that got none."""
    readings = [reading(number, letters) for number, letters in enumerate(marks)]
    questions = []
    for start in range(0, len(readings), 2):
        own = tuple(readings[start : start + 2])
        questions.append(JudgedQuestion(f"q{start}", "Who?", (("Ann",),), own))
    for number in range(empty):
        questions.append(JudgedQuestion(f"empty{number}", "Who else?", (), ()))
    for place, names in enumerate(gold):
        questions[place] = replace(questions[place], gold=names)
    form = Form(
        dataset="mine",
        seed=5,
        draw=draw,
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


# Ann finds both readings of the first question correct, Ben one of each question's; the third question got none.
GOLD = (
    (("Anna", "ann 0"), ("Bob",), ("Ann 1",)),
    (("Ann 2",), ("Ann 3",)),
    (("Cid",), ("Dan",), ("Eve",)),
)


def test_judged_f_counts_what_is_missing(tmp_path: Path) -> None:
    paths = []
    for name, marks in (("ann", ANN), ("ben", BEN)):
        path = tmp_path / f"{name}.json"
        paths.append(write(path, marks, draw="ambiguous", gold=GOLD))
    result = evaluate_forms(paths)
    assert (result.draw, result.shown, result.gold) == ("ambiguous", 4, 8)
    # Ann: readings 0 and 1 are correct, and cover two of the eight. Ben: 0 and 3.
    for row in (*result.readers, result.mean):
        names = ("precision", "recall", "judged_f")
        assert [row.metrics[name] for name in names] == [2 / 4, 2 / 8, 4 / 12]
        for name in names:
            low, high = row.intervals[name]
            assert 0 <= low <= row.metrics[name] <= high <= 1
        low, high = row.intervals["recall"]
        assert low < high
    written = result.as_dict()
    assert written["gold"] == 8 and written["mean"]["metrics"]["judged_f"] == 4 / 12


def test_recall_and_judged_f_differ_where_a_correct_answer_is_not_gold(tmp_path: Path) -> None:
    # All four are correct; the first gives two gold readings, the others none.
    gold = ((("Ann 0",), ("X", "ann 0")), (("Y",),), (("Z",),))
    path = write(tmp_path / "a.json", ("yyyn",) * 4, draw="ambiguous", gold=gold)
    metrics = evaluate_forms([path]).mean.metrics
    assert metrics["precision"] == 1.0 and metrics["good"] == 0.0
    assert metrics["recall"] == 2 / 4
    assert metrics["judged_f"] == 2 * 4 / (4 + 4)


def test_silence_lowers_judged_f(tmp_path: Path) -> None:
    measured = []
    for empty in (0, 1, 4):
        gold = GOLD[:2] + (GOLD[2],) * empty
        path = tmp_path / f"{empty}.json"
        write(path, ANN, empty=empty, draw="ambiguous", gold=gold)
        metrics = evaluate_forms([path]).mean.metrics
        measured.append((metrics["precision"], metrics["recall"], metrics["judged_f"]))
    assert measured == [(0.5, 2 / (5 + 3 * n), 4 / (9 + 3 * n)) for n in (0, 1, 4)]


@pytest.mark.parametrize("draw", ["several", "all"])
def test_without_gold_readings_nothing_is_said_of_recall(draw: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", ANN, draw=draw, gold=GOLD)
    result = evaluate_forms([path])
    assert result.gold == 0 and "judged_f" not in result.mean.metrics
    printed = CliRunner().invoke(command, ["readings", "--filled", str(path)]).stdout
    assert "correct/q" in printed
    assert "precision" not in printed and "judged F" not in printed


@pytest.mark.parametrize("name, correct", [("sample", 0.85), ("handbook", 0.98)])
def test_the_forms_that_were_published_are_counted(name: str, correct: float) -> None:
    folder = Path(__file__).parents[2] / "docs/results/readings"
    result = evaluate_forms([folder / f"{name}-2601.{one}.json" for one in "AB"])
    assert result.draw == "several" and result.gold == 0
    assert result.mean.metrics["correct"] == pytest.approx(correct, abs=0.005)
    assert "recall" not in result.mean.metrics


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
    with pytest.raises(BadInput, match=r"3 of 16 marks .* first 'true' of question 1, reading 2\."):
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
        ({"schema": 7}, "not a form of schema 2 or 1"),
        ({"questions": {}}, "not a list"),
        ({"draw": "some"}, "one of: several, all, ambiguous"),
        ({"extra": 1}, "no field 'extra'"),
    ],
)
def test_files_that_are_no_forms(change: dict[str, Any], said: str, tmp_path: Path) -> None:
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


def test_the_command_prints_judged_f(tmp_path: Path) -> None:
    path = write(tmp_path / "ann.json", ANN, draw="ambiguous", gold=GOLD)
    arguments = ["readings", "--filled", str(path)]
    printed = CliRunner().invoke(command, arguments, catch_exceptions=False).stdout
    lines = printed.splitlines()
    assert ["ann", "4", "0.50", "0.25", "0.33"] in [line.split() for line in lines]
    # The labels' own line holds no more than it did.
    assert ["ann", "4", *("0.75 0.75 0.75 0.75 0.50 0.25 0.67".split())] in [
        line.split() for line in lines
    ]
    for start in ("precision: of the 4 ", "recall: of the 8 ", "judged F: twice "):
        assert sum(line.startswith(start) for line in lines) == 1


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
