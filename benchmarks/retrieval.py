"""Retrieval side by side with bm25s + numba, what a user would pick instead: indexing, memory, disk, latency, recall.

    python benchmarks/retrieval.py [--sizes 100000 300000 1000000] [--out results.json]

Each part runs in a process of its own, so that memory is its own; both systems read the same files, in one run.
Uses Wikipedia's text (wikipedia/ in the data folder, WHICHSENSE_DATA) and AmbigNQ's questions where both are, and text
it makes otherwise; what was used is said first.
Needs: pip install bm25s numba
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

ARTICLES = ("passages", "simple_english_2021", "english_2021_part", "english_2015_part")
QUESTIONS, K, BM25S = 500, 100, {"k1": 0.9, "b": 0.4}


def sources() -> list[Path]:
    """Wikipedia's files; none where one of them is missing."""
    from whichsense.lab.datasets.catalog import data_folder

    found = [data_folder() / "wikipedia" / f"{name}.jsonl.zst" for name in ARTICLES]
    return found if all(path.exists() for path in found) else []


def texts() -> Iterator[tuple[str, str]]:
    """(title, passage) pairs: the local Wikipedia cut as the index cuts it, or made text of Zipfian words."""
    if files := sources():
        from whichsense.corpus import Corpus, Report, cut
        from whichsense.types import Document

        for record in Corpus(files).records(Report()):
            if isinstance(record, Document):
                yield from ((passage.title, passage.text) for passage in cut(record))
        return
    chance = random.Random(7)
    vocabulary = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9)))
        for _ in range(200_000)
    ]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    cumulative = [sum_ for sum_ in _running(weights)]
    while True:
        words = chance.choices(vocabulary, cum_weights=cumulative, k=102)
        yield " ".join(words[:2]), " ".join(words[2:])


def _running(weights: list[float]) -> Iterator[float]:
    total = 0.0
    for weight in weights:
        total += weight
        yield total


def questions(folder: Path) -> list[str]:
    if sources():
        from whichsense.lab.datasets import load

        return [question.text for question in islice(load("ambignq/dev"), QUESTIONS)]
    with open(folder / "passages.jsonl", encoding="utf-8") as lines:
        records = [json.loads(line) for line in islice(lines, QUESTIONS)]
    return [f"who {' '.join(record['text'].split()[10:16])}" for record in records]


def write_corpus(folder: Path, size: int) -> None:
    """The same passages for both systems, one a line."""
    with open(folder / "passages.jsonl", "w", encoding="utf-8") as out:
        for title, text in islice(texts(), size):
            out.write(json.dumps({"title": title, "text": text}, ensure_ascii=False) + "\n")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def disk_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def ours_index(folder: Path) -> dict[str, float]:
    from whichsense import index

    began = time.perf_counter()
    index.Index.build(folder / "passages.jsonl", folder / "ours")
    seconds = time.perf_counter() - began
    with open(folder / "passages.jsonl", "rb") as lines:
        count = sum(1 for _ in lines)  # the same for both, though ours drops what is there twice
    return {"rate": count / seconds, "memory_mb": peak_mb(), "disk_mb": disk_mb(folder / "ours")}


def bm25s_index(folder: Path) -> dict[str, float]:
    import bm25s

    began = time.perf_counter()
    with open(folder / "passages.jsonl", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    corpus = [f"{record['title']} {record['text']}" for record in records]
    tokens = bm25s.tokenize(corpus, stopwords="en", show_progress=False)
    retriever = bm25s.BM25(**BM25S, backend="numba")
    retriever.index(tokens, show_progress=False)
    seconds = time.perf_counter() - began
    retriever.save(str(folder / "bm25s"), corpus=corpus)
    return {
        "rate": len(corpus) / seconds,
        "memory_mb": peak_mb(),
        "disk_mb": disk_mb(folder / "bm25s"),
    }


def _latencies(ask: Any, asked: list[str]) -> dict[str, float]:
    for question in asked[:20]:
        ask(question)
    times = []
    for question in asked:
        began = time.perf_counter()
        ask(question)
        times.append((time.perf_counter() - began) * 1000)
    times.sort()
    return {
        "p50_ms": statistics.median(times),
        "p99_ms": times[int(0.99 * len(times))],
        "memory_mb": peak_mb(),
    }


def ours_search(folder: Path) -> dict[str, float]:
    asked = questions(folder)
    from whichsense.index import Index

    began = time.perf_counter()
    opened = Index.open(folder / "ours")
    opened.search(asked[0], K)
    cold = time.perf_counter() - began
    return _latencies(lambda question: opened.search(question, K), asked) | {"open_s": cold}


def bm25s_search(folder: Path) -> dict[str, float]:
    asked = questions(folder)
    import bm25s

    began = time.perf_counter()
    retriever = bm25s.BM25.load(str(folder / "bm25s"), load_corpus=True)
    retriever.backend = "numba"
    retriever.activate_numba_scorer()

    def ask(question: str) -> Any:
        tokens = bm25s.tokenize([question], stopwords="en", show_progress=False, return_ids=False)
        return retriever.retrieve(tokens, k=K, show_progress=False, n_threads=1)

    ask(asked[0])
    cold = time.perf_counter() - began
    return _latencies(ask, asked) | {"open_s": cold}


PARTS = {part.__name__: part for part in (ours_index, bm25s_index, ours_search, bm25s_search)}


def run_part(name: str, folder: Path) -> dict[str, float]:
    words = [sys.executable, __file__, "--part", name, "--folder", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def compare(size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="whichsense-bench-") as name:
        folder = Path(name)
        write_corpus(folder, size)
        results = {part: run_part(part, folder) for part in PARTS}
    ours, theirs = results["ours_search"], results["bm25s_search"]
    results["ratios"] = {
        "indexing rate": results["ours_index"]["rate"] / results["bm25s_index"]["rate"],
        "search p50": ours["p50_ms"] / theirs["p50_ms"],
        "search memory": ours["memory_mb"] / theirs["memory_mb"],
    }
    return results


def show(size: int, results: dict[str, Any]) -> None:
    print(f"\n{size:,} passages                whichsense      bm25s+numba   ratio")
    rows = (
        ("indexing, passages/s", "index", "rate", "indexing rate", ",.0f"),
        ("indexing, peak memory MB", "index", "memory_mb", None, ",.0f"),
        ("disk with text, MB", "index", "disk_mb", None, ",.0f"),
        ("open + first answer, s", "search", "open_s", None, ".2f"),
        ("top 100 with text, p50 ms", "search", "p50_ms", "search p50", ".2f"),
        ("top 100 with text, p99 ms", "search", "p99_ms", None, ".2f"),
        ("searching, peak memory MB", "search", "memory_mb", "search memory", ",.0f"),
    )
    for title, part, key, ratio, form in rows:
        ours, theirs = results[f"ours_{part}"][key], results[f"bm25s_{part}"][key]
        tail = f"{results['ratios'][ratio]:8.2f}" if ratio else ""
        print(f"{title:<28}{ours:>14{form}}{theirs:>16{form}}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(PARTS[arguments.part](arguments.folder)))
        return
    table: dict[str, Any] = {}
    print(
        "text:", "Wikipedia" if sources() else "made up, as Wikipedia's is not in the data folder"
    )
    for size in arguments.sizes:
        table[str(size)] = compare(size)
        show(size, table[str(size)])
    if arguments.out:
        from whichsense.files import write_atomically
        from whichsense.lab.provenance import provenance

        write_atomically(
            arguments.out,
            json.dumps({"provenance": provenance(sources()), "sizes": table}, indent=1),
        )


if __name__ == "__main__":
    main()
