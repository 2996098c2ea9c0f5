"""What the compact model learns from: questions without copies of those it is measured by, lists, examples."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from whichsense import sample
from whichsense.errors import BadInput
from whichsense.lab.compact import questions
from whichsense.lab.compact.batches_of_lists import build_list_batch, sample_slots
from whichsense.lab.compact.lists import Pack, load_lists
from whichsense.lab.compact.questions import (
    DataConfig,
    ListConfig,
    convert,
    convert_ambiguous,
    held_out_questions,
    training_questions,
)
from whichsense.lab.compact.writer_task import RewriteExamples
from whichsense.lab.datasets import (
    Annotation,
    Context,
    GroundedQuestion,
    QAPair,
    Question,
    SituatedQuestion,
)
from whichsense.lab.train.tiny import wordpiece
from whichsense.models.compact.encoder import BEGIN, END, LONGEST_QUESTION, Tokenizer, joined, pair
from whichsense.models.compact.writer import REWRITE

SIGNS = (
    "[PAD]",
    *(f"[unused{number}]" for number in range(99)),
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
)
FEW = ListConfig(depth=12, passages=6, measured=5)


@pytest.fixture(scope="module")
def vocabulary() -> list[str]:
    known: dict[str, int] = wordpiece(SIGNS).get_vocab()
    return sorted(known, key=known.__getitem__)


@pytest.fixture(scope="module")
def tokenizer(vocabulary: list[str]) -> Tokenizer:
    return Tokenizer({piece: number for number, piece in enumerate(vocabulary)})


def data(**changes: Any) -> DataConfig:
    return DataConfig(
        **{"train": "sample/questions", "dev": "sample/questions", "limit": 12, "dev_limit": 6}
        | changes
    )


@pytest.fixture(scope="module")
def packs(vocabulary: list[str]) -> tuple[Pack, Pack]:
    return load_lists(data(), FEW, vocabulary)


def question(text: str, *pairs: tuple[str, str]) -> Question:
    kind: Any = "multipleQAs" if len(pairs) > 1 else "singleAnswer"
    found = tuple(QAPair((answer,), (rewrite,) if rewrite else ()) for rewrite, answer in pairs)
    return Question(text, text, (Annotation(kind, found),))


def test_what_is_kept_for_measuring_is_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the question, no near copy, and no copy of a rewrite; an eighth or so is held out."""
    own = [
        question(f"who founded alpha{n} near beta{n} with gamma{n}", ("", f"Name {n}"))
        for n in range(40)
    ]
    copies = [
        question("who directed the film dune", ("", "Lynch")),
        question("who made dune in 1984 then", ("", "L")),
    ]
    dev = [
        question(
            "Who directed the film Dune?",
            ("who made dune in 1984", "Lynch"),
            ("who made dune in 2021", "V"),
        )
    ]
    sets = {"ambignq/train": [*own, *copies], "ambignq/dev": dev}
    monkeypatch.setattr(questions, "load_questions", lambda name, folder: (sets[name], Path(name)))
    plain = training_questions(DataConfig(without=("ambignq/dev",)))
    assert [one.text for one in plain] == [one.text for one in own]
    some = training_questions(DataConfig(without=("ambignq/dev",), held=4))
    held = held_out_questions(DataConfig(without=("ambignq/dev",), held=4))
    assert 0 < len(held) < 25 and not {one.text for one in held} & {one.text for one in some}


def test_rewrites_answers_and_labels() -> None:
    found = convert_ambiguous(
        question("who made dune", ("who made dune in 1984", "Lynch"), ("in 2021", "V")), "ambignq/x"
    )
    assert found.ambiguous == 1 and found.answers == (("Lynch",), ("V",))
    assert [(one.rewrites, one.others) for one in found.rewritings] == [
        (("who made dune in 1984",), ("V",)),
        (("in 2021",), ("Lynch",)),
    ]
    assert convert_ambiguous(question("who made it", ("", "V")), "ambignq/x").ambiguous == 0
    assert convert_ambiguous(question("who made it", ("", "V")), "nq_open/dev").ambiguous == -1


