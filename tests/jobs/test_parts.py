"""Parts on disk: an interrupted run resumes with identical results, damage is named, and a second run is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from whichsense.errors import BadInput
from whichsense.jobs.limits import Stopped
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.workers import run_forked

NUMBERS = range(10)
CODEC: PartCodec[list[int]] = PartCodec(
    ".json", lambda value: json.dumps(value).encode(), json.loads
)


def squares(folder: Path, **about: Any) -> Parts[int, list[int]]:
    return Parts(folder, "squares", {"power": 2, **about}, size=3, codec=CODEC)


def square(part: Part[int]) -> list[int]:
    return [number * number for number in part.items]


class Counted:
    """Squares numbers, and fails at the part that it is told."""

    def __init__(self, fail_at: int = -1) -> None:
        self.fail_at = fail_at
        self.parts: list[int] = []

    def __call__(self, part: Part[int]) -> list[int]:
        if part.number == self.fail_at:
            raise RuntimeError("broken")
        self.parts.append(part.number)
        return square(part)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("processes", [1, 2])
def test_parts_are_worked_out_and_read(tmp_path: Path, processes: int) -> None:
    parts = squares(tmp_path)
    shares: list[tuple[float | None, int]] = []
    assert not parts.is_complete
    parts.complete(
        NUMBERS,
        square,
        executor=run_forked(processes),
        progress=lambda done, count: shares.append((done, count)),
    )
    assert parts.is_complete
    assert list(parts) == [[0, 1, 4], [9, 16, 25], [36, 49, 64], [81]]
    assert sorted(content(tmp_path)) == [
        "squares-00000.json",
        "squares-00001.json",
        "squares-00002.json",
        "squares-00003.json",
        "squares.json",
    ]
    assert shares[-1] == (1.0, 10) and len(shares) == 4


def test_what_was_written_is_not_worked_out_again(tmp_path: Path) -> None:
    squares(tmp_path / "whole").complete(NUMBERS, square)
    parts = squares(tmp_path / "resumed")
    with pytest.raises(RuntimeError, match="broken"):
        parts.complete(NUMBERS, Counted(fail_at=2))
    assert not parts.is_complete
    again = Counted()
    parts.complete(NUMBERS, again)
    assert again.parts == [2, 3]
    assert content(tmp_path / "resumed") == content(tmp_path / "whole")
    once_more = Counted()
    parts.complete(NUMBERS, once_more)
    assert not once_more.parts


def test_no_items_are_complete_at_once(tmp_path: Path) -> None:
    parts = squares(tmp_path)
    parts.complete([], square)
    assert parts.is_complete and list(parts) == []


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_parts import *
def work(part):
    if part.number == 2:
        Path(sys.argv[1], ".squares-00002.json.1.tmp").write_text("[3")
        print("held", flush=True)
        sys.stdin.read()
    return square(part)
squares(Path(sys.argv[1])).complete(NUMBERS, work)
"""


def killed_run(folder: Path) -> subprocess.Popen[str]:
    """A run in another process, in the middle of its third part."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), str(Path(__file__).parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdout.readline() == "held\n"
    return process


def test_killed_in_the_middle_it_resumes_with_the_same_results(tmp_path: Path) -> None:
    squares(tmp_path / "whole").complete(NUMBERS, square)
    folder = tmp_path / "killed"
    with killed_run(folder) as process:
        process.send_signal(signal.SIGKILL)
    again = Counted()
    squares(folder).complete(NUMBERS, again)
    assert again.parts == [2, 3]
    assert content(folder) == content(tmp_path / "whole")  # nor is half a part left


def test_a_second_run_beside_is_refused_or_waits(tmp_path: Path) -> None:
    with killed_run(tmp_path) as process:
        with pytest.raises(BadInput, match=r"being written by another run\. Wait"):
            squares(tmp_path).complete(NUMBERS, square)
        assert process.stdin
        process.stdin.close()  # now it goes on
        waiting = Counted()
        squares(tmp_path).complete(NUMBERS, waiting, wait=True)
    assert not waiting.parts and squares(tmp_path).is_complete
    assert not (tmp_path / "squares.started.json").exists()


@pytest.mark.parametrize("finished", [False, True])
def test_another_fingerprint_is_refused(tmp_path: Path, finished: bool) -> None:
    work = Counted(fail_at=-1 if finished else 2)
    if finished:
        squares(tmp_path).complete(NUMBERS, work)
    else:
        with pytest.raises(RuntimeError):
            squares(tmp_path).complete(NUMBERS, work)
    before = content(tmp_path)
    with pytest.raises(BadInput, match=r"other inputs or settings\. Choose another"):
        squares(tmp_path, sign="-").complete(NUMBERS, square)
    assert content(tmp_path) == before
    # Tuples are lists in JSON, and the same fingerprint.
    assert squares(tmp_path).is_complete == finished


def test_unfinished_parts_of_other_items_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        squares(tmp_path).complete(NUMBERS, Counted(fail_at=2))
    with pytest.raises(BadInput, match="other inputs"):
        squares(tmp_path).complete(range(11), square)


def test_a_damaged_part_is_named_and_worked_out_again(tmp_path: Path) -> None:
    parts = squares(tmp_path)
    parts.complete(NUMBERS, square)
    whole = content(tmp_path)
    parts.path(1).write_bytes(b"[9, 1")
    with pytest.raises(
        BadInput, match=r"squares-00001\.json' was damaged and is removed.*Run the same"
    ):
        list(parts)
    again = Counted()
    parts.complete(NUMBERS, again)
    assert again.parts == [1] and content(tmp_path) == whole


def test_a_damaged_fingerprint_beside_parts_is_named(tmp_path: Path) -> None:
    started = tmp_path / "squares.started.json"
    started.write_bytes(b'{"abo')  # killed before the first part
    with pytest.raises(RuntimeError):
        squares(tmp_path).complete(NUMBERS, Counted(fail_at=2))
    started.write_bytes(b'{"abo')
    with pytest.raises(BadInput, match=r"started\.json' is damaged\. Remove it and"):
        squares(tmp_path).complete(NUMBERS, square)


def test_a_requested_stop_takes_effect_after_a_part(tmp_path: Path) -> None:
    def stopping(part: Part[int]) -> list[int]:
        os.kill(os.getpid(), signal.SIGINT)
        return square(part)

    parts = squares(tmp_path)
    with pytest.raises(Stopped, match="Run the same command again"):
        parts.complete(NUMBERS, stopping)
    again = Counted()
    parts.complete(NUMBERS, again)
    assert again.parts == [1, 2, 3]


def test_any_executor_will_do(tmp_path: Path) -> None:
    """Here one that runs parts in reverse and returns a list's iterator, as a cluster might."""

    def backwards(work: Any, items: Sequence[Any]) -> Any:
        return iter([(item, work(item)) for item in reversed(items)])

    parts = squares(tmp_path)
    parts.complete(NUMBERS, square, executor=backwards)
    assert [number for part in parts for number in part] == [n * n for n in NUMBERS]
