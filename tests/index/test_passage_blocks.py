"""Passages are stored in blocks: each is read by its row, wherever the runs that wrote them were stopped."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from whichsense.errors import DamagedIndex, WriteFault
from whichsense.index.store import Passages, PassagesWriter, pack, read_keys, unpack


def made(row: int) -> bytes:
    """Some are longer than a block, some many to a block."""
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
        writer.flush()  # in the middle of a block
        for row in range(101, 150):
            writer.add(made(row), str(row // 4), "cats")
    write(tmp_path, range(150, 163)).close()
    check(tmp_path, 163)


def test_many_passages_share_a_dictionary(tmp_path: Path) -> None:
    write(tmp_path, range(9000)).close()
    assert (tmp_path / "0.dict").exists()
    check(tmp_path, 9000)


def test_what_a_killed_run_wrote_beyond_its_checkpoint_is_cut_off(
    tmp_path: Path,
) -> None:
    with write(tmp_path, range(120)) as writer:
        writer.flush()
        kept = {path: path.stat().st_size for path in tmp_path.iterdir()}
        for row in range(120, 400):
            writer.add(made(row), str(row // 4), "cats")
    # The system wrote more of one file than of another.
    for suffix in (".ends", ".counts"):
        path = tmp_path / f"0{suffix}"
        os.truncate(path, kept[path])
    write(tmp_path, range(120, 200)).close()
    check(tmp_path, 200)
    assert {path: path.stat().st_size for path in kept} == kept


def test_keys_are_read_as_far_as_a_killed_run_wrote_them(tmp_path: Path) -> None:
    with write(tmp_path, range(120)) as writer:
        writer.flush()
        kept = (tmp_path / "0.keys").stat().st_size
        for row in range(120, 400):
            writer.add(made(row), str(row // 4), "cats")
    ends, keys = tmp_path / "0.ends", tmp_path / "0.keys"
    whole, body = read_keys(ends), keys.read_bytes()
    assert len(whole) == 400
    for size in range(kept, len(body)):
        keys.write_bytes(body[:size])
        found = read_keys(ends)
        assert len(found) >= 120
        assert np.array_equal(found, whole[: len(found)])


def test_what_a_power_cut_leaves_behind_the_keys_is_cut_off(tmp_path: Path) -> None:
    write(tmp_path, range(120)).close()
    with open(tmp_path / "0.keys", "ab") as file:
        file.write(b"\x00" * 100)
    with pytest.raises(DamagedIndex):
        Passages(tmp_path).rows_with("document", "1")
    write(tmp_path, range(120, 200)).close()
    check(tmp_path, 200)


def test_an_end_that_is_stored_is_passed_over(tmp_path: Path) -> None:
    """As format 2 has it."""
    passage = unpack("1#1\nPuma\ncats\n\n7\n15\nÜber all".encode())
    assert (passage.start, passage.end, passage.text) == (7, 15, "Über all")
    assert passage == unpack(pack(("1#1", "Puma", "cats", ""), 7, "Über all"))


def test_a_checkpoint_is_the_end_of_a_block(tmp_path: Path) -> None:
    write(tmp_path, range(120)).close()
    with pytest.raises(WriteFault, match="no block"):
        PassagesWriter(tmp_path, 1)


def test_segments_without_counts_have_a_passage_in_each_block(tmp_path: Path) -> None:
    """As format 2 has them."""
    import zstandard

    compress = zstandard.ZstdCompressor(level=3).compress
    pieces = [compress(made(row)) for row in range(10)]
    ends = np.cumsum([len(piece) for piece in pieces], dtype="<u8")
    (tmp_path / "0.data").write_bytes(b"".join(pieces))
    (tmp_path / "0.ends").write_bytes(ends.tobytes())
    write(tmp_path / "other", range(10)).close()
    keys = read_keys(tmp_path / "other" / "0.ends")
    (tmp_path / "0.keys").write_bytes(keys.tobytes())
    check(tmp_path, 10)
    write(tmp_path, range(8, 40)).close()  # a stopped build resumes, too
    check(tmp_path, 40)


def test_blocks_that_do_not_fit_are_named(tmp_path: Path) -> None:
    write(tmp_path, range(120)).close()
    path = tmp_path / "0.counts"
    counts = np.fromfile(path, dtype="<u4")
    counts[1] = counts[0]
    path.write_bytes(counts.tobytes())
    assert "0.counts and 0.ends" in " ".join(Passages(tmp_path).problems())
    path.write_bytes((counts + 500).tobytes())
    with pytest.raises(DamagedIndex, match="cannot be read"):
        Passages(tmp_path).stored([0, 119, 900])
