"""Logs of a run: log.csv always, TensorBoard's files where tensorboard is installed."""

from __future__ import annotations

import csv
import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whichsense.files import write_atomically

NAME, TENSORBOARD = "log.csv", "tensorboard"
_COLUMNS = ("step", "epoch", "seconds", "kind", "name", "value")


class Logs:
    """One row for each number: `step,epoch,seconds,kind,name,value`. Long form: tasks differ in what they report."""

    def __init__(self, folder: Path, step: int) -> None:
        """Rows after `step` belong to work that a kill undid: they are dropped, and written anew when it is redone."""
        self._path = folder / NAME
        rows = _rows(self._path)
        kept = [row for row in rows if int(row["step"]) <= step]
        self._before = float(kept[-1]["seconds"]) if kept else 0.0
        self._began = time.monotonic()
        if len(kept) < len(rows) or not self._path.exists():
            lines = [
                ",".join(_COLUMNS),
                *(",".join(row[column] for column in _COLUMNS) for row in kept),
            ]
            write_atomically(self._path, "\n".join(lines) + "\n")
        self._board = _board(folder / TENSORBOARD, step)

    def write(
        self, step: int, epoch: int, kind: str, values: Mapping[str, float]
    ) -> None:
        seconds = self._before + time.monotonic() - self._began
        with open(self._path, "a", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerows(
                [step, epoch, f"{seconds:.2f}", kind, name, repr(value)]
                for name, value in values.items()
            )
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        # A kill in mid-write leaves half a line: it is not a row.
        return [
            row
            for row in csv.DictReader(file)
            if all(row.get(column) for column in _COLUMNS)
        ]


def _board(folder: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)
