"""Encoder models at tiny size fit their training questions, and what they save does what they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from whichsense import sample
from whichsense.lab.metrics.exact_match import answer_ranks
from whichsense.lab.tasks.extractive import mean_f1
from whichsense.lab.train.loop import Trained, train
from whichsense.lab.train.recipes import load_recipe
from whichsense.stages.detect import AnswersDetector, BertDetector
from whichsense.stages.read import ExtractiveReader
from whichsense.stages.rerank import CrossEncoderReranker
from whichsense.types import Case


def fitted(name: str, folder: Path, *changes: str) -> tuple[Any, Trained]:
    torch.set_num_threads(1)
    recipe = load_recipe(name, changes, tiny=True)
    task = recipe.make()
    return task, train(task, recipe.train, folder, recipe=recipe.table)


def test_extractive_reader_fits(tmp_path: Path) -> None:
    task, trained = fitted("extractive-reader-each-ambignq", tmp_path)
    assert trained.metrics["f1_ans"] >= 0.9 and trained.metrics["f1_ans_multi"] >= 0.9
    reader = ExtractiveReader(trained.model)
    cases = []
    for question in task.dev:
        hits = tuple(sample.index().search(question.text, 4))
        cases.append(Case(question.text, hits))
    read = reader.read(cases)
    found = [case.answers for case in read]
    assert mean_f1(task.dev, found) == pytest.approx(trained.best)
    for candidate in found[0]:
        span = candidate.spans[0]
        assert span.passage.text[span.start : span.end] == candidate.answer
    decided = [case.is_ambiguous for case in AnswersDetector().detect(read)]
    assert decided == [len(answers) > 1 for answers in found]


def test_rewrites_are_read_over_the_passages_of_their_question(tmp_path: Path) -> None:
    plain, more = (
        load_recipe("extractive-reader-each-ambignq", (f"reading.rewrites={on}",), tiny=True).make()
        for on in ("false", "true")
    )
    own = {item.question.id: item for item in more.items}  # type: ignore[attr-defined]
    assert {item.question.id for item in plain.items} < set(own)  # type: ignore[attr-defined]
    rewrites = [item for key, item in own.items() if "/" in key]
    assert rewrites
    for item in rewrites:
        prompt = own[item.question.id.rpartition("/")[0]]
        together = [{p.id for p in (*sum(one.homes, ()), *one.others)} for one in (item, prompt)]
        assert together[0] == together[1] and len(item.question.answers) == 1 and item.homes[0]


def test_any_objective_fits_single_answers(tmp_path: Path) -> None:
    _, trained = fitted("extractive-reader-nq", tmp_path, "data.limit=4", "data.dev_limit=4")
    assert trained.metrics["f1_ans"] >= 0.9


def test_detector_fits(tmp_path: Path) -> None:
    task, trained = fitted("ambiguity-detector-question", tmp_path)
    assert trained.metrics["accuracy"] >= 0.95
    detector = BertDetector(trained.model)
    cases = [Case(question.text) for question in task.options.data.development()]
    right = 0
    for case, label in zip(detector.detect(cases), task.dev_labels, strict=True):
        right += case.is_ambiguous == bool(label)
    assert right / len(cases) == pytest.approx(trained.best)


def test_reranker_fits(tmp_path: Path) -> None:
    task, trained = fitted("reranker-nq", tmp_path)
    assert trained.metrics["any_at_1"] >= 0.85
    reranker = CrossEncoderReranker(trained.model)
    tops = []
    for question in task.dev:
        hits = sample.index().search(question.text, 6)
        # The order that it is given them in does not matter.
        ranked = reranker.rerank([Case(question.text, tuple(hits[::-1]))])[0].hits
        assert {hit.passage.id for hit in ranked} == {hit.passage.id for hit in hits}
        tops.append(any(answer_ranks(question.answers, [ranked[0].passage.text])))
    assert sum(tops) / len(tops) == pytest.approx(trained.metrics["any_at_1"], abs=0.13)


def test_dual_encoder_fits_and_encodes_an_index(tmp_path: Path) -> None:
    from whichsense.index import Index
    from whichsense.models.static import load_encoder

    task, trained = fitted("dpr-retriever-nq", tmp_path / "run")
    assert trained.metrics["pool_at_1"] >= 0.9
    encoder = load_encoder(str(trained.model))
    good = {item.question.text: {passage.id for passage in item.good} for item in task.items}
    pool = {passage.id: passage for item in task.items for passage in (*item.good, *item.bad[:3])}
    lines = [
        f'{{"id": "{p.id}", "title": {json.dumps(p.title)}, "text": {json.dumps(p.text)}}}'
        for p in pool.values()
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    Index.build(tmp_path / "corpus.jsonl", tmp_path / "index", encoder=encoder)
    index = Index.open(tmp_path / "index")  # finds the encoder again by the name in its manifest
    found = [index.search(question, 1, "dense")[0].passage.id.split("#")[0] for question in good]
    right = [
        top in {key.split("#")[0] for key in keys}
        for top, keys in zip(found, good.values(), strict=True)
    ]
    assert sum(right) / len(right) >= 0.8


def test_gradient_checkpointing_changes_no_gradient(tmp_path: Path) -> None:
    import csv

    found = []
    for flag in ("false", "true"):
        short = ("train.epochs=1", "train.log_every=1", "train.evaluate_every=2")
        fitted("reranker-nq", tmp_path / flag, *short, f"train.gradient_checkpointing={flag}")
        rows = csv.DictReader((tmp_path / flag / "log.csv").read_text().splitlines())
        found.append([float(row["value"]) for row in rows if row["name"] in ("loss", "gradient")])
    assert found[0] == pytest.approx(found[1], rel=1e-4)
