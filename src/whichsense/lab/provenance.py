"""Where a number comes from: written into every result file, so that it can be made again."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whichsense import __version__
from whichsense.files import sha256


def provenance(data: Iterable[str | Path] = (), seed: int | None = None) -> dict[str, Any]:
    """Command, version, commit, checksums of the data files, seed, time and machine kind."""
    # Without the folder that the command is installed in.
    program = sys.argv[0]
    if program.endswith("whichsense"):
        program = "whichsense"
    checksums = {Path(path).name: sha256(path) for path in data}
    return {
        "command": " ".join([program, *sys.argv[1:]]),
        "version": __version__,
        "commit": _commit(),
        "data": checksums,
        "seed": seed,
        "when": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def _commit() -> str | None:
    """The commit of the checkout that this code runs from; None for an installed release.

    A release may be installed inside the checkout of another project, so the file must be tracked in what was found.
    """
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=12")


def _git(*arguments: str) -> str | None:
    """What git says about this folder; None where it fails or is not there."""
    call = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        answer = subprocess.run(call, capture_output=True, text=True, timeout=5, check=True)
        return answer.stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
