"""The embedded clarifier: forms, categories, order, and when it does not ask."""

from __future__ import annotations

import pytest
from form import find_problems

from whichsense.models.compact.clarifier import clarify
from whichsense.stages.clarify import CompactClarifier
from whichsense.types import FOR_BENCHMARKS, Case, Clarification, Passage, Reading, Span


def asked(question: str, *pairs: tuple[str, str]) -> Clarification | None:
    readings = []
    for number, (rewrite, answer) in enumerate(pairs):
        readings.append(Reading(rewrite, answer, confidence=0.9 - number / 20))
    return clarify(Case(question, readings=tuple(readings)))


def labels_of(clarification: Clarification | None) -> list[str]:
    assert clarification is not None
    assert find_problems(clarification) == []
    return [option.label for option in clarification.options]


def test_versions_of_a_work() -> None:
    clarification = asked(
        "Who starred in Hairspray?",
        ("Who starred in the film Hairspray?", "Divine"),
        ("Who starred in the musical Hairspray?", "Marissa Jaret Winokur"),
    )
    assert labels_of(clarification) == ["the film", "the musical"]
    assert clarification is not None
    assert clarification.category == "version"
    assert clarification.header == "Version"
    assert clarification.question == "Which version: the film, or the musical?"


def test_years_ascend_and_are_not_called_years() -> None:
    clarification = asked(
        "Who won the cup?",
        ("Who won the cup in 2018?", "Ann"),
        ("Who won the cup in 2016?", "Bea"),
        ("Who won the cup in 2017?", "Cyd"),
    )
    assert labels_of(clarification) == ["2016", "2017", "2018"]
    assert clarification is not None
    assert clarification.category == "year"
    chosen = clarification.options[0].readings
    assert [reading.answer for reading in chosen] == ["Bea"]


def test_benchmarks_keep_the_order() -> None:
    readings = (
        Reading("Who won the cup in 2018?", "Ann"),
        Reading("Who won the cup in 2016?", "Bea"),
    )
    case = Case("Who won the cup?", readings=readings, policy=FOR_BENCHMARKS)
    (clarified,) = CompactClarifier().clarify([case])
    assert labels_of(clarified.clarification) == ["2018", "2016"]


def test_a_date_stays_whole() -> None:
    clarification = asked(
        "Who became a member?",
        ("Who became a member on 12 May 2015?", "Ann"),
        ("Who became a member on January 5, 2016?", "Bea"),
    )
    assert labels_of(clarification) == ["12 May 2015", "January 5, 2016"]


def test_a_name_stays_whole() -> None:
    clarification = asked(
        "Who leads the house?",
        ("Who leads the House of Commons of Canada?", "Ann"),
        ("Who leads the House of Representatives?", "Bea"),
    )
    for label in labels_of(clarification):
        assert "House of" in label


def test_replaced_words() -> None:
    clarification = asked(
        "Who has won most?",
        ("Which club has won most?", "Ajax"),
        ("Which player has won most?", "Ann"),
    )
    assert labels_of(clarification) == ["club", "player"]


def test_a_reading_without_a_rewrite_is_named_by_its_source() -> None:
    question = "Who wrote Dune?"
    readings = (
        Reading(question, "Frank Herbert", confidence=0.8, source="Dune (novel)"),
        Reading(question, "Eric Roth", confidence=0.7, source="Dune (2021 film)"),
    )
    clarification = clarify(Case(question, readings=readings))
    assert labels_of(clarification) == ["Dune (novel)", "Dune (2021 film)"]


def test_the_description_shows_the_evidence() -> None:
    passage = Passage("1", "Dune", "It is long. Frank Herbert wrote it. It sold well.")
    span = Span(passage, 12, 25)
    readings = (
        Reading("Who wrote the novel Dune?", "Frank Herbert", (span,), 0.8),
        Reading("Who wrote the film Dune?", "Eric Roth", confidence=0.7),
    )
    clarification = clarify(Case("Who wrote Dune?", readings=readings))
    assert clarification is not None
    described = [option.description for option in clarification.options]
    assert described[0] == "Dune: Frank Herbert wrote it."


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [("Who won the cup in 2016?", "Bea")],
        [("Who won the cup in 2016?", "12"), ("Who won the cup in 2017?", "twelve")],
        [("Who won the cup?", "Ann"), ("Who won the cup?", "Ann")],
    ],
)
def test_not_asked_without_differing_answers(pairs: list[tuple[str, str]]) -> None:
    assert asked("Who won the cup?", *pairs) is None


def test_not_asked_where_the_question_chooses() -> None:
    clarification = asked(
        "Who won the 2016 cup?", ("Who won the 2016 cup?", "Bea"), ("Who won the 2017 cup?", "Cyd")
    )
    assert clarification is None


def test_readings_that_cannot_be_told_apart_are_named_by_their_answers() -> None:
    question = "Who sang it?"
    readings = (
        Reading(question, "Ann Lee", confidence=0.8, source="Song"),
        Reading(question, "Bea Fox", confidence=0.7, source="Song"),
    )
    clarification = clarify(Case(question, readings=readings))
    assert labels_of(clarification) == ["Ann Lee", "Bea Fox"]


