"""Topics that are learnt from: what ships with the recipes, and what lists are made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from whichsense.errors import BadConfig
from whichsense.lab.compact.questions import DataConfig, is_held_out, wordings
from whichsense.lab.compact.topics import Topics, build_topic_lists, split_topics, topic_of
from whichsense.lab.datasets import find_near_duplicates, load
from whichsense.models.compact.encoder import WEIGHTS, Embeddings
from whichsense.text.words import normalize

DATA = DataConfig(train="sample/questions", topics="topics")


@pytest.fixture(scope="module")
def shipped() -> Topics:
    return Topics.read(DATA.topic_folders)


def plain(text: str) -> str:
    """A name and its genitive are two words: Ann's holds Ann."""
    return normalize(text.replace("'s", " s"))


def test_every_answer_stands_in_its_topic(shipped: Topics) -> None:
    texts: dict[str, str] = {}
    for one in shipped.passages:
        topic = topic_of(one.id)
        texts[topic] = f"{texts.get(topic, '')} {plain(f'{one.title} {one.text}')} "
    missing = [
        (question.id, names[0])
        for question in shipped.questions
        for names in question.answers
        if not any(f" {plain(name)} " in texts[topic_of(question.id)] for name in names)
    ]
    assert not missing


def test_nothing_that_is_measured_is_learnt(shipped: Topics) -> None:
    """Neither the sample's questions nor near copies of them."""
    asked = [one.text for one in shipped.questions]
    measured = [
        text
        for name in ("sample/questions", "sample/unanswerable")
        for one in load(name)
        for text in wordings(one)
    ]
    assert not find_near_duplicates(asked, measured)
    assert len(set(map(str.lower, asked))) == len(asked)


def test_topics_have_questions_of_every_kind(shipped: Topics) -> None:
    answers = [len(one.answers) for one in shipped.questions]
    assert len(shipped.names) > 700 and min(answers) == 0
    assert sum(count > 1 for count in answers) > sum(count == 1 for count in answers) > 2000


def test_a_fifth_of_the_topics_is_held_out_but_for_those_that_were_judged() -> None:
    learnt, held = split_topics(DATA)
    names = {*learnt.names, *held.names}
    assert not set(learnt.names) & set(held.names)
    chosen = {name for name in names if is_held_out(name, 5)}
    assert 0.15 < len(chosen) / len(names) < 0.25
    judged = {topic_of(one.id) for one in learnt.judged}
    assert set(held.names) == chosen - judged and not held.judged
    assert {topic_of(one.id) for one in held.questions} == set(held.names)
    few, fewer = split_topics(replace(DATA, limit=6))
    assert len(few.names) + len(fewer.names) == 6


def test_corpora_hold_what_their_questions_ask() -> None:
    learnt, _ = split_topics(replace(DATA, limit=50))
    sources = list(learnt.corpora())
    assert sum(len(one.questions) for one in sources) == len(learnt.questions)
    for source in sources:
        for question in source.questions[:20]:
            best = [topic_of(hit.passage.id) for hit in source.index.search(question.text, 10)]
            assert topic_of(question.id) in best


def test_answers_stand_in_passages_of_the_topic_alone(tmp_path: Path) -> None:
    folder = written(tmp_path / "topics")
    vocabulary = Embeddings.load(WEIGHTS / "embeddings.npz").vocabulary
    topics = Topics.read(replace(DATA, topics=str(folder)).topic_folders)
    pack = build_topic_lists(topics, vocabulary)
    spans = {one.text: [] for one in pack.asked}
    for number, one in enumerate(pack.asked):
        assert one.complete and one.source == "topics"
        for slot in pack.slot_range(number):
            row = int(pack.slots.values[slot])
            pieces = [*pack.titles[row], *pack.texts[row]]
            spans[one.text] += [
                " ".join(vocabulary[p] for p in pieces[a : b + 1]) for _, a, b in pack.spans[slot]
            ]
    assert sorted(spans["who ran first"]) == ["ann", "bea"]  # Ann of the other topic is another one
    assert spans["who swam"] == ["ann"] and spans["who flew"] == []


@pytest.mark.parametrize(
    "damage", [None, "{", '{"id": "race-q1", "question": "who"}', '["race-q1"]']
)
def test_topics_that_cannot_be_read_are_told(damage: str | None, tmp_path: Path) -> None:
    path = written(tmp_path / "topics") / "questions.jsonl"
    if damage is None:
        path.unlink()
    else:
        path.write_text(damage, encoding="utf-8")
    with pytest.raises(BadConfig, match=r"data\.topics.*questions.*Give a folder"):
        split_topics(replace(DATA, topics=str(path.parent)))


def test_questions_that_are_kept_are_left_out(tmp_path: Path) -> None:
    folder = written(tmp_path / "topics")
    kept = next(iter(load("sample/questions")))
    with open(folder / "questions.jsonl", "a", encoding="utf-8") as file:
        file.write(
            json.dumps({"id": "race-q9", "question": kept.text, "answers": [["Ann"]]}) + "\n"
        )
    data = replace(DATA, topics=str(folder), without=("sample/questions",))
    asked = {one.text for some in split_topics(data) for one in some.questions}
    assert kept.text not in asked and "who ran first" in asked


def test_no_topic_to_learn_from_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path / "topics")
    names = (f"topic{number}" for number in range(100))
    held = next(name for name in names if is_held_out(name, 5))
    for path in folder.glob("*.jsonl"):
        text = (
            path.read_text(encoding="utf-8")
            .replace("race-", f"{held}-")
            .replace("lake-", f"{held}-")
        )
        path.write_text(text, encoding="utf-8")
    with pytest.raises(BadConfig, match="no topic to learn from"):
        split_topics(replace(DATA, topics=str(folder)))


def written(folder: Path) -> Path:
    """Two topics of our own."""
    folder.mkdir()
    rows: dict[str, list[dict[str, Any]]] = {
        "passages": [
            {
                "id": "race-1",
                "title": "Race",
                "text": "Ann ran first in May, and Bea ran first in June.",
            },
            {
                "id": "lake-1",
                "title": "Lake",
                "text": "Ann swam across the lake while others ran first.",
            },
        ],
        "questions": [
            {"id": "race-q1", "question": "who ran first", "answers": [["Ann"], ["Bea"]]},
            {"id": "lake-q1", "question": "who swam", "answers": [["Ann"]]},
            {"id": "lake-u1", "question": "who flew", "answers": []},
        ],
    }
    for name, own in rows.items():
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in own), encoding="utf-8"
        )
    return folder
