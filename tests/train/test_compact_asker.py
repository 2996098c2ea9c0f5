"""A writer that asks, the questions that it makes, and an encoder that learns from them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from whichsense.errors import BadConfig
from whichsense.lab.compact import encoder_task
from whichsense.lab.compact.asker import (
    AskerTask,
    QuestionGeneration,
    best_spans,
    sample_outputs,
    split_output,
    teacher_agrees,
)
from whichsense.lab.compact.batches_of_lists import (
    SYNTHETIC_FILE,
    ListBatch,
    SyntheticQuestions,
    TeacherScores,
    build_list_batch,
    build_synthetic_lists,
    own_slots,
)
from whichsense.lab.compact.encoder_task import EncoderTask
from whichsense.lab.compact.lists import Pack, PairTensors, RaggedArray
from whichsense.lab.compact.questions import held_out_questions
from whichsense.lab.train.loop import train
from whichsense.lab.train.recipes import load_recipe
from whichsense.models.compact.encoder import BEGIN, END
from whichsense.models.compact.nets import CompactNet, WriterBatch, WriterConfig, WriterNet
from whichsense.models.compact.writer import BETWEEN, LONGEST, WAYS, Window, asking

FEW = ("data.limit=6", "data.dev_limit=6")


def task_of(recipe: str, *changes: str) -> Any:
    return load_recipe(recipe, (*FEW, *changes), tiny=True).make()


@pytest.fixture(scope="module")
def asker() -> AskerTask:
    task = task_of("compact-asker")
    assert isinstance(task, AskerTask)
    return task


@pytest.fixture(scope="module")
def folder(asker: AskerTask, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an asker that has learnt, with what it made."""
    torch.set_num_threads(1)
    done = train(
        asker, load_recipe("compact-asker", FEW, tiny=True).train, tmp_path_factory.mktemp("asker")
    )
    assert done.metrics["asked"] < 3
    asker.finish(done.model)
    return done.model


@pytest.fixture(scope="module")
def encoder(folder: Path) -> EncoderTask:
    task = task_of("compact-asked", f"made.folder={folder}", "made.emptied=0.5")
    assert isinstance(task, EncoderTask)
    return task


def test_what_is_remembered_changes_nothing() -> None:
    """Token by token, behind prompts of different lengths, as all at once."""
    torch.manual_seed(0)
    config = WriterConfig(vocabulary=200, width=32, heads=4, inner=64, layers=3)
    net = WriterNet(config, torch.randn(200, 32)).eval()
    ids, written = torch.randint(1, 200, (3, 9)), torch.randint(1, 200, (3, 6))
    kinds, mask = (torch.randint(0, 2, (3, 9)), torch.arange(9) < torch.tensor([9, 4, 6])[:, None])
    with torch.inference_mode():
        whole = net(WriterBatch(ids, kinds, mask, written, written, torch.ones(3, 6)))
        memory = net.begin(ids, kinds, mask)
        for place in range(6):
            states, memory = net.extend(memory, written[:, place], place)
            assert torch.allclose(states, whole[:, place], atol=1e-5)


def test_prompts_hold_passages() -> None:
    prompt = asking(WAYS["open"], Window([7, 8], [9, 10, 11]))
    assert prompt.ids == [BEGIN, WAYS["open"], END, 7, 8, BETWEEN, 9, 10, 11, END]
    assert prompt.kinds == [0] * 3 + [1] * 7
    long = asking(WAYS["exact"], Window([7] * 30, list(range(200, 500)), 250, 252))
    assert len(long.ids) == LONGEST and {450, 451} <= set(long.ids)


def test_pairs_say_what_they_must(asker: AskerTask) -> None:
    """The answer stands in what is told; the question is the list's."""
    pairs = asker.examples
    assert set(pairs.by_way) == {"open", "exact"} and len(pairs.spans) > 5
    for pair in pairs.spans:
        made = pairs.example(pair)
        both = split_output(made.output[:-1])
        assert both is not None and both[1] == pairs.pack.questions[pair.number].tolist()
        told = made.prompt.ids
        assert any(told[at : at + len(both[0])] == both[0] for at in range(len(told)))
        assert made.prompt.ids[1] == WAYS[pair.way] and len(made.output) == len(made.weights)
    assert len(asker.draw_examples(random.Random(0))) == 16
    with pytest.raises(BadConfig, match=r"made\.ways are shares"):
        task_of("compact-asker", "made.ways={loudly = 1.0}")


