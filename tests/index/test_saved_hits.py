"""Hits in a file: what a search found comes back as it was, without the index, and mistakes are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from whichsense import index
from whichsense.cli import command
from whichsense.errors import BadConfig, BadInput
from whichsense.index import Index
from whichsense.index.search import SavedHits, save_hits
from whichsense.lab.tasks.training_data import EvidenceSearch, TrainingData
from whichsense.stages.retrieve import IndexRetriever
from whichsense.systems import build, describe, load_settings
from whichsense.types import FOR_BENCHMARKS, Case

QUESTIONS = [
    "Who founded Jaguar Cars?",
    "which cat cannot roar",
    "Who founded Puma?",
    "which cat cannot roar",
]


@pytest.fixture
def built(animals: Path, tmp_path: Path) -> Index:
    index.Index.build(animals, tmp_path / "index", encoder=None)
    return Index.open(tmp_path / "index")


@pytest.mark.parametrize("name", ["hits.jsonl", "hits.jsonl.zst", "hits.jsonl.gz", "hits.jsonl.xz"])
def test_what_was_found_comes_back(built: Index, tmp_path: Path, name: str) -> None:
    assert save_hits(built, QUESTIONS, tmp_path / "a" / name, k=3) == 3
    kept = SavedHits.open(tmp_path / "a" / name)
    for k in (1, 3):
        found = kept.search_many(QUESTIONS, k)
        for own, theirs in zip(found, built.search_many(QUESTIONS, k), strict=True):
            assert [hit.passage for hit in own] == [hit.passage for hit in theirs]
            assert [hit.score for hit in own] == pytest.approx(
                [hit.score for hit in theirs], abs=1e-5
            )
    passage = found[0][0].passage
    assert kept.passage(passage.id) == built.passage(passage.id) and len(kept) <= len(built)
    (case,) = IndexRetriever(kept).retrieve([Case(QUESTIONS[0])], 2)
    assert list(case.hits) == kept.search_many(QUESTIONS[:1], 2)[0]
    assert [path.name for path in (tmp_path / "a").iterdir()] == [name]  # nothing is left beside it


def test_nothing_appears_when_the_search_fails(built: Index, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="question"):
        save_hits(built, ["Who founded Puma?", ""], tmp_path / "a" / "hits.jsonl")
    assert list((tmp_path / "a").iterdir()) == []


def test_mistakes_are_told(built: Index, tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    save_hits(built, QUESTIONS, path, k=2)
    kept = SavedHits.open(path)
    with pytest.raises(BadInput, match="no hits for the question 'Who else"):
        kept.search_many(["Who else?"], 1)
    with pytest.raises(BadInput, match=r"keeps 2 hits .* and 5 are asked for.* --k 5"):
        kept.search_many(QUESTIONS, 5)
    with pytest.raises(BadInput, match="what 'bm25' found, and 'dense'"):
        kept.search_many(QUESTIONS, 1, "dense")
    with pytest.raises(BadInput, match="No passage has the id 'x'"):
        kept.passage("x")
    first, *rest = path.read_text().splitlines()
    for body, told in [
        ("", "holds no hits"),
        ('{"question": "Who?", "hits": []}\n', "holds no hits"),
        ('{"kept": 1}\n', "holds no hits"),
        ("\n".join([first, '{"id": "1", "title": null, "text": "x"}']), "line 2: neither"),
        ("\n".join([first, '{"question": "Who?", "hits": [["1", NaN]]}']), "line 2: neither"),
        ("\n".join([first, "[1]"]), "line 2: neither a passage nor a question"),
        ("\n".join([first, '{"id": "1", "titel": "Dune"}']), "line 2: neither"),
        ("\n".join([first, *(line for line in rest if "question" in line)]), "lacks the passage"),
    ]:
        path.write_text(body)
        with pytest.raises(BadInput, match=told):
            SavedHits.open(path)


def test_training_reads_it_in_place_of_an_index(built: Index, tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    save_hits(built, QUESTIONS, path, k=4)
    data = TrainingData(train="sample/questions", dev="sample/questions", hits=str(path))
    evidence = data.evidence(2)
    found = evidence.hits(QUESTIONS[0])
    assert [hit.passage for hit in found] == [hit.passage for hit in built.search(QUESTIONS[0], 2)]
    assert evidence.passage(found[0].passage.id) == found[0].passage
    assert path in data.paths()
    with pytest.raises(BadConfig, match=r"data\.index in place of data\.hits"):
        _ = evidence.index
    assert isinstance(EvidenceSearch(2).index, Index)


def test_several_datasets_are_one(tmp_path: Path) -> None:
    one = {"type": "singleAnswer", "answer": ["6"]}
    for name, asked in (
        ("a", ["Who won?", "Who lost the game?"]),
        ("b", ["Who won?", "Who fell?"]),
    ):
        body = [
            {"id": f"{name}{n}", "question": text, "annotations": [one]}
            for n, text in enumerate(asked)
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    data = TrainingData(
        train=str(tmp_path / "a.json"),
        more=(str(tmp_path / "b.json"),),
        dev=str(tmp_path / "a.json"),
    )
    assert [question.id for question in data.training()] == ["a0", "a1", "b1"]
    assert tmp_path / "b.json" in data.paths()


def test_a_system_says_what_it_read(built: Index, tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    save_hits(built, QUESTIONS, path)
    table = load_settings("compact")
    kept = SavedHits.open(path)
    about = describe(table, kept)
    assert (
        about["passages"] == 4
        and len(about["hits"]) == 64
        and about["index"] == built.manifest.created
    )
    assert build(table, kept, FOR_BENCHMARKS).settings.keep == 20


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "hits.jsonl.gz"
    done = CliRunner().invoke(
        command,
        [
            "retrieve",
            "sample/questions",
            "--limit",
            "3",
            "--k",
            "2",
            "--rewrites",
            "--out",
            str(out),
        ],
    )
    assert done.exit_code == 0, done.output
    from whichsense import datasets
    from whichsense.lab.datasets import rewrites_as_questions

    asked = list(datasets.load("sample/questions"))[:3]
    kept = SavedHits.open(out)
    texts = [question.text for question in asked]
    texts += [one.text for question in asked for one in rewrites_as_questions(question)]
    assert len(texts) > 3 and all(len(hits) == 2 for hits in kept.search_many(texts, 2))
    assert f"{len(dict.fromkeys(texts))} questions" in done.output
    both = CliRunner().invoke(
        command, ["predict", "--provider", "compact", "--dataset", "sample/questions", "--out", str(tmp_path / "x"),
                  "--hits", str(out), "--index", str(tmp_path)]
    )  # fmt: skip
    assert both.exit_code == 2 and "either --hits FILE or --index DIR" in both.output
