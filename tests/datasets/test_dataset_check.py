"""check: checksum, count, schema of every record."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from whichsense import datasets
from whichsense.lab.datasets import check as check_function
from whichsense.lab.datasets.catalog import Entry, Release, entry

ROWS = [
    {
        "id": str(n),
        "question": f"Who {n}?",
        "annotations": [{"type": "singleAnswer", "answer": ["A"]}],
    }
    for n in range(3)
]
BODY = json.dumps(ROWS).encode()
KNOWN = Release(("dev.json",), "part", 3, hashlib.sha256(BODY).hexdigest())
OFFICIAL = Release(("dev_light.json", "dev.json"), "official", 5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ambignq").mkdir()
    use(monkeypatch, OFFICIAL, KNOWN)
    return tmp_path / "ambignq"


def use(monkeypatch: pytest.MonkeyPatch, *releases: Release) -> None:
    def changed(name: str) -> Entry:
        return replace(entry(name), releases=releases)

    monkeypatch.setattr("whichsense.lab.datasets.dataset.entry", changed)


def report(folder: Path) -> datasets.CheckReport:
    return check_function("ambignq/dev", folder.parent)


def test_the_known_file_is_recognised_in_every_packing(folder: Path) -> None:
    (folder / "dev.json.zst").write_bytes(zstandard.ZstdCompressor().compress(BODY))
    found = report(folder)
    assert (found.ok, found.count, found.release, found.checksum) == (True, 3, "part", "matches")


def test_a_wrong_checksum(folder: Path) -> None:
    (folder / "dev.json").write_bytes(BODY.replace(b"Who 1", b"Why 1"))
    found = report(folder)
    assert not found.ok
    assert "wrong checksum" in found.problem
    assert KNOWN.sha256 in found.problem
    assert "fetch --force" in found.problem


def test_a_release_without_a_checksum_goes_by_its_count(folder: Path) -> None:
    more = [*ROWS, {**ROWS[0], "id": "8"}, {**ROWS[0], "id": "9"}]
    (folder / "dev_light.json").write_text(json.dumps(more))
    found = report(folder)
    assert (found.ok, found.release, found.checksum) == (True, "official", "not on record")
    (folder / "dev_light.json").write_text(json.dumps(more[:4]))
    assert "has 4 records; the official release has 5" in report(folder).problem


def test_a_checksum_that_must_match_is_told_before_reading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, KNOWN)
    (folder / "dev.json").write_text("[]")
    assert "wrong checksum" in report(folder).problem


def test_bad_records_and_ids_that_occur_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Release(("dev.json",)))
    (folder / "dev.json").write_text(json.dumps([*ROWS, {"id": "4"}]))
    assert "record 4: no field 'question'" in report(folder).problem
    (folder / "dev.json").write_text(json.dumps([*ROWS, ROWS[0]]))
    assert "record 4: the id '0' occurs twice" in report(folder).problem


def test_a_file_that_is_not_there(folder: Path) -> None:
    assert report(folder).problem.startswith("not there. Run: whichsense data fetch ambignq/dev")


def test_a_name_that_tells_its_packing_is_the_stronger_claim(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Release(("dev.json",), count=3), replace(KNOWN, files=("dev.json.zst",)))
    damaged = BODY.replace(b"Who 1", b"Why 1")
    (folder / "dev.json.zst").write_bytes(zstandard.ZstdCompressor().compress(damaged))
    assert "wrong checksum" in report(folder).problem
    (folder / "dev.json.zst").unlink()
    (folder / "dev.json").write_bytes(damaged)
    assert report(folder).ok
