"""Documents that disagree: different things may have different answers, the same thing has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from whichsense.lab.datasets import ConflictDocument, ConflictQuestion
from whichsense.lab.datasets.records import QAPair
from whichsense.lab.datasets.rows import several_answers
from whichsense.lab.evaluation.prediction import GivenDocuments, Setting
from whichsense.models.compact.text_reader import settle
from whichsense.systems import build, load_settings
from whichsense.types import FOR_BENCHMARKS, Candidate, Passage, Span

SETTLED = Path(__file__).parents[2] / "systems" / "ramdocs" / "settled.toml"
TOWER = "The grey stone tower of Ghent stands on the market square and was built in {}."


def said(answer: str, score: float, text: str) -> Candidate:
    return Candidate(answer, score, (Span(Passage("", "", text), 0, 0),))


def answers(statements: list[Candidate], similar: float = 0.7) -> list[str]:
    return [group[0].answer for group in settle(statements, similar)]


def test_the_same_thing_has_one_answer() -> None:
    true = said("1313", 0.6, TOWER.format(1313))
    false = said("1900", 0.9, TOWER.format(1900))
    other = said("1313", 0.5, "Work in Ghent began in 1313.")
    wall = said("71", 0.4, "The long wall around York dates from the year 71.")
    assert answers([true, false]) == ["1900"]  # one against one: the surer
    assert answers([false, true, other]) == ["1313"]  # two against one
    assert answers([false, true, other, wall]) == ["1313", "71"]
    assert answers([false, true], similar=1.01) == ["1900", "1313"]  # never the same
    assert answers([]) == []


def test_the_compact_model_reads_each_document() -> None:
    documents = (
        ConflictDocument(TOWER.format(1313), "correct", "1313"),
        ConflictDocument(TOWER.format(1313) + " Its bells came later.", "correct", "1313"),
        ConflictDocument(TOWER.format(1900), "misinfo", "1900"),
        ConflictDocument("A recipe for soup: boil the water, then add salt.", "noise", "unknown"),
    )
    gold = several_answers((QAPair(("1313",)),))
    text = "When was the tower of Ghent built?"
    question = ConflictQuestion("1", text, gold, documents=documents)
    settings = load_settings(SETTLED)
    system = build(settings, GivenDocuments([question]), FOR_BENCHMARKS)
    (case,) = Setting(given="documents").run(system.answerer, [question])
    assert [reading.answer for reading in case.readings] == ["1313"]
    assert {span.passage.id for span in case.readings[0].evidence} == {"1/0", "1/1"}


@pytest.mark.parametrize("text", ["", " \n"])
def test_nothing_is_similar_to_an_empty_document(text: str) -> None:
    one = said("a", 0.5, text)
    other = said("b", 0.6, TOWER.format(1313))
    assert answers([one, other]) == ["b", "a"]
