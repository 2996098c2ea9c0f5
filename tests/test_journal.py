"""A journal is held by one run at a time, goes on behind its last whole line, and tells what is wrong with it."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from whichsense.errors import BadInput
from whichsense.jobs.limits import silent
from whichsense.lab.datasets import Question
from whichsense.lab.evaluation.prediction import Journal, beside, is_of, predict
from whichsense.lab.evaluation.scoring import score
from whichsense.types import Case, Reading

ABOUT = {"dataset": "mine", "system": {"name": "echo", "depth": 3}}
QUESTIONS = [Question(f"q{n}", f"Who {n}?") for n in range(4)]


def done(out: Path, count: int, questions: Sequence[Question] = QUESTIONS) -> list[str]:
    """Go on with a journal by some questions: which were they?"""
    asked: list[str] = []
    with Journal(out, ABOUT, questions) as journal:
        for some in journal.batches(1, silent):
            if len(asked) == count:
                break
            asked += [question.id for question in some]
            journal.add(some[0], {"n": len(asked)})
    return asked


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    with Journal(out, ABOUT, QUESTIONS) as journal:
        journal.add(QUESTIONS[0], {"n": 1})
        with pytest.raises(
            BadInput, match=r"out\.json\.partial' is being written by another run\. Wait"
        ):
            done(out, 1)
        journal.add(QUESTIONS[1], {"n": 2})
    assert done(out, 9) == ["q2", "q3"]  # nothing of the first was lost
    assert [path.name for path in tmp_path.iterdir()] == ["out.json.partial"]


def test_a_killed_run_holds_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code = f"import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_journal import *\n"
    code += f"with Journal(Path({str(out)!r}), ABOUT, QUESTIONS): print('held', flush=True); time.sleep(3600)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        with pytest.raises(BadInput, match="another run"):
            done(out, 1)
        process.send_signal(signal.SIGKILL)
    assert done(out, 1) == ["q0"]


def test_a_file_that_another_run_removed_in_between_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = tmp_path / "out.json.partial"
    monkeypatch.setattr(fcntl, "flock", lambda file, flags: partial.unlink())
    with pytest.raises(BadInput, match="another run"):
        done(tmp_path / "out.json", 1)


@pytest.mark.parametrize("error", [ModuleNotFoundError("fcntl"), OSError("no locks here")])
def test_without_locks_it_works_too(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: object, flags: int) -> None:
        raise error

    monkeypatch.setattr(fcntl, "flock", flock)
    assert done(tmp_path / "out.json", 9) == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize("half", [b"", b'{"id": "q1", "n', b'{"id": "q1", "n": 2}', b"\xc3"])
def test_half_a_line_is_cut_off(half: bytes, tmp_path: Path) -> None:
    out, partial = tmp_path / "out.json", tmp_path / "out.json.partial"
    done(out, 1)
    partial.write_bytes(partial.read_bytes() + half)
    assert done(out, 9) == ["q1", "q2", "q3"]
    assert [json.loads(line).get("id") for line in partial.read_bytes().splitlines()] == [
        None,
        "q0",
        "q1",
        "q2",
        "q3",
    ]
    partial.write_bytes(b'{"dataset": "mi')
    assert done(out, 1) == ["q0"]


@pytest.mark.parametrize(
    "line", [b'{"id": "q1", "n"', b"\0\0\0\0", b"\xff", b"3", b'{"n": 2}', b"", b"[" * 100_000]
)
def test_a_damaged_line_is_told(line: bytes, tmp_path: Path) -> None:
    out, partial = tmp_path / "out.json", tmp_path / "out.json.partial"
    done(out, 2)
    head, first, second = partial.read_bytes().splitlines()
    damaged = b"\n".join([head, first, line, second, b""])
    partial.write_bytes(damaged)
    with pytest.raises(BadInput, match=r"out\.json\.partial', line 3: damaged\. Remove that line"):
        done(out, 1)
    assert partial.read_bytes() == damaged
    partial.write_bytes(b"\n".join([head, first, second, b""]))
    assert done(out, 1) == ["q2"]
    partial.write_bytes(line + b"\n")
    with pytest.raises(
        BadInput, match=r"line 1: damaged\. Remove the file|begun by another system"
    ):
        done(out, 1)


def test_what_cannot_be_done_is_told_before_it_begins(tmp_path: Path) -> None:
    for path in (tmp_path, Path(".")):
        with pytest.raises(BadInput, match=r"is a folder\. Choose a file"):
            done(path, 1)
    with pytest.raises(
        BadInput, match=r"Several questions have the id 'q0'\. Give each an id of its own"
    ):
        done(tmp_path / "out.json", 1, [*QUESTIONS, Question("q0", "Who?")])
    with pytest.raises(BadInput, match="Several questions"):
        Journal(None, ABOUT, QUESTIONS * 2)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"cannot be written: .*\. Give another --out"):
        done(tmp_path / "file" / "out.json", 1)


class Halves:
    """Answers with half a surrogate pair, which JSON can hold and UTF-8 cannot; gives up at the third question."""

    def __init__(self, until: int) -> None:
        self.until = until

    def run(self, questions: Sequence[str]) -> list[Case]:
        self.until -= 1
        if self.until < 0:
            raise RuntimeError("broken")
        cases = []
        for question in questions:
            reading = Reading(question + "é", "\udc00")
            cases.append(Case(question, readings=(reading,)))
        return cases


def test_half_a_surrogate_pair_is_written_as_it_was(tmp_path: Path) -> None:
    path, out = tmp_path / "dev.json", tmp_path / "out.json"
    one = {"type": "singleAnswer", "answer": ["\ud800"]}
    path.write_text(
        json.dumps(
            [{"id": f"q{n}", "question": "Who \ud800?", "annotations": [one]} for n in range(4)]
        )
    )
    with pytest.raises(RuntimeError):
        predict(Halves(2), str(path), out, system={"name": "\ud800"}, batch=1)
    predict(Halves(2), str(path), out, system={"name": "\ud800"}, batch=1)
    assert json.loads(out.read_bytes())["q3"] == [{"question": "Who \ud800?é", "answer": "\udc00"}]
    assert b"\\udc00" in out.read_bytes() and "é" in out.read_text(encoding="utf-8")
    assert is_of(out, {"name": "\ud800"}, str(path)) and beside(out).read_text(encoding="utf-8")
    assert score("ambignq", path, out).metrics["f1_ans"] == 0.0
