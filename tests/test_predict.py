"""Prediction writes the official form, goes on after a real kill, and refuses to mix systems."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from patience import wait_for
from whichsense.errors import BadInput
from whichsense.lab.evaluation.prediction import beside, is_of, predict
from whichsense.lab.evaluation.scoring import score
from whichsense.types import Case, Reading


class Echo:
    """Answers with the length of the question until it fails or hangs; records what it was asked."""

    def __init__(self, fail_at: int = 0, hang_at: int = 0) -> None:
        self.fail_at, self.hang_at, self.asked = fail_at, hang_at, 0

    def run(self, questions: Sequence[str]) -> list[Case]:
        self.asked += len(questions)
        if self.fail_at and self.asked >= self.fail_at:
            raise RuntimeError("broken")
        if self.hang_at and self.asked >= self.hang_at:
            time.sleep(3600)
        cases = []
        for question in questions:
            first = Reading(f"{question} (long)", str(len(question)))
            readings = (first, Reading(question, "é"))
            possible = (Reading(question, "never predicted"),)
            cases.append(Case(question, readings=readings, possible=possible))
        return cases


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "dev.json"
    one = {"type": "singleAnswer", "answer": ["6"]}
    path.write_text(
        json.dumps(
            [
                {"id": f"q{n}", "question": f"Who {n:02}?"[:6], "annotations": [one]}
                for n in range(60)
            ]
        )
    )
    return path


def test_official_form(questions: Path, tmp_path: Path) -> None:
    done = predict(Echo(), str(questions), tmp_path / "out.json", system={"name": "echo"}, limit=20)
    found = json.loads((tmp_path / "out.json").read_text())
    assert list(found) == [f"q{n}" for n in range(20)]
    assert found["q3"] == [
        {"question": "Who 03 (long)", "answer": "6"},
        {"question": "Who 03", "answer": "é"},
    ]
    assert done.questions == 20 and not list(tmp_path.glob("*.partial"))
    facts = json.loads(beside(tmp_path / "out.json").read_text())
    assert (
        facts["provenance"]["system"] == {"name": "echo"}
        and facts["provenance"]["data"]["dev.json"]
    )
    assert is_of(tmp_path / "out.json", {"name": "echo"}, str(questions))
    assert not is_of(tmp_path / "out.json", {"name": "other"}, str(questions))
    gold = tmp_path / "gold.json"
    gold.write_text(json.dumps(json.loads(questions.read_text())[:20]))
    assert score("ambignq", gold, tmp_path / "out.json").metrics["f1_ans"] == pytest.approx(2 / 3)


def test_the_questions_are_not_written_over(questions: Path) -> None:
    before = questions.read_bytes()
    with pytest.raises(BadInput, match="Give another --out"):
        predict(Echo(), str(questions), questions)
    assert questions.read_bytes() == before


class Sure:
    """Says how probable its first answer is; of the others not, or by a logarithm."""

    def run(self, questions: Sequence[str]) -> list[Case]:
        cases = []
        for question in questions:
            readings = []
            for value in (0.62541, 0.0, -4.2):
                readings.append(Reading(question, str(value), confidence=value))
            cases.append(Case(question, readings=tuple(readings)))
        return cases


def test_confidence_is_told_where_there_is_one(questions: Path, tmp_path: Path) -> None:
    predict(Sure(), str(questions), tmp_path / "out.json", system={"name": "sure"}, limit=2)
    first, *others = json.loads((tmp_path / "out.json").read_text())["q1"]
    assert first["confidence"] == 0.6254 and not any("confidence" in one for one in others)


def test_answers_only(questions: Path, tmp_path: Path) -> None:
    predict(Echo(), str(questions), tmp_path / "out.json", rewrites=False, limit=2)
    assert json.loads((tmp_path / "out.json").read_text()) == {"q0": ["6", "é"], "q1": ["6", "é"]}


def test_goes_on_after_a_failure(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    with pytest.raises(RuntimeError):
        predict(Echo(fail_at=40), str(questions), out)
    partial = tmp_path / "out.json.partial"
    partial.write_bytes(
        partial.read_bytes() + b'{"id": "q33", "predic'
    )  # as a kill in mid-write leaves it
    rest = Echo()
    predict(rest, str(questions), out)
    assert rest.asked == 60 - 32 and len(json.loads(out.read_text())) == 60


def test_goes_on_after_a_kill(questions: Path, tmp_path: Path) -> None:
    out, partial = tmp_path / "out.json", tmp_path / "out.json.partial"
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_predict import Echo, predict\n"
    code += f"predict(Echo(hang_at=30), {str(questions)!r}, {str(out)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    wait_for(lambda: partial.exists() and partial.read_bytes().count(b"\n") > 8)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL and not out.exists()
    kept = partial.read_bytes().count(b"\n") - 1
    rest = Echo()
    predict(rest, str(questions), out)
    assert 8 <= kept < 60 and rest.asked == 60 - kept
    assert len(json.loads(out.read_text())) == 60


def test_another_system_does_not_go_on(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        predict(Echo(fail_at=20), str(questions), tmp_path / "out.json", system={"name": "a"})
    with pytest.raises(BadInput, match="another system"):
        predict(Echo(), str(questions), tmp_path / "out.json", system={"name": "b"})
    with pytest.raises(BadInput, match="another system"):
        predict(Echo(), str(questions), tmp_path / "out.json", system={"name": "a"}, limit=30)
