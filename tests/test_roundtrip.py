"""Round trip: a hidden third answer is found, it ends, and it never loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from whichsense.pipeline import Pipeline
from whichsense.protocols import Disambiguator, Reader
from whichsense.stages.disambiguate import PromptCopy
from whichsense.stages.roundtrip import MOST_ANSWERS
from whichsense.testing import FakeDisambiguator, FakeRetriever, passage_hit
from whichsense.types import Candidate, Case, Hit, Reading

HITS = [passage_hit("370, 186 and 100 points.", "Points")]
PROMPT = "What's the most points scored in a game?"


@dataclass
class ScriptedReader:
    """Answers by question; `asked` records every call."""

    script: Mapping[str, Sequence[str]]
    asked: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def read(self, cases: Sequence[Case]) -> list[Case]:
        self.calls.append(len(cases))
        return [replace(case, answers=self._answers(case.question)) for case in cases]

    def _answers(self, question: str) -> tuple[Candidate, ...]:
        self.asked.append(question)
        return tuple(Candidate(answer, 1.0) for answer in self.script.get(question, []))


@dataclass
class ScriptedRewriter:
    """`prompt (answer)` for each answer; one alone keeps the prompt."""

    given: list[list[str]] = field(default_factory=list)

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, readings=self._readings(case)) for case in cases]

    def _readings(self, case: Case) -> tuple[Reading, ...]:
        given = [one.answer for one in case.answers]
        self.given.append(given)
        if len(given) == 1:
            return (Reading(case.question, given[0]),)
        return tuple(Reading(f"{case.question} ({one})", one) for one in given)


def round_trip(
    question: str, hits: Sequence[Hit], reader: Reader, rewriter: Disambiguator, rounds: int
) -> list[Reading]:
    pipeline = Pipeline(FakeRetriever(hits), reader=reader, disambiguator=rewriter, rounds=rounds)
    return list(pipeline.readings(question))


def answers(readings: Sequence[Reading]) -> list[str]:
    return [one.answer for one in readings]


def test_a_hidden_third_answer_is_found() -> None:
    """REFUEL's figure 2: the first rewrite brings a third answer; its own rewrite brings nothing more."""
    reader = ScriptedReader(
        {
            PROMPT: ["370", "186"],
            f"{PROMPT} (370)": ["370", "100"],
            f"{PROMPT} (186)": ["186"],
            f"{PROMPT} (100)": ["100"],
        }
    )
    rewriter = ScriptedRewriter()
    found = round_trip(PROMPT, HITS, reader, rewriter, rounds=10)
    assert answers(found) == ["370", "186", "100"]
    assert [one.question for one in found] == [
        f"{PROMPT} ({answer})" for answer in ("370", "186", "100")
    ]
    assert reader.asked == [PROMPT, f"{PROMPT} (370)", f"{PROMPT} (186)", f"{PROMPT} (100)"]
    assert rewriter.given == [["370", "186"], ["370", "186", "100"]]


def test_without_rounds_it_is_one_pass() -> None:
    reader = ScriptedReader({PROMPT: ["370", "186"], f"{PROMPT} (370)": ["100"]})
    assert answers(round_trip(PROMPT, HITS, reader, ScriptedRewriter(), rounds=0)) == ["370", "186"]
    assert reader.asked == [PROMPT]


def test_an_answer_in_other_words_is_not_new() -> None:
    reader = ScriptedReader(
        {PROMPT: ["The Beatles", "ABBA"], f"{PROMPT} (ABBA)": ["beatles", "Abba"]}
    )
    assert answers(round_trip(PROMPT, HITS, reader, ScriptedRewriter(), rounds=5)) == [
        "The Beatles",
        "ABBA",
    ]


@dataclass
class EndlessReader:
    """Never the same answer twice."""

    count: int = 0

    def read(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, answers=self._two_more()) for case in cases]

    def _two_more(self) -> tuple[Candidate, ...]:
        self.count += 2
        return (Candidate(f"answer {self.count - 1}", 1.0), Candidate(f"answer {self.count}", 1.0))


