"""Where a number comes from: written into every result file, so that it can be made again."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whichsense import __version__


def provenance(data: Iterable[str | Path] = (), seed: int | None = None) -> dict[str, Any]:
    """Command, version, commit, checksums of the data files, seed, time and machine kind."""
    return {
        "command": " ".join(["whichsense" if sys.argv[0].endswith("whichsense") else sys.argv[0], *sys.argv[1:]]),
        "version": __version__,
        "commit": _commit(),
        "data": {Path(path).name: sha256(path) for path in data},
        "seed": seed,
        "when": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _commit() -> str | None:
    """The commit of the checkout that this code runs from; None for an installed release."""
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
