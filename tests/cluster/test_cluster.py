"""The same work on a cluster of two nodes: the same results, whoever dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

ray = pytest.importorskip("ray", reason="needs pip install 'whichsense[cluster]'")

from ray.exceptions import ActorDiedError

from patience import LONGEST, wait_for
from whichsense import sample
from whichsense.errors import BadInput, ClusterFault, DamagedIndex
from whichsense.index import Index, Spread, check, delete
from whichsense.index import cluster as cluster_module
from whichsense.index import cluster as workers
from whichsense.index.cluster import Cluster, ClusterIndex, RemoteShards, run_on
from whichsense.index.shards import Hits, coverage_of, missing_note
from whichsense.jobs.workers import LoadedOnce
from whichsense.lab.evaluation.prediction import predict
from whichsense.models.static import load_encoder
from whichsense.pipeline import Pipeline
from whichsense.stages.retrieve import IndexRetriever
from whichsense.testing import FakeDisambiguator, FakeReader
from whichsense.types import Case, Hit, Method

# Workers cannot import this file: what it defines travels whole.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
# Ray leaves sockets and files to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
QUESTIONS = ("Who played the Joker?", "When was Mercury found?", "Where is Paris?")
METHODS: tuple[Method, ...] = ("bm25", "dense", "hybrid")


@pytest.fixture
def index(cluster: Cluster, folder: Path) -> Iterator[ClusterIndex]:
    opened = ClusterIndex.on_cluster(folder)
    yield opened
    opened.close()


def fake_pipeline() -> Pipeline:
    """Searches the sample; two common words are all its answers."""
    return Pipeline(
        IndexRetriever(sample.index()),
        reader=FakeReader({"the": "the", "in": "in"}),
        disambiguator=FakeDisambiguator(),
    )


def found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def actors(index: ClusterIndex) -> list[list[Any]]:
    return index._shards._replicas  # type: ignore[attr-defined,no-any-return]


def process_of(actor: Any) -> int:
    return int(ray.get(actor.__ray_call__.remote(lambda _: os.getpid())))


def error_of(actor: Any) -> BaseException | None:
    try:
        process_of(actor)
    except ray.exceptions.RayError as error:
        return cast("BaseException", error)
    return None


def wait_until_dead(actor: Any) -> None:
    """Until the cluster knows that an actor is gone for good, which a kill does not wait for."""
    wait_for(lambda: isinstance(error_of(actor), ActorDiedError))


def kill(actor: Any) -> None:
    ray.kill(actor, no_restart=True)
    wait_until_dead(actor)


def test_search_is_that_of_the_folder(index: ClusterIndex, folder: Path) -> None:
    here = Index.open(folder)
    for question in QUESTIONS:
        for method in METHODS:
            hits = index.search(question, 50, method)
            assert found(hits) == found(here.search(question, 50, method))
            assert isinstance(hits, Hits)
            assert hits.coverage == 1
    hit = here.search(QUESTIONS[0])[0]
    assert index.passage(hit.passage.id) == hit.passage
    assert index.refreshed() is index


def test_an_index_without_shards_is_one(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds what it finds here; when it is gone, nothing is left."""
    place = tmp_path / "index"
    here = Index.build(sample.PASSAGES, place, encoder=load_encoder("static"))
    delete(place, [here.search(QUESTIONS[0])[0].passage.id])
    here = here.refreshed()
    index = ClusterIndex.on_cluster(place)
    for question in QUESTIONS:
        for method in METHODS:
            hits = index.search(question, 50, method)
            assert found(hits) == found(here.search(question, 50, method))
            assert coverage_of(hits) == 1
    monkeypatch.setattr(RemoteShards, "replace", lambda *_: None)
    kill(actors(index)[0][0])
    for method in METHODS:
        hits = index.search(QUESTIONS[0], 50, method)
        assert (hits, coverage_of(hits)) == ([], 0)


def test_killed_actors_come_back(index: ClusterIndex, folder: Path) -> None:
    """While they are away, hits are fewer and say so; afterwards they are all there."""
    expected = found(Index.open(folder).search(QUESTIONS[0]))

    def is_whole() -> bool:
        hits = index.search(QUESTIONS[0])
        assert isinstance(hits, Hits)
        if hits.coverage < 1:
            assert missing_note(hits)
            return False
        assert found(hits) == expected
        return True

    for number in range(2):
        os.kill(process_of(actors(index)[number][0]), signal.SIGKILL)
        wait_for(is_whole)


