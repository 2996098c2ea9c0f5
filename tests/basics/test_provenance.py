"""Where a number comes from: the commit is this project's own, or none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from whichsense.lab import provenance

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder: Path, *arguments: str) -> None:
    call = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments]
    subprocess.run(call, check=True, capture_output=True)


def test_a_copy_inside_another_checkout_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "theirs")
    here = tmp_path / "env" / "whichsense" / "provenance.py"
    here.parent.mkdir(parents=True)
    here.write_text("")
    monkeypatch.setattr(provenance, "__file__", str(here))
    assert provenance.provenance()["commit"] is None
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "ours")
    assert provenance.provenance()["commit"]


def test_checksums_by_name(tmp_path: Path) -> None:
    (tmp_path / "gold.json").write_bytes(b"")
    found = provenance.provenance([tmp_path / "gold.json"], seed=3)
    assert found["data"]["gold.json"].startswith("e3b0c442")
    assert found["seed"] == 3
