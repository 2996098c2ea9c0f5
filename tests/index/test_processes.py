"""One writer and many readers, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from patience import LONGEST
from small_corpora import Corpus
from whichsense import index
from whichsense.index import Index

READER = """
import sys
from pathlib import Path
from whichsense.index import Index
opened = 0
while not opened or not Path(sys.argv[2]).exists():
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
sources = sys.argv[2:]
while sources:
    try:
        index.add([sources[0]], sys.argv[1])
        sources.pop(0)
    except IndexBusy as error:
        assert "is being written by" in str(error), error
        time.sleep(0.01)
"""


def test_two_writers_ten_readers(tmp_path: Path, make_corpus: Corpus) -> None:
    def batch(number: int) -> Path:
        records = [
            (f"Batch{number} {n}", f"Some text of batch {number}, number {n}.") for n in range(20)
        ]
        return make_corpus(records, f"batch{number}.jsonl")

    place, ended = tmp_path / "index", tmp_path / "ended"
    index.Index.build(batch(0), place)
    sources = [str(batch(number)) for number in range(1, 13)]
    writers = [start(WRITER, str(place), *half) for half in (sources[:6], sources[6:])]
    readers = [start(READER, str(place), str(ended)) for _ in range(10)]
    errors = [process.communicate(timeout=LONGEST)[1] for process in writers]
    ended.touch()
    said = [process.communicate(timeout=LONGEST) for process in readers]
    errors += [error for _, error in said]
    assert all(process.returncode == 0 for process in (*writers, *readers)), errors
    assert all(int(out) > 0 for out, _ in said)
    assert len(Index.open(place)) == 20 * (len(sources) + 1)
    assert index.check(place).sound


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