def test_of_many_options_the_last_ones_are_a_group() -> None:
    pairs = []
    for year in range(1985, 2005, 2):
        pairs.append((f"Who won the cup in {year}?", f"Winner {year}"))
    clarification = asked("Who won the cup?", *pairs)
    assert labels_of(clarification) == ["1985", "1987", "1989", "1991", "1993", "another one"]
    assert clarification is not None
    others = clarification.options[-1]
    assert [inner.label for inner in others.options] == ["1995", "1997", "1999", "2001", "2003"]
    assert [inner.id for inner in others.options] == ["6.1", "6.2", "6.3", "6.4", "6.5"]
    assert len(others.readings) == 5


@pytest.mark.parametrize(
    ("question", "rewrites", "labels"),
    [
        (
            "When was Holmes born?",
            ["When was Wendell Holmes Sr. born?", "When was Wendell Holmes Jr. born?"],
            ["Wendell Holmes Sr.", "Wendell Holmes Jr."],
        ),
        (
            "What is the largest state?",
            ["What is the largest state by area?", "What is the largest state by population?"],
            ["by area", "by population"],
        ),
        (
            "When and where was it signed?",
            ["When was it signed?", "Where was it signed?"],
            ["when", "where"],
        ),
        (
            "When did the musical open?",
            [
                "When did the musical open in London?",
                "When did the musical open at the Majestic Theatre?",
            ],
            ["in London", "at the Majestic Theatre"],
        ),
    ],
)
def test_good_english(question: str, rewrites: list[str], labels: list[str]) -> None:
    pairs = [(rewrite, f"answer {rewrite}") for rewrite in rewrites]
    assert labels_of(asked(question, *pairs)) == labels


def test_the_whole_pipeline_asks_offline() -> None:
    import whichsense

    clarification = whichsense.load().clarify("Who played the Joker?")
    assert len(labels_of(clarification)) > 1


def test_a_label_is_offered_before_a_rewrite_and_before_a_source() -> None:
    question = "How much leave is there?"
    readings = (
        Reading(question, "30 days", label="in Finland", source="Policy"),
        Reading(f"{question[:-1]} in Malta?", "24 days", label="in Malta"),
    )
    clarification = clarify(Case(question, readings=readings))
    assert labels_of(clarification) == ["in Finland", "in Malta"]
    assert clarification is not None
    assert clarification.question == "Which country: in Finland, or in Malta?"
    sourced = Reading(question, "26 days", source="Handbook of Uruguay")
    rewritten = Reading("How much leave is there in Austria?", "25 days")
    mixed = clarify(Case(question, readings=(readings[0], rewritten, sourced)))
    labels = labels_of(mixed)
    assert labels[0] == "in Finland" and labels[2] == "Handbook of Uruguay"
    assert "Austria" in labels[1]


def test_a_label_tells_a_reading_apart_without_a_source() -> None:
    question = "How much leave is there?"
    labelled = Reading(question, "30 days", label="for trainees")
    other = Reading("How much leave is there in Malta?", "24 days")
    assert clarify(Case(question, readings=(labelled, other))) is not None
    bare = Reading(question, "30 days")
    assert clarify(Case(question, readings=(bare, other))) is None


def test_a_label_that_cuts_a_name_is_offered_with_the_whole_of_it() -> None:
    passage = Passage("1", "St. Petersburg", "It was founded by Peter the Great in 1703.")
    span = Span(passage, 37, 41)
    readings = (
        Reading("When?", "1703", (span,), 0.9, label="the Great"),
        Reading("When?", "1888", label="in Florida"),
    )
    labels = labels_of(clarify(Case("When?", readings=readings)))
    assert labels == ["Peter the Great", "in Florida"]


@pytest.mark.parametrize("label", ["was officially", "again", "and the", ""])
def test_a_label_without_content_is_not_offered(label: str) -> None:
    question = "When does it start?"
    readings = (
        Reading(question, "May", label=label, source="Catalogue"),
        Reading(question, "June", label="for trainees", source="Guide"),
    )
    labels = labels_of(clarify(Case(question, readings=readings)))
    assert labels == ["Catalogue", "for trainees"]


def test_a_label_does_not_end_in_the_air() -> None:
    question = "When did it end?"
    readings = (
        Reading(question, "1947", label="British rule in"),
        Reading(question, "1991", label="the Soviet Union"),
    )
    labels = labels_of(clarify(Case(question, readings=readings)))
    assert labels == ["British rule", "the Soviet Union"]


def test_a_source_whose_title_the_question_names_does_not_choose() -> None:
    question = "When was the Empire State Building designed?"
    readings = (
        Reading(question, "1929", source="Empire State Building"),
        Reading(question, "1931", label="second plan"),
    )
    assert clarify(Case(question, readings=readings)) is not None