def test_an_actor_that_cannot_be_started_again_is_replaced(
    cluster: Cluster, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be read for a while costs its shard, for that while."""
    monkeypatch.setattr(cluster_module, "_REPLACING", 1.0)
    copy = tmp_path / "index"
    shutil.copytree(folder, copy)
    index = ClusterIndex.on_cluster(copy)
    expected = found(index.search(QUESTIONS[0]))
    name = index.search(QUESTIONS[0])[0].passage.id
    root = index.manifest.roots(copy)[1]
    away = root.with_name("away")
    try:
        root.rename(away)
        first = process_of(actors(index)[1][0])
        os.kill(first, signal.SIGKILL)
        wait_until_dead(actors(index)[1][0])
        assert coverage_of(index.search(QUESTIONS[0])) < 1
        with pytest.raises(ClusterFault, match="does not answer"):
            index.passage(name)
        away.rename(root)
        wait_for(lambda: coverage_of(index.search(QUESTIONS[0])) == 1)
        assert found(index.search(QUESTIONS[0])) == expected
        assert index.passage(name).id == name
    finally:
        index.close()


def test_a_shard_that_is_gone_is_told(
    index: ClusterIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RemoteShards, "replace", lambda *_: None)
    kill(actors(index)[1][0])
    (case,) = IndexRetriever(index).retrieve([Case(QUESTIONS[0])], 20)
    passages = index.manifest.shard_passages
    assert f"Only {passages[0] / sum(passages):.1%} of the passages" in case.notes[0]
    held = {hit.passage.id for hit in case.hits}
    assert held
    first = Index.open(folder).at(range(index.manifest.shard_rows[0]))
    assert held <= {passage.id for passage in first}
    kill(actors(index)[0][0])
    for method in METHODS:
        hits = index.search(QUESTIONS[2], 20, method)
        assert isinstance(hits, Hits)
        assert (hits, hits.coverage) == ([], 0)


def test_a_slow_shard_is_asked_twice(cluster: Cluster, folder: Path) -> None:
    index = ClusterIndex.on_cluster(folder, replicas=2)
    try:
        for _ in range(50):  # until it knows how fast each shard is
            expected = found(index.search(QUESTIONS[1], 20, "bm25"))
        stopped = process_of(actors(index)[0][0])
        os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        try:
            hits = index.search(QUESTIONS[1], 20, "bm25")
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert found(hits) == expected
        # It did not wait for the one that is stopped, nor as long as for one that it does not know.
        assert time.monotonic() - began < LONGEST
    finally:
        index.close()


def test_a_build_with_a_killed_worker(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    def dying(work: Any, items: Any) -> Any:
        marks = tmp_path / "marks"
        marks.mkdir(exist_ok=True)

        def once(item: Any) -> Any:
            mark = marks / f"{type(item.items[0]).__name__}-{item.number}"
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return work(item)

        if hasattr(items[0], "number"):
            yield from run_on(cluster)(once, items)
        else:
            yield from run_on(cluster)(work, items)

    built = Index.build(
        sample.PASSAGES,
        tmp_path / "index",
        encoder=load_encoder("static"),
        shards=Spread(2, "hash", dying, remote=True),
    )
    assert len(list((tmp_path / "marks").iterdir())) == 3  # one part, two shards
    assert check(tmp_path / "index").sound
    here = Index.open(folder)
    for question in QUESTIONS:
        assert found(built.search(question)) == found(here.search(question))


class Mortal:
    """Answers as a pipeline of fakes does; the process that answers a certain question first dies of it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark
        self.pipeline = fake_pipeline()

    def run(self, questions: Any) -> list[Case]:
        if not self.mark.exists() and any("Joker" in text for text in questions):
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.pipeline.run(questions)


def test_predictions_are_those_of_one_process(cluster: Cluster, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    predict(fake_pipeline(), "sample/questions", one, limit=40, batch=4)
    mortal = LoadedOnce(partial(Mortal, tmp_path / "mark"))
    predict(mortal, "sample/questions", two, limit=40, batch=4, executor=run_on(cluster))
    assert (tmp_path / "mark").exists()
    assert one.read_bytes() == two.read_bytes()
    assert not (tmp_path / "two.json.partial").exists()


class SlowToStart:
    """Work whose workers need a while to be there, and two of which die of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        time.sleep(2)

    def __call__(self, item: int) -> int:
        for number in range(2):
            mark = self.folder / str(number)
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return item + 1


def test_a_worker_that_starts_again_is_waited_for(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is not there yet is not lost once more: the third attempt is the last, and enough."""
    monkeypatch.setattr(workers, "_ATTEMPTS", 3)
    done = dict(run_on(cluster, 1)(SlowToStart(tmp_path), [1, 2]))
    assert done == {1: 2, 2: 3}


def fails(item: int) -> int:
    raise BadInput(f"No {item}. Take another.")


def test_errors_of_workers_are_raised_here(cluster: Cluster) -> None:
    with pytest.raises(BadInput, match="Take another"):
        list(run_on(cluster)(fails, [1, 2]))


@pytest.mark.parametrize("installed, words", [("0.0.1", "version"), (None, "package")])
def test_a_node_with_another_version(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, installed: Any, words: str
) -> None:
    def probe() -> Any:
        def version() -> Any:
            return installed

        return version

    monkeypatch.setattr(cluster_module, "_probe", probe)
    with pytest.raises(ClusterFault, match=rf"{words}.*pip install"):
        cluster_module.check_nodes(ray)


def test_a_shard_that_is_missing_there(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "index"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / "generation-1" / "shard-00001")
    with pytest.raises((ClusterFault, DamagedIndex), match="Shard 2"):
        ClusterIndex.on_cluster(copy)


def test_no_cluster_there() -> None:
    command = [sys.executable, "-m", "whichsense", "search", "who", "--cluster"]
    run = subprocess.run([*command, "127.0.0.1:9"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "No Ray cluster answers at '127.0.0.1:9'" in run.stderr
    assert "ray start --head" in run.stderr


def test_search_says_its_coverage(folder: Path) -> None:
    command = [sys.executable, "-m", "whichsense", "search", QUESTIONS[0], "--json"]
    run = subprocess.run(
        [*command, "--index", str(folder)], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout)["coverage"] == 1
