"""A sharded index finds what one index finds: the same passages, the same order, the same scores."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from whichsense import index, sample
from whichsense.errors import BadInput, DamagedIndex
from whichsense.index import Index, Spread
from whichsense.jobs.workers import run_here
from whichsense.models.static import load_encoder
from whichsense.types import Hit, Method

METHODS: tuple[Method, ...] = ("bm25", "dense", "hybrid")


def spread(count: int, by: str = "hash") -> Spread:
    return Spread(count, by, run_here)


def questions(every: int = 1) -> list[str]:
    with open(sample.QUESTIONS, encoding="utf-8") as lines:
        texts = [json.loads(line)["question"] for line in lines]
    return texts[::every]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The sample in three files; the third repeats some passages of the others, under other ids."""
    folder = tmp_path_factory.mktemp("sources")
    lines = sample.PASSAGES.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    parts = [records[:150], records[150:], records[100:220:7]]
    paths = []
    for number, part in enumerate(parts):
        path = folder / f"part{number}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in part))
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def plain(sources: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("plain") / "index"
    return Index.build(sources, folder, encoder=load_encoder("static"))


@pytest.fixture(scope="module")
def sharded(sources: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sharded") / "index"
    Index.build(sources, folder, encoder=load_encoder("static"), shards=spread(3))
    return folder


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def ids(hits: list[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def assert_same(one: Index, other: Index, every: int = 12) -> None:
    texts = questions(every)
    for method in METHODS:
        expected = one.search_many(texts, 100, method)
        actual = other.search_many(texts, 100, method)
        for hits, others in zip(expected, actual, strict=True):
            assert ids(hits) == ids(others)
            scores = [hit.score for hit in others]
            assert [hit.score for hit in hits] == pytest.approx(scores, rel=1e-6)


@pytest.mark.parametrize("count, by", [(1, "hash"), (2, "source"), (8, "hash")])
def test_shards_find_what_one_index_finds(
    sources: list[Path], plain: Index, tmp_path: Path, count: int, by: str
) -> None:
    encoder = load_encoder("static")
    built = Index.build(sources, tmp_path / "index", encoder=encoder, shards=spread(count, by))
    assert len(built.manifest.shard_passages) == count
    assert len(built) == len(plain)
    assert built.manifest.report == plain.manifest.report
    assert built.manifest.report["duplicates"] > 0
    assert index.check(tmp_path / "index").sound
    assert_same(plain, built)


def test_many_lists_of_vectors_are_shared(
    plain: Index, sharded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With many lists, of which a search reads some, shards read the same ones."""
    from whichsense.index import dense, dense_writer

    few = dense.Clustering(fewest=10, always_read=10)
    monkeypatch.setattr(dense, "_CLUSTERING", few)
    monkeypatch.setattr(dense.Vectors.open.__func__, "__defaults__", (few,))
    monkeypatch.setattr(dense_writer, "Clustering", lambda: few)
    monkeypatch.setattr(dense, "Clustering", lambda: few)
    encoder = load_encoder("static")
    one = Index.build(sample.PASSAGES, tmp_path / "one", encoder=encoder)
    three = Index.build(sample.PASSAGES, tmp_path / "three", encoder=encoder, shards=spread(3))
    lists = {len(shard.vectors.centres) for shard in three._shards.shards}  # type: ignore[attr-defined]
    assert lists == {20}  # the square root of 401
    assert_same(one, three)


def test_sources_stay_together(sources: list[Path], tmp_path: Path) -> None:
    built = Index.build(sources, tmp_path / "index", shards=spread(4, "source"))
    places = {}
    first = 0
    for shard, rows in enumerate(built.manifest.shard_rows):
        for passage in built.at(range(first, first + rows)):
            places.setdefault(passage.source, set()).add(shard)
        first += rows
    assert len(places) == 2  # the third file holds duplicates alone
    assert all(len(shards) == 1 for shards in places.values())


def test_documents_are_whole_across_shards(plain: Index, sharded: Path) -> None:
    opened = Index.open(sharded)
    hit = plain.search("Who played the Joker?")[0]
    assert opened.passage(hit.passage.id) == hit.passage
    assert opened.document(hit.passage.id) == plain.document(hit.passage.id)
    with pytest.raises(BadInput, match="No passage has the id"):
        opened.passage("nobody")


def test_add_and_delete(plain: Index, sharded: Path, tmp_path: Path) -> None:
    one = copied(plain.folder, tmp_path / "one")
    three = copied(sharded, tmp_path / "three")
    old = Index.open(three)
    more = tmp_path / "more.jsonl"
    texts = [hit.passage.text for hit in plain.search("film actor", 5)]
    records = [{"title": "New", "text": f"{text} Again."} for text in texts]
    records.append({"title": "Puma", "text": "A puma was seen in a film."})
    records.append(records[0])  # a duplicate
    more.write_text("".join(json.dumps(record) + "\n" for record in records))
    for folder in (one, three):
        index.add(more, folder)
    assert_same(Index.open(one), Index.open(three))
    assert len(Index.open(three)) == len(plain) + 6
    assert old.refreshed().manifest.generation == 2
    assert len(old) == len(plain)  # a reader keeps its generation
    gone = ids(plain.search("Joker", 4))
    for folder in (one, three):
        _, deleted = index.delete(folder, gone)
        assert deleted == 4
    assert index.check(three).sound
    assert not set(gone) & set(ids(Index.open(three).search("Joker")))
    assert_same(Index.open(one), Index.open(three))


def test_a_shard_that_is_missing(sharded: Path, tmp_path: Path) -> None:
    folder = copied(sharded, tmp_path / "index")
    shutil.rmtree(folder / "generation-1" / "shard-00001")
    with pytest.raises(DamagedIndex, match=r"Shard 2 of 3 is missing.*Restore"):
        Index.open(folder)
    health = index.check(folder)
    assert not health.sound
    assert "Shard 2 of 3 is missing" in health.summary()


def test_a_shard_of_another_build(sources: list[Path], sharded: Path, tmp_path: Path) -> None:
    folder = copied(sharded, tmp_path / "index")
    Index.build(sources, tmp_path / "other", shards=spread(3))
    place = folder / "generation-1" / "shard-00002"
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "other" / "generation-1" / "shard-00002", place)
    with pytest.raises(DamagedIndex, match=r"from another build.*build the index again"):
        Index.open(folder)


@pytest.mark.parametrize("count, by", [(0, "hash"), (20_000, "hash"), (2, "colour")])
def test_a_bad_spread(count: int, by: str) -> None:
    with pytest.raises(BadInput, match=r"[Cc]hoose"):
        Spread(count, by)


KILLED = """
import os, sys
from whichsense.index import Index, Spread
from whichsense.index import folder, sharded_build
from whichsense.jobs.workers import run_here
from whichsense.models.static import load_encoder

left = int(sys.argv[3])
def countdown(function):
    def call(*given, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return function(*given, **named)
    return call

# Every step of a build that leaves something behind.
for module, names in {
    sharded_build: ("write_atomically", "read_spill", "save_array", "encode_shards", "write_labels", "_write_names"),
    folder: ("write_atomically", "_served", "_records"),
    sharded_build.os: ("replace",),
}.items():
    for name in names:
        setattr(module, name, countdown(getattr(module, name)))
Index.build(sys.argv[2].split(","), sys.argv[1], encoder=load_encoder("static"), shards=Spread(3, "hash", run_here))
print("whole")
"""


def test_a_killed_build_resumes(sources: list[Path], plain: Index, tmp_path: Path) -> None:
    """Killed at one moment after another; each run goes on where the last one was, and the result is the same."""
    given = ",".join(map(str, sources))
    folder = tmp_path / "index"
    kills = 0
    for moment in (2, 7, 9, 12, 15, 3, 1, 2, 0, 1, 10_000):
        command = [sys.executable, "-c", KILLED, str(folder), given, str(moment)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL, run.stderr
        kills += 1
    assert run.stdout == "whole\n"
    assert kills >= 5
    assert index.check(folder).sound
    assert os.listdir(folder).count("staging") == 0
    assert_same(plain, Index.open(folder))
