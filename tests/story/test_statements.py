"""Questions with their answers as statements, and what is left alone because its grammar is not certain."""

from __future__ import annotations

import pytest

from whichsense.models.compact.statements import parse_question, statement
from whichsense.types import Passage, Span


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        ("Who won the cup in 1998?", "France", "France won the cup in 1998."),
        ("Who is the mayor?", "Ann Lee", "Ann Lee is the mayor."),
        ("Which team won the cup?", "Leeds", "Leeds won the cup."),
        ("What is the capital of Peru?", "Lima", "The capital of Peru is Lima."),
        ("When did the war end?", "11 November 1918", "The war ended on 11 November 1918."),
        ("When was the film released in Japan?", "1994", "The film was released in Japan in 1994."),
        ("What year did the bridge open?", "1932", "The bridge opened in 1932."),
        ("When was Everest first climbed?", "1953", "Everest was first climbed in 1953."),
        ("How many books can students borrow?", "12", "Students can borrow 12 books."),
        ("How many seasons of Lost are there?", "six", "There are six seasons of Lost."),
        ("How much does a ticket cost?", "5 pounds", "A ticket costs 5 pounds."),
        ("How long is a code valid?", "30 days", "A code is valid for 30 days."),
        ("How old is the king?", "75", "The king is 75 years old."),
        ("Who did Ann marry?", "Bob Lee", "Ann married Bob Lee."),
        ("How often are filters replaced?", "every year", "Filters are replaced every year."),
    ],
)  # fmt: skip
def test_statements(question: str, answer: str, told: str) -> None:
    stated = statement(question, answer, None)
    assert stated is not None
    assert stated.text == told


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Why is the sky blue?", "scattering"),
        ("Who did the band tour with?", "Queen and Rush, the Who"),
        ("Who plays Ann and who sings her songs?", "Bob"),
        ("What color is the sky?", "blue"),
        ("When is the film coming out?", "June 2018"),
        ("Who are the judges?", "Ann Lee"),
        ("capital of Peru", "Lima"),
        ("Where did he die?", "Hall"),
    ],
)
def test_what_is_not_certain_is_left_alone(question: str, answer: str) -> None:
    assert statement(question, answer, None) is None


def test_preposition_and_article_come_from_the_evidence() -> None:
    passage = Passage("1", "Match", "It was played at the Rose Bowl in May.")
    start = passage.text.index("Rose")
    span = Span(passage, start, start + len("Rose Bowl"))
    stated = statement("Where was the match played?", "Rose Bowl", span)
    assert stated is not None
    assert stated.text == "The match was played at the Rose Bowl."


def test_a_question_that_ends_with_its_auxiliary_is_no_error() -> None:
    assert parse_question("how many children have") is None
