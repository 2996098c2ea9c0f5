"""Free replies: a written set of every kind, and properties that hold for any text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whichsense.conversation import Intent, understand
from whichsense.conversation.turns import LONGEST_REPLY
from whichsense.errors import BadInput
from whichsense.types import Clarification, Option, Reading

REPLIES = Path(__file__).with_name("replies.jsonl")
KINDS = {"choose", "all", "skip", "none", "question", "about", "unclear"}


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in REPLIES.read_text("utf-8").splitlines()]


def is_held_out(row: dict[str, Any]) -> bool:
    """Half of the replies, by a hash: the rules were written without looking at them."""
    key = f"{row['question']}|{row['reply']}"
    return hashlib.sha256(key.encode()).digest()[0] % 2 == 1


def clarification_of(row: dict[str, Any]) -> Clarification:
    options = []
    for one in row["options"]:
        reading = Reading(one["rewrite"] or row["question"], one["answer"])
        options.append(Option(one["id"], one["label"], one["description"], (reading,)))
    labels = ", ".join(option.label for option in options)
    question = f"Which {row['category']}: {labels}?"
    return Clarification("Which", question, row["category"], tuple(options))


def is_understood(row: dict[str, Any]) -> bool:
    intent = understand(row["reply"], clarification_of(row), row["question"])
    chosen = list(intent.options) if intent.kind in ("choose", "all", "about") else []
    return (intent.kind, chosen) == (row["kind"], row["chosen"])


@pytest.mark.parametrize("held_out", [False, True])
def test_replies_are_understood(held_out: bool) -> None:
    half = [row for row in rows() if is_held_out(row) == held_out]
    assert len(half) >= 150
    understood = sum(is_understood(row) for row in half)
    assert understood / len(half) >= 0.95, f"{understood} of {len(half)}"


def test_the_set_has_every_kind() -> None:
    assert {row["kind"] for row in rows()} == KINDS


FILMS = Clarification(
    "Version",
    "Which version: the 1988 film, the 2008 film, or the novel?",
    "version",
    (
        Option("1", "the 1988 film"),
        Option("2", "the 2008 film"),
        Option("3", "the novel", "published in 1956"),
    ),
)


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_has_an_intent(text: str) -> None:
    intent = understand(text, FILMS, "Who wrote Harbour?")
    assert intent.kind in KINDS
    assert set(intent.options) <= {"1", "2", "3"}
    assert 0 <= intent.score <= 1
    assert (intent.kind == "choose") <= bool(intent.options)


@pytest.mark.parametrize("label", [option.label for option in FILMS.options])
@pytest.mark.parametrize("frame", ["{}", "{}!", "I meant {}, please", "  {}  ", "ok, {} then"])
def test_a_label_chooses_its_option(label: str, frame: str) -> None:
    option = next(one.id for one in FILMS.options if one.label == label)
    for text in (frame.format(label), frame.format(label).upper()):
        assert understand(text, FILMS, "Who wrote Harbour?").options == (option,)


def test_a_reply_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadInput, match="at most"):
        understand("a" * (LONGEST_REPLY + 1), FILMS)


def test_the_other_one_is_what_was_not_chosen() -> None:
    assert understand("the other ones", FILMS, "", ["2"]).options == ("1", "3")


def test_what_fits_nothing_is_unclear() -> None:
    assert understand("qwertz", FILMS) == Intent("unclear", score=0.0)