def test_it_ends_even_if_the_reader_never_does() -> None:
    reader = EndlessReader()
    found = round_trip(PROMPT, HITS, reader, ScriptedRewriter(), rounds=3)
    assert len(answers(found)) == len(set(answers(found))) <= MOST_ANSWERS
    assert (
        reader.count / 2 <= 1 + 2 + 4 + 8
    )  # the prompt, and each round the rewrites of the round before
    many = EndlessReader()
    assert len(round_trip(PROMPT, HITS, many, ScriptedRewriter(), rounds=10**6)) == MOST_ANSWERS
    assert many.count / 2 <= MOST_ANSWERS + 1


def test_rewrites_that_repeat_the_prompt_are_not_asked_again() -> None:
    reader = ScriptedReader({PROMPT: ["a", "b"]})
    assert answers(round_trip(PROMPT, HITS, reader, PromptCopy(), rounds=100)) == ["a", "b"]
    assert reader.asked == [PROMPT]


def test_one_answer_needs_no_round() -> None:
    reader = ScriptedReader({PROMPT: ["a"]})
    assert round_trip(PROMPT, HITS, reader, ScriptedRewriter(), rounds=9) == [Reading(PROMPT, "a")]
    assert reader.asked == [PROMPT]
    assert round_trip(PROMPT, HITS, ScriptedReader({}), ScriptedRewriter(), rounds=9) == []


@dataclass
class DoubtfulRewriter(ScriptedRewriter):
    """Keeps apart the answers that are merely possible, as long as there are fewer than `enough`."""

    possible: Sequence[str] = ()
    enough: int = 99

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        split = []
        for case in super().disambiguate(cases):
            probable: list[Reading] = []
            doubtful: list[Reading] = []
            for reading in case.readings:
                is_doubtful = reading.answer in self.possible
                is_doubtful = is_doubtful and len(case.answers) < self.enough
                (doubtful if is_doubtful else probable).append(reading)
            apart = replace(case, readings=tuple(probable), possible=tuple(doubtful))
            split.append(apart)
        return split


def test_what_is_merely_possible_is_neither_lost_nor_doubled() -> None:
    script = {PROMPT: ["370", "186", "99"], f"{PROMPT} (370)": ["100", "98"]}
    stays = DoubtfulRewriter(possible=["99", "98"])
    joins = DoubtfulRewriter(possible=["99", "98"], enough=4)
    expected = [
        (stays, 5, ["370", "186", "100"], ["99", "98"]),
        (joins, 5, ["370", "186", "99", "100", "98"], []),
        (stays, 0, ["370", "186"], ["99"]),
    ]
    for rewriter, rounds, readings, possible in expected:
        reader = ScriptedReader(script)
        case = Pipeline(
            FakeRetriever(HITS), reader=reader, disambiguator=rewriter, rounds=rounds
        ).ask(PROMPT)
        assert answers(case.readings) == readings
        assert answers(case.possible) == possible
        assert f"{PROMPT} (99)" not in reader.asked or not possible


def test_the_pipeline_takes_rounds() -> None:
    reader = ScriptedReader({PROMPT: ["370", "186"]})
    pipeline = Pipeline(FakeRetriever(HITS), reader=reader, disambiguator=FakeDisambiguator())
    once = pipeline.readings(PROMPT)
    hidden = ScriptedReader({**reader.script, once[0].question: ["100"]})
    again = replace(pipeline, reader=hidden, rounds=4)
    assert answers(again.readings(PROMPT)) == ["370", "186", "100"]


def test_many_questions_go_round_together() -> None:
    """The same readings as one by one, with one call of the reader for each round."""
    script = {
        "a": ["1", "2"], "a (1)": ["1", "3"], "a (2)": ["2"], "a (3)": ["3"],
        "b": ["4"],
        "c": ["5", "6"], "c (5)": ["7"], "c (7)": ["8"],
    }  # fmt: skip
    apart = [
        round_trip(one, HITS, ScriptedReader(script), ScriptedRewriter(), rounds=5) for one in "abc"
    ]
    reader = ScriptedReader(script)
    pipeline = Pipeline(
        FakeRetriever(HITS), reader=reader, disambiguator=ScriptedRewriter(), rounds=5
    )
    together = [list(case.readings) for case in pipeline.run(["a", "b", "c"])]
    assert together == apart
    assert [answers(found) for found in apart] == [["1", "2", "3"], ["4"], ["5", "6", "7", "8"]]
    assert reader.calls == [3, 4, 2, 1]
    assert pipeline.run([]) == []
