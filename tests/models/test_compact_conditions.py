"""Rewrites from the clause that holds the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from whichsense.models.compact.rewrite.forms.conditions import condition_rewrites
from whichsense.models.compact.rewrite.forms.grammar import has_doubled_word
from whichsense.models.compact.rewrite.forms.snippets import AnswerEvidence, Snippet
from whichsense.text.words import words

_DOCUMENTS = Path(__file__).parents[2] / "recipes" / "documents"


def evidence(answer: str, text: str, title: str = "Handbook") -> AnswerEvidence:
    """An answer with the one passage that holds it."""
    start = text.index(answer)
    snippet = Snippet(title, text, start, start + len(answer))
    return AnswerEvidence(answer, (snippet,))


def rewrites(question: str, text: str, answer: str, *others: str) -> list[str]:
    """What is written for an answer whose rivals stand in the same text."""
    own = evidence(answer, text)
    rivals = [evidence(other, text) for other in others]
    return [rewrite.question for rewrite in condition_rewrites(question, own, rivals)]


STAFF = "Full-time staff get 28 days, part-time staff 14 days."
EXCESS = "The excess is £100 for theft, £250 for escape of water and £1,000 for storms."
OPENING = "It opened in the West End on 9 May 1986 and on Broadway on 2 June 1988."
HEADS = (
    "Ida Brand was head of Orla Mills from 2005 to 2014; Ole Sund was head until 2004."
)
FARES = "Adults pay £12 on the lake ferry; children £6."
ALARM = "The door alarm sounds after 90 seconds, the heat alarm after two hours."
RATES = "Standard tariff: 31 cents per kWh. Night tariff: 22 cents per kWh."


@pytest.mark.parametrize(
    ("question", "text", "answers", "expected"),
    [
        (
            "How much leave do Orla employees get?",
            STAFF,
            ("28 days", "14 days"),
            "How much leave do full-time Orla employees get?",
        ),
        (
            "what is the excess",
            EXCESS,
            ("£250", "£100", "£1,000"),
            "what is the excess for escape of water",
        ),
        (
            "When did the show open?",
            OPENING,
            ("9 May 1986", "2 June 1988"),
            "When did the show open in the West End?",
        ),
        (
            "When did the show open?",
            OPENING,
            ("2 June 1988", "9 May 1986"),
            "When did the show open on Broadway?",
        ),
        (
            "Who is the head of Orla Mills?",
            HEADS,
            ("Ida Brand", "Ole Sund"),
            "Who was the head of Orla Mills from 2005 to 2014?",
        ),
        (
            "What does the lake ferry cost?",
            FARES,
            ("£6", "£12"),
            "What does the lake ferry cost for children?",
        ),
        (
            "When does the Isbre alarm sound?",
            ALARM,
            ("two hours", "90 seconds"),
            "When does the Isbre heat alarm sound?",
        ),
        (
            "What does a unit cost?",
            RATES,
            ("22 cents", "31 cents"),
            "What does a unit cost on the night tariff?",
        ),
    ],
)
def test_first_rewrite_is_what_the_clause_says(
    question: str, text: str, answers: tuple[str, ...], expected: str
) -> None:
    assert rewrites(question, text, *answers)[0] == expected


@pytest.mark.parametrize(
    ("question", "text", "answers", "unwanted"),
    [
        # the time of leaving is the edge of a term
        (
            "Who ran Orla Mills?",
            "Ida Brand, who ran Orla Mills, retired in 1985. Ole Sund ran it later.",
            ("Ida Brand", "Ole Sund"),
            "in 1985",
        ),
        # the neighbour's phrase
        ("what is the excess", EXCESS, ("£100", "£250", "£1,000"), "storms"),
        # a phrase that both clauses have tells nothing apart
        (
            "What is the fee?",
            "The fee is £3 in May for members and £5 in May for guests.",
            ("£3", "£5"),
            "in May",
        ),
        # an answer that is a date takes no other date
        ("When did the show open?", OPENING, ("9 May 1986", "2 June 1988"), "1988"),
    ],
)
def test_what_belongs_to_another_answer_is_left_out(
    question: str, text: str, answers: tuple[str, ...], unwanted: str
) -> None:
    for rewrite in rewrites(question, text, *answers):
        assert not rewrite.rstrip("?").endswith(unwanted)


def test_an_answer_in_the_title_has_no_clause() -> None:
    snippet = Snippet("Ida Brand", "She was head until 1990.", 0, 0)
    own = AnswerEvidence("Ida Brand", (snippet,))
    assert condition_rewrites("Who was the head?", own, []) == []


def _documents() -> Iterator[tuple[str, list[AnswerEvidence]]]:
    """The questions of the documents with their answers' first mentions."""
    passages = {}
    for line in (_DOCUMENTS / "passages.jsonl").read_text().splitlines():
        passage = json.loads(line)
        passages[passage["id"]] = passage
    questions = {}
    for line in (_DOCUMENTS / "questions.jsonl").read_text().splitlines():
        record = json.loads(line)
        questions[record["id"]] = record
    for line in (_DOCUMENTS / "rewrites.jsonl").read_text().splitlines():
        record = json.loads(line)
        question = questions[record["id"]]
        answers = []
        for rewrite in record["true"]:
            aliases = question["answers"][rewrite["answer"]]
            passage = passages[rewrite["passage"]]
            answers.extend(_mentions(aliases, passage))
        yield question["question"], answers


