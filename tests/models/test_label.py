"""Labels: the words of the evidence that name an answer's case, and frames that put them into the question."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tiny_compact import exported, tagged, tiny_tagger
from whichsense.errors import WhichsenseError
from whichsense.models.compact.encoder import LONGEST_QUESTION, CompactModel, Pair, pair
from whichsense.models.compact.labeller import (
    FRAMES,
    Labeller,
    best_stretch,
    frame_between,
    mark,
    put_into,
    usable_tokens,
)
from whichsense.models.compact.tagger import FRAME, TABLES, TAGGER, Tagger
from whichsense.types import Passage, Span

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

FILM = Passage("film", "Dune (1984 film)", "The film was released in 1984 by David Lynch.")


def read(model: CompactModel) -> Pair:
    ids = model.tokenizer.ids("when was dune released", LONGEST_QUESTION)
    return pair(model.tokenizer, ids, FILM.title, FILM.text)


def span_of(words: str) -> Span:
    start = FILM.text.index(words)
    return Span(FILM, start, start + len(words), 0.9)


def test_the_graph_is_the_network(tmp_path: Path) -> None:
    model = CompactModel(tagged(exported(tmp_path), int8=False), threads=1)
    net = tiny_tagger()
    own = read(model)
    marks = mark(len(own), (5, 6), [(8, 8)])
    rows = (own.ids, own.types, marks, [True] * len(own))
    with torch.no_grad():
        tokens, answers, states = net(*(torch.tensor(row)[None] for row in rows))
    (found,) = Tagger(model).tag([own], [marks])
    # The exported words are in seven bits.
    np.testing.assert_allclose(found.tokens, tokens[0], atol=0.2)
    np.testing.assert_allclose(found.answers, answers[0], atol=0.2)
    assert np.corrcoef(found.states.ravel(), states[0].numpy().ravel())[0, 1] > 0.999


def test_the_distance_between_tokens_counts(tmp_path: Path) -> None:
    model = CompactModel(tagged(exported(tmp_path)), threads=1)
    own = read(model)
    swapped = replace(own, ids=[*own.ids[:6], own.ids[7], own.ids[6], *own.ids[8:]])
    first, second = Tagger(model).tag([own, swapped])
    assert not np.allclose(first.tokens, second.tokens)


def test_a_label_is_copied_and_never_the_answer(tmp_path: Path) -> None:
    labeller = Labeller(Tagger(CompactModel(tagged(exported(tmp_path)), threads=1)))
    question = "when was dune released"
    (label,) = labeller.find(question, [span_of("David Lynch")])
    assert label is not None
    assert label.text in FILM.text or label.text in FILM.title
    assert "Lynch" not in label.text
    assert 0 < label.sure < 1
    assert 0 <= label.frame < len(FRAMES) and 0 < label.fits < 1


def test_another_answer_of_the_passage_is_seen(tmp_path: Path) -> None:
    labeller = Labeller(Tagger(CompactModel(tagged(exported(tmp_path)), threads=1)))
    film, lynch = span_of("1984"), span_of("David Lynch")
    (alone,) = labeller.find("what is it", [film])
    beside, _ = labeller.find("what is it", [film, lynch])
    assert alone is not None and beside is not None
    assert alone.sure != beside.sure
    assert labeller.find("what is it", []) == []


def test_an_answer_that_was_cut_off_has_no_label(tmp_path: Path) -> None:
    labeller = Labeller(Tagger(CompactModel(tagged(exported(tmp_path)), threads=1)))
    long = Passage("long", "Dune", "in winter " * 300 + "1984")
    end = len(long.text)
    assert labeller.find("when", [Span(long, end - 4, end, 0.9)]) == [None]


def test_marks_and_usable_tokens() -> None:
    assert mark(6, (1, 2), [(2, 3)]).tolist() == [0, 1, 1, 2, 0, 0]
    own = Pair([0] * 8, [0] * 8, (2, 3), (4, 7), [0] * 8, [0] * 8)
    usable = usable_tokens(own, (5, 5)).tolist()
    assert usable == [False, False, True, False, True, False, True, False]


def test_a_stretch_of_tokens() -> None:
    assert best_stretch(np.array([-1.0, -2.0]), [True, True]) is None
    assert best_stretch(np.array([3.0, 1.0]), [False, True]) == (1, 1, 1.0)
    # It does not go on over tokens that may not be used.
    assert best_stretch(np.array([2.0, 9.0, 1.0]), [True, False, True]) == (0, 0, 2.0)


@pytest.mark.parametrize("name", [TAGGER, FRAME, TABLES])
def test_a_damaged_graph_is_named(name: str, tmp_path: Path) -> None:
    folder = tagged(exported(tmp_path))
    (folder / name).write_bytes(b"no graph")
    with pytest.raises(WhichsenseError, match=name):
        Tagger(CompactModel(folder)).prepare()


@pytest.mark.parametrize(
    ("question", "label", "frame", "rewrite"),
    [
        ("How heavy is it?", "Skerry 12", "of the", "How heavy is it of the Skerry 12?"),
        ("where is it", "in Malta", "", "where is it in malta"),
        ("who won ", "1998", "in", "who won in 1998"),
    ],
)
def test_a_label_goes_into_the_question_and_back(
    question: str, label: str, frame: str, rewrite: str
) -> None:
    number = FRAMES.index(frame)
    assert put_into(question, label, number) == rewrite
    assert frame_between(question, rewrite, label) == number
    assert frame_between(question, "Who else?", label) == -1
