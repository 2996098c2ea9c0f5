"""The compact model's long answers: cited, complete, in order, of the right length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.story.cases import JOKERS, case, reading

from whichsense.models.compact.mentions import stand_alone
from whichsense.models.compact.story import Length, write_story
from whichsense.models.compact.support_judge import WordOverlap
from whichsense.types import FOR_BENCHMARKS, Case, Hit, LongAnswer, Passage

JOKER = case("Who played the Joker?", *JOKERS)


class Refuses:
    """A judge that supports nothing."""

    def supports(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [0.0] * len(pairs)


def story(one: Case, least: int = 60, most: int = 100) -> LongAnswer:
    return write_story(one, WordOverlap(), Length(least, most))


def test_every_sentence_is_cited_and_every_answer_is_told() -> None:
    answer = story(JOKER)
    assert all(citation.passages for citation in answer.sentences)
    for one in JOKERS:
        assert one.answer in answer.text


def test_the_story_says_why_first_and_goes_by_time() -> None:
    text = story(JOKER).text
    assert text.startswith("Who played the Joker depends on the version.")
    places = [text.index(name) for name in ("Romero", "Nicholson", "Ledger")]
    assert places == sorted(places)


@pytest.mark.parametrize(("least", "most"), [(60, 100), (30, 60), (40, 45)])
def test_the_length_is_kept_where_the_answers_allow_it(least: int, most: int) -> None:
    count = len(story(JOKER, least, most).text.split())
    shortest = len(story(JOKER, 1, 1).text.split())
    assert count <= max(most, shortest)
    assert count >= min(least, shortest)


def test_a_first_mention_is_named() -> None:
    text = story(JOKER, 100, 150).text
    assert ". He died" not in text
    assert "Heath Ledger died before the film The Dark Knight was finished" in text


def test_what_cannot_be_named_is_not_told() -> None:
    passage = Passage("1", "Batman (1989 film)", "")
    said = ["Ann Lee wrote the score.", "It was shot in England.", "They met there."]
    assert stand_alone(passage, said, 1) == ""
    assert stand_alone(passage, said, 2) == ""
    said[0] = "Batman is a film."
    assert stand_alone(passage, said, 1) == "The 1989 film Batman was shot in England."


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
    assert [one.sentence for one in told.sentences[1:]] == [
        text.partition(". ")[0] + "."
    ]


def test_what_is_merely_possible_is_not_told() -> None:
    likelier = replace(JOKERS[2], confidence=0.4)
    told = story(replace(JOKER, readings=JOKERS[1:2], possible=(likelier,)))
    assert "Romero" not in told.text


def test_benchmarks_fill_one_answer_up_with_the_nearest_sentences() -> None:
    one = replace(JOKER, readings=JOKERS[:1])
    short = story(one).text
    long = story(replace(one, policy=FOR_BENCHMARKS)).text
    assert long.startswith(short) and len(long) > len(short)


def test_readings_without_a_rewrite_are_told_by_their_sources() -> None:
    question = "How high is the tower?"
    first = reading(
        question, "300 metres", "Guide", "The tower is 300 metres high.", "Guide"
    )
    other = reading(
        question,
        "330 metres",
        "News",
        "Since 2022 the tower is 330 metres high.",
        "News",
    )
    answer = story(case(question, first, other))
    assert answer.text.startswith("The sources differ on how high the tower is.")
    assert "330 metres" in answer.text
    assert "300 metres" in answer.text


def test_one_sentence_with_several_answers_is_told_once() -> None:
    text = "Ann Lee wrote the words and Bo Finch wrote the music of the song Rain."
    first = reading("Who wrote the words of Rain?", "Ann Lee", "Rain", text)
    other = reading("Who wrote the music of Rain?", "Bo Finch", "Rain", text)
    answer = write_story(case("Who wrote Rain?", first, other), Refuses(), Length())
    assert answer.text.count(text) == 1


def test_answers_without_a_sentence_are_given_by_their_title() -> None:
    text = "Words: Ann Lee\nMusic: Bo Finch"
    first = reading("Who wrote the words of Rain?", "Ann Lee", "Rain", text)
    other = reading("Who wrote the music of Rain?", "Bo Finch", "Rain", text)
    answer = write_story(case("Who wrote Rain?", first, other), Refuses(), Length())
    assert "The answers found in “Rain” are Ann Lee and Bo Finch." in answer.text


def test_it_is_deterministic() -> None:
    assert story(JOKER) == story(JOKER)


def test_citations_are_numbered_by_first_use_before_the_full_stop() -> None:
    answer = story(JOKER)
    first = answer.cited_text.split(". ")[0]
    assert first.endswith(" [1][2][3]")
    assert answer.passages[0].title == "Batman (1960s television series)"
    assert answer.cited_text.count(".") >= len(answer.sentences)


def test_what_the_judge_refuses_is_replaced_by_the_copied_sentence() -> None:
    answer = write_story(JOKER, Refuses(), Length())
    assert "In the 1989 film Batman, Jack Nicholson played the Joker" in answer.text
    for one in JOKERS:
        assert one.answer in answer.text
