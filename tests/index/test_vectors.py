from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex, WhichsenseError
from whichsense.index import dense
from whichsense.index.dense import Clustering, Vectors
from whichsense.index.dense_writer import VectorsWriter

DIMENSIONS = 32


def made(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def numbers(start: int, stop: int) -> NDArray[np.uint64]:
    return np.arange(start, stop, dtype=np.uint64)


def search(
    opened: Vectors, queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """The rows of the nearest vectors to each query, and their cosines, best first."""
    rows, cosines = [], []
    for query in np.atleast_2d(queries):
        found, rough, scores = opened.candidates(query, k, opened.count)
        places = dense.nearest_of(found, rough, scores, k)
        rows.append(found[places])
        cosines.append(scores[places])
    return np.array(rows), np.array(cosines)


MANY_LISTS = Clustering(fewest=100, always_read=100)


def saved(
    folder: Path, count: int = 300, clustering: Clustering | None = None
) -> NDArray[np.float32]:
    vectors = made(count)
    with VectorsWriter(folder, DIMENSIONS, clustering) as writer:
        for start in range(0, count, 100):
            writer.add(numbers(start, min(start + 100, count)), vectors[start : start + 100])
        writer.save()
    return vectors


def test_finds_what_an_exact_search_finds(tmp_path: Path) -> None:
    vectors = saved(tmp_path)
    rows, scores = search(Vectors.open(tmp_path), vectors[:20], 5)
    exact = np.argsort(-(vectors[:20] @ vectors.T), axis=1)[:, :5]
    assert rows.dtype == np.uint64 and rows.shape == scores.shape == (20, 5)
    assert (rows[:, 0] == np.arange(20)).all()
    assert (
        np.mean([len(set(a) & set(b)) for a, b in zip(rows.tolist(), exact.tolist(), strict=True)])
        > 4.8
    )
    np.testing.assert_allclose(scores[:, 0], 1, atol=0.01)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_lists_find_nearly_as_much(tmp_path: Path) -> None:
    centres = made(40, seed=1)
    vectors = centres[np.arange(2000) % 40] + 0.15 * made(2000, seed=2)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with VectorsWriter(tmp_path, DIMENSIONS, MANY_LISTS) as writer:
        writer.add(numbers(0, 2000), vectors)
        writer.save()
    opened = Vectors.open(tmp_path, MANY_LISTS)
    assert len(opened.centres) == round(2000**0.5) and opened.check() == []
    rows, _ = search(opened, vectors[:50], 10)
    exact = np.argsort(-(vectors[:50] @ vectors.T), axis=1)[:, :10]
    assert (
        np.mean([len(set(a) & set(b)) for a, b in zip(rows.tolist(), exact.tolist(), strict=True)])
        > 8
    )


def test_row_numbers_need_not_be_in_order(tmp_path: Path) -> None:
    vectors, rows = (made(50), np.random.default_rng(3).permutation(10**6)[:50].astype(np.uint64))
    with VectorsWriter(tmp_path, DIMENSIONS) as writer:
        writer.add(rows, vectors)
        assert writer.next_row == rows.max() + 1
        writer.save()
    opened = Vectors.open(tmp_path)
    assert (search(opened, vectors, 1)[0][:, 0] == rows).all()
    np.testing.assert_allclose(
        opened.similarities(vectors[7], rows.tolist()), vectors @ vectors[7], atol=0.02
    )
    assert opened.similarities(vectors[7], [5, 10**7]).tolist() == [0, 0]


def test_adding_and_removing_leave_the_old_files_as_they_are(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    vectors = saved(old, clustering=MANY_LISTS)
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    new.mkdir()
    for path in old.iterdir():
        os.link(path, new / path.name)
    with VectorsWriter(new, clustering=MANY_LISTS) as writer:
        assert writer.next_row == 300
        writer.add(numbers(300, 340), made(40, seed=9))
        writer.remove(numbers(0, 10))
        writer.save()
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before
    assert Vectors.open(old).count == 300
    opened = Vectors.open(new, MANY_LISTS)
    assert opened.count == 330 and opened.check() == []
    assert search(opened, made(40, seed=9), 1)[0][:, 0].tolist() == list(range(300, 340))
    assert 5 not in search(opened, vectors[5], 10)[0]
    assert len(list(new.iterdir())) == len(dense.PARTS) + 1


def test_saving_without_a_change_keeps_the_files(tmp_path: Path) -> None:
    saved(tmp_path)
    before = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
    with VectorsWriter(tmp_path) as writer:
        writer.save()
    assert {path.name: path.stat().st_ino for path in tmp_path.iterdir()} == before


def test_a_killed_build_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    vectors = made(300)
    killed = VectorsWriter(tmp_path, DIMENSIONS)
    killed.add(numbers(0, 100), vectors[:100])
    killed.checkpoint()
    killed.add(numbers(100, 150), vectors[100:150])
    killed.close()  # its last fifty reached the disk, but no checkpoint vouches for them
    with VectorsWriter(tmp_path, DIMENSIONS) as writer:
        assert writer.next_row == 100
        writer.add(numbers(100, 300), vectors[100:])
        writer.save()
    opened = Vectors.open(tmp_path)
    assert opened.count == 300 and (search(opened, vectors, 1)[0][:, 0] == np.arange(300)).all()


def test_what_waited_for_another_set_is_dropped(tmp_path: Path) -> None:
    stale = VectorsWriter(tmp_path, DIMENSIONS)
    stale.add(numbers(0, 10), made(10))
    stale.checkpoint()
    stale.close()
    state = json.loads((tmp_path / "pending.json").read_bytes())
    (tmp_path / "pending.json").write_text(json.dumps({**state, "base": "another"}))
    with VectorsWriter(tmp_path, DIMENSIONS) as writer:
        assert writer.next_row == 0


def test_an_empty_set(tmp_path: Path) -> None:
    with VectorsWriter(tmp_path, DIMENSIONS) as writer:
        writer.save()
    opened = Vectors.open(tmp_path)
    rows, scores = search(opened, made(3), 10)
    assert opened.count == 0 and rows.shape == scores.shape == (3, 0) and opened.check() == []


def test_all_removed(tmp_path: Path) -> None:
    saved(tmp_path)
    with VectorsWriter(tmp_path) as writer:
        writer.remove(numbers(0, 300))
        writer.save()
    assert Vectors.open(tmp_path).count == 0


def test_fewer_than_k(tmp_path: Path) -> None:
    vectors = saved(tmp_path, 7)
    assert search(Vectors.open(tmp_path), vectors[:2], 100)[0].shape == (2, 7)


def test_zero_vectors_are_stored_and_never_near(tmp_path: Path) -> None:
    with VectorsWriter(tmp_path, DIMENSIONS) as writer:
        writer.add(numbers(0, 2), np.stack([np.zeros(DIMENSIONS, dtype=np.float32), made(1)[0]]))
        writer.save()
    rows, scores = search(Vectors.open(tmp_path), made(1), 2)
    assert rows.tolist() == [[1, 0]] and scores[0, 1] == 0


@pytest.mark.parametrize("part", dense.PARTS)
@pytest.mark.parametrize("harm", ["missing", "cut", "empty", "other"])
def test_damage_is_named(tmp_path: Path, part: str, harm: str) -> None:
    saved(tmp_path)
    [path] = tmp_path.glob(f"{part}-*.npy")
    if harm == "missing":
        path.unlink()
    elif harm == "other":
        np.save(path, np.zeros(3, dtype=np.complex64))
    else:
        path.write_bytes(path.read_bytes()[:-100] if harm == "cut" else b"")
    with pytest.raises(DamagedIndex, match=part):
        Vectors.open(tmp_path)


@pytest.mark.parametrize(
    "header", [b"", b"{", b"[]", b'{"format": 9}', b'{"format": 1, "set": "x"}']
)
def test_a_damaged_header_is_named(tmp_path: Path, header: bytes) -> None:
    saved(tmp_path)
    (tmp_path / "vectors.json").write_bytes(header)
    with pytest.raises(DamagedIndex, match=r"vectors\.json"):
        Vectors.open(tmp_path)


def test_check_finds_what_opening_cannot(tmp_path: Path) -> None:
    saved(tmp_path)
    [rows], [scales] = tmp_path.glob("rows-*.npy"), tmp_path.glob("scales-*.npy")
    np.save(rows, np.zeros(300, dtype=np.uint32))
    np.save(scales, np.full(300, np.nan, dtype=np.float32))
    assert len(Vectors.open(tmp_path).check()) == 2


def test_wrong_sizes_are_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(WhichsenseError, match="dimensions"):
        VectorsWriter(tmp_path, 64)
    with VectorsWriter(tmp_path) as writer, pytest.raises(WhichsenseError, match="shape"):
        writer.add(numbers(300, 301), made(2))
