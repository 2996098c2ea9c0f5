"""Commands whose work is spread over a cluster, and indexes in object stores: the same results as in one process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray", reason="needs pip install 'whichsense[cluster]'")
fsspec = pytest.importorskip("fsspec", reason="needs pip install 'whichsense[cluster]'")

from whichsense import sample
from whichsense.cli.index import copy as copy_command
from whichsense.cli.index import delete as delete_command
from whichsense.errors import BadInput, ClusterFault, DamagedIndex, NoIndex, WriteFault
from whichsense.files import cache_folder
from whichsense.index import Index, Spread, add, check, delete
from whichsense.index import cluster as cluster_module
from whichsense.index.cluster import Cluster, ClusterIndex, run_on
from whichsense.index.object_store import copy_index
from whichsense.index.search import save_hits
from whichsense.jobs.workers import run_here, spread_over
from whichsense.lab.datasets import load
from whichsense.lab.evaluation.leaderboard import evaluate_systems
from whichsense.lab.train import chain
from whichsense.types import Hit

# Ray leaves sockets and files to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
QUESTION = "Who played the Joker?"
RECIPES = Path(__file__).parents[2] / "recipes"


def ranked(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def test_saved_hits_are_the_same_file(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
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
    written: list[tuple[bytes, Any]] = []
    for executor in (run_here, run_on(cluster)):
        out = tmp_path / f"predictions-{len(written)}"
        path = tmp_path / "systems.toml"
        path.write_text(
            f'dataset = "sample/questions"\nlimit = 1\nout = "{out}"\n'
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

    monkeypatch.setattr(chain, "train_recipe", train)
    runs = chain.train_sweep("r.toml", tmp_path, ["a.b=1"], "train.seed=0,1")
    assert [change for change, _ in runs] == ["train.seed=0", "train.seed=1"]
    assert trained == [
        ("r.toml", Path("train.seed=0/r"), ["a.b=1", "train.seed=0"]),
        ("r.toml", Path("train.seed=1/r"), ["a.b=1", "train.seed=1"]),
    ]
    with pytest.raises(BadInput, match="not a sweep"):
        chain.sweep_changes("train.seed")


def test_runs_of_a_sweep_are_trained_by_workers(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights of each run are those of the same run in one process, of one thread as a worker has it."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    recipe = Path("mine.toml")  # a path that means something in this folder alone
    shutil.copyfile(RECIPES / "ambiguity-detector-question.toml", recipe)
    few = ["train.steps=1", "train.epochs=0", "train.evaluate_every=1"]
    seeds = "train.seed=0,1"
    command = [sys.executable, "-m", "whichsense", "train", str(recipe), "--tiny"]
    for change in few:
        command += ["--set", change]
    command += ["--sweep", seeds, "--out", "here"]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=alone, capture_output=True)
    there = tmp_path / "there"
    runs = dict(chain.train_sweep(recipe, there, few, seeds, tiny=True, executor=run_on(cluster)))
    weights = []
    for change in ("train.seed=0", "train.seed=1"):
        place = runs[change].model / "model.safetensors"
        same = tmp_path / "here" / place.relative_to(there)
        assert place.read_bytes() == same.read_bytes()
        weights.append(place.read_bytes())
    assert weights[0] != weights[1]


def test_lists_to_train_on_are_made_by_workers(
    cluster: Cluster, tmp_path: Path, folder: Path
) -> None:
    pytest.importorskip("torch")
    from whichsense.lab.compact.lists import load_lists
    from whichsense.lab.compact.questions import DataConfig, ListConfig

    data = DataConfig(
        train="sample/questions", dev="sample/questions", limit=12, dev_limit=6, index=str(folder)
    )
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "played", "the"]
    done = []

    def noted(work: Any, items: Any) -> Any:
        for item, result in run_on(cluster)(work, items):
            done.append(item)
            yield item, result

    few = ListConfig(depth=12, passages=6, measured=5, part=4, folder=str(tmp_path / "here"))
    load_lists(data, few, words)
    with spread_over(noted):
        load_lists(data, replace(few, folder=str(tmp_path / "there")), words)
    assert len(done) > 3
    for path in (tmp_path / "here").glob("*.npz"):
        assert path.read_bytes() == (tmp_path / "there" / path.name).read_bytes()


def test_more_workers_than_cores(cluster: Cluster) -> None:
    """Those for which there is no room get no work, and nothing waits for them."""
    done = dict(run_on(cluster, workers=5)(abs, range(-20, 0)))
    assert done == {item: -item for item in range(-20, 0)}


class _Unloadable:
    """Work that cannot be unpacked where it is sent."""

    def __call__(self, item: int) -> int:
        return item

    def __reduce__(self) -> Any:
        return import_module, ("no_such_module",)


def test_workers_that_cannot_be_started(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_PATIENCE", 1.0)
    with pytest.raises(ClusterFault, match=r"No worker could be started.*no_such_module"):
        list(run_on(cluster)(_Unloadable(), [1, 2]))


def test_workers_with_gpus(cluster: Cluster) -> None:
    with pytest.raises(ClusterFault, match=r"has at most 0.*--gpus"):
        run_on(cluster, gpus=1)
    with pytest.raises(BadInput, match="whole number"):
        run_on(cluster, gpus=1.5)


def test_an_index_is_not_built_at_a_url() -> None:
    with pytest.raises(BadInput, match=r"is a URL.*index copy"):
        Index.build(sample.PASSAGES, "s3://bucket/wiki")


def test_an_index_in_an_object_store(folder: Path) -> None:
    run = CliRunner().invoke(copy_command, [str(folder), "memory://wiki"])
    assert run.exit_code == 0, run.output
    assert "memory://wiki: " in run.output
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
    store, _ = fsspec.core.url_to_fs("memory://broken")
    manifest = copy_index(folder, "memory://broken")
    name = next(name for name in manifest.files if name.startswith("shard-00001/"))
    path = f"/broken/{manifest.folder}/{name}"
    store.pipe_file(path, b"of another build")
    with pytest.raises(DamagedIndex, match=r"another build.*once more"):
        Index.open("memory://broken")
    store.rm(path)
    with pytest.raises(DamagedIndex, match=r"is missing.*index copy"):
        Index.open("memory://broken")
    copy_index(folder, "memory://broken")
    assert ranked(Index.open("memory://broken").search(QUESTION))


def test_a_copy_that_was_ended_is_resumed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = fsspec.core.url_to_fs("memory://resumed")
    whole, copied = type(store).put_file, list[str]()

    def put_file(store: Any, here: str, there: str) -> None:
        if len(copied) == 5:
            raise OSError("The store went away")
        whole(store, here, there)
        copied.append(there)

    monkeypatch.setattr(type(store), "put_file", put_file)
    with pytest.raises(WriteFault, match=r"went away.*resumes"):
        copy_index(folder, "memory://resumed")
    with pytest.raises(NoIndex):
        Index.open("memory://resumed")
    monkeypatch.setattr(type(store), "put_file", whole)
    before = {place: store.modified(place) for place in copied}
    copy_index(folder, "memory://resumed")
    assert {place: store.modified(place) for place in copied} == before
    assert ranked(Index.open("memory://resumed").search(QUESTION))


def test_a_newer_generation_replaces_the_older_one_there(folder: Path, tmp_path: Path) -> None:
    copy_index(folder, "memory://newer")
    other = tmp_path / "other"
    Index.build(sample.PASSAGES, other, shards=Spread(2, "hash", run_here))
    with pytest.raises(BadInput, match=r"another index.*Choose another URL"):
        copy_index(other, "memory://newer")
    first = Index.open("memory://newer").search(QUESTION)[0].passage.id
    delete(other, [first])
    copy_index(other, "memory://newer")
    hits = Index.open("memory://newer").search(QUESTION)
    assert ranked(hits) == ranked(Index.open(other).search(QUESTION))
    assert first not in {hit.passage.id for hit in hits}


def test_shards_fetch_their_own_part(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(folder, copy)
    index = ClusterIndex.on_cluster(f"file://{copy}")
    try:
        expected = Index.open(folder).search(QUESTION)
        assert ranked(index.search(QUESTION)) == ranked(expected)
    finally:
        index.close()


def test_a_shard_of_another_build(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "index", tmp_path / "other"
    shutil.copytree(folder, copy)
    Index.build(sample.PASSAGES, other, shards=Spread(2, "hash", run_here))
    shutil.rmtree(copy / "generation-1" / "shard-00000")
    shutil.copytree(other / "generation-1" / "shard-00000", copy / "generation-1" / "shard-00000")
    with pytest.raises(DamagedIndex, match=r"Shard 1 of 2.*another build.*build"):
        ClusterIndex.on_cluster(copy)
    with pytest.raises(DamagedIndex, match="another build"):
        Index.open(copy)
