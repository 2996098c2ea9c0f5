"""The pipeline calls the stages in order, and says which one is missing."""

from __future__ import annotations

import dataclasses

import pytest

from whichsense import Pipeline, sample
from whichsense.errors import BadInput, MissingStage
from whichsense.stages.retrieve import IndexRetriever
from whichsense.testing import (
    FakeClarifier,
    FakeDisambiguator,
    FakeReader,
    FakeReranker,
    FakeRetriever,
    FakeSummarizer,
    FakeVerifier,
    passage_hit,
)

HITS = [
    passage_hit("The film Dune of 1984 was made by David Lynch.", "Dune (1984 film)"),
    passage_hit("Sand moves in the wind.", "Dune (sand)"),
    passage_hit(
        "The film Dune of 2021 was made by Denis Villeneuve.", "Dune (2021 film)"
    ),
]
WHOLE = Pipeline(
    FakeRetriever(HITS),
    FakeReranker(),
    FakeReader(
        {"1984": "David Lynch", "2021": "Denis Villeneuve", "2000": "John Harrison"}
    ),
    FakeDisambiguator(),
    FakeVerifier(),
    FakeClarifier(),
    FakeSummarizer(),
)


def test_readings_in_order() -> None:
    (readings,) = WHOLE.readings(["Who made the film Dune?"])
    assert [(reading.answer, reading.question) for reading in readings] == [
        ("David Lynch", "Who made the film Dune (Dune (1984 film))?"),
        ("Denis Villeneuve", "Who made the film Dune (Dune (2021 film))?"),
    ]
    span = readings[0].evidence[0]
    assert span.passage.text[span.start : span.end] == "David Lynch"


def test_a_string_is_no_list_of_questions() -> None:
    pipeline = Pipeline(IndexRetriever(sample.index()))
    for asked in (
        pipeline.evidence,
        pipeline.readings,
        lambda one: list(pipeline.traces(one)),
    ):
        with pytest.raises(BadInput, match="list of questions"):
            asked("Who?")


def test_reranker_decides_what_is_kept() -> None:
    kept = dataclasses.replace(WHOLE, keep=2).evidence(["Who made the film Dune?"])[0]
    assert [hit.passage.title for hit in kept] == [
        "Dune (1984 film)",
        "Dune (2021 film)",
    ]
    alone = dataclasses.replace(WHOLE, reranker=None, depth=1).evidence(["Who?"])[0]
    assert alone == HITS[:1]


def test_clarify_and_summarize() -> None:
    asked = WHOLE.clarify("Who made the film Dune?")
    assert len(asked.options) == len(asked.readings) == 2
    told = WHOLE.summarize("Who made the film Dune?")
    assert "David Lynch" in told.text
    assert all(citation.passages for citation in told.sentences)


@pytest.mark.parametrize(
    ("ask", "stage"),
    [("clarify", "clarifier"), ("summarize", "summarizer"), ("readings", "reader")],
)
def test_missing_stage_is_named(ask: str, stage: str) -> None:
    bare = Pipeline(FakeRetriever(HITS))
    with pytest.raises(MissingStage, match=stage):
        getattr(bare, ask)(["Who?"] if ask == "readings" else "Who?")


def test_over_a_real_index() -> None:
    pipeline = Pipeline(IndexRetriever(sample.index()), keep=3)
    found = pipeline.evidence(
        ["When was the city of New York founded?", "Who wrote it?"]
    )
    assert [len(hits) for hits in found] == [3, 3]
    assert found[0][0].passage.id.startswith("new-york")
