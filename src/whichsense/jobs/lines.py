"""Resumable work line by line: each result is appended to one file as soon as it is known.

See parts.py for when to use which store.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from whichsense.errors import BadInput
from whichsense.files import as_json
from whichsense.jobs.claims import Fingerprint, hold, same_fingerprint

Record = dict[str, Any]


class Lines:
    """A file of JSON lines: first the fingerprint of what is asked, then a record for each item, under its id.

    One run at a time holds it. Half a line, which a kill leaves, is cut off.
    """

    def __init__(self, path: Path, fingerprint: Fingerprint, advice: str) -> None:
        """Open the file, or begin it. `advice` is what a person may do in place of resuming, in small letters."""
        self.path = path
        self.done: dict[str, Record] = {}
        """Records by their ids."""
        self._file = hold(path, advice=advice)
        try:
            self._resume(fingerprint, advice)
        except BaseException:
            self._file.close()
            raise

    def append(self, item_id: str, record: Mapping[str, Any]) -> None:
        """Add an item's record. It is on disk when this returns."""
        _append(self._file, {"id": item_id} | dict(record))
        self.done[item_id] = dict(record)

    def close(self) -> None:
        self._file.close()

    def _resume(self, fingerprint: Fingerprint, advice: str) -> None:
        self._file.seek(0)
        *lines, half = self._file.read().split(b"\n")
        if lines and not same_fingerprint(self._parsed(lines[0], 1), fingerprint):
            raise BadInput(
                f"'{self.path}' was begun by another system or over other items. Remove it, or {advice}."
            )
        for number, line in enumerate(lines[1:], 2):
            record = self._parsed(line, number)
            self.done[record.pop("id")] = record
        # Half a line is cut off in place: a new file would not be the one that is held.
        self._file.truncate(self._file.tell() - len(half))
        if not lines:
            _append(self._file, fingerprint)

    def _parsed(self, line: bytes, number: int) -> Record:
        """The first line, which is the fingerprint, or a record."""
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and (
                number == 1 or isinstance(record.get("id"), str)
            ):
                return record
        fix = "Remove that line: its item is worked out again. Or remove the file."
        if number == 1:
            fix = "Remove the file."
        raise BadInput(f"'{self.path}', line {number}: damaged. {fix}")


def _append(file: BinaryIO, record: Mapping[str, Any]) -> None:
    file.write(as_json(record))
    file.flush()
    os.fsync(file.fileno())
