"""What the verifier learns from: true and false rewrites as lists, and fluent texts beside broken ones."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from whichsense.errors import BadInput
from whichsense.lab.compact.lists import Pack
from whichsense.lab.compact.questions import TrainingQuestion
from whichsense.lab.compact.topics import TopicRewrite, Topics
from whichsense.lab.compact.trust_fitting import MarkedRewrite, TrustData, build_trust, read_marks
from whichsense.lab.compact.verifier_task import (
    FluentText,
    area_under_curve,
    break_text,
    build_judged_lists,
    build_rewrite_lists,
    convert_topic_rewrites,
    inserted_words,
)
from whichsense.lab.datasets import Annotation, QAPair, Question
from whichsense.models.compact.encoder import WEIGHTS, Embeddings
from whichsense.models.compact.scorer import Trust, probability

ANN, BEA = ("Ann", "Ann Lee"), ("Bea",)
ASKED = Question(
    "race-q1", "who ran first", (Annotation("multipleQAs", (QAPair(ANN), QAPair(BEA))),)
)
TRUE = "who ran first in may"


def converted(*rewrites: TopicRewrite) -> list[TrainingQuestion]:
    return list(convert_topic_rewrites(ASKED, rewrites))


def test_a_true_rewrite_has_its_own_answer_alone() -> None:
    (one,) = converted(TopicRewrite(TRUE, 0))
    assert (one.text, one.answers) == (TRUE, (ANN,))
    assert one.complete and not one.refuted


@pytest.mark.parametrize("kind", ["near", "role", "other"])
def test_a_false_rewrite_refutes_its_answer(kind: str) -> None:
    (one,) = converted(TopicRewrite("who ran first in june", 0, kind))
    assert one.answers == (ANN,) and one.refuted


def test_what_tells_nothing_apart_has_all_answers() -> None:
    (one,) = converted(TopicRewrite("who ran first in the race", 0, "empty"))
    assert one.answers == (ANN, BEA) and not one.refuted


def test_bad_english_is_no_lie() -> None:
    (one,) = converted(TopicRewrite("who ran may in first", 0, "broken"))
    assert one.answers == (ANN,) and not one.refuted


def test_what_is_true_as_well_is_not_refuted() -> None:
    true = TopicRewrite(TRUE, 0)
    mistaken = TopicRewrite("Who ran first, in May?", 0, "near")
    others = TopicRewrite(TRUE, 1, "near")
    found = converted(true, mistaken, others)
    assert [(one.text, one.refuted) for one in found] == [(TRUE, False), (TRUE, True)]


def test_a_question_without_an_answer_has_no_rewrites() -> None:
    bare = Question("race-u1", "who flew", ())
    assert not list(convert_topic_rewrites(bare, [TopicRewrite(TRUE, 0)]))


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Topics:
    folder = tmp_path_factory.mktemp("topics")
    judged = {"id": "race-q1", "question": "who ran first", "answer": "Bea"}
    marks = {"right": 1, "true": 1, "apart": 1, "fluent": 1}
    rows: dict[str, list[dict[str, Any]]] = {
        "passages": [
            {"id": "race-1", "title": "May", "text": "In May Ann ran first."},
            {"id": "race-2", "title": "June", "text": "In June Bea ran first."},
            {"id": "lake-1", "title": "Lake", "text": "Ann and Bea swam in June."},
        ],
        "questions": [
            {"id": "race-q1", "question": "who ran first", "answers": [ANN, BEA]},
            {"id": "lake-q1", "question": "who swam", "answers": [["Bea"]]},
        ],
        "rewrites": [
            {
                "id": "race-q1",
                "true": [{"answer": 0, "question": TRUE}],
                "false": [{"answer": 0, "question": "who ran first in june", "kind": "near"}],
            }
        ],
        "judged": [
            judged | marks | {"rewrite": "who ran first in june"},
            judged | marks | {"rewrite": "who ran first at all", "apart": 0},
        ],
    }
    for name, own in rows.items():
        lines = "".join(json.dumps(row) + "\n" for row in own)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return Topics.read([folder])


def marked(pack: Pack, number: int, vocabulary: list[str]) -> dict[str, list[str]]:
    """The strings that are marked in each passage of a list, by the passage's title."""
    found: dict[str, list[str]] = {}
    for slot in pack.slot_range(number):
        row = int(pack.slots.values[slot])
        pieces = [*pack.titles[row], *pack.texts[row]]
        title = " ".join(vocabulary[piece] for piece in pack.titles[row])
        found[title] = []
        for _, first, last in pack.spans[slot]:
            text = " ".join(vocabulary[piece] for piece in pieces[first : last + 1])
            found[title].append(text)
    return found


