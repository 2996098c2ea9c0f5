"""One writer and many readers, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from small_corpora import Corpus
from whichsense import index
from whichsense.index import Index

READER = """
import sys, time
from whichsense.index import Index
until, opened = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < until:
    found = {hit.passage.title for hit in Index.open(sys.argv[1]).search("text", 1000)}
    # Batches are added whole: every reader sees all of a batch or nothing of it.
    batches = {title.split()[0] for title in found}
    assert found == {f"{batch} {n}" for batch in batches for n in range(20)}, sorted(found)
    assert "Batch0" in batches
    opened += 1
print(opened)
"""

WRITER = """
import sys, time
from whichsense import index
from whichsense.errors import IndexBusy
until, added, refused = time.monotonic() + float(sys.argv[2]), 0, 0
sources = sys.argv[3:]
while time.monotonic() < until and sources:
    try:
        index.add([sources[0]], sys.argv[1])
        sources.pop(0)
        added += 1
    except IndexBusy as error:
        assert "is being written by" in str(error), error
        refused += 1
        time.sleep(0.01)
print(added, refused)
"""


def test_two_writers_ten_readers(tmp_path: Path, make_corpus: Corpus) -> None:
    def batch(number: int) -> Path:
        records = [
            (f"Batch{number} {n}", f"Some text of batch {number}, number {n}.")
            for n in range(20)
        ]
        return make_corpus(records, f"batch{number}.jsonl")

    place = tmp_path / "index"
    index.build([batch(0)], place)
    sources = [str(batch(number)) for number in range(1, 41)]
    script = [sys.executable, "-c"]
    writers = [
        [*script, WRITER, str(place), "6", *half]
        for half in (sources[:20], sources[20:])
    ]
    readers = [[*script, READER, str(place), "6"]] * 10
    running = [
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for words in (*writers, *readers)
    ]
    said = [process.communicate(timeout=120) for process in running]
    assert all(process.returncode == 0 for process in running), [
        error for _, error in said if error
    ]
    added = sum(int(out.split()[0]) for out, _ in said[:2])
    assert added > 1
    assert all(int(out) > 0 for out, _ in said[2:])
    assert len(Index.open(place)) == 20 * (added + 1)
    assert index.check(place).sound
