"""Logs of a run: log.csv always, TensorBoard's files where tensorboard is installed."""

from __future__ import annotations

import csv
import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whichsense.files import write_atomically

_FILE = "log.csv"
_TENSORBOARD = "tensorboard"
_COLUMNS = ("step", "epoch", "seconds", "kind", "name", "value")


class Logs:
    """One row for each number: `step,epoch,seconds,kind,name,value`. Long form: tasks differ in what they report."""

    def __init__(self, folder: Path, step: int) -> None:
        """Drop rows after `step`: a kill undid their steps, which are logged again when they are repeated."""
        self._path = folder / _FILE
        rows = _read_rows(self._path)
        valid = [row for row in rows if int(row["step"]) <= step]
        # Seconds count on from those of the interrupted run.
        self._seconds_before = float(valid[-1]["seconds"]) if valid else 0.0
        self._start = time.monotonic()
        if len(valid) < len(rows) or not self._path.exists():
            lines = [",".join(_COLUMNS)]
            for row in valid:
                lines.append(",".join(row[column] for column in _COLUMNS))
            write_atomically(self._path, "\n".join(lines) + "\n")
        self._board = _open_tensorboard(folder / _TENSORBOARD, step)

    def write(
        self, step: int, epoch: int, kind: str, values: Mapping[str, float]
    ) -> None:
        seconds = self._seconds_before + time.monotonic() - self._start
        with open(self._path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            for name, value in values.items():
                row = [step, epoch, f"{seconds:.2f}", kind, name, repr(value)]
                writer.writerow(row)
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def _read_rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    rows = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            # A kill in mid-write leaves half a line: it is not a row.
            if all(row.get(column) for column in _COLUMNS):
                rows.append(row)
    return rows


def _open_tensorboard(folder: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)
