"""Claims on unfinished work: the file that says what is being made is held by one run at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from whichsense.errors import BadInput
from whichsense.files import lock

Fingerprint = Mapping[str, Any]
"""What a result depends on, as JSON: settings, checksums of the inputs, versions."""


def same_fingerprint(written: Any, current: Fingerprint) -> bool:
    """Whether a fingerprint that was read from a file is the current one. JSON knows no tuples and only text keys."""
    return bool(written == json.loads(json.dumps(current)))


def hold(path: Path, *, wait: bool = False, advice: str = "") -> BinaryIO:
    """Open a file for this run alone, until it is closed or the process dies. It is created where it is missing.

    A file that another run holds is an error, or waited for. `advice` ends the errors: what else a person may do.
    """
    while True:
        file = _open(path, advice)
        if _is_held(file, path, wait):
            return file
        file.close()
        if not wait:
            raise BadInput(
                f"'{path}' is being written by another run. Wait until it ends{advice and ', or '}{advice}."
            )


def _open(path: Path, advice: str) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b")
    except OSError as error:
        fix = advice or "check its rights"
        raise BadInput(
            f"'{path}' cannot be written: {error.strerror}. {fix[0].upper()}{fix[1:]}."
        ) from None


def _is_held(file: BinaryIO, path: Path, wait: bool) -> bool:
    try:
        if not lock(file, wait=wait):
            return False
    except (ImportError, OSError):
        # Windows and some network file systems have no locks: other runs are not noticed there.
        return True
    # Another run may have finished, and removed the file, after it was opened here.
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())
