"""How an index grows: rate, disk, memory and latency at several sizes, a line fitted through them, and what it says of
sizes that were not measured.

    python benchmarks/scale.py measure SIZE --folder work [--search]      one size, in millions (0.1, 0.3, 1, 3, 10)
    python benchmarks/scale.py search SIZE --folder work [--ask 20]       its latencies, where it was built before
    python benchmarks/scale.py fit --folder work [--out results.json]     all sizes that were measured

Text is the local Wikipedia's (wikipedia/ in the data folder, WHICHSENSE_DATA). Where it runs out, articles are read
again with their sentences in another order: the words are real, the passages new. `recombined` says how many.
A build that is ended resumes. Search is measured in a process of its own, so that memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from whichsense.corpus import Corpus, Report
from whichsense.index import Index
from whichsense.lab.datasets import load
from whichsense.lab.datasets.catalog import data_folder
from whichsense.lab.provenance import provenance
from whichsense.models.static import load_encoder
from whichsense.types import Document, Method

ARTICLES = ("passages", "simple_english_2021", "english_2021_part", "english_2015_part")
METHODS: tuple[Method, ...] = ("bm25", "dense", "hybrid")
K = 100
FAR = (24e6, 1e9)


def documents() -> Iterator[tuple[Document, bool]]:
    """Articles without end, and whether their sentences were put in another order."""
    files = _files()
    rounds = 0
    while True:
        rng = random.Random(rounds)
        for record in Corpus(files).records(Report()):
            if isinstance(record, Document):
                yield ((_shuffled(record, rng, rounds), True) if rounds else (record, False))
        rounds += 1


def _files() -> list[Path]:
    return [data_folder() / "wikipedia" / f"{name}.jsonl.zst" for name in ARTICLES]


def _shuffled(document: Document, rng: random.Random, rounds: int) -> Document:
    sentences = re.split(r"(?<=[.!?])\s+", document.text)
    rng.shuffle(sentences)
    text = " ".join(sentences)
    return Document(f"{rounds}/{document.id}", document.title, text, document.source)


def write_corpus(path: Path, passages: int) -> int:
    """Articles for about so many passages of 100 words, in JSON lines; how many passages are of recombined text."""
    count = recombined = 0
    with open(path, "w", encoding="utf-8") as out:
        for document, is_shuffled in documents():
            own = max(1, round(len(document.text.split()) / 100))
            record = {"id": document.id, "title": document.title, "text": document.text}
            out.write(json.dumps(record) + "\n")
            count += own
            recombined += own * is_shuffled
            if count >= passages:
                break
    return recombined


def measure(given: argparse.Namespace) -> None:
    """Build, in as many runs as it takes: a run that is ended (SIGTERM) is resumed by the next."""
    place = given.folder / f"{given.size:g}"
    place.mkdir(parents=True, exist_ok=True)
    corpus = place / "corpus.jsonl"
    if not (place / "corpus.json").exists():
        recombined = write_corpus(corpus, round(given.size * 1e6))
        (place / "corpus.json").write_text(json.dumps({"recombined": recombined}))
    if not (place / "build.json").exists():
        _build(place, corpus)
        corpus.unlink()
    if given.search:
        command = [sys.executable, __file__, "search", str(given.size)]
        command += ["--folder", str(given.folder), "--ask", str(given.ask)]
        subprocess.run(command, check=True)


def _build(place: Path, corpus: Path) -> None:
    began, cpu_began = time.perf_counter(), time.process_time()
    phases: dict[str, float] = {}

    def say(line: str) -> None:
        # Words are done: vectors begin.
        phases["words_seconds"] = time.perf_counter() - began
        phases["words_cpu"] = time.process_time() - cpu_began

    runs = place / "runs.jsonl"
    try:
        built = Index.build(corpus, place / "index", encoder=load_encoder("static"), say=say)
    finally:
        run = phases | {
            "seconds": time.perf_counter() - began,
            "cpu": time.process_time() - cpu_began,
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "load": os.getloadavg(),
        }
        with open(runs, "a", encoding="utf-8") as out:
            out.write(json.dumps(run) + "\n")
    facts = json.loads((place / "corpus.json").read_text())
    every = [json.loads(line) for line in runs.read_text().splitlines()]
    facts |= {
        "passages": len(built),
        "seconds": sum(run["seconds"] for run in every),
        "cpu": sum(run["cpu"] for run in every),
        # A run that did not get to the vectors was words alone.
        "words_cpu": sum(run.get("words_cpu", run["cpu"]) for run in every),
        "build_rss_mb": max(run["rss_mb"] for run in every),
        "runs": every,
    }
    (place / "build.json").write_text(json.dumps(facts))


def search(given: argparse.Namespace) -> None:
    place = given.folder / f"{given.size:g}"
    index = Index.open(place / "index")
    texts = [question.text for question in islice(load("ambignq/dev"), given.questions)]
    disk: dict[str, int] = {}
    for name, record in index.manifest.files.items():
        part = name.partition("/")[0]
        disk[part] = disk.get(part, 0) + record.size
    facts: dict[str, Any] = {"disk": disk, "questions": len(texts)}
    for method in METHODS:
        facts[method] = _timed(lambda text: index.search(text, K, method), texts)  # noqa: B023
    # Clean pages of mapped files can be dropped; what the process holds itself cannot.
    facts["resident_mb"] = _resident("RssAnon")
    facts["mapped_mb"] = _resident("RssFile")
    if given.ask:
        from whichsense.systems import load as load_system

        pipeline = load_system(index=index)
        pipeline.ask(texts[0])
        facts["ask"] = _timed(pipeline.ask, texts[1 : 1 + given.ask])
        facts["ask_resident_mb"] = _resident("RssAnon")
    facts["load"] = os.getloadavg()
    (place / "search.json").write_text(json.dumps(facts))
    print(json.dumps(facts, indent=1))


def _timed(work: Any, texts: list[str]) -> dict[str, float]:
    """Percentiles of the time, and of the processor time, which says the same of a machine that is busy."""
    seconds, cpu = [], []
    for text in texts:
        began, cpu_began = time.perf_counter(), time.process_time()
        work(text)
        cpu.append(time.process_time() - cpu_began)
        seconds.append(time.perf_counter() - began)
    half, last = np.percentile(seconds, [50, 99])
    cpu_half, cpu_last = np.percentile(cpu, [50, 99])
    return {
        "p50_ms": 1000 * float(half),
        "p99_ms": 1000 * float(last),
        "cpu_p50_ms": 1000 * float(cpu_half),
        "cpu_p99_ms": 1000 * float(cpu_last),
    }


def _resident(kind: str) -> float:
    with open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(kind):
                return int(line.split()[1]) / 1024
    return 0.0


def fit(given: argparse.Namespace) -> None:
    """Straight lines through the measured sizes, with the standard error of what they say of larger ones."""
    rows = []
    for place in sorted(given.folder.iterdir()):
        if (place / "search.json").exists():
            both = json.loads((place / "build.json").read_text())
            rows.append(both | json.loads((place / "search.json").read_text()))
    rows.sort(key=lambda row: row["passages"])
    sizes = np.array([row["passages"] for row in rows], dtype=float)
    values = {
        "disk_words_gb": [_disk(row, vectors=False) / 1e9 for row in rows],
        "disk_gb": [_disk(row, vectors=True) / 1e9 for row in rows],
        "resident_mb": [row["resident_mb"] for row in rows],
        "build_cpu_hours": [row["cpu"] / 3600 for row in rows],
    }
    for method in METHODS:
        for time_ in ("p50_ms", "cpu_p50_ms"):
            values[f"{method}_{time_}"] = [row[method][time_] for row in rows]
    carried = {name: _carried(sizes, np.array(value)) for name, value in values.items()}
    result = {"rows": rows, "carried": carried, "provenance": provenance(_files(), 0)}
    print(json.dumps(carried, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


def _disk(row: dict[str, Any], *, vectors: bool) -> int:
    size = 0
    for part, bytes_ in row["disk"].items():
        if vectors or part != "vectors":
            size += bytes_
    return size


def _carried(sizes: Any, values: Any) -> dict[str, Any]:
    """The line, and its value with standard error at sizes that were not measured; None with fewer than three sizes."""
    slope, start = np.polyfit(sizes, values, 1)
    table: dict[str, Any] = {"a_million": slope * 1e6, "start": start}
    left = values - (start + slope * sizes)
    degrees = len(sizes) - 2
    spread = float(np.sum((sizes - sizes.mean()) ** 2))
    for far in FAR:
        error = None
        if degrees > 0:
            noise = float(np.sqrt(np.sum(left**2) / degrees))
            leverage = 1 + 1 / len(sizes) + (far - sizes.mean()) ** 2 / spread
            error = noise * float(np.sqrt(leverage))
        table[f"{far:g}"] = {"value": start + slope * far, "error": error}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("measure", "search"):
        one = verbs.add_parser(verb)
        one.add_argument("size", type=float)
        one.add_argument("--ask", type=int, default=20)
        one.add_argument("--folder", type=Path, required=True)
        one.add_argument("--search", action="store_true")
        one.add_argument("--questions", type=int, default=500)
    last = verbs.add_parser("fit")
    last.add_argument("--folder", type=Path, required=True)
    last.add_argument("--out", type=Path)
    given = parser.parse_args()
    {"measure": measure, "search": search, "fit": fit}[given.verb](given)


if __name__ == "__main__":
    main()
