"""The pipeline calls the stages in order, and says which one is missing."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Sequence

import pytest

from whichsense import Case, Pipeline, sample
from whichsense.errors import BadInput, MissingStage
from whichsense.jobs.limits import Limits
from whichsense.stages.retrieve import IndexRetriever
from whichsense.testing import (
    FakeClarifier,
    FakeDetector,
    FakeDisambiguator,
    FakeReader,
    FakeReranker,
    FakeRetriever,
    FakeSummarizer,
    FakeVerifier,
    passage_hit,
)
from whichsense.types import FOR_BENCHMARKS, FOR_PEOPLE, AskedAgain, Reading

HITS = [
    passage_hit("The film Dune of 1984 was made by David Lynch.", "Dune (1984 film)"),
    passage_hit("Sand moves in the wind.", "Dune (sand)"),
    passage_hit("The film Dune of 2021 was made by Denis Villeneuve.", "Dune (2021 film)"),
]
WHOLE = Pipeline(
    FakeRetriever(HITS),
    FakeReranker(),
    FakeReader({"1984": "David Lynch", "2021": "Denis Villeneuve", "2000": "John Harrison"}),
    FakeDisambiguator(),
    FakeVerifier(),
    FakeClarifier(),
    FakeSummarizer(),
)


def test_readings_in_order() -> None:
    readings = WHOLE.readings("Who made the film Dune?")
    assert [(reading.answer, reading.question) for reading in readings] == [
        ("David Lynch", "Who made the film Dune (Dune (1984 film))?"),
        ("Denis Villeneuve", "Who made the film Dune (Dune (2021 film))?"),
    ]
    span = readings[0].evidence[0]
    assert span.passage.text[span.start : span.end] == "David Lynch"


def test_a_string_is_no_list_of_questions() -> None:
    with pytest.raises(BadInput, match="list of questions"):
        WHOLE.run("Who?")


def test_reranker_decides_what_is_kept() -> None:
    two = dataclasses.replace(WHOLE, keep=2)
    (kept,) = two.run(["Who made the film Dune?"], "evidence")
    assert [hit.passage.title for hit in kept.hits] == ["Dune (1984 film)", "Dune (2021 film)"]
    plain = dataclasses.replace(WHOLE, reranker=None, depth=1)
    assert plain.run(["Who?"], "evidence")[0].hits == tuple(HITS[:1])


def test_clarify_and_summarize() -> None:
    question = "Who made the film Dune?"
    case = WHOLE.ask(question)
    for asked in (question, case):
        clarification = WHOLE.clarify(asked)
        assert clarification is not None
        assert [len(one.readings) for one in clarification.options] == [1, 1]
        answer = WHOLE.summarize(asked)
        assert answer is not None and "David Lynch" in answer.text
        assert all(citation.passages for citation in answer.sentences)
    assert WHOLE.run([question], "clarification")[0].clarification is not None
    assert WHOLE.run([question], "long answer")[0].long_answer is not None


def test_each_stage_that_ends_is_told_and_timed() -> None:
    ended: list[tuple[str, int]] = []
    cases = dataclasses.replace(WHOLE, batch=2, detector=FakeDetector()).run(
        ["Who made Dune?", "Who made the film Dune?", "Who?"],
        on_stage=lambda name, some: ended.append((name, len(some))),
    )
    others = ["rerank", "read", "detect", "disambiguate", "verify"]
    expected = [("retrieve", 3)]
    expected += [(name, 2) for name in others] + [(name, 1) for name in others]
    assert ended == expected
    for case in cases:
        assert list(case.spent) == ["retrieve", *others]
        assert all(cost.seconds >= 0 for cost in case.spent.values())
        assert case.is_ambiguous is True and case.stopped == ""


def test_a_deadline_ends_a_batch_with_what_it_has() -> None:
    """The clock runs out while the first batch is read: the second is not begun."""
    now = iter([False] * 3 + [True] * 99)
    limits = Limits.of(cancelled=lambda: next(now))
    cases = dataclasses.replace(WHOLE, batch=1).run(["Who?", "When?"], limits=limits)
    assert [case.stopped for case in cases] == ["cancelled"] * 2
    assert all(case.hits and not case.readings for case in cases)
    assert WHOLE.run([]) == []


def test_a_case_survives_json() -> None:
    (case,) = WHOLE.run(["Who made the film Dune?"], "clarification")
    case = dataclasses.replace(case, long_answer=WHOLE.summarize(case), scratch=object())
    written = json.loads(json.dumps(case.to_json()))
    assert written["schema"] == 4 and "scratch" not in written
    assert Case.from_json(written) == case and pickle.loads(pickle.dumps(written)) == written
    wrong = [
        ({**written, "schema": 1}, "schema"),
        ({key: value for key, value in written.items() if key != "hits"}, "hits"),
        ({**written, "question": 3}, "question"),
        ({**written, "colour": 3}, "colour"),
        ({**written, "hits": [{**written["hits"][0], "score": "x"}]}, r"hits\[0\].score"),
        ([], "schema"),
    ]
    for value, named in wrong:
        with pytest.raises(BadInput, match=named):
            Case.from_json(value)  # type: ignore[arg-type]


def test_possible_readings_survive_json() -> None:
    asked_again = AskedAgain(own=0.9, other=0.05, fluent=0.8)
    probable = Reading("Who made Dune?", "David Lynch", source="Dune (1984 film)")
    possible = Reading("Who made it?", "Frank Herbert", asked_again=asked_again)
    case = Case("Who made Dune?", readings=(probable,), possible=(possible,))
    written = json.loads(json.dumps(case.to_json()))
    assert written["readings"][0]["source"] == "Dune (1984 film)"
    assert written["readings"][0]["asked_again"] is None
    assert written["possible"][0]["asked_again"] == {"own": 0.9, "other": 0.05, "fluent": 0.8}
    assert Case.from_json(written) == case
    del written["possible"][0]["asked_again"]["other"]
    with pytest.raises(BadInput, match=r"possible\[0\].asked_again: .*'other'"):
        Case.from_json(written)


def test_what_is_merely_possible_is_kept_apart_for_people_alone() -> None:
    """Two passages say Lynch, one says Villeneuve. Later stages see what is probable."""
    more = passage_hit("In 1984 David Lynch made a film.", "David Lynch")
    careful = dataclasses.replace(
        WHOLE, retriever=FakeRetriever([*HITS, more]), verifier=FakeVerifier(0.5)
    )
    question = "Who made the film Dune?"
    case = careful.ask(question)
    assert answers_of(case.readings) == ["David Lynch"]
    assert answers_of(case.possible) == ["Denis Villeneuve"]
    assert case.confidence == case.readings[0].confidence > 0.5
    assert not case.has_several_readings
    (clarified,) = careful.run([question], "clarification")
    assert clarified.clarification is not None
    offered = clarified.clarification.options
    assert tuple(one.readings[0] for one in offered) == case.readings
    assert clarified.possible == case.possible
    (summarized,) = careful.run([question], "long answer")
    assert summarized.long_answer is not None
    assert "Villeneuve" not in summarized.long_answer.text
    assert summarized.possible == case.possible
    by_threshold = dataclasses.replace(FOR_PEOPLE, threshold=0.2)
    for policy in (FOR_BENCHMARKS, by_threshold):
        everything = dataclasses.replace(careful, policy=policy).ask(question)
        assert answers_of(everything.readings) == ["David Lynch", "Denis Villeneuve"]
        assert everything.possible == ()


def answers_of(readings: Sequence[Reading]) -> list[str]:
    return [reading.answer for reading in readings]


def test_without_a_probable_reading_the_confidence_is_that_of_an_answer() -> None:
    possible = (Reading("Who?", "Ann", confidence=0.2),) * 2
    case = Case("Who?", possible=possible, answerable=0.4, is_ambiguous=True)
    assert case.confidence == 0.4 and not case.has_several_readings


def test_a_reading_without_a_rewrite_says_where_it_is_from() -> None:
    """A title does not tell two answers of one text apart: they keep the question."""
    both = passage_hit("In 1984 David Lynch, in 2021 Denis Villeneuve.", "Dune")
    pipeline = dataclasses.replace(WHOLE, retriever=FakeRetriever([both]))
    for reading in pipeline.readings("Who made it?"):
        assert (reading.question, reading.source) == ("Who made it?", "Dune")


@pytest.mark.parametrize(
    ("ask", "stage"),
    [("clarify", "clarifier"), ("summarize", "summarizer"), ("readings", "reader")],
)
def test_missing_stage_is_named(ask: str, stage: str) -> None:
    bare = Pipeline(FakeRetriever(HITS))
    with pytest.raises(MissingStage, match=stage):
        getattr(bare, ask)("Who?")


def test_over_a_real_index() -> None:
    pipeline = Pipeline(IndexRetriever(sample.index()), keep=3)
    found = pipeline.run(["When was the city of New York founded?", "Who wrote it?"], "evidence")
    assert [len(case.hits) for case in found] == [3, 3]
    assert found[0].hits[0].passage.id.startswith("new-york")
