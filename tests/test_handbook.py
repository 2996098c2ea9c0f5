"""The embedded handbook is what it says, is found by its name, and no training data repeats it."""

from __future__ import annotations

import calendar
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import whichsense as ws
from small_corpora import Corpus
from whichsense import datasets, sample
from whichsense.cli import command
from whichsense.files import read_jsonl
from whichsense.lab.datasets.dataset import find_near_duplicates
from whichsense.text.words import normalize

RECIPES = Path(__file__).parents[1] / "recipes"
MOVED = "Where did the works committee decide to move the paint shop?"
# Words with a capital that any two sets of documents share.
COMMON = set(
    "america austria climate english european finnish gate german graz kettle mutual professor severity sick spanish "
    "union wharf".split()
)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


DOCUMENTS = {row["id"]: row for row in rows(sample.HANDBOOK / "documents.jsonl")}
QUESTIONS = rows(sample.HANDBOOK / "questions.jsonl")
UNANSWERABLE = rows(sample.HANDBOOK / "unanswerable.jsonl")
ASKED = QUESTIONS + UNANSWERABLE


def readings(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The gold readings of a question; a question with one answer has itself as its rewrite."""
    (annotation,) = row["annotations"]
    alone = {**annotation, "question": row["question"]}
    pairs: list[dict[str, Any]] = annotation.get("qaPairs", [alone])
    return pairs


def holds(text: str, answer: str) -> bool:
    """Whether the answer stands in the text as whole words: 2 does not stand in 2.5."""
    whole = rf"(?<![\w.,]){re.escape(answer)}(?!\w|[.,]\d)"
    return re.search(whole, text) is not None


def test_it_is_large_enough_and_a_quarter_is_unanswerable() -> None:
    assert len(DOCUMENTS) >= 20
    assert len(QUESTIONS) >= 40
    assert len(UNANSWERABLE) >= len(ASKED) / 4
    several = [row for row in QUESTIONS if len(readings(row)) > 1]
    assert len(several) >= len(QUESTIONS) / 2


def test_ids_and_questions_are_unique() -> None:
    assert len(DOCUMENTS) == len(rows(sample.HANDBOOK / "documents.jsonl"))
    assert len({row["id"] for row in ASKED}) == len(ASKED)
    assert len({row["question"].lower() for row in ASKED}) == len(ASKED)


def test_the_first_alias_stands_in_every_document_of_its_evidence() -> None:
    used = set()
    for row in QUESTIONS:
        for pair in readings(row):
            assert pair["evidence"], row["id"]
            used.update(pair["evidence"])
            for document in pair["evidence"]:
                text = DOCUMENTS[document]["text"]
                assert holds(text, pair["answer"][0]), (row["id"], document)
    assert used == set(DOCUMENTS)


def test_rewrites_differ_and_hold_no_answer() -> None:
    for row in QUESTIONS:
        pairs = readings(row)
        rewrites = {pair["question"] for pair in pairs}
        assert len(rewrites) == len(pairs), row["id"]
        assert (row["question"] in rewrites) == (len(pairs) == 1), row["id"]
        for pair in pairs:
            for alias in pair["answer"]:
                rewrite = pair["question"].lower()
                assert not holds(rewrite, alias.lower()), (row["id"], alias)


def test_answers_of_a_question_differ() -> None:
    for row in QUESTIONS:
        aliases: set[str] = set()
        for pair in readings(row):
            own = {normalize(alias) for alias in pair["answer"]}
            assert not aliases & own, row["id"]
            aliases |= own


def read_firms() -> list[dict[str, Any]]:
    return [row for path in sorted((RECIPES / "firms").glob("*.jsonl")) for row in rows(path)]


def learnt_documents() -> dict[str, str]:
    """All texts of the folders of dry documents: what is said, and what is asked."""
    said, asked = [], []
    said.append((RECIPES / "documents" / "passages.jsonl").read_text(encoding="utf-8"))
    for name in ("questions", "rewrites"):
        path = RECIPES / "documents" / f"{name}.jsonl"
        asked.append(path.read_text(encoding="utf-8"))
    for firm in read_firms():
        said += [f"{row['title']} {row['text']}" for row in firm["documents"]]
        asked += [row["q"] for row in firm["questions"]] + firm["none"]
    return {"said": "\n".join(said), "asked": "\n".join(asked)}


def test_no_name_is_shared_with_the_documents_to_learn_from() -> None:
    handbook = "\n".join(f"{row['title']}\n{row['text']}" for row in DOCUMENTS.values())
    learnt = learnt_documents()
    # A name is a capitalised word within a sentence that no document has in lower case.
    capitalised = set(re.findall(r"(?<=[a-z,;:(] )[A-Z][a-z]{3,}\b", handbook))
    plain = set(re.findall(r"\b[a-z]+\b", handbook + learnt["said"]))
    names = {word.lower() for word in capitalised} - plain
    assert {"kelvane", "brantholm", "oldani"} <= names
    # Many questions are in lower case, names too.
    learnt_words = set(re.findall(r"\w+", " ".join(learnt.values()).lower()))
    days = [day.lower() for day in calendar.day_name]
    dates = {*days, *(f"{day}s" for day in days)}
    dates.update(month.lower() for month in calendar.month_name)
    assert names & learnt_words <= COMMON | dates


@pytest.mark.parametrize("folder", ["topics", "documents"])
def test_no_question_is_a_near_copy_of_one_to_learn_from(folder: str) -> None:
    asked = {row["question"] for row in ASKED}
    for row in QUESTIONS:
        asked.update(pair["question"] for pair in readings(row))
    learnt = [row["question"] for row in rows(RECIPES / folder / "questions.jsonl")]
    (path,) = (RECIPES / folder).glob("rewrites.jsonl*")
    for _, row in read_jsonl(path):
        learnt.extend(rewrite["question"] for rewrite in row.get("true", ()))
    assert find_near_duplicates(sorted(asked), learnt) == {}


def test_no_question_is_a_near_copy_of_one_of_a_firm() -> None:
    asked = {row["question"] for row in ASKED}
    for row in QUESTIONS:
        asked.update(pair["question"] for pair in readings(row))
    learnt = []
    for firm in read_firms():
        learnt += firm["none"]
        for row in firm["questions"]:
            learnt += [row["q"], *(one["r"] for one in row["a"] if one.get("r"))]
    assert len(learnt) > 10_000
    assert find_near_duplicates(sorted(asked), learnt) == {}


def test_answers_and_labels_of_firms_are_copies() -> None:
    for firm in read_firms():
        documents = {row["id"]: row for row in firm["documents"]}
        for row in firm["questions"]:
            for answer in row["a"]:
                document = documents[answer["d"]]
                assert answer["x"][0] in document["text"], (firm["id"], row["q"])
                label = answer.get("l", "")
                assert label in document["text"] or label in document["title"]


def test_no_recipe_learns_from_it() -> None:
    for path in RECIPES.rglob("*.toml"):
        assert "handbook" not in path.read_text(encoding="utf-8"), path


def test_it_is_a_dataset_by_name() -> None:
    questions = list(datasets.load("handbook/questions"))
    assert [question.id for question in questions] == [row["id"] for row in QUESTIONS]
    unanswerable = list(datasets.load("handbook/unanswerable"))
    assert len(unanswerable) == len(UNANSWERABLE)
    assert not any(question.is_answerable for question in unanswerable)
    done = CliRunner().invoke(command, ["data", "check", "handbook/questions"])
    assert done.exit_code == 0 and "not on record" not in done.output


def test_its_index_finds_the_evidence() -> None:
    index = sample.open_index("handbook")
    assert len(index) > len(DOCUMENTS)  # documents are cut into passages
    wanted = found = 0
    for row in QUESTIONS:
        hits = index.search(row["question"], 10)
        documents = {hit.passage.id.split("#")[0] for hit in hits}
        for pair in readings(row):
            wanted += 1
            found += bool(documents & set(pair["evidence"]))
    assert found / wanted > 0.9, found / wanted


def test_a_folder_of_its_name_wins(
    make_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(sample.open_index("handbook")) > 1
    ws.Index.build(make_corpus([("Puma", "The puma is a cat.")]), "handbook")
    assert len(sample.open_index("handbook")) == 1
    assert len(sample.open_index()) > 1


def test_it_is_asked_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    case = ws.load(index="handbook").ask(MOVED)
    assert {hit.passage.id.split("#")[0] for hit in case.hits} <= set(DOCUMENTS)
    done = CliRunner().invoke(command, ["ask", MOVED, "--index", "handbook", "--json"])
    assert done.exit_code == 0, done.output
    answers = [reading["answer"] for reading in json.loads(done.stdout)["readings"]]
    assert answers == [reading.answer for reading in case.readings] != []


def test_it_is_predicted_and_evaluated_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    options = ["--dataset", "handbook/questions", "--index", "handbook"]
    predict = ["predict", "--provider", "compact", *options, "--limit", "1"]
    done = CliRunner().invoke(command, [*predict, "--out", "one.json"])
    assert done.exit_code == 0, done.output
    assert list(json.loads(Path("one.json").read_text())) == [QUESTIONS[0]["id"]]
    Path("systems.toml").write_text(
        'dataset = "handbook/questions"\nindex = "handbook"\nlimit = 1\n'
        '[[systems]]\nprovider = "compact"\n'
    )
    done = CliRunner().invoke(command, ["evaluate", "systems.toml"])
    assert done.exit_code == 0 and "F1ans" in done.output, done.output
