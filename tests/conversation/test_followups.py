"""Follow-ups are about what was meant: over data sheets of three boats, and over the written conversations' form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    given: dict[str, object] = {
        "retriever": FakeRetriever(SHEETS),
        "reader": SheetReader(),
        "clarifier": SheetClarifier(),
    }
    return harbour(**{**given, **stages})


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
    assert answers(talk("What does it weigh?", "the Plover", "what is the date of release?")) == [
        "May 2023"
    ]


def test_the_rest_can_still_be_named() -> None:
    said = ("What does it weigh?", "the Plover", "and when was it released?")
    assert answers(talk(*said, "and the Heron 300?")) == ["April 2019"]


def test_a_question_that_names_something_itself_is_not_about_it() -> None:
    other = talk("What does it weigh?", "the Plover", "When was the Heron 300 released?")
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


@dataclass(frozen=True)
class TitledReader:
    """Answers what it knows, a word of the question and the answer in the passages, whatever else is asked."""

    known: Mapping[str, Mapping[str, str]]

    def read(self, cases: Sequence[Case]) -> list[Case]:
        words = cases[0].question.lower()
        found = [self.known[word] for word in self.known if word in words]
        return FakeReader(found[0] if found else {}).read(cases)


FILMS = [
    passage_hit(
        "Joaquin Phoenix plays the Joker. The composer Hildur Gudnadottir won a prize.",
        "Joker (2019 film)",
    ),
    passage_hit("Heath Ledger plays the Joker in 2008.", "The Dark Knight"),
]
GOOSE = passage_hit("In this film an orange cat is named Goose.", "Captain Marvel (2019 film)")
PLAYERS = {"Joaquin": "Joaquin Phoenix", "Ledger": "Heath Ledger"}


def films(**known: Mapping[str, str]) -> Pipeline:
    reader = TitledReader({"played": PLAYERS, **known})
    return harbour(retriever=FakeRetriever([*FILMS, GOOSE]), reader=reader)


@pytest.mark.parametrize("said", ["What is a lynx?", "who wrote the bible?", "lynx"])
def test_a_question_of_its_own_is_not_answered_about_the_topic(said: str) -> None:
    """Though the reader would answer with the topic's name in the question."""
    pipeline = films(**{"2019": {"Goose": "Goose", **PLAYERS}})
    joker = talk("Who played the Joker?", "the 2019 film", pipeline=pipeline)
    assert answers(joker) == ["Joaquin Phoenix"]
    other = reply(pipeline, joker, said)
    assert other.last.shown == "nothing" and not answers(other)
    # What follows is not about the Joker, either.
    heavier = reply(pipeline, other, "how heavy is it?")
    assert "Joker" not in heavier.last.intent.question
    if "a lynx" in said:
        assert heavier.last.intent.question == "how heavy is the lynx?"


def test_of_several_that_were_chosen_all_are_talked_about() -> None:
    both = talk("What does it weigh?", "the Plover and the Heron 450")
    assert sorted(answers(both)) == ["27.8 kg", "34 kg"]
    released = reply(boats(), both, "when were they released?")
    assert sorted(answers(released)) == ["June 2021", "May 2023"]


def test_what_the_evidence_says_in_other_words_is_about_the_topic() -> None:
    """The passage has a composer, and no music."""
    pipeline = films(**{"2019": {"Hildur": "Hildur Gudnadottir"}})
    joker = talk("Who played the Joker?", "the 2019 film", pipeline=pipeline)
    music = reply(pipeline, joker, "who wrote the music?")
    assert answers(music) == ["Hildur Gudnadottir"]
    assert music.last.message == "Taken as: the 2019 film Joker."


def test_a_person_is_who_was_asked_about_where_the_answer_is_not() -> None:
    retriever = FakeRetriever(FILMS)
    pipeline = replace(
        films(**{"arthur fleck's": {"Joaquin": "Joaquin Phoenix"}}), retriever=retriever
    )
    played = talk("Who played Arthur Fleck?", "the 2019 film", pipeline=pipeline)
    mother = reply(pipeline, played, "and where does his mother live?")
    asked = "where does Arthur Fleck's mother live?"
    assert mother.last.intent.question == asked
    before = asked.replace("Arthur Fleck", "Joaquin Phoenix")
    assert retriever.asked[-2:] == [before, asked]


