"""Sequence-to-sequence models at tiny size fit their training questions, and their stages use what was saved."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from whichsense import sample
from whichsense.cli.predict import tune_command
from whichsense.errors import BadConfig
from whichsense.lab.evaluation.prediction import tune
from whichsense.lab.metrics.ambignq import f1_answers
from whichsense.lab.train.loop import Trained, train
from whichsense.lab.train.recipes import load_recipe
from whichsense.models.seq2seq.generator import Generator
from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import SeqClarifier
from whichsense.stages.disambiguate import FirstRewriter, SeqDisambiguator
from whichsense.stages.read import SeqReader
from whichsense.stages.retrieve import IndexRetriever
from whichsense.stages.summarize import SeqSummarizer
from whichsense.stages.verify import LMVerifier
from whichsense.types import Candidate, Case, Reading


def fitted(name: str, folder: Path, *changes: str) -> tuple[Any, Trained]:
    torch.set_num_threads(1)
    recipe = load_recipe(name, changes, tiny=True)
    task = recipe.make()
    return task, train(task, recipe.train, folder, recipe=recipe.table)


@pytest.fixture(scope="module")
def verification(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Trained]:
    return fitted("verification", tmp_path_factory.mktemp("verification"))


def questions(count: int) -> list[Any]:
    from whichsense.lab.datasets import load

    return list(load("sample/questions"))[:count]


@pytest.mark.parametrize("name", ["spanseqgen", "fid-reader-t5"])
def test_readers_fit(name: str, tmp_path: Path) -> None:
    _, trained = fitted(name, tmp_path)
    assert trained.metrics["f1_ans"] >= 0.9 and trained.metrics["f1_ans_multi"] >= 0.9


def test_fused_reader_and_rewriter_make_a_pipeline(tmp_path: Path) -> None:
    """Saved models, loaded by their stages, find the readings that they learnt."""
    _, read = fitted("fid-reader", tmp_path / "reader")
    _, rewritten = fitted("fid-disambiguation", tmp_path / "rewriter")
    assert read.metrics["f1_ans"] >= 0.9 and rewritten.metrics["f1_edit"] >= 0.8
    pipeline = Pipeline(
        IndexRetriever(sample.index()),
        reader=SeqReader(read.model, beams=2),
        disambiguator=SeqDisambiguator(rewritten.model, beams=2),
        keep=4,
        rounds=2,
    )
    asked = questions(4)
    found = pipeline.run([question.text for question in asked])
    for question, case in zip(asked, found, strict=True):
        readings = case.readings
        best = max(
            f1_answers(gold, [one.answer for one in readings]) for gold in question.answer_sets
        )
        assert best >= 0.6, question.text
        spans = [span for one in readings for span in one.evidence]
        assert spans and all(span.passage.text[span.start : span.end].strip() for span in spans)
    assert any(one.question != asked[0].text for one in found[0].readings)


def test_decoder_only_models_fit_and_make_a_pipeline(tmp_path: Path) -> None:
    _, read = fitted("spanseqgen", tmp_path / "reader", "model.base=tiny-llama")
    _, rewritten = fitted("causal-disambiguation", tmp_path / "rewriter")
    assert read.metrics["f1_ans"] >= 0.9 and rewritten.metrics["f1_edit"] >= 0.8
    rewriter = SeqDisambiguator(rewritten.model, beams=4)
    pipeline = Pipeline(
        IndexRetriever(sample.index()), reader=SeqReader(read.model), disambiguator=rewriter, keep=4
    )
    asked = questions(2)  # what the reader has learnt
    together = pipeline.run([question.text for question in asked])
    for question, case in zip(asked, together, strict=True):
        readings = case.readings
        assert (
            max(f1_answers(gold, [one.answer for one in readings]) for gold in question.answer_sets)
            >= 0.6
        )
        assert len({one.question.lower() for one in readings}) == len(readings)
        alone = pipeline.readings(question.text)
        assert [dataclasses.replace(one, confidence=0.0) for one in alone] == [
            dataclasses.replace(one, confidence=0.0) for one in readings
        ]
        assert [one.confidence for one in alone] == pytest.approx(
            [one.confidence for one in readings], abs=1e-4
        )


def test_zero_shot_by_threshold(tmp_path: Path) -> None:
    """A reader of single answers gives several where a threshold lets more of its beam through."""
    _, trained = fitted("spanseqgen-nq", tmp_path)
    assert trained.metrics["em"] >= 0.9 and trained.metrics["answers"] == 1.0
    asked = questions(3)
    cases = []
    for question in asked:
        hits = tuple(sample.index().search(question.text, 4))
        cases.append(Case(question.text, hits))
    single = SeqReader(trained.model, beams=4).read(cases)
    several = SeqReader(trained.model, beams=4, threshold=1e-9).read(cases)
    assert all(len(case.answers) == 1 for case in single)
    assert max(len(case.answers) for case in several) > 1
    for one, more in zip(single, several, strict=True):
        assert one.answers[0] == more.answers[0]


@pytest.mark.parametrize("name", ["question-disambiguation", "fid-token-deletion-nq"])
def test_rewriters_fit(name: str, tmp_path: Path) -> None:
    _, trained = fitted(name, tmp_path)
    assert trained.metrics["f1_edit"] >= 0.7


def test_verifier_tells_right_from_wrong(verification: tuple[Any, Trained]) -> None:
    task, trained = verification
    assert trained.metrics["em"] >= 0.9
    examples = [one for one in task.examples if one.hits is task.examples[0].hits]
    right = [Reading(one.question, one.answers[0][0]) for one in examples]
    wrong = [Reading(one.question, other.answers[0][0]) for one, other in pairwise(examples)]
    verifier = LMVerifier(trained.model, threshold=-4.0)
    case = Case("", tuple(examples[0].hits), readings=(*wrong, *right))
    kept = list(verifier.verify([case])[0].readings)
    assert {(one.question, one.answer) for one in kept} <= {
        (one.question, one.answer) for one in right
    }
    assert len(kept) >= 2 and kept == sorted(kept, key=lambda one: -one.confidence)
    (strict,) = LMVerifier(trained.model, threshold=0.0).verify([case])
    assert len(strict.readings) == 1  # one stays in any case
    empty = dataclasses.replace(case, readings=())
    assert verifier.verify([empty])[0].readings == ()


def test_the_threshold_of_a_system_is_tuned(
    tmp_path: Path, verification: tuple[Any, Trained]
) -> None:
    """A reader that also gives a wrong answer: the tuned threshold drops it, the given one keeps everything."""
    _, trained = verification
    asked = questions(3)
    right = {question.text: [aliases[0] for aliases in question.answers] for question in asked}

    class Overeager:
        def read(self, cases: Sequence[Case]) -> list[Case]:
            read = []
            for case in cases:
                wrong = Candidate("somewhere else entirely", 0.1)
                answers = (*scripted(right[case.question]), wrong)
                read.append(dataclasses.replace(case, answers=answers))
            return read

    class Gold:
        def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
            rewritten = []
            for case in cases:
                (question,) = [one for one in asked if one.text == case.question]
                pairs = question.annotations[0].pairs
                rewrites = {pair.answers[0]: pair.question for pair in pairs}
                readings = []
                for one in case.answers:
                    rewrite = rewrites.get(one.answer) or case.question
                    readings.append(Reading(rewrite, one.answer))
                rewritten.append(dataclasses.replace(case, readings=tuple(readings)))
            return rewritten

    verifier = LMVerifier(trained.model, threshold=-1e9)
    pipeline = Pipeline(
        IndexRetriever(sample.index()),
        reader=Overeager(),
        disambiguator=Gold(),
        verifier=verifier,
        keep=4,
    )
    found = tune(pipeline, asked)
    assert found.f1_ans > found.f1_ans_given == found.f1_ans_unverified
    assert found.questions == 3 and -1e9 < found.threshold < 0
    with pytest.raises(BadConfig, match="Only LM verification"):
        tune(dataclasses.replace(pipeline, verifier=None), asked)

    files = tmp_path / "system.toml"
    files.write_text(
        f'[reader]\nmodel = "{trained.model}"\n[verifier]\nmodel = "{trained.model}"\n'
    )
    arguments = ["--system", str(files), "--dataset", "sample/questions", "--limit", "3", "--json"]
    told = json.loads(CliRunner().invoke(tune_command, arguments).stdout)
    assert told["questions"] == 3 and 0.0 <= told["f1_ans"] <= 1.0


def test_rewriting_first_fits(tmp_path: Path) -> None:
    task, trained = fitted("disambiguate-first", tmp_path)
    assert trained.metrics["edit_f1"] >= 0.8
    question = task.examples[0]
    found = FirstRewriter(trained.model, beams=2).rewrite([question.text])[0]
    assert set(found) == {pair.question.lower() for pair in question.annotations[0].pairs}


def test_clarification_questions_fit(tmp_path: Path) -> None:
    task, trained = fitted(
        "clarification-gold-answers", tmp_path, "data.limit=3", "data.dev_limit=3"
    )
    assert trained.metrics["bleu4"] >= 0.8 and trained.metrics["category_em"] == 1.0
    example = task.examples[0]
    pairs = example.question.annotations[0].pairs
    hits = sample.index().search(example.question.text, 4)
    asked = SeqClarifier(trained.model, beams=2).write(
        [example.question.text], [[aliases[0] for aliases in example.answers]], [hits]
    )
    assert asked == [example.clarification]
    readings = tuple(Reading(pair.question, pair.answers[0]) for pair in pairs)
    case = Case(example.question.text, readings=readings)
    (clarified,) = SeqClarifier(trained.model, beams=2).clarify([case])
    found = clarified.clarification
    assert found is not None
    bound = [reading for option in found.options for reading in option.readings]
    assert bound and set(bound) <= set(readings)


def test_clarified_reader_fits(tmp_path: Path) -> None:
    _, trained = fitted("clarified-reader", tmp_path, "data.limit=3", "data.dev_limit=3")
    assert trained.metrics["f1"] >= 0.9


def test_long_answers_fit(tmp_path: Path) -> None:
    task, trained = fitted("t5-open-book-1", tmp_path, "data.limit=3", "data.dev_limit=3")
    assert trained.metrics["rouge_l"] >= 0.8
    question = task.examples[0].question
    hits = sample.index().search(question.text, 4)
    case = Case(question.text, tuple(hits))
    found = SeqSummarizer(trained.model, beams=2).summarize([case])[0].long_answer
    assert found is not None
    assert found.sentences and any(one.passages for one in found.sentences)
    assert found.text.split()[:3] == task.examples[0].references[0].split()[:3]


def test_ablations_hide_what_they_say(tmp_path: Path) -> None:
    """What a rewriter is not to see is not in its input, in training and in use."""

    def seen(name: str, *changes: str) -> str:
        recipe = load_recipe(name, changes, tiny=True)
        task = recipe.make()
        import random

        pair = task.encode(task.codec, task.examples[0], random.Random(0))
        return str(task.codec.tokenizer.decode([token for one in pair.inputs for token in one]))

    full = seen("question-disambiguation", "form.input_tokens=300")
    question = questions(1)[0]
    others = [pair.answers[0] for pair in question.annotations[0].pairs][1:]
    head = full.split("</s>")[0]
    assert question.text.lower() in head and all(other.lower() in head for other in others)
    assert question.text.lower() not in seen(
        "question-disambiguation-without-prompt", "form.input_tokens=300"
    )
    alone = seen("question-disambiguation-without-others", "form.input_tokens=300").split("</s>")[0]
    assert question.text.lower() in alone and not any(other.lower() in alone for other in others)


def scripted(answers: Sequence[str]) -> list[Candidate]:
    return [Candidate(answer, 1.0) for answer in answers]


def test_a_stage_refuses_another_stages_model(tmp_path: Path) -> None:
    from whichsense.errors import BadInput

    _, trained = fitted("clarification", tmp_path, "train.steps=1", "train.evaluate_every=1")
    assert Generator(trained.model).options == {"answers": "none"}
    with pytest.raises(BadInput, match="trained as 'clarification'"):
        case = Case("who?", answers=tuple(scripted(["a", "b"])))
        SeqDisambiguator(trained.model).disambiguate([case])
