"""Labels in a conversation: what is offered, what is understood, what is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click import unstyle

from labelled import HITS, QUESTION, LabelDisambiguator, pipeline
from whichsense.cli.chat_session import format_turn
from whichsense.conversation import AskingPolicy, begin, reply, show_readings
from whichsense.conversation.turns import ANSWER, CLARIFICATION, READINGS
from whichsense.pipeline import Pipeline
from whichsense.testing import FakeReader, FakeRetriever, passage_hit
from whichsense.types import Option

SILENT = AskingPolicy(enabled=False)


def unsure() -> Pipeline:
    return pipeline(disambiguator=LabelDisambiguator(confidence=0.4))


def only(confidence: float) -> Pipeline:
    """A pipeline that finds one answer."""
    return pipeline(
        retriever=FakeRetriever(HITS[:1]),
        reader=FakeReader({"12": "six months"}),
        disambiguator=LabelDisambiguator(confidence=confidence),
    )


def options(pipeline: Pipeline) -> tuple[Option, ...]:
    last = begin(pipeline, QUESTION).last
    assert last.shown == CLARIFICATION and last.clarification is not None
    return last.clarification.options


@pytest.mark.parametrize("clarifier", ["compact", "none"])
def test_the_labels_are_the_options(clarifier: str) -> None:
    asked = pipeline() if clarifier == "compact" else pipeline(clarifier=None)
    offered = options(asked)
    assert [one.label for one in offered] == ["Skerry 12", "Skerry 24"]
    assert [one.readings[0].answer for one in offered] == ["six months", "one year"]


@pytest.mark.parametrize("said", ["Skerry 24", "the 24", "skerry 24, please"])
def test_a_reply_is_matched_with_the_labels(said: str) -> None:
    answered = reply(pipeline(), begin(pipeline(), QUESTION), said)
    assert answered.last.shown == ANSWER
    assert [one.answer for one in answered.last.readings] == ["one year"]
    assert not answered.last.is_tentative and not answered.dependence


def test_several_readings_begin_with_what_the_answer_depends_on() -> None:
    for shown in (
        begin(pipeline(), QUESTION, policy=SILENT),
        show_readings(begin(pipeline(), QUESTION)),
    ):
        assert shown.last.shown == READINGS and len(shown.last.readings) == 2
        lines = unstyle(format_turn(shown)).splitlines()
        assert lines[0] == shown.dependence == "This depends on what is meant."
        assert "     Skerry 12" in lines and "     Skerry 24" in lines


def test_answers_that_mean_the_same_are_shown_without_a_question_back() -> None:
    """None of them stands as the answer."""
    hits = [HITS[0], passage_hit("Skerry 48: 6 months of warranty.", "Data sheet")]
    same = FakeReader({"12": "six months", "48": "6 months"})
    begun = begin(pipeline(retriever=FakeRetriever(hits), reader=same), QUESTION)
    assert begun.last.shown == READINGS and begun.last.clarification is None
    assert len(begun.last.readings) == 2 and begun.dependence


def test_an_only_answer_that_is_not_probable_is_tentative() -> None:
    begun = begin(only(0.4), QUESTION)
    assert begun.last.is_tentative and begun.last.shown == ANSWER
    assert "  1. Perhaps: six months  40%" in unstyle(format_turn(begun))
    assert not begin(only(0.5), QUESTION).last.is_tentative
    several = begin(unsure(), QUESTION, policy=SILENT)
    assert not several.last.is_tentative and "Perhaps" not in format_turn(several)


def test_people_are_shown_what_decides_whether_a_question_is_ambiguous() -> None:
    case = pipeline().ask(QUESTION)
    assert case.is_ambiguous and case.has_several_readings
    case = only(0.9).ask(QUESTION)
    assert case.is_ambiguous is False and not case.is_tentative
    restricted = replace(unsure(), policy=case.policy).with_threshold(0.5)
    case = restricted.ask(QUESTION)
    assert case.is_ambiguous is False and case.is_tentative
    assert len(case.possible) == 1
