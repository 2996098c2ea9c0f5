"""A sharded index beside one index over the same corpus: the same passages, order and scores, by 1,000 questions.

    python benchmarks/shards.py --folder work [--articles passages simple_english_2021] [--shards 2 4 8] [--out FILE]

Indexes are built in the folder and used again by the next run. Half of the questions are NQ's, half AmbigNQ's. Reads
wikipedia/, nq_open/ and ambignq/ in the data folder (WHICHSENSE_DATA).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from itertools import islice, product
from pathlib import Path
from typing import Any

from whichsense.errors import IndexFault
from whichsense.index import Index, Spread
from whichsense.lab.datasets import load
from whichsense.lab.datasets.catalog import data_folder
from whichsense.lab.provenance import provenance
from whichsense.models.static import load_encoder
from whichsense.types import Hit, Method

METHODS: tuple[Method, ...] = ("bm25", "dense", "hybrid")
K = 100


def build(articles: list[str], folder: Path, spread: Spread | None) -> tuple[Index, float | None]:
    """The index in a folder, and the seconds of its build; None where it was there already."""
    try:
        return Index.open(folder), None
    except IndexFault:
        pass
    start = time.perf_counter()
    index = Index.build(files(articles), folder, encoder=load_encoder("static"), shards=spread)
    return index, time.perf_counter() - start


def files(articles: list[str]) -> list[Path]:
    return [data_folder() / "wikipedia" / f"{name}.jsonl.zst" for name in articles]


def questions(count: int) -> list[str]:
    texts = []
    for name in ("nq_open/dev", "ambignq/dev"):
        texts += [question.text for question in islice(load(name), count // 2)]
    return texts


def searched(index: Index, texts: list[str], method: Method) -> tuple[list[list[Hit]], float]:
    """The hits of all questions, and the median of a search's processor time in milliseconds."""
    hits, seconds = [], []
    for text in texts:
        start = time.process_time()
        hits.append(index.search(text, K, method))
        seconds.append(time.process_time() - start)
    return list(hits), round(1000 * statistics.median(seconds), 2)


def compare(expected: list[list[Hit]], actual: list[list[Hit]]) -> dict[str, Any]:
    same = 0
    largest = 0.0
    for ours, theirs in zip(expected, actual, strict=True):
        ids = [hit.passage.id for hit in ours]
        same += ids == [hit.passage.id for hit in theirs]
        for one, other in zip(ours, theirs, strict=False):
            difference = abs(one.score - other.score) / max(1.0, abs(one.score))
            largest = max(largest, difference)
    return {"identical": same, "largest_relative_difference": largest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--articles", nargs="+", default=["passages", "simple_english_2021"])
    parser.add_argument("--shards", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--by", nargs="+", default=["hash", "source"])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    texts = questions(given.questions)
    one, seconds = build(given.articles, given.folder / "one", None)
    rows: list[dict[str, Any]] = []
    expected, median = {}, {}
    for method in METHODS:
        expected[method], median[method] = searched(one, texts, method)
    rows.append({"shards": 1, "build_seconds": seconds, "median_ms": median})
    print(rows[-1], flush=True)
    for count, by in product(given.shards, given.by):
        spread = Spread(count, by)
        index, seconds = build(given.articles, given.folder / f"{by}-{count}", spread)
        row: dict[str, Any] = {"shards": count, "by": by, "build_seconds": seconds}
        row["passages"] = index.manifest.shard_passages
        for method in METHODS:
            actual, milliseconds = searched(index, texts, method)
            row[method] = compare(expected[method], actual) | {"median_ms": milliseconds}
        rows.append(row)
        print(row, flush=True)
    result = {
        "articles": given.articles,
        "passages": len(one),
        "questions": len(texts),
        "k": K,
        "load": os.getloadavg(),
        "rows": rows,
        "provenance": provenance(files(given.articles)),
    }
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
