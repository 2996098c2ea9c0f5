"""Rewrites that ship with topics and documents: their form, which a program can check. Truth is judged by reading."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from whichsense.files import read_jsonl
from whichsense.lab.compact.questions import is_held_out
from whichsense.lab.datasets import find_near_duplicates, load
from whichsense.text.words import normalize, words

RECIPES = Path(__file__).parents[2] / "recipes"
KINDS = {"other", "near", "edge", "kind", "role", "part", "place", "shift", "empty", "broken"}
MOST_ADDED = 12  # words


def read_lines(path: Path) -> list[dict[str, Any]]:
    packed = path.with_name(f"{path.name}.xz")
    return [row for _, row in read_jsonl(packed if packed.exists() else path)]


@pytest.fixture(scope="module", params=["topics", "documents"])
def folder(request: pytest.FixtureRequest) -> Path:
    return RECIPES / str(request.param)


@pytest.fixture(scope="module")
def rewrites(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder / "rewrites.jsonl")


@pytest.fixture(scope="module")
def relations(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder / "relations.jsonl")


@pytest.fixture(scope="module")
def judged(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder / "judged.jsonl")


@pytest.fixture(scope="module")
def questions(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_lines(folder / "questions.jsonl")}


@pytest.fixture(scope="module")
def passages(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_lines(folder / "passages.jsonl")}


def topic_of(name: str) -> str:
    return name.rpartition("-")[0]


def plain(text: str) -> str:
    return " ".join(words(text))


def holds(text: str, phrase: str) -> bool:
    return f" {plain(phrase)} " in f" {plain(text)} "


@pytest.fixture(scope="module")
def texts(passages: dict[str, dict[str, Any]]) -> dict[str, str]:
    """All that the passages of each topic say."""
    texts: dict[str, str] = {}
    for name, passage in passages.items():
        topic = topic_of(name)
        texts[topic] = f"{texts.get(topic, '')} {passage['title']} {passage['text']}"
    return texts


def test_an_alias_of_every_answer_stands_in_its_topic(
    questions: dict[str, dict[str, Any]], relations: list[dict[str, Any]], texts: dict[str, str]
) -> None:
    for question in (*questions.values(), *relations):
        text = texts[topic_of(question["id"])]
        for aliases in question["answers"]:
            assert any(normalize(alias) in normalize(text) for alias in aliases), question["id"]


def test_what_stands_beside_an_answer_is_of_the_topic_and_no_answer(
    relations: list[dict[str, Any]], questions: dict[str, dict[str, Any]], texts: dict[str, str]
) -> None:
    names = [row["id"] for row in relations]
    assert len(set(names)) == len(names) and not set(names) & set(questions)
    for row in relations:
        right = {normalize(name) for names in row["answers"] for name in names}
        assert row["beside"], row["id"]
        for wrong in row["beside"]:
            assert holds(texts[topic_of(row["id"])], wrong), (row["id"], wrong)
            assert normalize(wrong) not in right, row["id"]
    empty = sum(not row["answers"] for row in relations)
    assert empty == len(relations) / 2


def test_every_answer_is_rewritten_or_merged(
    rewrites: list[dict[str, Any]], questions: dict[str, dict[str, Any]]
) -> None:
    seen = Counter(row["id"] for row in rewrites)
    assert max(seen.values()) == 1
    for row in rewrites:
        answers = questions[row["id"]]["answers"]
        merged = {place for group in row.get("same", []) for place in group}
        rewritten = {one["answer"] for one in row["true"]}
        assert merged | rewritten == set(range(len(answers))), row["id"]


def test_support_is_copied_from_the_passage(
    rewrites: list[dict[str, Any]], passages: dict[str, dict[str, Any]]
) -> None:
    for row in rewrites:
        for one in row["true"]:
            passage = passages[one["passage"]]
            assert topic_of(one["passage"]) == topic_of(row["id"])
            texts = (passage["title"], passage["text"])
            assert any(one["support"] in text for text in texts), (row["id"], one)


def test_true_rewrites_are_short_and_do_not_hold_their_answer(
    rewrites: list[dict[str, Any]], questions: dict[str, dict[str, Any]]
) -> None:
    for row in rewrites:
        question = questions[row["id"]]
        asked = question["question"]
        for one in row["true"]:
            rewrite = one["question"]
            assert plain(rewrite) != plain(asked), row["id"]
            assert len(words(rewrite)) <= len(words(asked)) + MOST_ADDED, rewrite
            assert rewrite.endswith("?") == asked.rstrip().endswith("?"), rewrite
            for name in question["answers"][one["answer"]]:
                if len(plain(name)) > 2 and not holds(asked, name):
                    assert not holds(rewrite, name), (row["id"], rewrite)


def test_rewrites_of_different_answers_differ(rewrites: list[dict[str, Any]]) -> None:
    for row in rewrites:
        groups = row.get("same", [])
        owner: dict[str, int] = {}
        for one in row["true"]:
            place = one["answer"]
            other = owner.setdefault(plain(one["question"]), place)
            merged = any(place in group and other in group for group in groups)
            assert other == place or merged, row["id"]


def test_false_rewrites_name_their_kind(rewrites: list[dict[str, Any]]) -> None:
    kinds: Counter[str] = Counter()
    for row in rewrites:
        true = {(one["answer"], plain(one["question"])) for one in row["true"]}
        for one in row["false"]:
            kinds[one["kind"]] += 1
            assert (one["answer"], plain(one["question"])) not in true, row["id"]
    assert set(kinds) == KINDS
    assert kinds["other"] < sum(kinds.values()) / 4


def test_judged_rewrites_are_of_questions_that_no_model_had_learnt(
    judged: list[dict[str, Any]],
    relations: list[dict[str, Any]],
    questions: dict[str, dict[str, Any]],
) -> None:
    asked = {row["id"]: row["question"] for row in (*questions.values(), *relations)}
    for row in judged:
        assert row["question"] == asked[row["id"]]
        assert plain(row["rewrite"]) != plain(row["question"]), row
        marks = {row[name] for name in ("right", "true", "apart", "fluent")}
        assert marks <= {0, 1}, row
        assert is_held_out(topic_of(row["id"]), 5), row
    lines = {(row["id"], row["answer"], row["rewrite"]) for row in judged}
    assert len(lines) == len(judged)


def test_nothing_that_is_measured_is_learnt(
    rewrites: list[dict[str, Any]], relations: list[dict[str, Any]], judged: list[dict[str, Any]]
) -> None:
    """Neither the sample's questions and rewrites nor near copies of them."""
    written = [row["question"] for row in relations]
    written += [row["rewrite"] for row in judged]
    for row in rewrites:
        written += [one["question"] for one in (*row["true"], *row["false"])]
    measured = []
    for question in load("sample/questions"):
        measured.append(question.text)
        for annotation in question.annotations:
            for pair in annotation.pairs:
                measured += pair.questions
    assert not find_near_duplicates(written, measured)


def test_the_readme_counts_them(
    folder: Path,
    rewrites: list[dict[str, Any]],
    relations: list[dict[str, Any]],
    judged: list[dict[str, Any]],
) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    true = sum(len(row["true"]) for row in rewrites)
    false = sum(len(row["false"]) for row in rewrites)
    counts = re.search(r"([\d,]+) questions, ([\d,]+) true and ([\d,]+) false", text)
    assert counts is not None
    numbers = [int(number.replace(",", "")) for number in counts.groups()]
    assert numbers == [len(rewrites), true, false]
    assert f"{len(relations):,} more questions" in text
    assert f"{len(judged):,} rewrites that a model proposed" in text