def test_situated_and_grounded_questions() -> None:
    one = [
        SituatedQuestion(
            str(n),
            "who is king",
            (Annotation("singleAnswer", (QAPair((who,)),)),),
            rewrite=f"who is king in {n}",
        )
        for n, who in ((1950, "George"), (2023, "Charles"))
    ]
    prompt, rewrite = convert(one, "situatedqa/temp.train")
    assert prompt.answers == (("George",), ("Charles",)) and len(prompt.rewritings) == 2
    assert rewrite.text == "who is king in 1950" and rewrite.answers == (("George",),)
    assert (prompt.source, rewrite.source) == (
        "situatedqa/temp.train",
        "rewrites of situatedqa/temp.train",
    )
    texts = [Context("Normans", f"text {n}", gold=True) for n in range(3)]
    none = GroundedQuestion("a", "who were they not", (), passages=(texts[0],))
    some = [
        GroundedQuestion(
            str(n), "who", (Annotation("singleAnswer", (QAPair(("x",)),)),), passages=(texts[n],)
        )
        for n in (1, 2)
    ]
    empty, *rest = convert([none, *some], "squad/2.0")
    assert (
        not empty.searched
        and not empty.answers
        and [one.text for one in empty.passages] == ["text 0", "text 1", "text 2"]
    )
    assert all(one.searched and len(one.passages) == 1 for one in rest)


def test_spans_are_where_the_answers_stand(packs: tuple[Pack, Pack], vocabulary: list[str]) -> None:
    train, dev = packs
    assert (
        len(train) > 12 and len(dev) == 6 and train.has_answer.mean() > 0.5
    )  # rewrites are questions, too
    seen = 0
    for number, asked in enumerate(train.asked):
        slots = train.slot_range(number)
        assert len(slots) <= FEW.passages
        for slot, row in zip(slots, train.slots[number].tolist(), strict=True):
            pieces = [*train.titles[row].tolist(), *train.texts[row].tolist()]
            for group, first, last in train.spans[slot].tolist():
                said = joined([vocabulary[piece] for piece in pieces[first : last + 1]]).replace(
                    " ", ""
                )
                assert any(said in name.lower().replace(" ", "") for name in asked.answers[group])
                seen += 1
    assert seen > 20


def test_pairs_are_as_the_runtime_makes_them(
    packs: tuple[Pack, Pack], tokenizer: Tokenizer
) -> None:
    """The same tokens and types, and spans that are the same pieces in the pair."""
    train, _ = packs
    numbers = [n for n in range(len(train)) if train.has_answer[n]][:4]
    batch = build_list_batch(train, numbers, [train.slot_range(n) for n in numbers], 120)
    passages = {
        passage.text: passage
        for hit in sample.index().search_many([train.asked[n].text for n in numbers], 12)
        for passage in (h.passage for h in hit)
    }
    checked = 0
    for row, number in enumerate(numbers):
        asked = tokenizer.ids(train.asked[number].text, LONGEST_QUESTION)
        for place in range(len(train.slot_range(number))):
            at = row * batch.valid.shape[1] + place
            ids = batch.pairs.ids[at][batch.pairs.mask[at]].tolist()
            made = [pair(tokenizer, asked, one.title, one.text, 120) for one in passages.values()]
            same = [one for one in made if one.ids == ids]
            assert same and same[0].types == batch.pairs.types[at][: len(ids)].tolist()
            region = set(range(*same[0].title)) | set(range(*same[0].text))
            assert region == set(np.flatnonzero(batch.pairs.region[at]).tolist())
            for first, group in zip(
                batch.first[row, place].tolist(), batch.answer[row, place].tolist(), strict=True
            ):
                assert group < 0 or (first in region and bool(batch.held[row, place, group]))
                checked += group >= 0
    assert checked > 5 and ids[0] == BEGIN and ids[-1] == END


def test_the_last_slot_is_the_question_as_the_runtime_asks_it_alone(
    packs: tuple[Pack, Pack], tokenizer: Tokenizer
) -> None:
    train, _ = packs
    numbers = [0, 1, 2]
    slots = [train.slot_range(0), train.slot_range(1)[:2], train.slot_range(2)[:0]]
    plain, batch = (
        build_list_batch(train, numbers, slots, 120, alone=alone) for alone in (False, True)
    )
    assert batch.alone and not plain.alone and batch.valid.shape[1] == plain.valid.shape[1] + 1
    for row, number in enumerate(numbers):
        at = (row + 1) * batch.valid.shape[1] - 1
        asked = pair(tokenizer, tokenizer.ids(train.asked[number].text, LONGEST_QUESTION), "", "")
        assert batch.pairs.ids[at][batch.pairs.mask[at]].tolist() == asked.ids
        assert batch.pairs.types[at][: len(asked)].tolist() == asked.types
        assert not batch.pairs.region[at].any()
    assert (
        not batch.valid[:, -1].any()
        and not batch.held[:, -1].any()
        and (batch.answer[:, -1] < 0).all()
    )
    for name in ("valid", "held", "first", "last", "answer"):  # beside it all is as it would be
        assert (getattr(batch, name)[:, :-1] == getattr(plain, name)).all(), name
    assert (batch.pairs.ids[batch.valid.flatten()] == plain.pairs.ids[plain.valid.flatten()]).all()