def test_draws_are_the_same_again(asker: AskerTask) -> None:
    net = asker.build().eval()
    assert isinstance(net, WriterNet)
    prompts = [asker.examples.example(pair).prompt for pair in asker.examples.spans[:4]]
    one, same = (
        sample_outputs(net, prompts, QuestionGeneration(), torch.Generator().manual_seed(1))
        for _ in range(2)
    )
    assert one == same and len(one) == 4


def test_answers_stand_in_their_passages(asker: AskerTask, folder: Path) -> None:
    pack = asker.examples.pack
    made = SyntheticQuestions.load(folder, pack)
    assert len(made) > 2
    for row in range(len(made)):
        passage = pack.slots[int(made.lists[row])][int(made.slots[row])]
        tokens, answer = ([*pack.titles[passage], *pack.texts[passage]], made.answers[row].tolist())
        assert any(tokens[at : at + len(answer)] == answer for at in range(len(tokens)))
    before = (folder / SYNTHETIC_FILE).stat().st_mtime_ns
    asker.finish(folder)
    assert (folder / SYNTHETIC_FILE).stat().st_mtime_ns == before


def test_copies_of_held_out_questions_are_not_kept(asker: AskerTask) -> None:
    pair = asker.examples.spans[0]
    pack = asker.examples.pack
    both = split_output(asker.examples.example(pair).output[:-1])
    assert both is not None
    slot = pair.slot - pack.slot_range(pair.number).start
    held = asker.tokenizer.ids(held_out_questions(asker.options.data)[0].text)
    rows = [(pair.number, slot, both[0], question) for question in (both[1], held)]
    rows.append((pair.number, slot, [*both[0], 2000, 2001], both[1]))  # stands nowhere
    kept = asker.filter(SyntheticQuestions.from_rows(rows, np.uint16))
    assert len(kept) == 1 and kept.questions[0].tolist() == both[1]


