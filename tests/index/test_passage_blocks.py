"""Passages are read by their rows, wherever the runs that wrote them were stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import zstandard

from whichsense.errors import DamagedIndex, WriteFault
from whichsense.index.store import BETWEEN, Passages, PassagesWriter, name_key, pack, unpack


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


def test_an_end_that_is_stored_is_passed_over(tmp_path: Path) -> None:
    """As format 2 has it."""
    passage = unpack("1#1\nPuma\ncats\n\n7\n15\nÜber all".encode())
    assert (passage.start, passage.end, passage.text) == (7, 15, "Über all")
    assert passage == unpack(pack(("1#1", "Puma", "cats", ""), 7, "Über all"))


def test_segments_of_older_versions_are_read_and_added_to(tmp_path: Path) -> None:
    """Format 4 had several passages in a block; its keys were compressed, frame by frame."""
    write_blocks(tmp_path, [range(4), range(4, 5), range(5, 20)])
    check(tmp_path, 20)
    write(tmp_path, range(20, 40)).close()
    check(tmp_path, 40)
    assert (tmp_path / "0.counts").exists()


def test_what_an_older_version_began_is_begun_anew(tmp_path: Path) -> None:
    write_blocks(tmp_path, [range(4), range(4, 20)])
    with pytest.raises(WriteFault, match="older version"):
        PassagesWriter(tmp_path, 8)
    write(tmp_path, range(40)).close()
    check(tmp_path, 40)
    assert not (tmp_path / "0.counts").exists()


def write_blocks(folder: Path, blocks: Sequence[range]) -> None:
    pieces, keys = [], []
    for rows in blocks:
        pieces.append(zstandard.compress(BETWEEN.join(map(made, rows))))
        names = [(name_key(str(row // 4)), name_key("cats")) for row in rows]
        keys.append(zstandard.compress(np.array(names, dtype="<u4").tobytes()))
    ends = np.cumsum([len(piece) for piece in pieces], dtype="<u8")
    counts = np.cumsum([len(rows) for rows in blocks], dtype="<u4")
    (folder / "0.data").write_bytes(b"".join(pieces))
    (folder / "0.ends").write_bytes(ends.tobytes())
    (folder / "0.counts").write_bytes(counts.tobytes())
    (folder / "0.keys").write_bytes(b"".join(keys))


def test_blocks_that_do_not_fit_are_named(tmp_path: Path) -> None:
    write_blocks(tmp_path, [range(4), range(4, 20)])
    path = tmp_path / "0.counts"
    counts = np.fromfile(path, dtype="<u4")
    counts[1] = counts[0]
    path.write_bytes(counts.tobytes())
    assert "0.counts and 0.ends" in " ".join(Passages(tmp_path).problems())
    path.write_bytes((counts + 500).tobytes())
    with pytest.raises(DamagedIndex, match="cannot be read"):
        Passages(tmp_path).stored([0, 19, 900])
    (tmp_path / "0.keys").write_bytes(b"no zstd")
    with pytest.raises(DamagedIndex, match="damaged"):
        Passages(tmp_path).rows_with("document", "1")
