"""Values of one list: which they are, when a question chooses among them, what they are believed."""

from __future__ import annotations

import pytest

from whichsense.models.compact.value_lists import (
    complete_lists,
    names_one,
    values_beside,
)
from whichsense.types import Candidate, Passage, Span

CASES = {
    "before": (
        "Working days a year: Peru 27, Ghana 26, Kenya 29.",
        {"Peru": "27", "Ghana": "26", "Kenya": "29"},
    ),
    "names with numbers": (
        "Trade use: Otter 12 six months, Otter 24 twelve months, Otter 48 two years.",
        {
            "Otter 12": "six months",
            "Otter 24": "twelve months",
            "Otter 48": "two years",
        },
    ),
    "behind": (
        "The excess is £100 for theft, £250 for escape of water and £1,000 for fire.",
        {"for theft": "£100", "for escape of water": "£250", "for fire": "£1,000"},
    ),
    "default": (
        "Faults are repaired within 24 hours; with the Care option, within 6 hours.",
        {"": "24 hours", "with the Care option, within": "6 hours"},
    ),
    "clock": (
        "The hall closes at 18:00 on Mondays and at 21:00 on Fridays.",
        {"on Mondays": "18:00", "on Fridays": "21:00"},
    ),
}
NO_LISTS = [
    "It is open from 9:00 to 17:00.",
    "Dimensions: 460 × 290 × 195 mm.",
    "It weighs 12 kg and holds 4 litres.",
    "The fee is £5.",
]


@pytest.mark.parametrize("name", CASES)
def test_each_value_of_a_list_has_its_label(name: str) -> None:
    text, expected = CASES[name]
    for value in expected.values():
        start = text.index(value)
        found = values_beside(text, start, start + len(value))
        assert {one.label: text[one.start : one.end] for one in found} == expected


@pytest.mark.parametrize("text", NO_LISTS)
def test_values_without_labels_are_no_list(text: str) -> None:
    for start in range(len(text)):
        assert values_beside(text, start, start + 1) == []


def candidate(text: str, answer: str, score: float) -> Candidate:
    start = text.index(answer)
    passage = Passage(id="1", title="Policy", text=text)
    return Candidate(answer, score, (Span(passage, start, start + len(answer), 1.0),))


def test_a_list_has_the_belief_of_all_its_values() -> None:
    text, _ = CASES["before"]
    read = [candidate(text, "27", 0.6), candidate(text, "26", 0.5)]
    listed = complete_lists("How many days of leave are there?", read)
    assert {one.answer for one in listed} == {"27", "26", "29"}
    assert min(one.score for one in listed) > 0.6
    chosen = complete_lists("How many days of leave are there in Ghana?", read)
    assert chosen == read


def test_a_value_apart_from_the_list_keeps_its_belief() -> None:
    text, _ = CASES["behind"]
    other = candidate("The premium is £80.", "£80", 0.3)
    listed = complete_lists(
        "What is the excess?", [candidate(text, "£250", 0.8), other]
    )
    assert len(listed) == 4
    assert listed[-1] == other


def test_a_question_may_name_a_label() -> None:
    text, _ = CASES["behind"]
    values = values_beside(text, text.index("£250"), text.index("£250") + 4)
    assert names_one("What is the excess for theft?", values)
    assert not names_one("What is the excess?", values)
