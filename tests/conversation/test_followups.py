"""Follow-ups are about what was meant: over data sheets of three boats, and over the written conversations' form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scenes import harbour

from whichsense.conversation import Conversation, begin, reply
from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import offered
from whichsense.testing import FakeReader, FakeRetriever, FakeVerifier, passage_hit
from whichsense.types import Case

SHEETS = [
    passage_hit(
        "The Heron 300 is a kayak. Released in April 2019. Weight 21.5 kg.",
        "Tarnbeck Heron 300: Data Sheet",
    ),
    passage_hit(
        "The Heron 450 is a kayak for two paddlers. Released in June 2021. Weight 34 kg.",
        "Tarnbeck Heron 450: Data Sheet",
    ),
    passage_hit(
        "The Plover is a canoe. Released in May 2023. Weight 27.8 kg.",
        "Tarnbeck Plover: Data Sheet",
    ),
]
WEIGHTS = {"Heron 300": "21.5 kg", "Heron 450": "34 kg", "Plover": "27.8 kg"}
DATES = {"Heron 300": "April 2019", "Heron 450": "June 2021", "Plover": "May 2023"}


class SheetReader:
    """Finds the weight or the date of every sheet, whichever boat the question names."""

    def read(self, cases: Sequence[Case]) -> list[Case]:
        asks_weight = "weigh" in cases[0].question
        return FakeReader(WEIGHTS if asks_weight else DATES).read(cases)


class SheetClarifier:
    """Offers the boats."""

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        clarified = []
        for case in cases:
            titles = [one.evidence[0].passage.title for one in case.readings]
            labels = [title[9:].partition(":")[0] for title in titles]
            asked = offered("Which boat", "boat", labels, case.readings)
            clarified.append(replace(case, clarification=asked))
        return clarified


def boats(**stages: object) -> Pipeline:
    given = {
        "retriever": FakeRetriever(SHEETS),
        "reader": SheetReader(),
        "clarifier": SheetClarifier(),
    }
    return harbour(**given, **stages)


def talk(*said: str, pipeline: Pipeline | None = None) -> Conversation:
    pipeline = pipeline or boats()
    conversation = begin(pipeline, said[0])
    for text in said[1:]:
        conversation = reply(pipeline, conversation, text)
    return conversation


def answers(conversation: Conversation) -> list[str]:
    return [reading.answer for reading in conversation.last.readings]


@pytest.mark.parametrize("named", ["the Heron 450", "450", "the one for two paddlers"])
def test_a_follow_up_is_answered_for_what_was_named(named: str) -> None:
    released = talk("What does it weigh?", named, "and when was it released?")
    assert released.last.intent.question == "when was the Heron 450 released?"
    assert released.last.shown == "answer" and answers(released) == ["June 2021"]


def test_a_follow_up_without_a_pronoun_is_about_it_too() -> None:
    assert answers(
        talk("What does it weigh?", "the Plover", "what is the date of release?")
    ) == ["May 2023"]


def test_the_rest_can_still_be_named() -> None:
    said = ("What does it weigh?", "the Plover", "and when was it released?")
    assert answers(talk(*said, "and the Heron 300?")) == ["April 2019"]


def test_a_question_that_names_something_itself_is_not_about_it() -> None:
    other = talk(
        "What does it weigh?", "the Plover", "When was the Heron 300 released?"
    )
    assert answers(other) == ["April 2019"]


def test_what_was_named_is_not_tentative_though_it_was_merely_possible() -> None:
    pipeline = boats(verifier=FakeVerifier(0.9))
    named = talk("What does it weigh?", "the Plover", pipeline=pipeline)
    assert named.last.shown == "answer" and answers(named) == ["27.8 kg"]
    assert named.last.readings[0].confidence < 0.5 and not named.last.is_tentative
    assert not Conversation.from_json(named.to_json()).last.is_tentative


def test_a_part_of_a_question_is_completed() -> None:
    weighed = talk("What does it weigh?", "the Plover")
    for said, asked in {
        "and its price?": "What is the Plover's price?",
        "and where?": "where does the Plover weigh?",
    }.items():
        assert reply(boats(), weighed, said).last.intent.question == asked


def test_the_written_conversations_are_whole() -> None:
    """`benchmarks/conversations.py` holds them."""
    path = Path(__file__).with_name("conversations.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) == 30
    for row in rows:
        assert row["corpus"] in ("sample", "handbook", "boatyard")
        assert len(row["turns"]) >= 3
        assert all(turn["say"] and turn["right"] for turn in row["turns"])
