"""Work shared out to processes: all of it is done, errors come back, and one that is killed is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from whichsense.errors import BadInput
from whichsense.jobs.workers import able, side_by_side

needs_fork = pytest.mark.skipif(
    able(2) < 2, reason="one core, or a system on which work is not shared out"
)


@pytest.mark.parametrize("processes", [1, 2])
def test_all_is_done(tmp_path: Path, processes: int) -> None:
    def work(number: int) -> None:
        (tmp_path / str(number)).write_text(str(os.getpid()))

    assert sorted(side_by_side(work, range(7), processes)) == list(range(7))
    others = {int(path.read_text()) for path in tmp_path.iterdir()} - {os.getpid()}
    assert len(list(tmp_path.iterdir())) == 7 and len(others) <= processes
    assert bool(others) == (able(processes) > 1)


STOPPED = """
import os, signal, sys, time
from pathlib import Path
from whichsense.train.crew import side_by_side
def work(number):
    Path(sys.argv[1], str(number)).write_text(str(os.getpid()))
    time.sleep(60)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
list(side_by_side(work, range(9), 2))
"""


@needs_fork
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_it_leaves_nobody_behind(
    tmp_path: Path, sign: signal.Signals
) -> None:
    """Two of nine parts, of a minute each, are in hand."""
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tmp_path)], stderr=subprocess.DEVNULL
    )
    until(lambda: len(list(tmp_path.iterdir())) == 2)
    process.send_signal(sign)
    process.wait(30)
    others = [Path("/proc", path.read_text()) for path in tmp_path.iterdir()]
    until(lambda: not any(map(is_running, others)))
    assert len(others) == 2


def is_running(process: Path) -> bool:
    """Nobody may be there to collect those that have ended."""
    return process.exists() and " Z " not in (process / "stat").read_text()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 50
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@needs_fork
def test_errors_come_back(tmp_path: Path) -> None:
    def work(number: int) -> None:
        if number == 1:
            raise BadInput("no such thing")

    with pytest.raises(BadInput, match="no such thing"):
        list(side_by_side(work, range(3), 2))


@needs_fork
def test_a_process_that_is_killed_is_told(tmp_path: Path) -> None:
    def work(number: int) -> None:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(BadInput, match="too little memory"):
        list(side_by_side(work, range(3), 2))
