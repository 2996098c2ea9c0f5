"""Whatever the rewrites are, a clarification has the right form."""

from __future__ import annotations

from form import find_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from whichsense.models.compact.clarifier import clarify, repair
from whichsense.types import FOR_BENCHMARKS, Case, Clarification, Option, Reading

WORDS = st.sampled_from(
    "Who won the cup in 2016 2017 of film book New York a and , ? : “ ( May 5, 2015 first second 日本 \n".split(
        " "
    )
)
SENTENCES = st.lists(WORDS, max_size=12).map(" ".join)
TEXTS = st.one_of(SENTENCES, st.text(max_size=80))
READINGS = st.lists(
    st.builds(
        Reading,
        question=TEXTS,
        answer=st.text(max_size=30),
        confidence=st.floats(0, 1),
        source=TEXTS,
    ),
    max_size=7,
)


def leaves(options: tuple[Option, ...]) -> list[Option]:
    found = []
    for option in options:
        found += leaves(option.options) if option.options else [option]
    return found


@settings(max_examples=40, deadline=None)
@given(question=TEXTS, readings=READINGS)
def test_made_for_people(question: str, readings: list[Reading]) -> None:
    clarification = clarify(Case(question, readings=tuple(readings)))
    if clarification is None:
        return
    assert find_problems(clarification) == []
    bound = []
    for option in leaves(clarification.options):
        assert 0 < len(option.label) <= 40
        bound += option.readings
    assert sorted(map(repr, bound)) == sorted(map(repr, readings))


@settings(max_examples=25, deadline=None)
@given(question=TEXTS, readings=READINGS)
def test_made_for_benchmarks(question: str, readings: list[Reading]) -> None:
    case = Case(question, readings=tuple(readings), policy=FOR_BENCHMARKS)
    clarification = clarify(case)
    assert (clarification is None) == (len(readings) < 2)
    if clarification is not None:
        bound = [option.readings for option in clarification.options]
        assert bound == [(reading,) for reading in readings]
        assert "\n" not in clarification.question


@settings(max_examples=40, deadline=None)
@given(
    category=TEXTS,
    options=st.lists(
        st.builds(
            Option,
            id=st.just("1"),
            label=TEXTS,
            readings=READINGS.map(lambda readings: tuple(readings[:2])),
        ),
        max_size=9,
    ),
)
def test_repaired(category: str, options: list[Option]) -> None:
    broken = Clarification(category, f"Which {category}: x?", category, tuple(options))
    good = repair(broken)
    if good is not None:
        assert find_problems(good) == []
        assert repair(good) == good