def _mentions(aliases: list[str], passage: dict[str, str]) -> Iterator[AnswerEvidence]:
    for alias in aliases:
        match = re.search(rf"(?<!\w){re.escape(alias)}(?!\w)", passage["text"])
        if match:
            snippet = Snippet(passage["title"], passage["text"], *match.span())
            yield AnswerEvidence(alias, (snippet,))
            return


def test_rewrites_of_the_documents_are_whole() -> None:
    count = 0
    for question, answers in _documents():
        for place, own in enumerate(answers):
            others = [*answers[:place], *answers[place + 1 :]]
            for rewrite in condition_rewrites(question, own, others):
                count += 1
                text = rewrite.question
                assert not has_doubled_word(text), text
                assert question.endswith("?") == text.endswith("?"), text
                assert (question == question.lower()) == (text == text.lower()), text
                answer = f" {' '.join(words(own.answer))} "
                if answer not in f" {' '.join(words(question))} ":
                    assert answer not in f" {' '.join(words(text))} ", text
    assert count > 500


PACT = "The pact was signed at Lund on 4 May 1985 and took effect on 6 June 1995."
HALL = "Work began in 1870, and the exterior was finished in 1878."
SONG = "The song has words by Ida Brand and music by Ole Sund."
GAME = "It was invented by Ida Brand, a lawyer, and Ole Sund, an architect."
TEST = "The written part lasts 150 minutes, the spoken part 15 minutes."


@pytest.mark.parametrize(
    ("question", "text", "answers", "expected"),
    [
        (
            "When did the Orla Pact start?",
            PACT,
            ("4 May 1985", "6 June 1995"),
            "When was the Orla Pact signed?",
        ),
        (
            "when did the orla pact start",
            PACT,
            ("6 June 1995", "4 May 1985"),
            "when did the orla pact take effect",
        ),
        (
            "When was Orla Hall built?",
            HALL,
            ("1870", "1878"),
            "When did work on Orla Hall begin?",
        ),
        (
            "When was Orla Hall built?",
            HALL,
            ("1878", "1870"),
            "When was the exterior of Orla Hall finished?",
        ),
        (
            "Who wrote Tide?",
            SONG,
            ("Ida Brand", "Ole Sund"),
            "Who wrote the words of Tide?",
        ),
        (
            "Who wrote Tide?",
            SONG,
            ("Ole Sund", "Ida Brand"),
            "Who composed the music of Tide?",
        ),
        (
            "who invented rondo",
            GAME,
            ("Ole Sund", "Ida Brand"),
            "which architect invented rondo",
        ),
        (
            "how long is the orla test",
            TEST,
            ("15 minutes", "150 minutes"),
            "how long is the spoken part of the orla test",
        ),
    ],
)
def test_event_role_and_part(
    question: str, text: str, answers: tuple[str, ...], expected: str
) -> None:
    assert expected in rewrites(question, text, *answers)


MOON = "Ida Brand discovered the moon; Ole Sund named it."
CROWN = "Queen Ida signed the law, and Ole Sund was the prime minister."


@pytest.mark.parametrize(
    ("question", "text", "answers", "expected"),
    [
        (
            "Who discovered and named the moon?",
            MOON,
            ("Ole Sund", "Ida Brand"),
            "Who named the moon?",
        ),
        (
            "Who were the queen and the prime minister then?",
            CROWN,
            ("Ole Sund", "Ida"),
            "Who was the prime minister then?",
        ),
    ],
)
def test_one_of_two_things_is_asked_for(
    question: str, text: str, answers: tuple[str, ...], expected: str
) -> None:
    assert rewrites(question, text, *answers)[0] == expected


LEASE = "The lease of Unit 4 ends on 3 May 2031, that of Unit 9 on 4 June 2028."
GRANTS = "Grants of 900 crowns (within Europe) and 1,600 crowns (outside it) are given."
SPRING = "Selection closes on 2 May 2026 for the autumn and 3 June 2027 for the spring."
LEDGER = "Edition 5 is kept until 2 May 2026, edition 6 until 3 June 2030."


@pytest.mark.parametrize(
    ("question", "text", "answers", "expected"),
    [
        (
            "When does the lease at Orla Park end?",
            LEASE,
            ("4 June 2028", "3 May 2031"),
            "When does the lease of Unit 9 at Orla Park end?",
        ),
        (
            "How much is the grant?",
            GRANTS,
            ("900 crowns", "1,600 crowns"),
            "How much is the grant within Europe?",
        ),
        (
            "when does selection close at orla",
            SPRING,
            ("3 June 2027", "2 May 2026"),
            "when does selection close at orla for the spring",
        ),
        (
            "Until when is Orla Ledger kept?",
            LEDGER,
            ("3 June 2030", "2 May 2026"),
            "Until when is edition 6 of Orla Ledger kept?",
        ),
    ],
)
def test_wholes_brackets_and_parallel_phrases(
    question: str, text: str, answers: tuple[str, ...], expected: str
) -> None:
    assert rewrites(question, text, *answers)[0] == expected
