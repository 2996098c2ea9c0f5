"""whichsense ask: what it prints, what it refuses."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click import unstyle

from small_corpora import Corpus
from tiny_compact import exported, scored, tagged, trusted
from whichsense import index
from whichsense.cli import main
from whichsense.cli.ask import format_case
from whichsense.errors import WhichsenseError
from whichsense.models.compact.scene import Compact
from whichsense.types import Case, Clarification, Reading

for needed in ("onnx", "onnxruntime", "torch"):
    pytest.importorskip(needed)

Run = Callable[..., tuple[int, str, str]]
RECORDS = [
    ("Dune (1984 film)", "The film Dune of 1984 was directed by David Lynch. It is not a novel."),
    ("Dune (2021 film)", "The film Dune of 2021 was directed by Denis Villeneuve.\x1b[31m"),
    ("Dune (novel)", "Frank Herbert wrote Dune."),
]
QUESTION = "Who directed the film Dune?"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tagged(scored(exported(tmp_path_factory.mktemp("weights")), holds_over=-1e9))


@pytest.fixture
def run(
    weights: Path, make_corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Run:
    index.Index.build(make_corpus(RECORDS), tmp_path / "index")

    def call(*arguments: str, folder: Path = weights) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["ask", *arguments, "--index", str(tmp_path / "index"), "--weights", str(folder)])
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call


def test_readable(run: Run) -> None:
    status, out, _ = run(QUESTION, "--threshold", "1e-9")
    assert status == 0 and out.startswith(QUESTION)
    assert "  1. " in out and "  2. " in out and "%" in out and "[Dune (" in out
    assert "\x1b" not in out  # neither from the corpus nor, into a pipe, from us
    marked = [line for line in out.splitlines() if line.count("*") == 2]
    assert marked
    first = run(QUESTION, "--threshold", "1e-9", "--k", "1")[1]
    assert (
        "  2. " not in first and "reading" not in first.splitlines()[0]
    )  # the others are not shown, but there


def test_one_reading_is_called_one_whatever_a_detector_says(run: Run) -> None:
    for ambiguous in (False, True):
        reading = Reading(QUESTION, "David Lynch", confidence=0.5)
        case = Case(QUESTION, readings=(reading,), is_ambiguous=ambiguous)
        assert not case.is_tentative and not case.has_several_readings
        assert format_case(case).splitlines()[0].endswith("(one reading)")


def test_an_only_answer_that_is_not_probable_is_tentative() -> None:
    lynch = Reading(QUESTION, "David Lynch", confidence=0.49)
    case = Case(QUESTION, readings=(lynch,))
    assert case.is_tentative
    assert unstyle(format_case(case)) == (f"{QUESTION}\n  1. Perhaps: David Lynch  49%\n")
    both = Case(QUESTION, readings=(lynch, Reading(QUESTION, "Denis Villeneuve")))
    assert not both.is_tentative and "Perhaps" not in format_case(both)
    scored = Case(QUESTION, readings=(Reading(QUESTION, "David Lynch", (), -1.5),))
    assert not scored.is_tentative  # a log probability


def test_several_readings_begin_with_what_the_answer_depends_on() -> None:
    film = Reading(QUESTION, "David Lynch", label="the 1984 film")
    newer = Reading("Who directed the 2021 film?", "Denis Villeneuve", label="no")
    titled = Reading(QUESTION, "Ann Lee", source="Rumours")
    case = Case(QUESTION, readings=(film, newer, titled))
    lines = unstyle(format_case(case)).splitlines()
    assert lines[:2] == [QUESTION, "This depends on what is meant."]
    for told in ("the 1984 film", "Who directed the 2021 film?", "from “Rumours”"):
        assert f"     {told}" in lines
    asked = Clarification("Year", "In which year: 1984, or 2021?", "year", ())
    by_year = format_case(replace(case, clarification=asked))
    assert by_year.splitlines()[1] == "This depends on the year."


def test_signs_that_part_words_are_spaces(run: Run) -> None:
    assert run("Who  directed\nDune? ")[1].startswith("Who directed Dune?")


def test_json(run: Run) -> None:
    status, out, _ = run(QUESTION, "--threshold", "1e-9", "--json")
    told = json.loads(out)
    case = Case.from_json(told)
    assert status == 0 and case.readings and told["schema"] == 4
    for reading in told["readings"]:
        for span in reading["evidence"]:
            start, end = span["start"], span["end"]
            assert span["passage"]["text"][start:end] or start == end == 0


def test_thresholds_trade_precision_for_recall(run: Run) -> None:
    counts = [
        len(json.loads(run(QUESTION, "--threshold", t, "--json")[1])["readings"])
        for t in ("1e-9", "0.5", "1")
    ]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[2] == 1


def test_many_questions(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(f"\ufeff{QUESTION}\n\nWho wrote Dune?\n", encoding="utf-8")
    out = run("--file", str(path), "--json")[1]
    assert [json.loads(line)["question"] for line in out.splitlines()] == [
        QUESTION,
        "Who wrote Dune?",
    ]


@pytest.fixture
def shy(weights: Path, tmp_path: Path) -> Path:
    """A model that declines every question."""
    shutil.copytree(weights, tmp_path / "shy")
    return trusted(tmp_path / "shy", answerable_over=1.1)


def test_declined(run: Run, shy: Path) -> None:
    status, out, _ = run(QUESTION, folder=shy)
    assert status == 0 and "No answer found. Nearest passages:" in out and "Dune (2021 film)" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["  "], "empty"),
        (["x" * 20_000], "at most 10,000"),
        (["caf\udce9"], "UTF-8"),
        ([], "Give a QUESTION"),
        ([QUESTION, "--file", "x"], "Give a QUESTION"),
        (["--file", "/nowhere/at/all"], "There is no file"),
        (["--file", "/"], "is a folder"),
        ([QUESTION, "--threshold", "2"], "0<x<=1"),
        ([QUESTION, "--threshold", "0"], "0<x<=1"),
        ([QUESTION, "--threshold", "nan"], "more than 0 and at most 1"),
        (["--jsno"], "No such option '--jsno'"),
        (["--file", "x", "--jsno"], "No such option '--jsno'"),
    ],
)
def test_refused(arguments: list[str], said: str, run: Run) -> None:
    status, out, err = run(*arguments)
    assert status in (1, 2) and said in err and "Traceback" not in err and out == ""


@pytest.mark.parametrize(
    ("body", "said"), [(b"\xff\xfe\x00", "not valid UTF-8"), (b" \n\n", "holds no question")]
)
def test_files_that_cannot_be_read(body: bytes, said: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(body)
    status, _, err = run("--file", str(tmp_path / "bad.txt"))
    assert status == 1 and said in err


def test_a_line_that_cannot_be_asked_is_named_before_any_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(f"{QUESTION}\n\n" * 40 + "x" * 20_000 + f"\n{QUESTION}\n")
    status, out, err = run("--file", str(path))
    assert status == 1 and out == ""
    assert (
        err
        == f"error: '{path}', line 81: The question has 20,000 characters; at most 10,000 are read.\n"
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    status, out, err = run("-")
    assert (
        status == 1
        and out == ""
        and err.startswith("error: standard input, line 81: The question has")
    )


FILES = (
    "config.json",
    "early.onnx",
    "late.onnx",
    "verdict.onnx",
    "tagger.onnx.gz",
    "tagger-frame.onnx",
    "tagger.npz",
    "scorer.json",
    "trust.json",
    "embeddings.npz",
)
DAMAGED = [(name, body) for name in FILES for body in (b"", b"{}")]
DAMAGED += [("config.json", b"[]"), ("config.json", b'{"format": 4}')]


@pytest.mark.parametrize(("name", "body"), DAMAGED)
def test_damaged_weights(name: str, body: bytes, run: Run, weights: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(weights, broken)
    (broken / name).write_bytes(body)
    (tmp_path / "questions.txt").write_text(f"{QUESTION}\n" * 2)
    status, out, err = run("--file", str(tmp_path / "questions.txt"), folder=broken)
    assert status == 1 and out == "" and "again" in err  # before any is answered
    status, _, err = run(QUESTION, folder=broken)
    assert (
        status == 1
        and ("train it again" in err or "export the model again" in err)
        and err.count("\n") == 1
    )
    status, _, err = run(QUESTION, folder=tmp_path / "nowhere")
    assert status == 1 and "There is no compact model" in err


@pytest.mark.parametrize("name", ["verifier.onnx", "verifier-verdict.onnx"])
def test_a_damaged_verifier(name: str, weights: Path, tmp_path: Path) -> None:
    """It is needed where a rewrite is asked again."""
    broken = tmp_path / "broken"
    shutil.copytree(weights, broken)
    (broken / name).write_bytes(b"{}")
    with pytest.raises(WhichsenseError, match="again"):
        Compact(broken).load()


def test_no_threshold_brings_back_what_is_declined_and_the_highest_leaves_one(
    run: Run, shy: Path
) -> None:
    assert "No answer found" in run(QUESTION, "--threshold", "1e-9", folder=shy)[1]
    assert len(json.loads(run(QUESTION, "--threshold", "1", "--json")[1])["readings"]) == 1


def test_a_system_may_be_asked(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('provider = "compact"\ndepth = 2\nkeep = 1\nverifier.model = ""\n')
    status, _, err = run(QUESTION, "--system", str(path))
    assert status == 1 and "[verifier] needs a model" in err
    path.write_text('provider = "compact"\ndepth = 2\nkeep = 1\n')
    status, out, _ = run(QUESTION, "--system", str(path), "--json", "--threshold", "1e-9")
    case = Case.from_json(json.loads(out))
    assert status == 0 and case.readings and len(case.hits) == 1
    status, _, err = run(QUESTION, "--system", str(tmp_path / "none.toml"))
    assert status == 1 and "There is no file" in err


def test_a_question_that_gets_no_time(run: Run) -> None:
    status, out, _ = run(QUESTION, "--timeout", "0.000001")
    assert status == 0 and "(stopped: deadline)" in out
    assert "Stopped before it was answered" in out and "No answer" not in out
