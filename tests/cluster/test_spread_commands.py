"""Commands whose work is spread over a cluster, and indexes in object stores: the same results as in one process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray", reason="needs pip install 'whichsense[cluster]'")
fsspec = pytest.importorskip("fsspec", reason="needs pip install 'whichsense[cluster]'")

from whichsense import sample
from whichsense.cli.index import delete as delete_command
from whichsense.cluster import Cluster, ClusterIndex, run_on
from whichsense.datasets import load
from whichsense.errors import BadInput, DamagedIndex, NoIndex
from whichsense.evaluation.leaderboard import evaluate_systems
from whichsense.files import cache_folder
from whichsense.index import Index, Spread, add, check, delete
from whichsense.index.saved_hits import save_hits
from whichsense.jobs.workers import run_here
from whichsense.train.recipes import sweep
from whichsense.types import Hit

# Ray leaves sockets and files to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
QUESTION = "Who played the Joker?"


def ranked(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def test_saved_hits_are_the_same_file(
    cluster: Cluster, folder: Path, tmp_path: Path
) -> None:
    index = Index.open(folder)
    questions = [question.text for question in load("sample/questions")] * 2
    questions += [f"{text} and why" for text in questions]  # several batches
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    save_hits(index, questions, one, k=20)
    save_hits(index, questions, two, k=20, executor=run_on(cluster))
    assert one.read_bytes() == two.read_bytes()


def test_systems_are_compared_alike(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written = []
    for executor in (run_here, run_on(cluster)):
        out = tmp_path / f"predictions-{len(written)}"
        path = tmp_path / "systems.toml"
        path.write_text(
            f'dataset = "sample/questions"\nlimit = 3\nout = "{out}"\n'
            '[[systems]]\nprovider = "compact"\n'
        )
        board = evaluate_systems(path, executor=executor)
        predictions = Path(board.systems[0].predictions).read_bytes()
        written.append((predictions, board.systems[0].metrics))
    assert written[0] == written[1]


def test_add_delete_and_check_over_shards(cluster: Cluster, tmp_path: Path) -> None:
    extra = tmp_path / "extra.jsonl"
    extra.write_text('{"id": "1", "title": "Quokka", "text": "The quokka smiles."}\n')
    here, there = tmp_path / "here", tmp_path / "there"
    for place, executor in ((here, None), (there, run_on(cluster))):
        Index.build(sample.PASSAGES, place, shards=Spread(2, "hash", run_here))
        add([extra], place, executor=executor)
        _, deleted = delete(place, (), ["extra"])
        assert deleted == 1
        add([extra], place, executor=executor)
    one, two = Index.open(here), Index.open(there)
    assert ranked(one.search("quokka")) == ranked(two.search("quokka"))
    assert ranked(one.search(QUESTION)) == ranked(two.search(QUESTION))
    assert check(there, run_on(cluster)).sound
    path = next((there / two.manifest.folder / "shard-00001").rglob("*.data"))
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    health = check(there, run_on(cluster))
    assert health == check(there)
    assert "checksum differs" in health.problems[0]


def test_a_deletion_reaches_the_actors(cluster: Cluster, tmp_path: Path) -> None:
    """`index delete` needs no cluster; an index that is served there is refreshed."""
    place = tmp_path / "index"
    Index.build(sample.PASSAGES, place, shards=Spread(2, "hash", run_here))
    served = ClusterIndex.on_cluster(place)
    first = served.search(QUESTION)[0].passage.id
    run = CliRunner().invoke(delete_command, [str(place), "--id", first])
    assert "1 passages deleted" in run.output
    newer = served.refreshed()
    assert newer is not served
    hits = newer.search(QUESTION)
    assert first not in {hit.passage.id for hit in hits}
    assert ranked(hits) == ranked(Index.open(place).search(QUESTION))
    served.close()
    newer.close()


def test_a_sweep_trains_once_for_each_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def train(recipe: Any, out: Path, changes: Any, *, tiny: bool) -> Path:
        trained.append((recipe, out.relative_to(tmp_path), changes))
        return out

    monkeypatch.setattr(sweep, "train_recipe", train)
    runs = sweep.train_sweep("r.toml", tmp_path, ["a.b=1"], "train.seed=0,1")
    assert [change for change, _ in runs] == ["train.seed=0", "train.seed=1"]
    assert trained == [
        ("r.toml", Path("train.seed=0/r"), ["a.b=1", "train.seed=0"]),
        ("r.toml", Path("train.seed=1/r"), ["a.b=1", "train.seed=1"]),
    ]
    with pytest.raises(BadInput, match="not a sweep"):
        sweep.sweep_changes("train.seed")


def put(folder: Path, url: str) -> Any:
    store, root = fsspec.core.url_to_fs(url)
    for path in folder.rglob("*"):
        if path.is_file():
            name = f"{root}/{path.relative_to(folder).as_posix()}"
            store.pipe_file(name, path.read_bytes())
    return store


def test_an_index_in_an_object_store(folder: Path) -> None:
    put(folder, "memory://wiki")
    expected = Index.open(folder).search(QUESTION)
    # As a path of the command line has it.
    fetched = Index.open(Path("memory://wiki"))
    assert ranked(fetched.search(QUESTION)) == ranked(expected)
    assert cache_folder() in fetched.folder.parents
    with pytest.raises(NoIndex, match=r"no index at 'memory://nothing'"):
        Index.open("memory://nothing")
    with pytest.raises(NoIndex, match="packages of their own"):
        Index.open("nosuchstore://bucket/wiki")


def test_a_store_with_a_wrong_or_missing_file(folder: Path) -> None:
    store = put(folder, "memory://broken")
    manifest = Index.open(folder).manifest
    name = next(name for name in manifest.files if name.startswith("shard-00001/"))
    path = f"/broken/{manifest.folder}/{name}"
    store.pipe_file(path, b"of another build")
    with pytest.raises(DamagedIndex, match=r"another build.*once more"):
        Index.open("memory://broken")
    store.rm(path)
    with pytest.raises(DamagedIndex, match="is missing"):
        Index.open("memory://broken")


def test_shards_fetch_their_own_part(
    cluster: Cluster, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "store"
    shutil.copytree(folder, copy)
    index = ClusterIndex.on_cluster(f"file://{copy}")
    try:
        expected = Index.open(folder).search(QUESTION)
        assert ranked(index.search(QUESTION)) == ranked(expected)
    finally:
        index.close()


def test_a_shard_of_another_build(
    cluster: Cluster, folder: Path, tmp_path: Path
) -> None:
    copy, other = tmp_path / "index", tmp_path / "other"
    shutil.copytree(folder, copy)
    Index.build(sample.PASSAGES, other, shards=Spread(2, "hash", run_here))
    shutil.rmtree(copy / "generation-1" / "shard-00000")
    shutil.copytree(
        other / "generation-1" / "shard-00000", copy / "generation-1" / "shard-00000"
    )
    with pytest.raises(DamagedIndex, match=r"Shard 1 of 2.*another build.*build"):
        ClusterIndex.on_cluster(copy)
    with pytest.raises(DamagedIndex, match="another build"):
        Index.open(copy)
