"""Conversations over fakes: when a person is asked, what a reply leads to, what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from scenes import HITS, MOSTLY_BOOKS, QUESTION, GroupClarifier, harbour

from whichsense.conversation import (
    AskingPolicy,
    Conversation,
    ask,
    begin,
    choose,
    explain,
    reply,
    show_readings,
)
from whichsense.conversation.turns import MOST_TURNS, load_conversation, save
from whichsense.errors import BadInput
from whichsense.jobs.limits import Limits
from whichsense.testing import FakeReader, FakeRetriever, passage_hit


def answers(conversation: Conversation) -> list[str]:
    return [reading.answer for reading in conversation.last.readings]


def talk(*replies: str, **stages: object) -> Conversation:
    pipeline = harbour(**stages)
    conversation = begin(pipeline, QUESTION)
    for text in replies:
        conversation = reply(pipeline, conversation, text)
    return conversation


def test_a_question_with_several_readings_is_asked_back() -> None:
    last = talk().last
    assert last.shown == "clarification" and last.pending
    assert last.clarification is not None
    assert last.clarification.lead == "Which version"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("2", ["Bob Ray"]),
        ("the novel", ["Ann Lee"]),
        ("the newest one", ["Cy Day"]),
        ("1 and 3", ["Ann Lee", "Cy Day"]),
        ("not the novel", ["Bob Ray", "Cy Day"]),
        ("all", ["Ann Lee", "Bob Ray", "Cy Day"]),
    ],
)
def test_a_choice_is_answered(said: str, expected: list[str]) -> None:
    conversation = talk(said)
    assert conversation.last.shown == "answer"
    assert answers(conversation) == expected
    assert all(reading.evidence for reading in conversation.last.readings)


@pytest.mark.parametrize("said", ["", "skip", "I don't mind, you decide"])
def test_skipping_shows_all_readings(said: str) -> None:
    conversation = talk(said)
    assert conversation.last.shown == "readings"
    assert len(answers(conversation)) == 3


def test_one_reading_or_one_answer_is_not_asked_about() -> None:
    one = talk(reader=FakeReader({"Ann": "Ann Lee"}))
    assert one.last.shown == "answer" and one.last.clarification is None
    same = [passage_hit("Ann Lee wrote it.", f"Harbour ({n})") for n in range(2)]
    alike = talk(retriever=FakeRetriever(same), reader=FakeReader({"Ann": "Ann Lee"}))
    assert alike.last.shown == "answer"


def test_no_answer_is_told() -> None:
    assert talk(reader=FakeReader({})).last.shown == "nothing"


def test_a_bare_number_is_no_word_of_the_question() -> None:
    """Where there is nothing to choose from, and where a word is asked for."""
    nothing = {"reader": FakeReader({})}
    for replies in (("1",), ("neither", "1")):
        last = talk(*replies, **nothing).last
        assert last.shown == "more"
        assert last.message == "Ask another question, or say more about this one."


def test_what_the_question_says_is_not_asked() -> None:
    conversation = begin(harbour(), "Who wrote Harbour, the 2008 film?")
    assert conversation.last.shown == "answer"
    assert answers(conversation) == ["Cy Day"]
    assert conversation.last.message == "Taken as: the 2008 film."


def test_what_the_conversation_says_is_not_asked() -> None:
    """The choice of a version counts for the next question about the same thing, not for another."""
    pipeline = harbour()
    conversation = begin(pipeline, "Where was the 2008 Harbour filmed?")
    again = ask(pipeline, conversation, QUESTION)
    assert again.last.shown == "answer" and answers(again) == ["Cy Day"]
    other = begin(pipeline, "Who won the race in 2008?")
    assert ask(pipeline, other, QUESTION).last.shown == "clarification"


def test_asking_can_be_switched_off() -> None:
    conversation = begin(harbour(), QUESTION, policy=AskingPolicy(enabled=False))
    assert conversation.last.shown == "readings" and len(answers(conversation)) == 3
    # The options can be named all the same.
    assert answers(reply(harbour(), conversation, "the novel")) == ["Ann Lee"]


def test_the_same_question_is_never_asked_twice() -> None:
    pipeline = harbour()
    conversation = talk("the novel")
    again = ask(pipeline, conversation, QUESTION)
    assert again.last.shown != "clarification"
    assert len(set(again.asked)) == len(again.asked) == 1


def test_what_fits_nothing_gets_the_options_once_then_the_readings() -> None:
    once = talk("qwertz")
    assert once.last.shown == "clarification" and once.last.message
    twice = talk("qwertz", "asdfgh")
    assert twice.last.shown == "readings" and len(answers(twice)) == 3


def test_a_group_leads_to_one_narrower_question() -> None:
    asked = talk("2", clarifier=GroupClarifier())
    assert asked.last.shown == "clarification"
    assert asked.last.clarification is not None
    labels = [option.label for option in asked.last.clarification.options]
    assert labels == ["the 1988 film", "the 2008 film"]
    assert answers(talk("2", "the newer", clarifier=GroupClarifier())) == ["Cy Day"]
    pipeline = harbour(clarifier=GroupClarifier())
    none = AskingPolicy(follow_ups=0)
    at_once = reply(pipeline, begin(pipeline, QUESTION), "2", policy=none)
    assert answers(at_once) == ["Bob Ray", "Cy Day"]


def test_what_is_beside_a_group_can_be_chosen_after_it() -> None:
    pipeline = harbour(clarifier=GroupClarifier())
    group = choose(pipeline, begin(pipeline, QUESTION), ["2"])
    assert group.last.shown == "clarification"
    assert answers(choose(pipeline, group, ["1"])) == ["Ann Lee"]
    assert answers(choose(pipeline, group, ["2.2"])) == ["Cy Day"]
    assert answers(choose(pipeline, group, ["1", "2.2"])) == ["Ann Lee", "Cy Day"]


def test_a_question_about_the_options_is_answered_and_they_are_shown_again() -> None:
    conversation = talk("what's the difference between 1 and 2?")
    assert conversation.last.shown == "clarification"
    assert "Ann Lee" in conversation.last.message
    assert "Cy Day" not in conversation.last.message
    assert answers(reply(harbour(), conversation, "2")) == ["Bob Ray"]


def test_a_question_about_an_option_after_the_choice_shows_its_reading() -> None:
    conversation = talk("1", "what is the second one about?")
    assert conversation.last.shown == "answer" and answers(conversation) == ["Bob Ray"]


def test_none_of_them_asks_for_a_word_where_nothing_else_is_found() -> None:
    more = talk("none of these")
    assert more.last.shown == "more" and more.last.message
    retriever = FakeRetriever(HITS)
    reply(harbour(retriever=retriever), more, "musical")
    assert retriever.asked == ["Who wrote Harbour, musical?"]


def test_none_of_them_shows_what_is_merely_possible() -> None:
    possible = talk("neither", **MOSTLY_BOOKS)
    assert possible.last.shown == "possible" and answers(possible) == ["Cy Day"]


def test_words_that_name_something_possible_are_answered_by_it() -> None:
    """Who names a reading means it: it is no longer called merely possible, nor tentative."""
    named = talk("the 2008 film", **MOSTLY_BOOKS)
    assert named.last.intent.kind == "refine"
    assert named.last.shown == "answer" and answers(named) == ["Cy Day"]
    assert not named.last.is_tentative


def test_words_that_no_option_has_are_searched_for() -> None:
    """The answer is given only where the evidence has these words."""
    conversation = begin(harbour(), QUESTION)
    opera = passage_hit("Dee Fox wrote Harbour, an opera.", "Harbour (opera)")
    retriever = FakeRetriever([opera])
    pipeline = harbour(retriever=retriever, reader=FakeReader({"Dee": "Dee Fox"}))
    refined = reply(pipeline, conversation, "the opera")
    assert refined.last.shown == "answer" and answers(refined) == ["Dee Fox"]
    unclear = reply(pipeline, conversation, "the ballet")
    assert unclear.last.shown == "clarification"


def test_after_one_answer_words_go_on_with_the_question() -> None:
    retriever = FakeRetriever(HITS)
    pipeline = harbour(retriever=retriever, reader=FakeReader({"Ann": "Ann Lee"}))
    conversation = reply(pipeline, begin(pipeline, QUESTION), "in the seventies")
    assert retriever.asked[-1] == "Who wrote Harbour in the seventies?"
    assert reply(pipeline, conversation, "ok, thanks").last.shown == "more"
    other = reply(pipeline, begin(pipeline, QUESTION), "capital of France")
    assert other.last.intent.question == "capital of France"


def test_words_that_found_nothing_are_not_kept() -> None:
    pipeline = harbour(reader=FakeReader({}))
    conversation = begin(pipeline, QUESTION)
    for said in ("musical", "opera"):
        conversation = reply(pipeline, conversation, said)
    assert conversation.last.intent.question == "Who wrote Harbour, opera?"


def test_a_later_choice_and_a_new_question() -> None:
    pipeline = harbour()
    conversation = reply(pipeline, talk("1"), "and the second one")
    assert answers(conversation) == ["Bob Ray"]
    asked = reply(pipeline, conversation, "When was the harbour built?").last
    assert asked.intent.kind == "question"


def test_a_pronoun_takes_the_last_answer() -> None:
    retriever = FakeRetriever(HITS)
    pipeline = harbour(retriever=retriever)
    conversation = reply(pipeline, talk("the novel"), "and when was it published?")
    asked = "when was the 1956 novel Harbour published?"
    assert conversation.last.intent.question == asked
    assert conversation.last.said == "and when was it published?"
    person = reply(pipeline, talk("the novel"), "where was she born?")
    assert person.last.intent.question == "where was Ann Lee born?"


def test_options_are_chosen_by_id() -> None:
    pipeline = harbour()
    conversation = begin(pipeline, QUESTION)
    assert answers(choose(pipeline, conversation, ["1", "2"])) == ["Ann Lee", "Bob Ray"]
    assert choose(pipeline, conversation, []).last.shown == "readings"
    with pytest.raises(BadInput, match="There are: 1, 2, 3"):
        choose(pipeline, conversation, ["9"])
    with pytest.raises(BadInput, match="nothing to choose"):
        choose(pipeline, Conversation("x"), ["1"])


def test_a_choice_asks_nothing_again() -> None:
    """The reading was verified, and has its evidence."""
    retriever = FakeRetriever(HITS)
    chosen = talk("the novel", retriever=retriever)
    assert retriever.asked == [QUESTION]
    assert chosen.case is not None
    assert chosen.last.readings == chosen.case.readings[:1]


def test_explanation_and_readings() -> None:
    pipeline = harbour()
    explained = explain(pipeline, talk("1")).last
    assert explained.shown == "explanation"
    assert explained.long_answer is not None and "Cy Day" in explained.long_answer.text
    assert len(show_readings(talk("1")).last.readings) == 3
    with pytest.raises(BadInput, match="Nothing was asked"):
        show_readings(Conversation("x"))


def test_a_limit_gives_what_is_there() -> None:
    stopped = begin(harbour(), QUESTION, limits=Limits.of(0))
    assert stopped.case is not None and stopped.case.stopped == "deadline"
    pipeline = harbour()
    choice = reply(pipeline, talk(), "2", limits=Limits.of(0))
    assert answers(choice) == ["Bob Ray"]


def test_json_carries_all_of_it(tmp_path: Path) -> None:
    conversation = explain(harbour(), talk("what is 1 about?", "1"))
    body = json.loads(json.dumps(conversation.to_json()))
    assert Conversation.from_json(body) == conversation
    save(conversation, tmp_path / "talk.json")
    assert load_conversation(tmp_path / "talk.json") == conversation


def test_a_conversation_of_the_older_schema_goes_on() -> None:
    """It was stored before a reply could name what is meant."""
    conversation = talk("the film")
    stored = conversation.to_json() | {"schema": 2}
    for turn in stored["turns"]:
        del turn["intent"]["named"]
    read = Conversation.from_json(stored)
    assert [turn.readings for turn in read.turns] == [turn.readings for turn in conversation.turns]
    with pytest.raises(BadInput, match="not a list"):
        Conversation.from_json(stored | {"turns": 3})


def test_it_is_resumed_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    save(talk(), path)
    code = (
        "import sys; from pathlib import Path; from scenes import harbour;"
        "from whichsense.conversation import reply;"
        "from whichsense.conversation.turns import load_conversation, save;"
        "path = Path(sys.argv[1]);"
        "save(reply(harbour(), load_conversation(path), 'the newer film'), path)"
    )
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=here)
    assert answers(load_conversation(path)) == ["Cy Day"]


def test_turns_are_capped() -> None:
    pipeline = harbour()
    conversation = begin(pipeline, QUESTION)
    for _ in range(MOST_TURNS + 5):
        conversation = show_readings(conversation)
    assert len(conversation.turns) == MOST_TURNS
    assert Conversation.from_json(conversation.to_json()) == conversation
    long = replace(conversation, turns=conversation.turns * 2)
    with pytest.raises(BadInput, match="at most"):
        Conversation.from_json(long.to_json())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "schema"),
        (b'{"schema": 99}', "schema"),
        (b'{"schema": 3, "id": "x"}', "missing"),
        (b'{"schema":3,"id":"x","turns":3,"case":null,"asked":[]}', "not a list"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_broken_files_are_told(tmp_path: Path, body: bytes, message: str) -> None:
    path = tmp_path / "talk.json"
    path.write_bytes(body)
    with pytest.raises(BadInput, match=message):
        load_conversation(path)


def test_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file"):
        load_conversation(tmp_path / "none.json")
    with pytest.raises(BadInput, match="folder"):
        load_conversation(tmp_path)
    with pytest.raises(BadInput, match="written"):
        save(talk(), tmp_path / "none" / "talk.json")


@pytest.mark.parametrize("said", ["x" * 10_000_000, "1" * 2_001])
def test_a_huge_reply_is_refused(said: str) -> None:
    with pytest.raises(BadInput, match="at most"):
        reply(harbour(), talk(), said)


def test_control_characters_are_not_kept() -> None:
    assert talk("\x1b[31mthe novel\x07\x00").last.said == "[31mthe novel"
    assert talk("the\u202e novel\n").last.said == "the novel"
