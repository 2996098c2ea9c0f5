"""From a recipe to a table of systems, through the commands alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

from whichsense.cli import command


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_train_predict_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    short = ("--set", "train.epochs=3", "--set", "train.evaluate_every=0")
    trained = json.loads(
        run("train", "extractive-reader-each-ambignq", "--tiny", *short, "--out", "run", "--json")
    )
    assert (
        trained["model"] == "run/model"
        and trained["steps"] == 3
        and trained["metrics"]["f1_ans"] >= 0
    )
    assert "step" in run(
        "train", "extractive-reader-each-ambignq", "--tiny", *short, "--out", "run"
    )  # it is done
    Path("mine.toml").write_text('keep = 3\nreader = { model = "run/model", threshold = 0.2 }\n')
    options = ("--dataset", "sample/questions", "--limit", "5", "--method", "bm25")
    assert "5 questions" in run(
        "predict", "--system", "mine.toml", *options, "--out", "predictions/mine.json"
    )
    found = json.loads(Path("predictions/mine.json").read_text())
    assert len(found) == 5 and all(
        answers and isinstance(answers[0], str) for answers in found.values()
    )
    about = json.loads(Path("predictions/mine.json.about.json").read_text())
    assert about["provenance"]["system"]["method"] == "bm25" and about["seconds_per_question"] > 0
    run(
        "retrieve",
        "sample/questions",
        "--limit",
        "5",
        "--k",
        "100",
        "--method",
        "bm25",
        "--out",
        "hits.jsonl.zst",
    )
    kept = (
        "--dataset",
        "sample/questions",
        "--limit",
        "5",
        "--hits",
        "hits.jsonl.zst",
        "--batch",
        "3",
    )
    run("predict", "--system", "mine.toml", *kept, "--out", "predictions/kept.json")
    assert json.loads(Path("predictions/kept.json").read_text()) == found
    Path("systems.toml").write_text(
        'dataset = "sample/questions"\nlimit = 5\n[[systems]]\nfile = "mine.toml"\n'
    )
    question = "Who played the Joker?"
    case = json.loads(run("ask", question, "--system", "mine.toml", "--json"))
    assert case["question"] == question and len(case["hits"]) == 3
    table = run("evaluate", "systems.toml")
    assert table.splitlines()[-2].startswith("mine") and "F1ans" in table


def test_mistakes_are_told(tmp_path: Path) -> None:
    both = CliRunner().invoke(
        command, ["predict", "--dataset", "sample/questions", "--out", str(tmp_path / "x")]
    )
    assert both.exit_code == 2 and "--system FILE.toml or --provider NAME" in both.output
