"""Workers that die while an index is built and questions are answered, and an index that changes under load.

    python benchmarks/cluster_faults.py build --folder work [--kills 20] [--articles 2000] [--out FILE]
    python benchmarks/cluster_faults.py predict --folder work [--kills 20] [--questions 60] [--out FILE]
    python benchmarks/cluster_faults.py swap --folder work [--seconds 30] [--out FILE]

All run on a cluster of two nodes in processes of this machine. `build` builds an index once for each kill, at a random
moment, and compares it with one that nobody disturbed. `predict` kills a worker at random moments of one run, and
compares the file with that of one process. `swap` adds and deletes passages while four threads search on the cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import threading
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from cluster import start_nodes
from whichsense import sample
from whichsense.corpus import Corpus, Report
from whichsense.index import Index, Spread, add, check, delete
from whichsense.index.cluster import Cluster, ClusterIndex, connect, run_on
from whichsense.index.shards import coverage_of
from whichsense.jobs.workers import LoadedOnce
from whichsense.lab.datasets import load
from whichsense.lab.datasets.catalog import data_folder
from whichsense.lab.evaluation.prediction import predict
from whichsense.lab.provenance import provenance
from whichsense.systems import build, built_answerer, describe, load_settings
from whichsense.types import FOR_BENCHMARKS, Document

FILES = 4
QUESTIONS = 20


def write_corpus(folder: Path, articles: int) -> list[Path]:
    """Articles of the local Wikipedia in four files of JSON lines."""
    source = data_folder() / "wikipedia" / "simple_english_2021.jsonl.zst"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{number}.jsonl" for number in range(FILES)]
    files = [open(path, "w", encoding="utf-8") for path in paths]
    records = Corpus([source]).records(Report())
    documents = (one for one in records if isinstance(one, Document))
    for number, one in enumerate(islice(documents, articles)):
        record = {"id": one.id, "title": one.title, "text": one.text}
        files[number % FILES].write(json.dumps(record) + "\n")
    for file in files:
        file.close()
    return paths


def worker_processes() -> list[int]:
    """The processes of executors' workers on this machine."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            command = (place / "cmdline").read_bytes()
        except (OSError, NotADirectoryError):
            continue
        if place.name.isdigit() and command.startswith(b"ray::_Worker"):
            found.append(int(place.name))
    return found


def kill_one(rng: random.Random) -> bool:
    processes = worker_processes()
    if not processes:
        return False
    try:
        os.kill(rng.choice(processes), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def hits(folder: Path) -> list[list[tuple[str, float]]]:
    index = Index.open(folder)
    found = []
    for question in islice(load("ambignq/dev"), QUESTIONS):
        ranked = index.search(question.text)
        found.append([(hit.passage.id, hit.score) for hit in ranked])
    return found


def builds(given: argparse.Namespace, cluster: Cluster) -> dict[str, Any]:
    rng = random.Random(0)
    sources = write_corpus(given.folder / "corpus", given.articles)
    spread = Spread(2, "hash", run_on(cluster), remote=True)
    began = time.monotonic()
    Index.build(sources, given.folder / "whole", shards=spread)
    usual = time.monotonic() - began
    expected = hits(given.folder / "whole")
    counts = {"builds": 0, "kills": 0, "identical": 0, "sound": 0}
    longest = 0.0
    while counts["kills"] < given.kills:
        place = given.folder / "killed"
        shutil.rmtree(place, ignore_errors=True)
        work = threading.Thread(target=partial(Index.build, sources, place, shards=spread))
        began = time.monotonic()
        work.start()
        time.sleep(rng.uniform(0, usual))
        counts["kills"] += kill_one(rng)
        work.join()
        longest = max(longest, time.monotonic() - began)
        counts["builds"] += 1
        counts["sound"] += check(place).sound
        counts["identical"] += hits(place) == expected
    return counts | {"usual_seconds": usual, "longest_seconds": longest}


def predictions(given: argparse.Namespace, cluster: Cluster) -> dict[str, Any]:
    rng = random.Random(0)
    index = sample.open_index()
    settings = load_settings("compact")
    options: dict[str, Any] = {
        "dataset": "sample/questions",
        "limit": given.questions,
        "batch": 2,
        "system": describe(settings, index),
    }
    given.folder.mkdir(parents=True, exist_ok=True)
    alone, killed = given.folder / "alone.json", given.folder / "killed.json"
    system = build(settings, index, FOR_BENCHMARKS, threads=1)
    began = time.monotonic()
    predict(system.answerer, out=alone, **options)
    usual = time.monotonic() - began
    load_once = partial(built_answerer, settings, index.folder, FOR_BENCHMARKS, 1)
    work = threading.Thread(
        target=partial(
            predict, LoadedOnce(load_once), out=killed, executor=run_on(cluster), **options
        )
    )
    began = time.monotonic()
    work.start()
    kills = 0
    while work.is_alive() and kills < given.kills:
        work.join(rng.uniform(0, usual / given.kills))
        kills += work.is_alive() and kill_one(rng)
    work.join()
    same = alone.read_bytes() == killed.read_bytes()
    return {
        "questions": given.questions,
        "kills": kills,
        "identical": same,
        "seconds": time.monotonic() - began,
        "one_process_seconds": usual,
    }


def swaps(given: argparse.Namespace, cluster: Cluster) -> dict[str, Any]:
    place = given.folder / "swapped"
    sources = write_corpus(given.folder / "corpus", given.articles)
    Index.build(sources[:-1], place, shards=Spread(2))
    served = [ClusterIndex.on_cluster(place)]
    texts = [question.text for question in islice(load("ambignq/dev"), 200)]
    counts = {"searches": 0, "failed": 0, "partial": 0, "swaps": 0}
    lock = threading.Lock()
    ended = threading.Event()

    def search(first: int) -> None:
        number = first
        while not ended.is_set():
            index = served[0]
            try:
                found = index.search(texts[number % len(texts)])
                failed = not found
                partial_ = coverage_of(found) < 1
            except Exception:
                failed, partial_ = True, False
            with lock:
                counts["searches"] += 1
                counts["failed"] += failed
                counts["partial"] += partial_
            number += 1

    threads = [threading.Thread(target=search, args=(50 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    ends = time.monotonic() + given.seconds
    while time.monotonic() < ends:
        for change in (
            partial(add, [sources[-1]], place),
            partial(delete, place, (), [sources[-1].stem]),
        ):
            change()
            newer = served[0].refreshed()
            counts["swaps"] += newer is not served[0]
            served[0] = newer  # type: ignore[call-overload]
            del newer
    ended.set()
    for thread in threads:
        thread.join()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["build", "predict", "swap"])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--articles", type=int, default=2000)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    nodes = start_nodes(2)
    verbs = {"build": builds, "predict": predictions, "swap": swaps}
    with connect(nodes.address) as cluster:
        result = verbs[given.verb](given, cluster)
    result["load"] = os.getloadavg()
    result["provenance"] = provenance(seed=0)
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
