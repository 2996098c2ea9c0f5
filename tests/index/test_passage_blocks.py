"""Passages are read by their rows, wherever the runs that wrote them were stopped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from whichsense.errors import DamagedIndex
from whichsense.index.store import Passages, PassagesWriter, pack, unpack


def made(row: int) -> bytes:
    """Some are much longer than others."""
    text = f"Passage {row} über Pumas. " * (200 if row % 50 == 7 else row % 9 + 1)
    return pack((f"{row // 4}#{row % 4}", "Puma", "cats", ""), 0, text)


def write(folder: Path, rows: range) -> PassagesWriter:
    writer = PassagesWriter(folder, rows.start)
    for row in rows:
        writer.add(made(row), str(row // 4), "cats")
    return writer


def check(folder: Path, count: int) -> None:
    passages = Passages(folder)
    assert passages.next_row == count
    assert not list(passages.problems())
    rows = list(range(count))
    assert passages.stored(rows) == [made(row) for row in rows]
    assert passages.stored(rows[::-3]) == [made(row) for row in rows[::-3]]
    assert unpack(passages.stored([5])[0]).id == "1#1"
    assert {4, 5, 6, 7} <= set(passages.rows_with("document", "1"))


def test_passages_of_several_runs_are_read_by_row(tmp_path: Path) -> None:
    with write(tmp_path, range(101)) as writer:
        writer.flush()
        for row in range(101, 150):
            writer.add(made(row), str(row // 4), "cats")
    write(tmp_path, range(150, 163)).close()
    check(tmp_path, 163)


def test_many_passages_share_a_dictionary(tmp_path: Path) -> None:
    write(tmp_path, range(9000)).close()
    assert (tmp_path / "0.dict").exists()
    check(tmp_path, 9000)


def test_what_a_killed_run_wrote_beyond_its_checkpoint_is_cut_off(tmp_path: Path) -> None:
    with write(tmp_path, range(120)) as writer:
        writer.flush()
        kept = {path: path.stat().st_size for path in tmp_path.iterdir()}
        for row in range(120, 400):
            writer.add(made(row), str(row // 4), "cats")
    # The system wrote more of one file than of another.
    for suffix in (".ends", ".keys"):
        path = tmp_path / f"0{suffix}"
        os.truncate(path, kept[path])
    write(tmp_path, range(120, 200)).close()
    check(tmp_path, 200)
    assert {path: path.stat().st_size for path in kept} == kept


def test_keys_that_do_not_fit_are_named(tmp_path: Path) -> None:
    write(tmp_path, range(120)).close()
    with open(tmp_path / "0.keys", "ab") as file:
        file.write(b"\x00" * 80)
    assert "0.keys and 0.ends" in " ".join(Passages(tmp_path).problems())
    write(tmp_path, range(120, 200)).close()  # cuts them off
    check(tmp_path, 200)


def test_segments_of_older_versions_are_refused(tmp_path: Path) -> None:
    """They had several passages in a block."""
    write(tmp_path, range(20)).close()
    (tmp_path / "0.counts").write_bytes(b"")
    with pytest.raises(DamagedIndex, match=r"older version.*Build"):
        Passages(tmp_path)


def test_rows_that_are_not_there_are_damage(tmp_path: Path) -> None:
    write(tmp_path, range(20)).close()
    with pytest.raises(DamagedIndex, match="cannot be read"):
        Passages(tmp_path).stored([0, 19, 900])
