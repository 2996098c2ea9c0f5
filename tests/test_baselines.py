"""The papers' other ways: votes, disambiguation first, prompt copies, options answered one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from whichsense.stages.baselines import DisambiguateFirst
from whichsense.stages.clarify import ClarifiedReader, evidence_of, matched, offered
from whichsense.stages.disambiguate import PromptCopy
from whichsense.stages.read import VotingReader
from whichsense.stages.summarize import supporting
from whichsense.testing import FakeReader, FakeReranker, FakeRetriever, passage_hit
from whichsense.text.clarification import ParsedClarification
from whichsense.text.words import spans_of
from whichsense.types import Candidate, Case, Reading, Span

FILM = passage_hit("The 1933 film stars Fay Wray.", "King Kong (1933 film)")
REMAKE = passage_hit("The 2005 remake stars Naomi Watts.", "King Kong (2005 film)")


@dataclass(frozen=True)
class Fixed:
    answers: Sequence[str]

    def read(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, answers=self._candidates(case)) for case in cases]

    def _candidates(self, case: Case) -> tuple[Candidate, ...]:
        return tuple(Candidate(answer, 1.0, spans_of(answer, case.hits)) for answer in self.answers)


def test_the_most_voted_answers_win() -> None:
    reader = VotingReader(
        [
            Fixed(["Fay Wray", "Naomi Watts"]),
            Fixed(["naomi watts", "Jessica Lange"]),
            Fixed(["Fay Wray"]),
        ]
    )
    case = Case("who stars in king kong", (FILM, REMAKE))
    found = reader.read([case, case])[1].answers
    assert [one.answer for one in found] == ["Fay Wray", "Naomi Watts"]
    assert found[0].score == 2 / 3 and found[0].spans[0].passage == FILM.passage
    nobody = VotingReader([Fixed([]), Fixed([])])
    assert nobody.read([Case("who?")])[0].answers == ()
    twice = VotingReader([Fixed(["a", "A"]), Fixed(["b"])])
    assert [one.answer for one in twice.read([Case("q")])[0].answers] == [
        "a",
        "b",
    ]  # a reader has one vote for an answer


@dataclass
class First:
    ambiguous: bool
    asked: list[str] = field(default_factory=list)

    def detect(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, is_ambiguous=self.ambiguous) for case in cases]

    def rewrite(self, questions: Sequence[str]) -> list[list[str]]:
        years = ("1933", "2005", "1933")
        return [[f"{question} in {year}" for year in years] for question in questions]


def test_disambiguation_first() -> None:
    retriever = FakeRetriever([FILM, REMAKE])
    reader = FakeReader({"Fay": "Fay Wray", "Naomi": "Naomi Watts"})
    system = DisambiguateFirst(First(True), First(True), retriever, reader, FakeReranker(), keep=1)
    found = system.run(["who stars"])[0].readings
    assert [one.question for one in found] == ["who stars in 1933", "who stars in 2005"]
    assert [one.answer for one in found] == ["Fay Wray", "Naomi Watts"]
    assert retriever.asked == [
        "who stars in 1933",
        "who stars in 2005",
    ]  # each rewrite has passages of its own
    plain = (
        DisambiguateFirst(First(False), First(True), retriever, reader, keep=1)
        .run(["who stars"])[0]
        .readings
    )
    assert [(one.question, one.answer) for one in plain] == [("who stars", "Fay Wray")]


def test_prompt_copy() -> None:
    case = Case("who?", answers=(Candidate("a", 1.0), Candidate("b", 0.5)))
    found = PromptCopy().disambiguate([case])[0].readings
    assert [(one.question, one.answer) for one in found] == [("who?", "a"), ("who?", "b")]


def test_options_are_answered_one_by_one_with_passages_of_their_own() -> None:
    labels = ("the 1933 film", "the 2005 remake")
    clarification = offered("Which version", "version", labels, ())

    @dataclass(frozen=True)
    class TopOnly:
        inner: FakeReader

        def read(self, cases: Sequence[Case]) -> list[Case]:
            return self.inner.read([replace(case, hits=case.hits[:1]) for case in cases])

    answers = FakeReader({"Fay": "Fay Wray", "Naomi": "Naomi Watts"})
    reader = ClarifiedReader(TopOnly(answers), FakeReranker())
    question = "who stars in king kong?"
    case = Case(question, (FILM, REMAKE), clarification=clarification)
    found = reader.answer_options(case)
    assert [one.answer for one in found] == ["Fay Wray", "Naomi Watts"]
    assert found[0].question == "who stars in king kong?, Which version: the 1933 film"
    nowhere = reader.answer_options(replace(case, hits=()))
    assert [one.answer for one in nowhere] == ["", ""]
    assert reader.answer_options(replace(case, clarification=None)) == []


def test_options_find_their_readings() -> None:
    readings = [
        Reading("who stars in the 2005 king kong", "Naomi Watts"),
        Reading("who stars in the 1933 king kong", "Fay Wray"),
    ]
    found = matched(
        ParsedClarification("year", ("1933", "2005")), "who stars in king kong", readings
    )
    assert [one.readings[0].answer for one in found.options] == ["Fay Wray", "Naomi Watts"]
    fewer = matched(
        ParsedClarification("year", ("1933", "2005", "1976")), "who stars in king kong", readings
    )
    assert [len(one.readings) for one in fewer.options] == [1, 1]


def test_options_find_readings_that_have_no_rewrite_by_their_source() -> None:
    question = "who stars in king kong"
    readings = [
        Reading(question, "Naomi Watts", source="King Kong (2005 film)"),
        Reading(question, "Fay Wray", source="King Kong (1933 film)"),
    ]
    parsed = ParsedClarification("year", ("1933", "2005"))
    found = matched(parsed, question, readings)
    assert [one.readings[0].answer for one in found.options] == ["Fay Wray", "Naomi Watts"]


def test_evidence_of_readings() -> None:
    first, second = (Span(hit.passage, 0, 3) for hit in (FILM, REMAKE))
    readings = [Reading("a", "x", (first, second)), Reading("b", "y", (second,))]
    assert [hit.passage.title for hit in evidence_of(readings)] == [
        FILM.passage.title,
        REMAKE.passage.title,
    ]
    assert evidence_of([]) == []


def test_sentences_cite_what_supports_them() -> None:
    passages = [FILM.passage, REMAKE.passage]
    assert supporting("Naomi Watts stars in the 2005 remake.", passages)[0] == REMAKE.passage
    assert supporting("Something else entirely happened yesterday.", passages) == ()
    assert supporting("", passages) == ()
