"""Backup and restore: whole or not there, resumed after a kill at any flush and rename, while a service writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_service import QUESTION, RECORDS
from test_access import bearer

from whichsense.cli import command
from whichsense.errors import BadInput, WhichsenseError
from whichsense.index import Index, check
from whichsense.serve.backup import back_up, restore
from whichsense.serve.settings import KeyFile
from whichsense.serve.state import FILE, Traces
from whichsense.types import Case, ServedCase

Start = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a state and an index."""
    KeyFile(tmp_path / "state").add("page", ["ask"])
    traces = Traces(tmp_path / "state" / FILE)
    for number in range(5):
        assert traces.add(ServedCase(str(number), Case(f"Who is {number}?")), "")
    traces.close()
    Index.build(RECORDS, tmp_path / "wiki").close()
    return tmp_path


def is_sound(state: Path, index: Path) -> bool:
    """Whether all is there."""
    traces = Traces(state / FILE)
    questions = {row.question for row in traces.summaries()}
    traces.close()
    keys = [key.name for key in KeyFile(state).active().values()]
    opened = Index.open(index)
    found = opened.search(QUESTION)
    opened.close()
    return len(questions) == 5 and keys == ["page"] and check(index).sound and found != []


def killed_at(moment: int, work: Callable[[], object]) -> bool:
    """Work in a process of its own that is killed just before its moment-th flush or rename; False where it came to its
    end before."""
    process = os.fork()
    if process:
        _, status = os.waitpid(process, 0)
        return os.WIFSIGNALED(status)
    count = 0

    def armed(step: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(*arguments, **options)

        return wrapper

    for name in ("fsync", "replace", "rename"):
        setattr(os, name, armed(getattr(os, name)))
    try:
        work()
    finally:
        os._exit(0)


def test_a_backup_is_whole_or_not_there(home: Path) -> None:
    folder, indexes = home / "backup", {"wiki": home / "wiki"}

    def work() -> object:
        return back_up(folder, home / "state", indexes)

    moment = 1
    while killed_at(moment, work):
        if not folder.exists():
            work()  # resumes
        whole = json.loads((folder / "backup.json").read_text())["files"]
        assert {name.split("/")[0] for name in whole} == {"state", "indexes"}
        there = [path for path in folder.rglob("*") if path.is_file()]
        assert len(there) == len(whole) + 1, "nothing else is left"
        shutil.rmtree(folder)
        moment += 1
    assert moment > 20
    restore(folder, home / "other", {"wiki": home / "again"})
    assert is_sound(home / "other", home / "again")


def test_what_is_restored_is_whole_or_not_there(home: Path) -> None:
    back_up(home / "backup", home / "state", {"wiki": home / "wiki"})
    state, indexes = home / "new" / "state", {"wiki": home / "new" / "wiki"}

    def work() -> object:
        return restore(home / "backup", state, indexes)

    moment = 1
    while killed_at(moment, work):
        for place, holds in ((state, FILE), (indexes["wiki"], "manifest.json")):
            assert not place.exists() or (place / holds).exists()
        work()  # resumes
        assert work() == work(), "once more changes nothing"
        assert {path.name for path in (home / "new").iterdir()} == {"state", "wiki"}
        shutil.rmtree(home / "new")
        moment += 1
    assert moment > 20
    assert is_sound(state, indexes["wiki"])


def test_nothing_is_written_over(home: Path) -> None:
    back_up(home / "backup", home / "state", {})
    with pytest.raises(BadInput, match="there already"):
        back_up(home / "backup", home / "state", {})
    KeyFile(home / "used").add("other", ["ask"])
    with pytest.raises(BadInput, match="holds something else"):
        restore(home / "backup", home / "used", {})
    with pytest.raises(BadInput, match="no index 'wiki'"):
        restore(home / "backup", home / "new", {"wiki": home / "x"})
    for damage in (lambda path: path.write_bytes(b"x"), lambda path: path.unlink()):
        damage(home / "backup" / "state" / "keys.json")
        with pytest.raises((WhichsenseError, OSError)):
            restore(home / "backup", home / "new", {})
        assert not (home / "new").exists()
    with pytest.raises(BadInput, match="no whole backup"):
        restore(home / "state", home / "new", {})


def test_a_service_is_saved_while_it_answers(start: Start, home: Path, index_folder: str) -> None:
    keys = KeyFile(home / "live")
    key = keys.add("page", ["ask"], rate=1_000_000)
    client = start(state=home / "live")
    answered: list[str] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            body = {"question": QUESTION}
            answer = client.post("/v1/ask", json=body, headers=bearer(key))
            answered.append(answer.json()["id"])

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        while len(answered) < 3:
            pass
        before = list(answered)
        arguments = ["--index", f"wiki={index_folder}", "--state", str(home / "live")]
        saved = ["backup", str(home / "saved"), *arguments]
        done = CliRunner().invoke(command, saved)
        assert done.exit_code == 0, done.output
    finally:
        ended.set()
        asking.join()
    arguments = ["--index", f"wiki={home / 'back'}", "--state", str(home / "restored")]
    done = CliRunner().invoke(command, ["restore", str(home / "saved"), *arguments])
    assert done.exit_code == 0 and "restored" in done.output, done.output
    again = start(state=home / "restored", index=str(home / "back"))
    for case in before:
        assert again.get(f"/v1/cases/{case}", headers=bearer(key)).status_code == 200