def test_long_pairs_lose_their_spans(packs: tuple[Pack, Pack]) -> None:
    train, _ = packs
    numbers = list(range(len(train)))
    short, long = (
        build_list_batch(train, numbers, [train.slot_range(n) for n in numbers], size)
        for size in (80, 160)
    )
    assert 0 < int((short.answer >= 0).sum()) < int((long.answer >= 0).sum())
    assert int(short.last.max()) < 79 and short.pairs.ids.shape[1] == 80


def test_drawn_slots_favour_good_ones(packs: tuple[Pack, Pack]) -> None:
    train, _ = packs
    number = next(
        n
        for n in range(len(train))
        if 0 < train.slot_has_answer[list(train.slot_range(n))].sum() < 4 < len(train.slot_range(n))
    )
    rng = np.random.default_rng(0)
    found = [sample_slots(train, number, 3, rng) for _ in range(200)]
    assert all(len(set(own)) == 3 and own == sorted(own) for own in found)
    drawn = np.mean([train.slot_has_answer[own].mean() for own in found])
    assert drawn > train.slot_has_answer[list(train.slot_range(number))].mean() + 0.1


def test_lists_are_made_once_and_for_one_recipe(
    tmp_path: Path, vocabulary: list[str], packs: tuple[Pack, Pack], monkeypatch: pytest.MonkeyPatch
) -> None:
    from whichsense.lab.compact import lists

    kept = replace(FEW, folder=str(tmp_path / "lists"), part=7)
    made, _ = load_lists(data(), kept, vocabulary)
    assert made.asked == packs[0].asked and len(list((tmp_path / "lists").glob("train-*.npz"))) > 1
    (tmp_path / "lists" / "train.json").unlink()
    (
        tmp_path / "lists" / "train-00001.npz"
    ).unlink()  # as a kill would leave it: only what is missing is searched
    searched: list[int] = []

    class Counting:
        def search_many(self, texts: list[str], *settings: Any) -> Any:
            searched.append(len(texts))
            return sample.index().search_many(texts, *settings)

    monkeypatch.setattr(lists, "open_search", lambda data: Counting())
    again, _ = load_lists(data(), kept, vocabulary)
    assert searched == [7]
    assert again.asked == made.asked and all(
        (getattr(again, name).values == getattr(made, name).values).all()
        for name in ("slots", "spans", "texts")
    )
    with pytest.raises(BadInput, match=r"lists\.folder"):
        load_lists(data(limit=3), kept, vocabulary)


def test_a_rewrite_is_an_example(packs: tuple[Pack, Pack], tokenizer: Tokenizer) -> None:
    """What is inserted counts more than what is kept, and the end as much as that."""
    examples = RewriteExamples(packs[0], tokenizer, inserted=2.0)
    assert examples.readings
    for reading in examples.readings:
        made = examples.rewrite(reading, None)
        assert made is not None and made.output == [
            *examples.question(reading.rewriting.rewrites[0]),
            END,
        ]
        asked = examples.question(packs[0].asked[reading.number].text)
        kept = [
            piece
            for piece, weight in zip(made.output[:-1], made.weights, strict=False)
            if weight == 1.0
        ]
        assert set(made.weights) <= {1.0, 3.0} and made.weights[-1] == 1.0
        assert all(piece in asked for piece in kept)
        assert made.prompt.ids[: made.prompt.asked] == [BEGIN, REWRITE, *asked, END]


def test_sentences_lack_what_is_to_be_put_back(
    packs: tuple[Pack, Pack], tokenizer: Tokenizer
) -> None:
    """What counts more is not in the prompt's sentence; the sentence itself is a stretch of the passage."""
    train, _ = packs
    examples, rng, made = RewriteExamples(train, tokenizer), random.Random(0), 0
    for row in range(len(train.texts)):
        one = examples.restored_sentence(row, rng)
        if one is None:
            continue
        made += 1
        text, whole = train.texts[row].tolist(), one.output[:-1]
        assert any(text[start : start + len(whole)] == whole for start in range(len(text)))
        kept = [piece for piece, weight in zip(whole, one.weights, strict=False) if weight == 1.0]
        left = one.prompt.ids[2 : one.prompt.asked - 1]
        assert len(kept) < len(whole) and len(left) - len(kept) in (
            0,
            1,
        )  # sometimes a word too many
    assert made > len(train.texts) / 4
