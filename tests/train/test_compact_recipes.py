"""The compact model from its recipes: one command trains all phases, and what it writes answers questions."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
for needed in ("onnx", "onnxruntime"):
    pytest.importorskip(needed)

from whichsense.errors import BadConfig, BadInput, WhichsenseError
from whichsense.lab.compact import final_task as compact_module
from whichsense.lab.compact import losses, scorer_fitting
from whichsense.lab.compact import scorer_fitting as read_module
from whichsense.lab.compact.batches_of_lists import build_list_batch
from whichsense.lab.compact.encoder_task import EncoderTask
from whichsense.lab.compact.final_task import CompactTask
from whichsense.lab.compact.list_task import NET, load_start, load_vocabulary, normalize_weights
from whichsense.lab.compact.losses import evaluate_lists
from whichsense.lab.compact.questions import (
    CorpusQuestions,
    can_fork,
    contains_answer,
    small_corpora,
    training_half_of_sample,
)
from whichsense.lab.compact.scorer_fitting import (
    AmbiguityProbes,
    CorpusKind,
    QuestionReader,
    ReadQuestion,
    ScorerQuestion,
    UnfittedCompact,
    fit_nets,
    fit_scorer,
    is_right,
    read_questions,
    read_scene,
    scorer_questions,
    without_answers,
)
from whichsense.lab.compact.teacher import TeacherNet, TeacherTask, load_teacher, map_vocabulary
from whichsense.lab.compact.trust_fitting import judged_corpora
from whichsense.lab.compact.writer_task import WRITER, WriterTask, collate
from whichsense.lab.datasets import Annotation, QAPair, Question
from whichsense.lab.train.chain import train_recipe
from whichsense.lab.train.recipes import load_recipe
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_base
from whichsense.models.compact import scorer_features
from whichsense.models.compact.encoder import END, CompactModel
from whichsense.models.compact.export import GRAPHS, MORE_GRAPHS, load
from whichsense.models.compact.nets import CompactConfig, CompactNet, QuantizedLinear, net_from_bert
from whichsense.models.compact.rewrite_support import locate
from whichsense.models.compact.rewriting import candidates_of, likelihoods
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer import Trust
from whichsense.models.compact.tagger import TAGGER
from whichsense.models.compact.writer import ANSWER, RESTORE
from whichsense.text.words import normalize

ENCODER, TOPICS = "compact-encoder", "compact-topics"
VERIFIER = "compact-verifier"
PHASES = ("compact-teacher", "compact-reader", ENCODER, "compact-writer", TOPICS, "compact")

FEW, FEW_JUDGED = 20, 8

SLOW = {ENCODER: 0.97, TOPICS: 1.0}
"""How far losses fall where most was learnt before, if it is not the usual."""


def fit_on_few(patch: pytest.MonkeyPatch) -> None:
    """Of each kind of questions that the last step is fitted on, some."""
    judged = judged_corpora

    def few_judged(data: Any) -> Iterator[Any]:
        for corpus, marks in judged(data):
            marked = [one for one in corpus.questions if one.id in marks]
            others = [one for one in corpus.questions if one.id not in marks]
            few = (*marked[:FEW_JUDGED], *others[:FEW_JUDGED])
            yield replace(corpus, questions=few), marks

    questions = partial(scorer_questions, enough=FEW)
    patch.setattr(scorer_fitting, "scorer_questions", questions)
    patch.setattr(compact_module, "judged_corpora", few_judged)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of them, at their tiny size, by the last one's name alone."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    said: list[str] = []
    changes = (f"lists.folder={folder / 'lists'}", "data.limit=6", "data.dev_limit=6")
    with pytest.MonkeyPatch.context() as patch:
        fit_on_few(patch)
        done = train_recipe("compact", folder / "compact-tiny", changes, tiny=True, say=said.append)
    assert done.folder == folder / "compact-tiny" and done.steps == 30
    before = [line for line in said if line.startswith("Before")]
    assert len(before) > 4 and len({line for line in before if "compact-teacher" in line}) >= 1
    return folder


def series(folder: Path, name: str) -> list[float]:
    with open(folder / "log.csv", encoding="utf-8") as file:
        return [
            float(row["value"])
            for row in csv.DictReader(file)
            if (row["kind"], row["name"]) == ("train", name)
        ]


@pytest.mark.parametrize(("phase", "share"), [(name, SLOW.get(name, 0.85)) for name in PHASES])
def test_losses_fall(phase: str, share: float, runs: Path) -> None:
    found = series(runs / f"{phase}-tiny", "loss")
    assert len(found) >= 3 and found[-1] < share * found[0]


def test_the_writer_learns_by_heart(runs: Path) -> None:
    """New examples in every step, as in training, take it longer than a test may."""
    torch.manual_seed(0)
    task = writer(runs)
    net, examples = task.build(), task.draw_examples(random.Random(0))
    batch = collate(examples)
    assert len(examples) == 16 and {len(one.output) for one in examples} != {1}
    optimizer = torch.optim.AdamW([one for one in net.parameters() if one.requires_grad], lr=3e-3)
    found = []
    for _ in range(40):
        loss, _ = task.loss(net, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < 0.3 * found[0]


def test_phases_build_on_each_other(runs: Path) -> None:
    models = [runs / f"{name}-tiny" / "model" for name in PHASES]
    reader, encoder = (torch.load(folder / NET) for folder in models[1:3])
    assert not torch.equal(
        reader["encoder.layers.0.wide.weight"], encoder["encoder.layers.0.wide.weight"]
    )
    assert not torch.equal(
        reader["encoder.layers.0.wide.scale"], encoder["encoder.layers.0.wide.scale"]
    )
    first, last = (torch.load(models[place] / WRITER) for place in (3, 5))
    assert first.keys() == last.keys()
    assert not torch.equal(first["out.weight"], last["out.weight"])
    topics = torch.load(models[4] / NET)
    assert not torch.equal(encoder["verdict.dense.weight"], topics["verdict.dense.weight"])
    same = {name for name in encoder if torch.equal(encoder[name], topics[name])}
    assert {
        "encoder.words.weight",  # which the writer learnt with
        "encoder.layers.0.wide.weight",
        "encoder.layers.0.wide.scale",
        "exit_relevance.out.weight",
    } <= same
    assert (
        not {"encoder.layers.1.wide.weight", "encoder.layers.1.wide.scale", "relevance.out.weight"}
        & same
    )
    whole = load(
        models[5]
    ).weights  # the encoder is what it was, the writer as it came out of its last recipe
    np.testing.assert_allclose(whole["span.weight"], topics["span.weight"], atol=1e-6)
    np.testing.assert_allclose(whole["writer.out_norm.weight"], last["out_norm.weight"], atol=1e-6)
    assert (models[5] / "scorer.json").exists() and not (models[3] / "scorer.json").exists()


@pytest.fixture(scope="module")
def further(runs: Path) -> Path:
    """Trained further, from what `compact` wrote, with rewrites of a file beside the sample's."""
    from whichsense.lab.datasets import load as questions_of

    rows = [
        {
            "id": str(n),
            "question": f"{one.text} then",
            "annotations": [
                {
                    "type": "multipleQAs",
                    "qaPairs": [
                        {
                            "question": f"{one.text} in 1999|{one.text} then",
                            "answer": list(one.answers[0]),
                        },
                        {"question": f"{one.text} in 2004", "answer": ["2004"]},
                    ],
                }
            ],
        }
        for n, one in enumerate(list(questions_of("sample/questions"))[:6])
    ]
    (runs / "mine.json").write_text(json.dumps(rows), encoding="utf-8")
    tagger = runs / "compact-tiny" / "model" / TAGGER
    tagger.write_bytes(b"its tagger")
    train_recipe("compact", runs / "further", going_on(runs), tiny=True)
    tagger.unlink()
    return runs / "further" / "model"


