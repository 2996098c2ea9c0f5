"""whichsense data, end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whichsense.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["data", *arguments])
    captured = capsys.readouterr()
    return int(caught.value.code or 0), captured.out, captured.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WHICHSENSE_DATA", str(tmp_path))
    pairs = [
        {"question": "Who dug in 1901?", "answer": ["A"]},
        {"question": "Who dug in 1902?", "answer": ["B"]},
    ]
    rows: list[dict[str, Any]] = [
        {
            "id": "1",
            "question": "Who dug?",
            "annotations": [{"type": "multipleQAs", "qaPairs": pairs}],
        },
        {
            "id": "2",
            "question": "Why?",
            "annotations": [{"type": "singleAnswer", "answer": ["fun"]}],
        },
    ]
    (tmp_path / "ambignq").mkdir()
    (tmp_path / "ambignq" / "dev.json").write_text(json.dumps(rows))
    return tmp_path


def test_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "list")
    assert status == 0
    assert f"{folder}/ambignq/dev.json" in out
    assert "asqa/dev " in out
    assert str(folder) in err
    _, out, _ = run(capsys, "list", "--json")
    places = {item["name"]: item["path"] for item in json.loads(out)}
    assert places["ambignq/dev"] == str(folder / "ambignq" / "dev.json")
    assert places["asqa/train"] is None


def test_info(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "info", "ambignq/dev")
    assert status == 0
    for part in (
        "CC BY-SA 3.0",
        "https://nlp.cs.washington.edu/ambigqa/",
        "@inproceedings{min2020ambigqa",
        "2,002",
    ):
        assert part in out
    _, out, _ = run(capsys, "info", "ambignq/dev", "--json")
    assert json.loads(out)["family"]["licence"] == "CC BY-SA 3.0"


def test_check_fails_with_status_1_and_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "check")
    assert status == 1
    assert "BAD  ambignq/dev" in out
    assert "wrong checksum" in out
    status, out, _ = run(capsys, "check", "--json", "ambignq/dev")
    assert status == 1
    assert json.loads(out)[0]["ok"] is False


def test_check_passes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"question": f"who {number}", "answer": ["A"]} for number in range(1800)]
    (folder / "NQ-open.efficientqa.dev.1.1.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    status, out, _ = run(capsys, "check", "nq_open/efficientqa_dev")
    assert status == 0
    assert (
        "ok   nq_open/efficientqa_dev: 1,800 records, official release, checksum not on record"
        in out
    )


def test_an_empty_folder_and_unknown_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whichsense.lab.datasets.catalog._PACKAGE", tmp_path)
    status, _, err = run(capsys, "check", "--data-dir", str(tmp_path))
    assert (status, "No dataset is in" in err) == (0, True)
    status, _, err = run(capsys, "info", "asqa/dve")
    assert status == 1
    assert "No dataset named 'asqa/dve'. Did you mean 'asqa/dev'?" in err
    here = ("--data-dir", str(tmp_path), "--out", str(tmp_path / "made.json"))
    status, _, err = run(capsys, "make-clarifications", "ambignq/dev", *here)
    assert (status, "whichsense data fetch ambignq/dev" in err) == (1, True)


def test_fetch_tells_what_is_there_and_what_cannot_be_fetched(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "fetch", "ambignq/dev")
    assert (status, out.strip()) == (0, str(folder / "ambignq" / "dev.json"))
    status, _, err = run(capsys, "fetch", "cambignq/train")
    assert status == 1
    assert "cannot be downloaded automatically" in err
