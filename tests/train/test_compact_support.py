"""What the support judge learns from, its adapters, their export, and the nets that are fitted."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tiny_compact import exported

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")

from whichsense.lab.compact import support_task
from whichsense.lab.compact.support_examples import (
    FEEDBACK,
    SupportExample,
    falsify,
    grounded_examples,
    is_held_out,
    passage_examples,
)
from whichsense.lab.compact.support_task import (
    ADAPTERS,
    SupportOptions,
    SupportTask,
    export_adapters,
    fit_network,
)
from whichsense.lab.datasets import Annotation, Context, GroundedQuestion, QAPair
from whichsense.models.compact.encoder import CompactModel, pair
from whichsense.models.compact.nets import own_weights, set_quantization
from whichsense.models.compact.support_judge import NETS, NETWORK, SAYS, SupportJudge
from whichsense.types import Passage

SENTENCE = "In 1990, Ann Lee, a nurse from Ohio, won the first race in Rome by 3 metres."
TEXT = f"{SENTENCE} Bob Roe was second in 1991. The race is held in May near Naples."


def examples(count: int = 60) -> list[SupportExample]:
    made = []
    for number in range(count):
        made.append(
            SupportExample(
                f"frank herbert wrote dune {number}",
                "dune",
                f"dune is a novel by frank herbert. it was made {number % 9}.",
                bool(number % 2),
                "even" if number % 3 else "odd",
                f"group {number}",
            )
        )
    return made


def test_false_edits_change_the_sentence() -> None:
    rng = random.Random(3)
    changed = {falsify(SENTENCE, TEXT, rng) for _ in range(60)} - {None}
    assert len(changed) > 5 and SENTENCE not in changed
    assert any("1991" in str(one) for one in changed)
    assert any("Naples" in str(one) for one in changed)


def test_passages_give_both_labels() -> None:
    passage = Passage("p1", "Race", TEXT)
    made = list(passage_examples(passage, random.Random(0), most=40))
    assert {one.supported for one in made} == {True, False}
    for one in made:
        if one.source == "unsaid":
            assert one.claim not in one.text
        assert one.group == "page Race"


def test_questions_with_a_passage_give_true_and_false_claims() -> None:
    passage = Context("Race", TEXT, gold=True)
    questions = []
    for text, answer in (("Who won in 1990?", "Ann Lee"), ("Who was second?", "Bob Roe")):
        annotation = Annotation("singleAnswer", (QAPair((answer,), (text,)),))
        questions.append(GroundedQuestion(text, text, (annotation,), passages=(passage,)))
    made = list(grounded_examples(questions, "squad", random.Random(0)))
    true = {one.claim for one in made if one.supported}
    false = {one.claim for one in made if not one.supported}
    assert "Who won in 1990? Ann Lee." in true and "Who won in 1990? Bob Roe." in false
    assert not true & false


def test_one_group_in_twelve_is_held_out() -> None:
    held_out = sum(map(is_held_out, examples()))
    assert 0 < held_out < len(examples()) / 2


def build_task(folder: Path) -> SupportTask:
    """A task over a tiny exported model, and the examples above."""
    weights = exported(folder / "weights", for_people=True)
    options = SupportOptions(fitted=40)
    model = type(options.model)(start=str(weights), rank=4, inner=8, dropout=0.0)
    draw = type(options.draw)(pairs=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support_task, "read_examples", lambda data, progress: examples())
        return SupportTask(replace(options, model=model, draw=draw))


def test_only_what_is_its_own_learns(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    net = task.build()
    for name, parameter in net.named_parameters():
        frozen = name.endswith("wide.weight") or "words" in name
        assert not (frozen and parameter.requires_grad)
    own = own_weights(net)
    assert "encoder.layers.0.beside.up" in own and "encoder.layers.0.wide.weight" not in own


def test_examples_are_encoded_as_they_are_read(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    batch = task.batch([0, 1])
    first = examples()[0]
    expected = pair(task.tokenizer, task.tokenizer.ids(first.claim), first.title, first.text)
    assert batch.ids[0, : len(expected)].tolist() == expected.ids
    assert batch.types[0, : len(expected)].tolist() == expected.types


def test_a_trained_judge_is_exported_and_fitted(tmp_path: Path) -> None:
    torch.manual_seed(0)
    task = build_task(tmp_path)
    net = task.build()
    for parameter in net.parameters():
        if parameter.requires_grad:
            parameter.data += 0.02 * torch.randn_like(parameter)
    folder = tmp_path / "model"
    folder.mkdir()
    task.save(net, folder)
    assert set(torch.load(folder / ADAPTERS, weights_only=True)) == set(own_weights(net))
    task.finish(folder)
    assert (folder / NETS).exists()
    # The verifier's matrices are referred to, not stored again.
    graph = onnx.load(str(folder / NETWORK), load_external_data=False).graph
    places = [
        entry.value
        for tensor in graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    ]
    # Of each layer: queries, keys and values together, the wide matrix and the narrow one.
    assert places.count("early.onnx") == places.count("verifier.onnx") == 2 * 3
    judge = SupportJudge(CompactModel(folder, threads=1))
    example = examples()[0]
    (row,) = judge.features([(example.claim, example.passage)])
    (logit,) = task.logits(net.eval(), [0]).tolist()
    assert row[SAYS] == pytest.approx(logit, abs=0.05)
    assert 0 < judge.supports([(example.claim, example.passage)])[0] < 1


def test_a_stale_judge_is_exported_again(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    folder = tmp_path / "model"
    folder.mkdir()
    net = task.build()
    set_quantization(net, weights=True, activations=True)
    task.save(net, folder)
    export_adapters(folder / ADAPTERS, task.start, folder)
    first = (folder / NETWORK).read_bytes()
    export_adapters(folder / ADAPTERS, task.start, folder)
    assert (folder / NETWORK).read_bytes() == first


def test_judged_answers_count_as_other_sources_do() -> None:
    """What the net is fitted on is the same however many judged answers there are."""
    made = [replace(examples()[0], source="made", supported=n % 2 == 0) for n in range(8)]
    judged = [replace(one, source=FEEDBACK) for one in made]
    rows = [{SAYS: 2.0 * one.supported - 1, "said": 0.5} for one in made]
    few = fit_network([*made, *judged], rows * 2)
    many = fit_network([*made, *judged, *judged, *judged], rows * 4)
    assert few.names == (SAYS, "said")
    assert few.to_table() == many.to_table()