def going_on(runs: Path) -> tuple[str, ...]:
    start, kept = runs / "compact-tiny" / "model", runs / "rewritten"
    more = (f'data.more=["{runs / "mine.json"}"]', "data.held=0")
    own = ("model.writer=", "model.verifier=")
    return (f"model.start={start}", *own, f"lists.folder={kept}", *more)


def test_a_writer_goes_on_from_a_weights_folder(runs: Path, further: Path) -> None:
    """What the encoder is stays, to the last byte, and so does what is for people."""
    before = runs / "compact-tiny" / "model"
    for name in ("early.onnx", "late.onnx", "verdict.onnx", *MORE_GRAPHS):
        assert (further / name).read_bytes() == (before / name).read_bytes(), name
    assert (further / TAGGER).read_bytes() == b"its tagger"
    assert (further / "writer.onnx").read_bytes() != (before / "writer.onnx").read_bytes()
    assert not (further / "scorer.json").exists()  # nothing was held out to fit it on
    old, new = (CompactModel(folder).config for folder in (before, further))
    assert new == old


def test_shares_are_of_what_is_rewritten(runs: Path, further: Path) -> None:
    changes = (*going_on(runs), "draw.shares.mine=0.6", "draw.shares.sample=0.4")
    task = load_recipe("compact", changes, tiny=True).make()
    assert isinstance(task, CompactTask)
    readings, asked = task.examples.readings, task.examples.pack.asked
    mine = np.array([asked[one.number].source.endswith("mine.json") for one in readings])
    assert mine.any()
    each = np.diff(np.array(task.cumulative_shares), prepend=0)
    assert each[mine].sum() / each.sum() == pytest.approx(0.6)


