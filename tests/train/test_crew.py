"""Work shared out to processes: all of it is done, errors come back, and one that is killed is told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("torch")

from whichsense.errors import BadInput
from whichsense.train.crew import able, side_by_side

needs_fork = pytest.mark.skipif(able(2) < 2, reason="one core, or a system on which work is not shared out")


@pytest.mark.parametrize("processes", [1, 2])
def test_all_is_done(tmp_path: Path, processes: int) -> None:
    def work(number: int) -> None:
        (tmp_path / str(number)).write_text(str(os.getpid()))

    assert sorted(side_by_side(work, range(7), processes)) == list(range(7))
    others = {int(path.read_text()) for path in tmp_path.iterdir()} - {os.getpid()}
    assert len(list(tmp_path.iterdir())) == 7 and len(others) <= processes
    assert bool(others) == (able(processes) > 1)


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