def test_a_title_that_all_share_chooses_nothing() -> None:
    """Both answers are of one document: its name in the question says nothing of them."""
    hits = [
        passage_hit("In the West End Harbour opened in 1986.", "Harbour (musical)"),
        passage_hit("On Broadway Harbour opened in 1988.", "Harbour (musical)"),
    ]
    reader = FakeReader({"1986": "1986", "1988": "1988"})

    class SourceClarifier:
        def clarify(self, cases: Sequence[Case]) -> list[Case]:
            labels = ["Harbour (musical)", "Broadway"]
            asked = offered("Which one", "one", labels, cases[0].readings)
            return [replace(cases[0], clarification=asked)]

    pipeline = harbour(retriever=FakeRetriever(hits), reader=reader, clarifier=SourceClarifier())
    asked = begin(pipeline, "When did the musical Harbour open?")
    assert asked.last.shown == "clarification" and len(answers(asked)) == 2


def test_the_sentence_says_which_answer_words_name() -> None:
    """Every passage of a rota has every week; the sentences differ."""
    rota = "Week of 12 May: first line Imke Sand. Week of 19 May: first line Bo Corr."
    reader = FakeReader({"Imke": "Imke Sand", "Bo": "Bo Corr"})
    hits = [passage_hit(rota, "Rota")]
    pipeline = harbour(retriever=FakeRetriever(hits), reader=reader, clarifier=None)
    begun = begin(pipeline, "Who is on the first line?")
    assert answers(reply(pipeline, begun, "in the week of 19 May")) == ["Bo Corr"]
    assert answers(reply(pipeline, begun, "in the week of 12 May")) == ["Imke Sand"]


def test_another_item_of_a_list_is_not_what_words_name() -> None:
    """The sentence has Malta, and the answer is Finland's."""
    policy = passage_hit("Working days a year: Finland 27, Austria 26, Malta 29.", "Leave")
    reader = FakeReader({"Finland": "27"})
    pipeline = harbour(retriever=FakeRetriever([policy]), reader=reader, clarifier=None)
    begun = begin(pipeline, "How many days of leave do we have?")
    assert answers(reply(pipeline, begun, "in Finland")) == ["27"]
    assert not answers(reply(pipeline, begun, "in Malta"))


def test_what_was_offered_before_can_be_named_in_what_follows() -> None:
    said = ("When was it released?", "the canoe", "what does it weigh?")
    assert answers(talk(*said)) == ["27.8 kg"]
    assert answers(talk(*said, "and the oldest one?")) == ["21.5 kg"]


def test_a_name_that_goes_on_is_a_question_where_no_option_has_it() -> None:
    asked = talk("What does it weigh?", "and the Wherry?")
    assert asked.last.intent.kind == "question"
    assert asked.last.shown == "nothing"
    assert asked.last.intent.question == "What does the Wherry weigh?"


def test_what_is_talked_about_stays_while_a_follow_up_is_asked_back() -> None:
    """The Plover has two dates: what follows is about the Plover all the same."""
    twice = passage_hit(
        "The Plover is a canoe. Planked again in 2024.", "Tarnbeck Plover: Data Sheet"
    )

    class Dates:
        def read(self, cases: Sequence[Case]) -> list[Case]:
            asks = "weigh" in cases[0].question
            dates = {"May 2023": "May 2023", "2024": "2024"}
            return FakeReader(WEIGHTS if asks else dates).read(cases)

    pipeline = boats(retriever=FakeRetriever([*SHEETS, twice]), reader=Dates())
    released = talk("What does it weigh?", "the Plover", "when was it made?", pipeline=pipeline)
    assert released.last.shown == "clarification"
    asked = reply(pipeline, released, "and who made it?").last.intent.question
    assert asked == "who made the Plover?"


def test_the_written_conversations_are_whole() -> None:
    """`benchmarks/conversations.py` holds them."""
    path = Path(__file__).with_name("conversations.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) == 70
    for row in rows:
        assert row["corpus"] in ("sample", "handbook", "boatyard", "coldstore")
        assert len(row["turns"]) >= 3
        assert all(turn["say"] and turn["right"] for turn in row["turns"])