def test_the_verifier_shares_the_early_half(runs: Path) -> None:
    before = torch.load(runs / f"{TOPICS}-tiny" / "model" / NET)
    after = torch.load(runs / f"{VERIFIER}-tiny" / "model" / NET)
    assert before.keys() == after.keys()
    same = {name for name in before if torch.equal(before[name], after[name])}
    shared = ("encoder.words", "encoder.places", "encoder.types", "encoder.layers.0.")
    assert {name for name in before if name.startswith(shared)} <= same
    own = ("encoder.layers.1.wide.weight", "span.weight", "verdict.dense.weight")
    assert not same & {*own, "ambiguity.out.weight"}
    for name in ("refuted", "fluent"):  # both are learnt
        assert min(series(runs / f"{VERIFIER}-tiny", name)) > 0, name


def test_the_weights_folder_holds_what_is_for_people(runs: Path) -> None:
    folder = runs / "compact-tiny" / "model"
    assert {path.name for path in folder.glob("*.onnx")} == {*GRAPHS, *MORE_GRAPHS}
    found = load(folder).weights
    state = torch.load(runs / f"{VERIFIER}-tiny" / "model" / NET)
    own = {name for name in found if name.startswith("verifier.")}
    assert own
    for name in own:
        value = state[name.removeprefix("verifier.")].numpy()
        np.testing.assert_allclose(found[name], value, atol=0.02, err_msg=name)
    assert Trust.load(folder / "trust.json").to_table() != Trust().to_table()


def test_examples_say_what_they_must(runs: Path) -> None:
    """A rewrite is told of its answer; what is restored lacks words; an answer stands in what is told."""
    task, rng = writer(runs), random.Random(0)
    examples, text = task.examples, task.start.vocabulary.__getitem__
    for reading in examples.readings[:8]:
        made = examples.rewrite(reading, None)
        assert made is not None and len(made.output) == len(made.weights) and made.output[-1] == END
        told = " ".join(map(text, made.prompt.ids[made.prompt.asked :]))
        assert " ".join(map(text, task.tokenizer.ids(reading.rewriting.answers[0])[-1:])) in told
        assert max(made.weights) > 1  # something is inserted
    for number in range(len(examples.pack)):
        restored, answered = (examples.restored_question(number, rng), examples.answer(number, rng))
        if restored is not None:
            assert restored.prompt.ids[1] == RESTORE and max(restored.weights) == 2.5
            assert restored.output[:-1] == examples.question(examples.pack.asked[number].text)
        if answered is not None:
            assert answered.prompt.ids[1] == ANSWER and len(answered.output) > 1
    made = [examples.restored_sentence(row, rng) for row in range(len(examples.pack.texts))]
    assert any(one is not None for one in made)
    with pytest.raises(BadConfig, match=r"draw\.kinds"):
        writer(runs, "draw.kinds={poems = 1.0}")