def test_a_list_holds_all_passages_of_its_topic(topics: Topics) -> None:
    """An answer is marked there alone: the same string of another topic is another thing."""
    vocabulary = Embeddings.load(WEIGHTS / "embeddings.npz").vocabulary
    pack = build_rewrite_lists(topics, vocabulary)
    assert [one.refuted for one in pack.asked] == [False, True]
    for number in range(len(pack)):
        found = marked(pack, number, vocabulary)
        assert (found.pop("may"), found.pop("june")) == (["ann"], [])
        assert found in ({}, {"lake": []})


def test_what_a_reader_judged_is_a_list_too(topics: Topics) -> None:
    """A rewrite that tells nothing apart is none that gives its answer."""
    vocabulary = Embeddings.load(WEIGHTS / "embeddings.npz").vocabulary
    pack = build_judged_lists(topics, vocabulary)
    assert [one.refuted for one in pack.asked] == [False, True]
    for number in range(len(pack)):
        found = marked(pack, number, vocabulary)
        assert (found["june"], found["may"]) == (["bea"], [])
    assert len(build_judged_lists(topics.only(["lake"]), vocabulary)) == 0


# Fluent texts and broken ones.

WORDS = st.sampled_from("who what was did the in of ran first race 1984 May Ann".split())
TEXTS = st.lists(WORDS, min_size=4, max_size=12).map(lambda row: " ".join(row) + "?")


@given(text=TEXTS, prompt=TEXTS | st.just(""), other=TEXTS, seed=st.integers(0, 10**6))
def test_a_broken_text_is_another_text(text: str, prompt: str, other: str, seed: int) -> None:
    """The same one for the same seed. Case and question marks make no difference."""
    one = FluentText(text, prompt)
    broken = break_text(one, [FluentText(other)], random.Random(seed))
    assert broken == break_text(one, [FluentText(other)], random.Random(seed))
    if broken is not None:
        assert broken.lower().rstrip("?").split() != text.lower().rstrip("?").split()
        assert broken.split()


def test_texts_are_broken_in_several_ways() -> None:
    one = FluentText("Who was the king of Spain in 1911?", "Who was the king of Spain?")
    other = [FluentText("When did the first ship reach the harbour?")]
    found = {break_text(one, other, random.Random(seed)) for seed in range(300)}
    assert len(found - {None}) > 20
    assert "Who was the king of Spain in" in found  # an addition that is cut off
    assert break_text(FluentText("Who ran first?"), other, random.Random(0)) is None


def test_the_longest_insertion() -> None:
    asked, rewrite = "who ran first".split(), "who ran first in the race of may".split()
    assert inserted_words(asked, rewrite) == (3, 8)
    assert inserted_words(asked, asked) == (0, 0)


def test_area_under_the_curve() -> None:
    labels = np.array([True, True, False, False])
    for scores, area in (
        ([4, 3, 2, 1], 1.0),
        ([1, 2, 3, 4], 0.0),
        ([1, 1, 1, 1], 0.5),
        ([4, 1, 3, 2], 0.5),
        ([4, 3, 3, 1], 0.875),
    ):
        assert area_under_curve(np.array(scores), labels) == area
    assert area_under_curve(np.zeros(2), np.array([True, True])) == 0.5


# Trust, fitted on what readers judged.

MARKED = {"id": "race-q1", "answer": "Ann", "rewrite": TRUE}
MARKS = {"right": 1, "true": 1, "apart": 0, "fluent": 1}


def test_marks_are_read_by_question(tmp_path: Path) -> None:
    path = tmp_path / "trust.jsonl"
    other = MARKED | MARKS | {"id": "race-q2", "fluent": 0}
    rows = [MARKED | MARKS, other, MARKED | MARKS | {"answer": "Bea"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = read_marks(path)
    assert [one.answer for one in found["race-q1"]] == ["Ann", "Bea"]
    assert found["race-q2"] == [
        MarkedRewrite("Ann", TRUE, right=True, true=True, apart=False, fluent=False)
    ]


@pytest.mark.parametrize("body", [None, "{", "[]", '{"id": "race-q1"}'])
def test_marks_that_cannot_be_read_are_told(body: str | None, tmp_path: Path) -> None:
    path = tmp_path / "trust.jsonl"
    if body is not None:
        path.write_text(body, encoding="utf-8")
    with pytest.raises(BadInput, match=r"trust\.jsonl.*Each line needs"):
        read_marks(path)


def test_trust_is_what_the_rows_say_and_the_default_without_them() -> None:
    rows = [({"own": float(n)}, float(n >= 20)) for n in range(40)]
    data = TrustData(true=rows, fluent=rows[:5], best=rows[:20])
    fitted = build_trust(data, has_marks=False)
    low, high = probability(fitted.true, [{"own": 5.0}, {"own": 35.0}])
    assert low < 0.2 and high > 0.8
    default = Trust().to_table()
    table = fitted.to_table()
    assert table.pop("true") != default.pop("true")
    # Too few rows, none at all, and rows with one label.
    assert table == default
