"""Rewrites from titles: what each form says, and what holds of every rewrite over the topics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from whichsense.models.compact.rewrite.forms.grammar import (
    has_doubled_word,
    put_in_past,
)
from whichsense.models.compact.rewrite.forms.snippets import AnswerEvidence, Snippet
from whichsense.models.compact.rewrite.forms.titles import title_rewrites

TOPICS = Path(__file__).parents[2] / "recipes" / "topics"

# A question, the title that holds the answer, what its text says, another answer's title, the first rewrite.
FORMS = [
    (
        "who plays the keeper in the gull",
        "The Gull (1961 film)",
        "",
        "The Gull (1999 film)",
        "who plays the keeper in the 1961 film the gull",
    ),
    (
        "Who wrote Saltmarsh?",
        "Saltmarsh (musical)",
        "",
        "Saltmarsh (novel)",
        "Who wrote the musical Saltmarsh?",
    ),
    (
        "Who directed the film Saltmarsh?",
        "Saltmarsh (1961 film)",
        "",
        "Saltmarsh (1999 film)",
        "Who directed the 1961 film Saltmarsh?",
    ),
    (
        "Which tower does Moth Man climb?",
        "Moth Man (1950 film)",
        "",
        "Moth Man (1988 film)",
        "Which tower does Moth Man climb in the 1950 film?",
    ),
    (
        "who hosts quiz hour",
        "Quiz Hour (1971–1983)",
        "",
        "Quiz Hour (1984–1990)",
        "who hosted quiz hour from 1971 to 1983",
    ),
    (
        'Who sings "Grey Harbour"?',
        "Grey Harbour (Tin Gulls song)",
        "",
        "Grey Harbour (1990 song)",
        'Who sings the Tin Gulls song "Grey Harbour"?',
    ),
    (
        "Who produced Grey Harbour?",
        "Grey Harbour (Ida Penn recording)",
        "",
        "Grey Harbour (Tin Gulls song)",
        "Who produced Ida Penn's recording of Grey Harbour?",
    ),
    (
        "who wrote the first episode of captain salt",
        "Captain Salt (2005 revival)",
        "",
        "Captain Salt (1966 TV series)",
        "who wrote the first episode of the 2005 revival of captain salt",
    ),
    (
        "When was Ada Finch born?",
        "Ada Finch (painter)",
        "Ada Finch was a Welsh painter.",
        "Ada Finch (chemist)",
        "When was the painter Ada Finch born?",
    ),
    (
        "When did the Lowmoor Bridge open?",
        "Lowmoor Bridge (1902)",
        "",
        "Lowmoor Bridge (1957)",
        "When did the Lowmoor Bridge of 1902 open?",
    ),
    (
        "Who first sang in Medusa?",
        "Medusa (Tarli)",
        "Tarli composed the opera in 1811.",
        "Medusa (Bonn)",
        "Who first sang in Tarli's Medusa?",
    ),
    (
        "when is lamp day kept",
        "Lamp Day (Norland)",
        "The day is kept in Norland on 3 May.",
        "Lamp Day (Sudland)",
        "when is lamp day kept in norland",
    ),
    (
        "Who won the Sail Cup?",
        "2019 Women's Sail Cup",
        "Crews met for the 2019 Women's Sail Cup.",
        "2019 Sail Cup",
        "Who won the 2019 Women's Sail Cup?",
    ),
    (
        "where was thorn born",
        "Edmund Thorn",
        "Edmund Thorn was a pilot.",
        "Alice Thorn",
        "where was edmund thorn born",
    ),
    (
        "When was William Orde knighted?",
        "William Henry Orde",
        "",
        "William Paul Orde",
        "When was William Henry Orde knighted?",
    ),
    (
        "When did Harlow become a city?",
        "Harlow, Nebraska",
        "",
        "Harlow, Ontario",
        "When did Harlow, Nebraska, become a city?",
    ),
    (
        "when was piers quill born",
        "Piers Quill the Younger",
        "",
        "Piers Quill the Elder",
        "when was piers quill the younger born",
    ),
    (
        "Who plays Captain Salt?",
        "The Tide (1994 film)",
        "",
        "The Wave (2001 film)",
        "Who plays Captain Salt in the 1994 film The Tide?",
    ),
    (
        "What is the warranty period?",
        "Norlin X200 Data Sheet",
        "",
        "Norlin X300 Data Sheet",
        "What is the warranty period of the Norlin X200?",
    ),
    (
        "how much does it weigh",
        "Norlin X200 Data Sheet",
        "",
        "Norlin X300 Data Sheet",
        "how much does the norlin x200 weigh",
    ),
    (
        "What is the notice period?",
        "Tarrow Lamps Staff Handbook",
        "",
        "Orrin Glass Staff Handbook",
        "What is the notice period at Tarrow Lamps?",
    ),
    (
        "What is Moth Man's real name in the film?",
        "Moth Man (1950 film)",
        "",
        "Moth Man (1988 film)",
        "What is Moth Man's real name in the 1950 film?",
    ),
    (
        "Who hosts Quiz Hour?",
        "Quiz Hour (1990–present)",
        "",
        "Quiz Hour (1984–1990)",
        "Who has hosted Quiz Hour since 1990?",
    ),
    (
        "who was the ghost in the film of saltmarsh",
        "Saltmarsh (1961 film)",
        "",
        "Saltmarsh (1999 film)",
        "who was the ghost in the 1961 film of saltmarsh",
    ),
    (
        "When was the opera Medusa first sung?",
        "Medusa (Tarli)",
        "Tarli composed the opera in 1811.",
        "Medusa (Bonn)",
        "When was Tarli's opera Medusa first sung?",
    ),
    (
        "What is the oar throw world record?",
        "Women's oar throw record",
        "",
        "Men's oar throw record",
        "What is the women's oar throw world record?",
    ),
    (
        "When did women row?",
        "Women's rowing in Norland",
        "",
        "Women's rowing in Sudland",
        "When did women row in Norland?",
    ),
    (
        "Where does the Welsh soap take place?",
        "Gull Bay",
        "Gull Bay is a Welsh soap about a school.",
        "Tern Street",
        "Where does the Welsh soap Gull Bay take place?",
    ),
    (
        "How many days of leave do employees get?",
        "Annual Leave Policy: Germany",
        "",
        "Annual Leave Policy: Denmark",
        "How many days of leave do employees get in Germany?",
    ),
    (
        "What does a ticket cost?",
        "Price List 2024",
        "",
        "Price List 2025",
        "What did a ticket cost in 2024?",
    ),
    (
        "Who was elected treasurer?",
        "Minutes of the Board, 12 March 2023",
        "",
        "Minutes of the Board, 9 May 2024",
        "Who was elected treasurer in 2023?",
    ),
]


def evidence(answer: str, title: str, text: str = "") -> AnswerEvidence:
    return AnswerEvidence(answer, (Snippet(title, text, 0, 0),))


@pytest.mark.parametrize(
    ("question", "title", "text", "rival", "expected"),
    FORMS,
    ids=[form[-1] for form in FORMS],
)
def test_best_rewrite_of_a_title(
    question: str, title: str, text: str, rival: str, expected: str
) -> None:
    own = evidence("Zoe Quist", title, text)
    rewrites = title_rewrites(question, own, [evidence("Max Orr", rival)])
    assert rewrites[0].question == expected
    assert rewrites[0].support == title


@pytest.mark.parametrize(
    ("question", "answer", "title", "rival"),
    [
        # Both answers have the title.
        ("Who wrote Saltmarsh?", "Ann Ray", "Saltmarsh (novel)", "Saltmarsh (novel)"),
        # The brackets give the answer away.
        ("Who made The Urn?", "Ann Ray", "The Urn (Ray)", "The Urn (Penn)"),
        # The question speaks of a film, the title of a novel.
        ("Who wrote the film Gull?", "Ann Ray", "Gull (novel)", "Gull (1961 film)"),
        # Nothing to do with the question.
        ("Where is the tower?", "Harlow", "History of glass", "Old ships"),
    ],
)
def test_no_rewrite(question: str, answer: str, title: str, rival: str) -> None:
    own = evidence(answer, title, "Ray made it.")
    assert title_rewrites(question, own, [evidence("Bo Finch", rival)]) == []


def test_a_title_among_the_lesser_ones_of_another_answer_comes_last() -> None:
    films = [Snippet(f"Gull ({year} film)", "", 0, 0) for year in (1961, 1972, 1999)]
    own = AnswerEvidence("Ann Ray", (films[0], films[1]))
    other = AnswerEvidence("Bo Finch", (films[2], films[0]))
    rewrites = title_rewrites("Who directed Gull?", own, [other])
    years = [rewrite.support for rewrite in rewrites]
    assert years == sorted(years, reverse=True)
    assert rewrites[0].question == "Who directed the 1972 film Gull?"
    assert rewrites[-1].support == "Gull (1961 film)"


def test_a_year_that_gives_the_answer_away_is_left_out() -> None:
    own = evidence("3 May 1961", "Saltmarsh (1961 film)")
    rest = [evidence("1990", "Saltmarsh (TV series)")]
    questions = [
        r.question for r in title_rewrites("When was Saltmarsh made?", own, rest)
    ]
    assert questions == ["When was the film Saltmarsh made?"]


@pytest.mark.parametrize(
    ("question", "past"),
    [
        ("Who is the mayor?", "Who was the mayor?"),
        ("how many beds does it have", "how many beds did it have"),
        (
            "Who was the mayor who is now a judge?",
            "Who was the mayor who is now a judge?",
        ),
    ],
)
def test_put_in_past(question: str, past: str) -> None:
    assert put_in_past(question) == past


def read_lines(name: str) -> list[dict[str, Any]]:
    with (TOPICS / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def topic_cases() -> Iterator[tuple[str, list[AnswerEvidence]]]:
    """Questions of the topics with several answers, each with the first passages of its topic that hold it."""
    passages: dict[str, list[dict[str, Any]]] = {}
    for passage in read_lines("passages.jsonl"):
        topic = str(passage["id"]).rpartition("-")[0]
        passages.setdefault(topic, []).append(passage)
    for record in read_lines("questions.jsonl"):
        topic = str(record["id"]).rpartition("-")[0]
        answers = []
        for aliases in record["answers"]:
            snippets = []
            for passage in passages[topic]:
                start = passage["text"].find(aliases[0])
                if start >= 0:
                    end = start + len(aliases[0])
                    text = passage["text"]
                    snippets.append(Snippet(passage["title"], text, start, end))
            answers.append(AnswerEvidence(aliases[0], tuple(snippets)))
        if len(answers) > 1:
            yield str(record["question"]), answers


def test_rewrites_of_the_topics_are_well_formed() -> None:
    count = 0
    for question, answers in topic_cases():
        for number, own in enumerate(answers):
            others = [*answers[:number], *answers[number + 1 :]]
            for rewrite in title_rewrites(question, own, others):
                count += 1
                written = rewrite.question
                assert written != question
                assert written.endswith("?") == question.endswith("?"), written
                assert has_doubled_word(question) or not has_doubled_word(written)
                assert "(" in question or "(" not in written, written
                assert "  " not in written, written
                assert question.islower() <= written.islower(), written
                said = rf"\b{re.escape(own.answer.lower())}\b"
                if not re.search(said, question.lower()):
                    assert not re.search(said, written.lower()), (written, own.answer)
    assert count > 500
