"""The embedded sample is what it says: answers stand in their evidence, rewrites differ, every kind is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from whichsense import sample
from whichsense.text.words import normalize

KINDS = {
    "event references",
    "properties",
    "entity references",
    "answer types",
    "time-dependency",
    "multiple sub-questions",
}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


PASSAGES = {row["id"]: row for row in rows(sample.PASSAGES)}
QUESTIONS = rows(sample.QUESTIONS)
AMBIGUOUS = [row for row in QUESTIONS if row["annotations"][0]["type"] == "multipleQAs"]


def test_it_is_large_and_varied_enough() -> None:
    assert len(PASSAGES) >= 240
    assert len({row["topic"] for row in PASSAGES.values()}) >= 60
    assert len(QUESTIONS) >= 90
    assert len(QUESTIONS) - len(AMBIGUOUS) >= len(QUESTIONS) / 3
    assert len(rows(sample.UNANSWERABLE)) >= 15
    kinds = Counter(kind for row in AMBIGUOUS for kind in row["kinds"])
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 10


def test_ids_and_texts_are_unique() -> None:
    assert len({row["text"] for row in PASSAGES.values()}) == len(PASSAGES)
    asked = QUESTIONS + rows(sample.UNANSWERABLE)
    assert (
        len({row["id"] for row in asked})
        == len({row["question"].lower() for row in asked})
        == len(asked)
    )


def test_every_answer_stands_in_its_evidence() -> None:
    for row in QUESTIONS:
        for annotation in row["annotations"]:
            for pair in annotation.get("qaPairs", [annotation]):
                assert pair["evidence"], row["id"]
                for passage in pair["evidence"]:
                    assert pair["answer"][0] in PASSAGES[passage]["text"], (row["id"], passage)


def test_readings_differ() -> None:
    for row in AMBIGUOUS:
        pairs = row["annotations"][0]["qaPairs"]
        assert len(pairs) >= 2
        assert len({pair["question"] for pair in pairs}) == len(pairs), row["id"]
        assert row["question"] not in {pair["question"] for pair in pairs}, row["id"]
        aliases = [
            normalize(alias) for pair in pairs for alias in {normalize(a) for a in pair["answer"]}
        ]
        assert len(set(aliases)) == len(aliases), row["id"]


def test_its_index_finds_the_evidence() -> None:
    """Word search alone has the evidence of most answers among its first ten."""
    wanted = found = 0
    index = sample.index()
    for row in QUESTIONS:
        hits = {hit.passage.id for hit in index.search(row["question"], 10)}
        for annotation in row["annotations"]:
            for pair in annotation.get("qaPairs", [annotation]):
                wanted += 1
                found += bool(hits & set(pair["evidence"]))
    assert found / wanted > 0.9, found / wanted


def test_without_a_home_nothing_is_left_behind(tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.write_text("a file, where a folder should be")
    temporary.mkdir()
    code = "from whichsense import sample; print(len(sample.index()))"
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == len(sample.PASSAGES.read_text().splitlines())
    assert list(temporary.iterdir()) == []
