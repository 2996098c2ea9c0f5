"""Progress tells the truth about this run: neither an earlier run's work nor another phase's."""

from __future__ import annotations

import pytest

from whichsense.jobs import limits


def test_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(limits.sys.stderr, "isatty", lambda: False)
    with limits.show_progress("indexing", "passages") as report:
        for now, done, count in (
            (0, 0.8, 800),
            (20, 0.82, 820),
            (40, 0.9, 900),
            (41, 0.0, 0),
            (60, 0.5, 950),
        ):
            clock[0] = now
            report(done, count)
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines[0] == "indexing: 82%, 820 passages, 1/s, 180 s left"
    )  # resumed at 80%: a tenth of what is left is done
    assert lines[-1] == "indexing: 50%, 950 passages, 50/s, 19 s left"  # a new phase began at 41 s


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.sys.stderr, "isatty", lambda: True)
    with limits.show_progress("indexing", "passages") as report:
        report(None, 5)
        report(1.0, 10)
