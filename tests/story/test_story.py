"""The compact model's long answers: cited, complete, in order, of the right length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.story.cases import JOKERS, case, reading

from whichsense.models.compact.story import Length, write_story
from whichsense.types import FOR_BENCHMARKS, Case, Hit, LongAnswer, Passage

JOKER = case("Who played the Joker?", *JOKERS)


def story(one: Case, least: int = 60, most: int = 100) -> LongAnswer:
    return write_story(one, Length(least, most))


def test_every_sentence_is_cited_and_every_answer_is_told() -> None:
    answer = story(JOKER)
    assert all(citation.passages for citation in answer.sentences)
    for one in JOKERS:
        assert one.answer in answer.text


def test_the_story_says_first_what_the_answer_depends_on_and_goes_by_time() -> None:
    text = story(JOKER).text
    assert text.startswith(("This depends on the ", "“Who played the Joker” has more"))
    years = [
        replace(one, label=label)
        for one, label in zip(JOKERS, ("2008", "1989", "1966"), strict=True)
    ]
    dated = story(case("Who played the Joker?", *years)).text
    assert dated.startswith("This depends on the year.")
    places = [dated.index(name) for name in ("Romero", "Nicholson", "Ledger")]
    assert places == sorted(places)


@pytest.mark.parametrize(("least", "most"), [(60, 100), (30, 60), (40, 45)])
def test_the_length_is_kept_where_the_answers_allow_it(least: int, most: int) -> None:
    count = len(story(JOKER, least, most).text.split())
    shortest = len(story(JOKER, 1, 1).text.split())
    assert count <= max(most, shortest)
    assert count >= min(least, shortest)


def test_a_sentence_that_refers_back_is_told_in_its_context() -> None:
    one = reading(
        "When did the actor die?", "2008", "Heath Ledger", "An actor. He died in 2008 in New York."
    )
    answer = story(case("When did the actor die?", one))
    assert answer.text == "According to “Heath Ledger”, he died in 2008 in New York."


def test_an_answer_that_no_sentence_tells_is_given_with_its_label() -> None:
    text = "Leave in Malta\n24 days"
    one = reading("How much leave do staff get?", "24 days", "Policy", text)
    told = story(case("How much leave do staff get?", replace(one, label="in Malta"))).text
    assert told == "The answer found is 24 days (in Malta), in “Policy”."


def test_a_passage_about_the_answer_tells_it_without_its_name() -> None:
    text = "An actress. She then sang the part of Sarah in the revival of 2015."
    one = reading("Who sang the part of Sarah?", "Jessica Ray", "Jessica Ray", text)
    assert story(case("Who sang the part of Sarah?", one)).text == (
        "According to “Jessica Ray”, she then sang the part of Sarah in the revival of 2015."
    )


def test_a_first_word_that_may_be_a_name_keeps_its_capital() -> None:
    text = "Will Smith pays for 60 days."
    one = reading("How long does he pay?", "60 days", "Terms", text)
    assert story(case("How long does he pay?", one)).text == (
        "According to “Terms”: Will Smith pays for 60 days."
    )


def test_one_reading_gets_one_or_two_sentences() -> None:
    one = reading(
        "What is the capital of Australia?",
        "Canberra",
        "Canberra",
        "Canberra is the capital of Australia. It was founded in 1913 by an act of parliament. Some live there.",
    )
    answer = story(case("What is the capital of Australia?", one))
    assert 1 <= len(answer.sentences) <= 2
    assert answer.sentences[0].sentence == "Canberra is the capital of Australia."


def test_no_reading_says_so_and_cites_the_nearest_passages() -> None:
    hits = tuple(Hit(Passage(str(n), f"Page {n}", "Text."), 1.0) for n in range(5))
    answer = story(Case("Who sang it?", hits=hits))
    assert answer.text.startswith("No answer to this question was found")
    assert [one.title for one in answer.passages] == ["Page 0", "Page 1", "Page 2"]
    assert story(Case("Who sang it?")).sentences == ()


def test_people_are_told_no_other_sentences_where_there_is_no_answer() -> None:
    text = "Ann Lee sang the song Rain in 1971. The weather was fine."
    hit = Hit(Passage("1", "Rain (song)", text), 1.0)
    none = Case("When did Bo Finch sing the song Rain?", hits=(hit,))
    assert len(story(none).sentences) == 1
    told = story(replace(none, policy=FOR_BENCHMARKS))
    assert [one.sentence for one in told.sentences[1:]] == [text.partition(". ")[0] + "."]


def test_what_is_merely_possible_is_not_told() -> None:
    likelier = replace(JOKERS[2], confidence=0.4)
    told = story(replace(JOKER, readings=JOKERS[1:2], possible=(likelier,)))
    assert "Romero" not in told.text


def test_benchmarks_fill_one_answer_up_with_the_nearest_sentences() -> None:
    one = replace(JOKER, readings=JOKERS[:1])
    short = story(one).text
    long = story(replace(one, policy=FOR_BENCHMARKS)).text
    assert short.endswith(long.partition(". ")[0] + ".") and len(long) > len(short)


def test_readings_without_a_rewrite_are_told_by_their_sources() -> None:
    question = "How high is the tower?"
    first = reading(question, "300 metres", "Guide", "The tower is 300 metres high.", "Guide")
    other = reading(
        question, "330 metres", "News", "Since 2022 the tower is 330 metres high.", "News"
    )
    answer = story(case(question, first, other))
    assert answer.text.startswith("“How high is the tower” has more than one answer")
    assert "330 metres" in answer.text
    assert "300 metres" in answer.text


def test_one_sentence_with_several_answers_is_told_once() -> None:
    text = "Ann Lee wrote the words and Bo Finch wrote the music of the song Rain."
    first = reading("Who wrote the words of Rain?", "Ann Lee", "Rain", text)
    other = reading("Who wrote the music of Rain?", "Bo Finch", "Rain", text)
    answer = write_story(case("Who wrote Rain?", first, other), Length())
    assert answer.text.count(text) == 1


def test_answers_without_a_sentence_are_given_by_their_title() -> None:
    text = "Words: Ann Lee\nMusic: Bo Finch"
    first = reading("Who wrote the words of Rain?", "Ann Lee", "Rain", text)
    other = reading("Who wrote the music of Rain?", "Bo Finch", "Rain", text)
    answer = write_story(case("Who wrote Rain?", first, other), Length())
    assert "The answers found in “Rain” are Ann Lee and Bo Finch." in answer.text


def test_it_is_deterministic() -> None:
    assert story(JOKER) == story(JOKER)


def test_citations_are_numbered_by_first_use_before_the_full_stop() -> None:
    answer = story(JOKER)
    first = answer.cited_text.split(". ")[0]
    assert first.endswith(" [1][2][3]")
    assert answer.cited_text.count(".") >= len(answer.sentences)


def test_no_answer_is_listed_twice() -> None:
    text = "Words: Ann Lee\nMusic: Ann Lee"
    first = reading("Who wrote the words of Rain?", "Ann Lee", "Rain", text)
    other = reading("Who wrote the music of Rain?", "Ann Lee", "Rain", text)
    assert story(case("Who wrote Rain?", first, other)).text.count("Ann Lee") == 1
