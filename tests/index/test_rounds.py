"""Requests that a search over shards makes: texts come with what was found, and the hits stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from whichsense import sample
from whichsense.index import Index, Spread
from whichsense.index.shards import LocalShards, coverage_of
from whichsense.jobs.workers import run_here
from whichsense.lab.datasets import load
from whichsense.models.static import load_encoder
from whichsense.types import Hit, Method

METHODS: tuple[Method, ...] = ("bm25", "dense", "hybrid")
QUESTIONS = [question.text for question in load("sample/questions")][::12]


class DistantShards(LocalShards):
    """Asked as if they were far away; shard 0 is gone when it is asked for a certain verb."""

    reads_ahead = True
    gone_at = ""

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        self.requests = [*getattr(self, "requests", []), (verb, len(arguments))]
        if verb == self.gone_at:
            arguments = {number: arguments[number] for number in arguments if number}
        return super().ask(verb, arguments)

    def read_again(self) -> bool:
        """Whether texts were asked for since the last time."""
        requests, self.requests = self.requests, []
        assert requests[0][0] == "search"
        return any(count for verb, count in requests if verb == "read")


def distant(folder: Path) -> tuple[Index, DistantShards]:
    near = Index.open(folder)
    shards = DistantShards(near._shards.shards)  # type: ignore[attr-defined]
    return Index(folder, near.manifest, shards=shards), shards


def ranked(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("plain") / "index"
    return Index.build(sample.PASSAGES, folder, encoder=load_encoder("static"))


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sharded") / "index"
    spread = Spread(3, "hash", run_here)
    Index.build(sample.PASSAGES, folder, encoder=load_encoder("static"), shards=spread)
    return folder


@pytest.mark.parametrize("method", METHODS)
def test_texts_come_with_what_was_found(plain: Index, sharded: Path, method: Method) -> None:
    index, shards = distant(sharded)
    again = 0
    for question in QUESTIONS:
        hits = index.search(question, 60, method)
        again += shards.read_again()
        expected = plain.search(question, 60, method)
        for hit, other in zip(hits, expected, strict=True):
            assert hit.passage == other.passage
            assert hit.score == pytest.approx(other.score, rel=1e-6)
    assert again < len(QUESTIONS) / 4


def test_what_is_missing_is_read(sharded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a shard has more of the best than was expected, the rest is asked for."""
    monkeypatch.setattr("whichsense.index.shards.likely_most", lambda k, share: 5)
    index, shards = distant(sharded)
    near = Index.open(sharded)
    for method in METHODS:
        for question in QUESTIONS[:5]:
            hits = index.search(question, 60, method)
            assert shards.read_again()
            assert ranked(hits) == ranked(near.search(question, 60, method))
            assert coverage_of(hits) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_shard_that_goes_between_two_requests(
    sharded: Path, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    """What it found and nobody has read is missing, and the hits say so."""
    monkeypatch.setattr("whichsense.index.shards.likely_most", lambda k, share: 5)
    index, shards = distant(sharded)
    shards.gone_at = "read"
    hits = index.search(QUESTIONS[0], 60, method)
    passages = index.manifest.shard_passages
    assert coverage_of(hits) == pytest.approx(sum(passages[1:]) / sum(passages))
    assert hits