def test_new_writers_need_layers(runs: Path) -> None:
    start = f"model.start={runs / f'{ENCODER}-tiny' / 'model'}"
    with pytest.raises(BadConfig, match=r"model\.layers"):
        writer(runs, start, "model.layers=[]").build()
    task = writer(runs)  # goes on from the writer of the weights folder
    state = task.build().state_dict()
    kept = torch.load(runs / "compact-tiny" / "model" / WRITER)
    assert torch.allclose(state["out.weight"], kept["out.weight"], atol=0.05)
    with pytest.raises(BadInput, match="the layers 9"):
        writer(runs, start, "model.layers=[9]").build()
    with pytest.raises(BadInput, match="as wide as the encoder"):
        small = load_base(located("tiny-bert-uncased")).state_dict()
        net_from_bert(small, [0], CompactConfig(layers=1), torch.zeros(9, 384))
    with pytest.raises(BadInput, match="no writer"):
        writer(runs, f"model.writer={runs / 'compact-reader-tiny' / 'model'}").build()


def writer(runs: Path, *changes: str) -> WriterTask:
    kept = (f"lists.folder={runs / 'lists'}", "data.limit=6", "data.dev_limit=6")
    start = f"model.start={runs / 'compact-tiny' / 'model'}"
    task = load_recipe("compact-writer", (*kept, start, *changes), tiny=True).make()
    assert isinstance(task, WriterTask)
    return task


def test_a_weights_folder_is_a_start_as_its_net_is(runs: Path) -> None:
    """As the shipped model is: its codes are what the net computes with, so nothing is calibrated anew."""
    folders = [runs / f"{name}-tiny" / "model" for name in (TOPICS, "compact")]
    exact, coded = (joint(runs, f"model.start={folder}").build() for folder in folders)
    assert isinstance(exact, CompactNet) and isinstance(coded, CompactNet)
    for (name, one), other in zip(exact.named_modules(), coded.modules(), strict=True):
        if isinstance(one, QuantizedLinear):
            assert isinstance(other, QuantizedLinear)
            assert torch.allclose(one.used_weight(), other.used_weight(), atol=1e-6), name
            assert torch.allclose(one.scale, other.scale, atol=1e-6), name


def test_hits_take_the_place_of_an_index(runs: Path, tmp_path: Path) -> None:
    from whichsense import sample
    from whichsense.index.search import save_hits

    plain = joint(runs, "lists.folder=", "data.held=0", "teacher.model=")
    asked = [one.text for one in (*plain.train.asked, *plain.dev.asked)]
    for name, some in (("a", asked[::2]), ("b", asked[1::2])):
        save_hits(sample.index(), some, tmp_path / f"{name}.jsonl", k=12)
    files = f'data.hits=["{tmp_path / "a.jsonl"}", "{tmp_path / "b.jsonl"}"]'
    same = joint(
        runs,
        files,
        "data.held=0",
        "lists.processes=2",
        "lists.part=3",  # several files, built by two processes
        f"lists.folder={tmp_path / 'lists'}",
        "teacher.model=",
    )
    rows = {one.text: plain.train.slots[n].tolist() for n, one in enumerate(plain.train.asked)}
    assert same.train.asked and all(
        len(same.train.slots[n]) == len(rows[one.text]) for n, one in enumerate(same.train.asked)
    )
    with pytest.raises(BadConfig, match=r"data\.index"):
        load_recipe(
            "compact", (f"model.start={runs / 'compact-tiny' / 'model'}", files), tiny=True
        ).make()
    with pytest.raises(BadInput, match="no hits for the question"):
        joint(runs, f"data.hits={tmp_path / 'a.jsonl'}", "data.held=0", "lists.folder=")


def joint(runs: Path, *changes: str) -> EncoderTask:
    kept = (f"lists.folder={runs / 'lists'}", "data.limit=6", "data.dev_limit=6")
    task = load_recipe(ENCODER, (*kept, *changes), tiny=True).make()
    assert isinstance(task, EncoderTask)
    return task


def test_the_folder_loads_and_answers(runs: Path) -> None:
    """What the runtime says of pairs is what training measured: relevances agree, and the best strings are answers."""
    task = joint(runs)
    folder = runs / "compact-tiny" / "model"
    net = task.build().eval()  # with int8 arithmetic on
    net.load_state_dict(torch.load(runs / f"{ENCODER}-tiny" / "model" / NET, weights_only=True))
    assert isinstance(net, CompactNet)
    with torch.inference_mode():
        found = evaluate_lists(net, task.dev, task.tokenizer, 96, torch.device("cpu"))
    assert found["exact"] >= 0.5
    model = CompactModel(folder)
    assert model.tokenizer.vocabulary == task.tokenizer.vocabulary
    from whichsense import sample

    question = task.dev.asked[0].text
    scene = Compact(folder).read_search(question, sample.index().search(question, 6))
    assert scene.answers and all(
        mention.surface for answer in scene.answers for mention in answer.mentions
    )
    answers = [locate(scene, one) for one in candidates_of(scene, range(len(scene.answers)))]
    scores = likelihoods(scene, [question], answers)[0]
    assert all(score < 0 for score in scores)
    probabilities = scene.probabilities  # by the scorer, which is fitted when training is over
    assert len(probabilities) == len(scene.answers) and all(0 < one < 1 for one in probabilities)
    assert 0 < scene.ambiguous < 1 and 0 < scene.answerable < 1