class Pointing(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A teacher that points at the first gold span of each pair, or so many tokens behind it."""

    def __init__(self, gold: ListBatch, shift: int, relevance: float) -> None:
        super().__init__()
        self.gold, self.shift, self.relevance = gold, shift, relevance
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, pairs: PairTensors) -> dict[str, Any]:
        span, rows = torch.zeros(*pairs.ids.shape, 2), torch.arange(len(pairs.ids))
        for end, places in enumerate((self.gold.first, self.gold.last)):
            span[rows, places[:, 0, 0] + self.shift, end] = 9.0
        return {"span": span, "relevance": torch.full((len(span),), self.relevance)}


def test_the_teacher_must_agree(asker: AskerTask, folder: Path) -> None:
    pack = asker.examples.pack
    made = SyntheticQuestions.load(folder, pack)
    lists = build_synthetic_lists(pack, made, asker.start.vocabulary)
    slots = own_slots(lists, made)
    gold = build_list_batch(lists, range(len(lists)), [[int(slot)] for slot in slots], 96)
    there = gold.answer[:, 0, 0] >= 0  # where the answer is not cut off
    assert there.any()

    def found(shift: int, relevance: float) -> Any:
        net: Any = Pointing(gold, shift, relevance)
        return teacher_agrees(net, lists, slots, 96, agreed=0.6, relevance=-1.0)

    first, last = best_spans(Pointing(gold, 0, 0.0)(gold.pairs)["span"], gold)
    assert torch.equal(first[there, 0], gold.first[there, 0, 0]) and torch.equal(
        last[there, 0], gold.last[there, 0, 0]
    )
    assert found(0, 0.0).tolist() == there.tolist()
    assert not found(0, -2.0).any() and found(4, 0.0).sum() < there.sum()


def test_made_lists_follow_the_others(encoder: EncoderTask) -> None:
    """Those stay as they are; in these the spans are the answers."""
    real, made = (group.lists for group in encoder.groups)
    both = encoder.train
    assert len(both) == len(real) + len(made)
    for number in range(len(real)):
        assert (
            both.slot_range(number) == real.slot_range(number)
            and both.asked[number] == real.asked[number]
        )
        assert np.array_equal(both.slots[number], real.slots[number])
        assert np.array_equal(both.questions[number], real.questions[number])
    assert all(
        np.array_equal(both.spans[slot], real.spans[slot]) for slot in range(len(real.spans))
    )
    for number in range(len(real), len(both)):
        assert both.asked[number].source == "made" and both.asked[number].ambiguous == -1
        (answer,) = both.asked[number].answers[0]
        spans = [
            (slot, span) for slot in both.slot_range(number) for span in both.spans[slot].tolist()
        ]
        assert spans
        for slot, (which, first, last) in spans:
            row = int(both.slots.values[slot])
            pieces = [*both.titles[row], *both.texts[row]][first : last + 1]
            assert which == 0 and encoder.tokenizer.ids(answer) == pieces


def test_half_of_what_is_drawn_was_made(encoder: EncoderTask) -> None:
    assert encoder.probabilities.sum() == pytest.approx(1)
    assert encoder.probabilities[len(encoder.groups[0].lists) :].sum() == pytest.approx(0.5)
    plain = task_of("compact-asked")
    assert (
        isinstance(plain, EncoderTask)
        and len(plain.groups) == 1
        and np.isclose(plain.probabilities.sum(), 1)
    )
    ratio = encoder.probabilities[: len(plain.train)] / plain.probabilities
    assert np.allclose(ratio, 0.5)


def test_emptied_lists_hold_no_answer(folder: Path, encoder: EncoderTask) -> None:
    always, never = (
        task_of("compact-asked", f"made.folder={folder}", f"made.emptied={share}")
        for share in (1.0, 0.0)
    )
    emptied = 0
    for number in range(len(encoder.train)):
        own, usual, some = (
            task.sample_slots(number, np.random.default_rng(number))
            for task in (always, never, encoder)
        )
        wrong = [slot for slot in usual if not len(encoder.train.spans[slot])]
        assert own == (
            usual if number < len(encoder.groups[0].lists) else wrong or usual
        ) and some in (own, usual)
        emptied += number >= len(encoder.groups[0].lists) and own == wrong
        batch = always.sample_batch([number], np.random.default_rng(number), taught=False)
        assert bool(batch.held.any()) <= any(len(encoder.train.spans[slot]) for slot in own)
    assert emptied


def test_groups_are_scored_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The teacher's scores of the datasets' lists do not depend on synthetic questions."""
    asked: list[tuple[int, str]] = []

    def score(teacher: Path, pack: Pack, place: str, longest: int) -> TeacherScores:
        asked.append((len(pack), place))
        scores = TeacherScores.zeros(len(pack.spans))
        return scores._replace(relevance=np.full(len(pack.spans), len(pack)))

    monkeypatch.setattr(encoder_task, "score_lists", score)
    task = task_of("compact-asked", f"made.folder={folder}", "teacher.model=t")
    real, made = (len(group.lists) for group in task.groups)
    scores = task.scores
    assert [count for count, _ in asked] == [real, made]
    assert str(folder) in asked[1][1]
    assert len(scores.relevance) == len(task.train.spans)
    assert scores.relevance[0] == real and scores.relevance[-1] == made


def test_what_does_not_fit_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="compact-asker writes it"):
        task_of("compact-asked", f"made.folder={tmp_path}")
    (tmp_path / "made.npz").write_bytes(b"junk")
    with pytest.raises(BadConfig, match="cannot be read"):
        task_of("compact-asked", f"made.folder={tmp_path}")
    with pytest.raises(BadConfig, match="other lists"):
        task_of("compact-asked", f"made.folder={folder}", "lists.passages=5")
    with pytest.raises(BadConfig, match=r"made\.share"):
        task_of("compact-asked", "made.share=1.0")
    with pytest.raises(BadConfig, match="unknown key 'made'"):
        task_of("compact-teacher", "made.share=0.5")


def test_none_made_is_as_none_given(folder: Path, encoder: EncoderTask, tmp_path: Path) -> None:
    real = encoder.groups[0].lists
    SyntheticQuestions.from_rows([], np.uint16).save(tmp_path, real)
    task = task_of("compact-asked", f"made.folder={tmp_path}")
    assert isinstance(task, EncoderTask) and len(task.groups) == 1 and len(task.train) == len(real)


def test_words_may_stay(encoder: EncoderTask) -> None:
    net, learns = encoder.build(), task_of("compact-encoder").build()
    assert isinstance(net, CompactNet) and isinstance(learns, CompactNet)
    assert not net.encoder.words.weight.requires_grad and learns.encoder.words.weight.requires_grad
    assert net.span.weight.requires_grad


def test_rows_are_chosen_in_order() -> None:
    found = RaggedArray.from_rows([[1, 2], [], [3], [4, 5, 6]], np.int32).take(np.array([3, 1, 0]))
    assert [found[row].tolist() for row in range(3)] == [[4, 5, 6], [], [1, 2]]
