"""The dense half by itself: how fast each encoder is, and what the store costs beside a graph and beside reading all.

    python benchmarks/dense.py [--sizes 100000 300000 1000000] [--graph] [--encoders static minilm]

Vectors are those of the static encoder over the passages that benchmarks/retrieval.py uses; queries are AmbigNQ's val
questions where they are, and first halves of passages otherwise. "found" is the share of the exact nearest 100 (float).
`--graph` builds usearch's HNSW too (pip install usearch), which takes minutes at a million.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval import texts  # type: ignore[import-not-found,unused-ignore]  # beside this file
from whichsense.errors import MissingData
from whichsense.index.dense import Clustering, Vectors, nearest_of
from whichsense.index.dense_writer import VectorsWriter
from whichsense.lab.datasets import load
from whichsense.models.static import estimate, load_encoder

Floats = NDArray[np.float32]
QUERIES, K, CHUNK = 200, 100, 4096


def questions(passages: list[str]) -> list[str]:
    with contextlib.suppress(MissingData):
        return [question.text for question in islice(load("ambignq/val"), QUERIES)]
    return [" ".join(passage.split()[:50]) for passage in passages[:QUERIES]]


def nearest(queries: Floats, vectors: Floats) -> list[set[int]]:
    """The exact answer, block by block."""
    best = [(np.zeros(0), np.zeros(0, dtype=np.intp)) for _ in queries]
    for start in range(0, len(vectors), 50_000):
        scores = queries @ vectors[start : start + 50_000].T
        for place, row in enumerate(scores):
            old_scores, old_rows = best[place]
            joined = np.concatenate([old_scores, row])
            rows = np.concatenate([old_rows, np.arange(start, start + len(row))])
            keep = np.argpartition(-joined, min(K, len(joined)) - 1)[:K]
            best[place] = joined[keep], rows[keep]
    return [set(rows.tolist()) for _, rows in best]


def show(
    name: str,
    search: Callable[[Floats], list[int]],
    queries: Floats,
    exact: list[set[int]],
    rest: str,
) -> None:
    search(queries[0])
    took, found = [], []
    for query, wanted in zip(queries, exact, strict=True):
        begun = time.perf_counter()
        got = search(query)
        took.append(time.perf_counter() - begun)
        found.append(len(wanted & set(got)) / len(wanted))
    print(
        f"  {name:<22} p50 {1000 * statistics.median(took):6.2f} ms  found {statistics.mean(found):.3f}  {rest}"
    )


def store(vectors: Floats, queries: Floats, exact: list[set[int]], folder: Path) -> None:
    begun = time.perf_counter()
    with VectorsWriter(folder, vectors.shape[1]) as writer:
        for start in range(0, len(vectors), CHUNK):
            part = vectors[start : start + CHUNK]
            writer.add(np.arange(start, start + len(part), dtype=np.uint64), part)
        writer.save()
    rate = len(vectors) / (time.perf_counter() - begun)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    opened = Vectors.open(folder)

    def search(query: Floats) -> list[int]:
        rows, rough, cosines = opened.candidates(query, K, opened.count)
        found: list[int] = rows[nearest_of(rows, rough, cosines, K)].tolist()
        return found

    show("lists, int8", search, queries, exact, f"{rate:,.0f} vectors/s to build, {size:.0f} MB")
    for name, share in (("a fifth, int8", 5), ("all of them, int8", 1)):
        # `search` looks `opened` up when it is called.
        opened = Vectors.open(folder, Clustering(always_read=len(vectors) // share))
        show(name, search, queries, exact, "")


def graph(vectors: Floats, queries: Floats, exact: list[set[int]], folder: Path) -> None:
    from usearch.index import Index

    begun = time.perf_counter()
    built = Index(
        ndim=vectors.shape[1], metric="cos", dtype="i8", connectivity=16, expansion_add=64
    )
    for start in range(0, len(vectors), CHUNK):
        part = vectors[start : start + CHUNK]
        built.add(np.arange(start, start + len(part)), part)
    rate = len(vectors) / (time.perf_counter() - begun)
    path = folder / "graph.usearch"
    built.save(str(path))
    viewed = Index.restore(str(path), view=True)
    assert viewed is not None
    for breadth in (100, 400):
        viewed.expansion_search = breadth  # type: ignore[misc,unused-ignore]  # it has a setter
        rest = (
            f"{rate:,.0f} vectors/s to build, {path.stat().st_size / 1e6:.0f} MB"
            if breadth == 100
            else ""
        )
        show(
            f"graph, int8, breadth {breadth}",
            lambda query: [int(key) for key in viewed.search(query, K).keys],
            queries,
            exact,
            rest,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--encoders", nargs="+", default=["static"])
    parser.add_argument("--graph", action="store_true")
    settings = parser.parse_args()
    passages = [f"{title}\n{text}" for title, text in islice(texts(), max(settings.sizes))]
    for name in settings.encoders:
        rate = estimate(load_encoder(name), passages[-2000:], seconds=20)
        print(f"{name}: {rate:,.0f} passages a second")
    encoder = load_encoder("static")
    parts = [
        encoder.encode_passages(passages[start : start + CHUNK])
        for start in range(0, len(passages), CHUNK)
    ]
    everything, queries = (np.concatenate(parts), encoder.encode_questions(questions(passages)))
    for size in settings.sizes:
        vectors = everything[:: max(1, len(everything) // size)][:size]
        exact = nearest(queries, vectors)
        print(f"{len(vectors):,} vectors")
        with tempfile.TemporaryDirectory() as folder:
            store(vectors, queries, exact, Path(folder) / "lists")
            if settings.graph:
                graph(vectors, queries, exact, Path(folder))


if __name__ == "__main__":
    main()
