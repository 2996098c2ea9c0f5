"""Worker processes: all items are done, errors come back, lost workers are reported, and none is left behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patience import LONGEST, wait_for
from whichsense.errors import BadInput, WhichsenseError
from whichsense.jobs.workers import WorkerLost, Workers, run_forked, usable_processes

needs_fork = pytest.mark.skipif(
    usable_processes(2) < 2, reason="one core, or a system without safe forks"
)


@pytest.mark.parametrize("processes", [1, 2])
def test_the_executor_does_all_items(processes: int) -> None:
    def work(number: int) -> tuple[int, int]:
        return number * number, os.getpid()

    results = dict(run_forked(processes)(work, range(7)))
    assert {number: square for number, (square, _) in results.items()} == {
        number: number**2 for number in range(7)
    }
    others = {process for _, process in results.values()} - {os.getpid()}
    assert len(others) <= processes
    assert bool(others) == (usable_processes(processes) > 1)


@needs_fork
def test_results_keep_their_order_over_an_endless_stream() -> None:
    with Workers.forked(lambda number: -number, 2) as workers:
        results = workers.map(itertools.count())
        assert list(itertools.islice(results, 20)) == [-n for n in range(20)]
        assert list(itertools.islice(results, 3)) == [-20, -21, -22]


STOPPED = """
import os, signal, sys, time
from pathlib import Path
from whichsense.jobs.workers import run_forked
def work(number):
    path = Path(sys.argv[1], str(number))
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path)
    time.sleep(3600)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
list(run_forked(2)(work, range(9)))
"""


@needs_fork
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_it_leaves_no_process_behind(
    tmp_path: Path, sign: signal.Signals
) -> None:
    """Two of nine items, of an hour each, are in hand."""
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tmp_path)], stderr=subprocess.DEVNULL
    )
    wait_for(lambda: len(list(tmp_path.glob("[0-9]"))) == 2)
    process.send_signal(sign)
    process.wait(LONGEST)
    others = [Path("/proc", path.read_text()) for path in tmp_path.glob("[0-9]")]
    wait_for(lambda: not any(map(is_running, others)))
    assert len(others) == 2


def is_running(process: Path) -> bool:
    """A process that has ended but was not collected does not run."""
    return process.exists() and " Z " not in (process / "stat").read_text()


UNCLOSED = """
from whichsense.jobs.workers import Workers
workers = Workers.forked(abs, 2)
print(workers.submit(-3).result())
"""


@needs_fork
def test_an_interpreter_exits_though_its_workers_were_not_closed() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", UNCLOSED],
        capture_output=True,
        text=True,
        check=True,
        timeout=LONGEST,
    )
    assert ended.stdout == "3\n" and not ended.stderr


@needs_fork
def test_errors_come_back() -> None:
    class Unpicklable(Exception):
        pass

    def work(number: int) -> int:
        if number == 1:
            raise BadInput("no such thing")
        if number == 2:
            raise Unpicklable("odd")
        return 1 // number

    with Workers.forked(work, 2) as workers:
        with pytest.raises(BadInput, match=r"^no such thing$"):
            workers.submit(1).result()
        with pytest.raises(RuntimeError, match="odd"):
            workers.submit(2).result()
        with pytest.raises(ZeroDivisionError) as caught:
            workers.submit(0).result()
        assert "In a worker process" in caught.value.__notes__[0]
        assert workers.submit(3).result() == 0  # the workers live on


@needs_fork
def test_a_result_that_cannot_be_sent_is_an_error() -> None:
    with (
        Workers.forked(lambda number: lambda: number, 1) as workers,
        pytest.raises((RuntimeError, AttributeError), match="pickle"),
    ):
        workers.submit(1).result()


@needs_fork
def test_a_forked_worker_that_is_killed_is_reported() -> None:
    def work(number: int) -> None:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(WorkerLost, match=r"too little memory.*it resumes"):
        list(run_forked(2)(work, range(3)))


def test_a_fresh_interpreter_is_replaced_when_it_hangs_or_dies() -> None:
    with Workers.fresh("builtins:eval", 1) as workers:
        own = workers.submit("__import__('os').getpid()")
        first = own.result()
        assert first != os.getpid()
        with pytest.raises(WorkerLost):
            workers.submit("__import__('time').sleep(3600)", seconds=0.1).result()
        with pytest.raises(WorkerLost):
            workers.submit("__import__('os')._exit(1)").result()
        with pytest.raises(ZeroDivisionError):
            workers.submit("1 // 0").result()
        assert workers.submit("__import__('os').getpid()").result() != first


def test_an_interpreter_that_cannot_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        Workers.fresh("builtins:eval", 1) as workers,
        pytest.raises(WhichsenseError, match=r"'/bin/false' cannot run whichsense"),
    ):
        workers.submit("1").result()


def test_closing_drops_what_was_not_begun() -> None:
    with Workers.fresh("builtins:eval", 1) as workers:
        futures = [workers.submit("__import__('time').sleep(3600)") for _ in range(3)]
        wait_for(futures[0].running)
    assert futures[1].cancelled() and futures[2].cancelled()
    with pytest.raises(WorkerLost):
        futures[0].result(timeout=LONGEST)
