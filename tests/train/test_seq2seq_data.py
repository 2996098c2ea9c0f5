"""What sequence-to-sequence tasks learn from: aliases, deleted spans, derived clarifications, silver data."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from whichsense.errors import BadConfig, MissingExtra
from whichsense.lab.datasets import Annotation, Context, LongQuestion, LongReference, QAPair, load
from whichsense.lab.tasks.clarified import clarification_examples, write_example
from whichsense.lab.tasks.cotraining import CoTraining, cotrain, load_cotraining
from whichsense.lab.tasks.generation import (
    AnswerSettings,
    Generation,
    ReadExample,
    delete_span,
    encode_reading,
    held_aliases,
    load_tagger,
    read_examples,
    tag_by_list,
)
from whichsense.lab.tasks.training_data import EvidenceSearch, TrainingData
from whichsense.lab.train.loop import train
from whichsense.lab.train.recipes import load_recipe
from whichsense.models.seq2seq.formats import InputForm
from whichsense.testing import passage_hit
from whichsense.types import Case

HITS = [
    passage_hit("Ann Lee won in 2012. Bob Ray won in 2013."),
    passage_hit("Lee came back in 2014."),
]

RECIPES = Path(__file__).parents[2] / "recipes"


def task(name: str = "spanseqgen") -> Generation[Any]:
    made: Any = load_recipe(name, (), tiny=True).make()
    return made


def test_only_aliases_in_the_passages_count() -> None:
    assert held_aliases(("Ann Lee", "Ann", "A. Lee", "Lee", "Ann Lee"), HITS) == (
        "Ann Lee",
        "Ann",
        "Lee",
    )
    assert held_aliases(("2015",), HITS) == ()


def test_aliases_are_drawn_and_orders_hold() -> None:
    codec = task().codec
    example = ReadExample("who won?", HITS, (("Ann Lee", "Lee"), ("Bob Ray",)))
    form = InputForm(fusion=False, passages=2, input_tokens=120)
    drawn = {
        tuple(
            codec.texts(
                encode_reading(form, "annotated", codec, example, random.Random(seed)).target
            )
        )
        for seed in range(30)
    }
    assert drawn == {("ann lee", "bob ray"), ("lee", "bob ray")}
    late = ReadExample("who won?", HITS, (("2014", "2012"), ("2013",)))
    found = {
        tuple(codec.texts(encode_reading(form, "found", codec, late, random.Random(seed)).target))
        for seed in range(20)
    }
    assert found == {("2012", "2013")}


def test_questions_without_any_found_answer_are_left_out() -> None:
    evidence = TrainingData(train="sample/questions", dev="sample/questions").evidence(1)
    questions = list(load("sample/questions"))[:200]
    hits = [evidence.hits(question.text) for question in questions]
    pairs = list(zip(questions, hits, strict=True))
    kept = [len(list(read_examples(question, own, AnswerSettings()))) for question, own in pairs]
    every = [
        len(list(read_examples(question, own, AnswerSettings(discard_missing=False))))
        for question, own in pairs
    ]
    assert sum(kept) < sum(every) == 200
    single = next(
        read_examples(questions[0], hits[0], AnswerSettings(single=True, discard_missing=False))
    )
    assert len(single.answers) == 1


def test_deleted_spans_are_informative_and_short() -> None:
    questions = [question.text for question in load("sample/questions")][:120]
    lengths = set()
    for number, question in enumerate(questions):
        words = question.rstrip("?. ").split()
        for seed in range(4):
            left = delete_span(question, random.Random(seed * 1000 + number))
            assert left is not None
            remaining = left.rstrip("?. ").split()
            gone = len(words) - len(remaining)
            start = next(
                (i for i, (a, b) in enumerate(zip(words, remaining, strict=False)) if a != b),
                len(remaining),
            )
            assert words[:start] + words[start + gone :] == remaining  # one span, nothing else
            assert any(tag_by_list(words[start : start + gone]))
            assert left[-1:] == question[-1:] or question[-1] not in "?.!"
            lengths.add(gone)
    assert lengths == {1, 2, 3, 4, 5}


def test_short_questions_keep_a_word() -> None:
    assert delete_span("Why?", random.Random(1)) is None
    assert delete_span("Who is it of?", random.Random(1)) is None
    assert delete_span("Who won?", random.Random(0)) == "Who?"


def test_spacy_is_an_extra() -> None:
    try:
        import spacy  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"whichsense\[tagging\]"):
            load_tagger("en_core_web_sm")


def test_clarifications_are_derived_from_rewrites() -> None:
    found = clarification_examples(list(load("sample/questions")))
    assert len(found) > 100
    for one in found:
        head = one.clarification.partition(": ")[0]
        assert "which" in head.lower() and head.endswith(one.category)
        assert len(one.options) == len(one.answers) >= 2
        assert all("," not in option for option in one.options)


def test_the_oracle_sees_what_annotators_saw_and_is_scored_by_the_other_one() -> None:
    pairs = (QAPair(("Ann",), ("Who won in 2012?",)), QAPair(("Bob",), ("Who won in 2013?",)))
    question = LongQuestion(
        "1", "Who won?", (Annotation("multipleQAs", pairs),),
        long_answers=(
            LongReference("Ann won.", (Context("Short", "not this"),)),
            LongReference("Ann won in 2012, and Bob in 2013.", (Context("Bob", "Bob won."),)),
        ),
        contexts=("", "Bob came first."), context_pages=("", "Race 2013"),
    )  # fmt: skip
    evidence = TrainingData(train="sample/questions").evidence(1)
    found = write_example(question, evidence, InputForm(fusion=False), "oracle")
    assert found is not None and found.text == (
        "Who won? answers: Ann | Bob disambiguations: Who won in 2012? | Who won in 2013? "
        "context1: info: Bob came first. wikipedia: Race 2013 context2: info: Bob won. wikipedia: Bob"
    )
    assert found.scored == ("Ann won.",) and len(found.references) == 2
    closed = write_example(question, evidence, InputForm(fusion=False), "closed")
    assert closed is not None and closed.text == "Who won?" and closed.scored == closed.references


def test_evidence_is_reranked() -> None:
    class Backwards:
        def rerank(self, cases: Sequence[Case]) -> list[Case]:
            return [replace(case, hits=case.hits[::-1]) for case in cases]

    question = next(iter(load("sample/questions"))).text
    plain = TrainingData(train="sample/questions").evidence(8).hits(question)
    made = EvidenceSearch(3, reranker=Backwards(), candidates=8)
    assert [hit.passage for hit in made.hits(question)] == [hit.passage for hit in plain[::-1][:3]]


def test_cotraining_settings(tmp_path: Path) -> None:
    settings = load_cotraining(RECIPES / "cotraining" / "spanseqgen.toml")
    assert (settings.models, settings.iterations, settings.partial) == (6, 2, "nq_open/train")
    path = tmp_path / "x.toml"
    path.write_text('reader = "y.toml"\nmodel = 3\n')
    with pytest.raises(BadConfig, match="Did you mean 'models'"):
        load_cotraining(path)
    with pytest.raises(BadConfig, match="answer-prediction"):
        cotrain(
            CoTraining(reader="verification.toml", models=1, iterations=1, tiny=True),
            RECIPES,
            tmp_path,
        )


def test_cotraining_goes_on_between_iterations(tmp_path: Path) -> None:
    """Stopped in the second iteration, it resumes there; nothing of the first is done twice; silver data is used."""
    torch.set_num_threads(1)
    settings = load_cotraining(RECIPES / "cotraining" / "spanseqgen.toml", tiny=True)

    def stop_in_second(task: Any, options: Any, folder: Path, **rest: Any) -> Any:
        if folder.parent.name == "iteration-2":
            raise KeyboardInterrupt
        return train(task, options, folder, **rest)

    where = RECIPES / "cotraining"
    with pytest.raises(KeyboardInterrupt):
        cotrain(settings, where, tmp_path, train_model=stop_in_second)
    silver = tmp_path / "iteration-1" / "silver.jsonl"
    before = (
        silver.stat().st_mtime_ns,
        sorted(p.stat().st_mtime_ns for p in tmp_path.glob("iteration-1/*/model/*")),
    )
    rows = [json.loads(line) for line in silver.read_text().splitlines()]
    assert rows  # the models have learnt the questions that they are asked: they agree on some
    done = cotrain(settings, where, tmp_path)
    after = (
        silver.stat().st_mtime_ns,
        sorted(p.stat().st_mtime_ns for p in tmp_path.glob("iteration-1/*/model/*")),
    )
    assert before == after
    assert 2 <= len(done.models) <= 3 and all("iteration-2" in str(model) for model in done.models)
    assert 0.0 < done.f1_ans <= 1.0 and sum(done.silver) > 0
    record = json.loads((tmp_path / "iteration-2" / "model-1" / "run.json").read_text())
    assert "silver.jsonl" in record["data"]

    from click.testing import CliRunner

    from whichsense.cli.train import cotrain_command

    recipe = str(where / "spanseqgen.toml")
    told = CliRunner().invoke(cotrain_command, [recipe, "--tiny", "--out", str(tmp_path), "--json"])
    assert json.loads(told.stdout)["f1_ans"] == done.f1_ans
    shown = CliRunner().invoke(cotrain_command, [recipe, "--tiny", "--out", str(tmp_path)]).stdout
    assert f"F1ans {done.f1_ans:.4f}" in shown and str(done.models[0]) in shown
    with pytest.raises(BadConfig, match="other settings"):
        cotrain(dataclasses.replace(settings, models=2), where, tmp_path)