def test_the_scorer_knows_right_answers(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted on what the model says of questions that it learnt, it gives right candidates more than wrong ones."""
    from whichsense import sample
    from whichsense.lab.datasets import load

    fit_on_few(monkeypatch)
    learnt = {one.text for one in joint(runs).train.asked}
    own = [question for question in load("sample/questions") if question.text in learnt]
    own += [question for question in load("sample/questions") if question.text not in learnt][:8]
    folder = runs / "compact-tiny" / "model"
    source = CorpusQuestions(sample.index(), own)
    scorer = fit_scorer(folder, source)
    found: dict[bool, list[float]] = {True: [], False: []}
    for question, scene in read_scenes(UnfittedCompact(folder), source):
        rows = [
            scorer_features.of_answer(place, scene.context) for place in range(len(scene.answers))
        ]
        for answer, chance in zip(
            scene.answers, scorer.in_large.answer.probabilities(rows), strict=True
        ):
            found[is_right(answer, question)].append(chance)
    assert found[True] and np.mean(found[True]) > np.mean(found[False]) + 0.1
    with pytest.raises(BadInput, match=r"data\.held"):
        fit_scorer(folder, CorpusQuestions(sample.index(), own[:3]))


def read_scenes(
    compact: UnfittedCompact, source: CorpusQuestions
) -> Iterator[tuple[Question, Scene]]:
    """Every question of a source, read."""
    for question in source.questions:
        yield question, read_scene(compact, source, question)


def test_an_index_that_torch_searches_is_searched_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from whichsense import sample

    index = sample.index()
    assert can_fork(index)
    (tmp_path / "bert.json").write_text("{}")
    monkeypatch.setattr(index, "manifest", replace(index.manifest, encoder=str(tmp_path)))
    assert not can_fork(index)


def test_the_scorer_asks_no_more_than_is_needed() -> None:
    source = training_half_of_sample()
    every = Counter(one.kind for one in scorer_questions(source, None))
    assert every[CorpusKind.LARGE] == every[CorpusKind.SAMPLE] == len(source.questions)
    some = [
        one for one in scorer_questions(source, None, enough=40) if one.kind is CorpusKind.LARGE
    ]
    assert (
        30 < len(some) < 60
        and [one.question for one in some] == source.questions[:: round(len(source.questions) / 40)]
    )


def test_a_stopped_fit_goes_on(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is not read again; the scorer is that of an unbroken fit."""
    folder, source = runs / "compact-tiny" / "model", training_half_of_sample()
    asked = [ScorerQuestion(CorpusKind.LARGE, source, one) for one in source.questions[:6]]
    parts = tmp_path / "parts"

    def read(place: Path) -> read_module.ScorerData:
        reader = QuestionReader(folder, processes=1)
        return read_questions(reader, asked, place, part=2)

    whole = read(tmp_path / "whole")

    def stopping(*about: Any) -> Any:
        if len(list(parts.glob("*/*.pickle"))) == 2:
            raise KeyboardInterrupt
        return read_scene(*about)

    monkeypatch.setattr(read_module, "read_scene", stopping)
    with pytest.raises(KeyboardInterrupt):
        read(parts)
    again: list[str] = []

    def noting(*about: Any) -> Any:
        again.append(about[2].text)
        return read_scene(*about)

    monkeypatch.setattr(read_module, "read_scene", noting)
    resumed = read(parts)
    assert again == [one.question.text for one in asked[4:]]
    assert [one.rows for one in resumed.read] == [one.rows for one in whole.read]
    assert resumed.rewrites == whole.rewrites
    assert len(resumed.rewrites.rows) == len(resumed.rewrites.answers)
    damaged = next(parts.glob("*/*-00001.pickle"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(WhichsenseError, match="Run the same command again"):
        read(parts)
    again.clear()
    read(parts)
    assert again == [one.question.text for one in asked[2:4]]


def test_what_holds_an_answer_can_be_left_out(runs: Path) -> None:
    """A scene without its answers, by which it is learnt when to decline: nothing right is among its candidates."""
    scenes = read_scenes(
        UnfittedCompact(runs / "compact-tiny" / "model"), training_half_of_sample()
    )
    taken = 0
    for question, scene in islice(scenes, 12):
        left = without_answers(scene, question)
        held = [
            any(contains_answer(one, names) for names in question.answers)
            for one in scene.evidence.passages
        ]
        assert list(left.evidence.passages) == [
            one for one, holding in zip(scene.evidence.passages, held, strict=True) if not holding
        ]
        assert not any(is_right(answer, question) for answer in left.answers)
        taken += held.count(True)
        assert (
            len(left.evidence.pairs)
            == len(left.evidence.read)
            == len(left.evidence.found)
            == held.count(False)
        )
    assert taken > 12


def test_judges_learn_from_corpora_like_their_own(runs: Path) -> None:
    """What is right by the large judge and wrong by the small one was read over a small corpus alone."""
    scenes = read_scenes(
        UnfittedCompact(runs / "compact-tiny" / "model"), training_half_of_sample()
    )
    question, scene = next(scenes)
    names = [answer.text for answer in scene.answers]
    right, wrong = (
        replace(question, annotations=(Annotation("singleAnswer", (QAPair((name,)),)),))
        for name in (names[0], "nobody")
    )
    kinds = CorpusKind
    read = [ReadQuestion(right, scene.context, kinds.LARGE)] * 40 + [
        ReadQuestion(wrong, scene.context, kinds.SMALL)
    ] * 9
    scorer = fit_nets([*read, ReadQuestion(wrong, scene.context, kinds.EMPTIED)], AmbiguityProbes())
    rows = read[0].rows[:1]
    assert scorer.in_large.answer.probabilities(rows)[0] > 0.6
    assert scorer.in_small.answer.probabilities(rows)[0] < 0.2
    assert scorer.in_small.single_under is None and scorer.in_large.single_under is not None


def test_small_corpora_answer_what_their_questions_say() -> None:
    from whichsense import sample
    from whichsense.lab.datasets import load

    asked = {question.id: question for question in load("sample/questions")}
    made = list(small_corpora(CorpusQuestions(sample.index(), list(asked.values()))))
    found = [(one, question) for one in made for question in one.questions]
    assert len(made) > 2 and len(found) > 300
    without = [question for _, question in found if not question.is_answerable]
    assert 0.08 < len(without) / len(found) < 0.25
    for one, question in found[::9]:
        assert set(question.answers) <= set(asked[question.id].answers)
        texts = " ".join(
            hit.passage.title + " " + hit.passage.text
            for hit in one.index.search(question.text, 100)
        )
        for names in question.answers:
            assert any(normalize(name) in normalize(texts) for name in names)
        assert question.is_ambiguous <= (len(question.answers) > 1)


def test_a_teacher_gives_soft_labels(runs: Path) -> None:
    folder = runs / "compact-teacher-tiny" / "model"
    task = joint(runs, f"teacher.model={folder}")
    task.build()
    batch = task.make_batch([0, 1], np.random.default_rng(0))
    taught = task.with_soft_labels(batch).taught
    with torch.inference_mode():
        output = load_teacher(folder).read(*batch.pairs[:3])
    assert taught is not None
    assert torch.equal(taught.relevance.flatten(), output["relevance"])
    first, last = losses.start_end(output["span"], batch.pairs.region)
    assert torch.equal(taught.first, first.exp()) and torch.equal(taught.last, last.exp())


def test_a_model_may_teach_itself(runs: Path) -> None:
    """What it goes on from says the same at every step, however far it has come."""
    first = runs / "compact-tiny" / "model"
    task = joint(runs, f"model.start={first}", "teacher.itself=true")
    net = task.build().eval()
    batch = task.make_batch([0, 1], np.random.default_rng(0))
    said = net.read(*batch.pairs[:3])["relevance"].detach().view_as(batch.valid)
    alike = task.loss(net, batch)[1]["taught"]
    with torch.no_grad():
        net.relevance.out.weight.mul_(-1)
    told = task.with_soft_labels(batch).taught
    assert told is not None and torch.allclose(told.relevance, said, atol=1e-5)
    assert task.loss(net, batch)[1]["taught"] > alike
    with pytest.raises(BadConfig, match=r"give model\.start"):
        joint(runs, "model.start=", "teacher.itself=true")


def test_a_teacher_with_other_numbers_reads_the_same(tmp_path: Path) -> None:
    """MPNet has BERT's word pieces four places further on, and its own signs."""
    transformers = pytest.importorskip("transformers")
    vocabulary = load_vocabulary("tiny-bert-uncased")

    class Shifted:
        pad_token_id, cls_token_id, sep_token_id, unk_token_id = 1, 0, 2, 104

        def get_vocab(self) -> dict[str, int]:
            return {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3} | {
                piece: n + 4 for n, piece in enumerate(vocabulary)
            }

    numbers = map_vocabulary(Shifted(), vocabulary)
    assert numbers[[0, 101, 102]].tolist() == [1, 0, 2] and numbers[500] == 504
    size = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    encoder = transformers.MPNetModel(
        transformers.MPNetConfig(vocab_size=len(vocabulary) + 4, **size)
    )
    net = TeacherNet(encoder, numbers).eval()
    task = load_recipe("compact-teacher", ("data.limit=2", "data.dev_limit=2"), tiny=True).make()
    assert isinstance(task, TeacherTask)
    batch = build_list_batch(task.train, [0], [task.train.slot_range(0)], 96)
    assert not net.typed and net.read(*batch.pairs[:3])["span"].shape == (*batch.pairs.ids.shape, 2)
    with pytest.raises(BadConfig, match="uncased word pieces"):
        map_vocabulary(Shifted(), [*vocabulary, *(f"foreign{n}" for n in range(2000))])


def test_bases_that_do_not_fit_are_told(runs: Path) -> None:
    with pytest.raises(BadConfig, match="uncased vocabulary"):
        load_vocabulary("tiny-bert")
    with pytest.raises(BadConfig, match=r"model\.longest"):
        joint(runs, "model.longest=40")
    with pytest.raises(BadInput, match="no compact model that can be read: its format"):
        joint(runs, f"model.start={located('tiny-bert-uncased')}").build()


def test_an_empty_checkpoint_to_start_from_is_told(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(runs / "compact-reader-tiny" / "model", folder)
    (folder / NET).write_bytes(b"")
    with pytest.raises(BadInput, match="no compact model that can be read"):
        load_start(str(folder))


def test_given_models_are_not_trained_again(runs: Path, tmp_path: Path) -> None:
    """What a person gives takes the place of the recipe before."""
    said: list[str] = []
    changes = ("train.steps=1", "train.evaluate_every=1", "data.limit=2", "data.dev_limit=2")
    given = f"model.start={runs / 'compact-reader-tiny' / 'model'}", "teacher.model="
    train_recipe(
        "compact-encoder", tmp_path / "mine", (*changes, *given), tiny=True, say=said.append
    )
    assert not any(line.startswith("Before") for line in said)


def losses_of(task: EncoderTask, **changes: Any) -> Any:
    batch = build_list_batch(task.train, [0, 1], [task.train.slot_range(n) for n in (0, 1)], 96)
    batch = batch._replace(**changes)
    pairs, length = batch.pairs.ids.shape
    flat = {
        "relevance": torch.zeros(pairs),
        "exit": torch.zeros(pairs),
        "ambiguity": torch.zeros(pairs),
    }
    return batch, flat | {"span": torch.zeros(pairs, length, 2)}


def test_the_loss_knows_right_from_wrong(runs: Path) -> None:
    task = joint(runs)
    batch, output = losses_of(task)
    even = losses.read(output, batch)
    good = batch.held.any(2).flatten()
    right = losses.read(output | {"relevance": 5.0 * good - 5.0 * ~good}, batch)
    wrong = losses.read(output | {"relevance": 5.0 * ~good - 5.0 * good}, batch)
    assert right["relevance"] < even["relevance"] < wrong["relevance"]
    span = output["span"].clone()
    for pair, (first, last) in enumerate(
        zip(batch.first.flatten(0, 1), batch.last.flatten(0, 1), strict=True)
    ):
        span[pair, first, 0], span[pair, last, 1] = 6.0, 6.0
    assert losses.read(output | {"span": span}, batch)["span"] < even["span"] - 1
    nothing = replace_held(batch)
    assert (
        losses.read(output | {"relevance": torch.full_like(output["relevance"], -5.0)}, nothing)[
            "relevance"
        ]
        < 0.05
    )


def replace_held(batch: Any) -> Any:
    """The same lists, without any answer in them."""
    return batch._replace(
        held=torch.zeros_like(batch.held), answer=torch.full_like(batch.answer, -1)
    )


def test_the_recipes_learn_from_the_same_lists() -> None:
    found = [load_recipe(name).options for name in PHASES]
    assert all(one.data == found[0].data and one.lists == found[0].lists for one in found)
    shapes = [replace(one.model, start="", int8=False) for one in found[1:3]]
    assert shapes[0] == shapes[1] and found[0].model.longest == shapes[0].longest


def topical(runs: Path, *changes: str) -> EncoderTask:
    """The task of compact-topics over the lists of the tiny run, with its teacher."""
    given = [f"model.start={runs / f'{ENCODER}-tiny' / 'model'}", f"lists.folder={runs / 'lists'}"]
    given += [
        f"teacher.model={runs / 'compact-teacher-tiny' / 'model'}",
        "data.limit=6",
        "data.dev_limit=6",
        *changes,
    ]
    task = load_recipe(TOPICS, given, tiny=True).make()
    assert isinstance(task, EncoderTask)
    return task


def test_weights_that_leave_nothing_to_draw_are_told() -> None:
    assert normalize_weights(0.5, np.array([3.0, 1.0, 0.0])).tolist() == [0.375, 0.125, 0.0]
    assert normalize_weights(0.0, np.zeros(2)).tolist() == [0.0, 0.0]
    for weights in ([0.0, 0.0], [2.0, -1.0]):
        with pytest.raises(BadConfig, match=r"data\.weights"):
            normalize_weights(0.5, np.array(weights))


def test_topics_join_the_lists(runs: Path) -> None:
    task = topical(runs, "topics.thinned=0.0", "topics.share=0.4", "draw.passages=24")
    first, count = len(task.groups[0].lists), len(task.train)
    assert first < count and all(one.complete for one in task.train.asked[first:])
    assert task.probabilities[first:].sum() == pytest.approx(0.4)
    assert task.probabilities.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    for number in range(first, count):  # none of its answers is left out
        assert task.sample_slots(number, rng) == list(task.train.slot_range(number))


def test_topics_lose_answers_where_they_are_thinned(runs: Path) -> None:
    task, rng = topical(runs, "topics.thinned=1.0"), np.random.default_rng(0)
    numbers = [
        number
        for number in range(len(task.groups[0].lists), len(task.train))
        if task.train.has_answer[number]
    ]
    left = [
        any(len(task.train.spans[slot]) for slot in task.sample_slots(number, rng))
        for number in numbers * 5
    ]
    assert 0 < sum(left) < len(left)
    with pytest.raises(BadConfig, match=r"data\.topics is empty"):
        topical(runs, "data.topics=")
    with pytest.raises(BadConfig, match=r"topics\.share"):
        topical(runs, "topics.share=1.0")


def test_what_is_right_in_large_corpora_is_not_learnt_from_topics(runs: Path) -> None:
    compact = UnfittedCompact(runs / "compact-tiny" / "model", threads=1)
    source, kinds = (
        training_half_of_sample(),
        (CorpusKind.LARGE, CorpusKind.SMALL, CorpusKind.TOPICS),
    )
    few = replace(source, questions=source.questions[:36])
    each = [kind for kind in kinds for _ in range(12)]
    read = [
        ReadQuestion(question, scene.context, kind)
        for kind, (question, scene) in zip(each, read_scenes(compact, few), strict=True)
        if scene.answers
    ]
    without = [one for one in read if one.kind is not CorpusKind.TOPICS]
    both = [fit_nets(some, AmbiguityProbes()) for some in (read, without)]
    large = [nets.in_large.answer.to_table() for nets in both]
    small = [nets.in_small.answer.to_table() for nets in both]
    assert large[0] == large[1]
    assert small[0] != small[1]
