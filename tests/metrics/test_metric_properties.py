"""What must hold for any input: identity, bounds, order, and no gain from a wrong answer."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whichsense.errors import BadInput
from whichsense.lab.metrics import ambignq
from whichsense.lab.metrics.asqa import rouge_l_best, rouge_l_scores, str_em
from whichsense.lab.metrics.cambignq import answer_overlap, option_overlap, ratio
from whichsense.lab.metrics.exact_match import (
    answer_ranks,
    answer_recall,
    any_answer_recall,
    reciprocal_rank,
)
from whichsense.lab.metrics.statistics import detection
from whichsense.text.overlap import best_total, corpus_bleu, sentence_bleu

answers = st.lists(st.sampled_from(["ann", "bo", "cy", "di", "ed"]), min_size=1, max_size=6)
gold_answers = st.lists(
    st.lists(st.sampled_from(["ann", "bo", "cy", "di", "fi"]), min_size=1, max_size=2),
    min_size=1,
    max_size=5,
)
sentences = st.lists(
    st.sampled_from("who wrote made the play crucible in 1953 film".split()), min_size=1, max_size=9
)
texts = sentences.map(" ".join)


@given(st.sets(st.sampled_from("abcdef"), min_size=1))
def test_identity_scores_one(names: set[str]) -> None:
    # "a" is an article, and normalizes to nothing: still equal to itself.
    gold = [[f"x{name}"] for name in sorted(names)]
    assert ambignq.f1_answers(gold, [aliases[0] for aliases in gold]) == 1.0
    assert ratio([option_overlap([g[0] for g in gold], [g[0] for g in gold])]).f1 == pytest.approx(
        1.0
    )
    assert ratio([answer_overlap(gold, [g[0] for g in gold])]).f1 == pytest.approx(1.0)


@given(gold_answers, answers)
def test_f1_is_bounded_and_a_wrong_answer_never_helps(
    gold: list[list[str]], predicted: list[str]
) -> None:
    before = ambignq.f1_answers(gold, predicted)
    assert 0 <= before <= 1
    for place in range(len(predicted) + 1):
        worse = ambignq.f1_answers(gold, [*predicted[:place], "wrong", *predicted[place:]])
        assert worse <= before


@given(answers.flatmap(lambda given: st.tuples(st.just(given), st.permutations(given))))
def test_order_of_predictions_does_not_matter_for_disjoint_answers(
    lists: tuple[list[str], list[str]],
) -> None:
    gold, (predicted, shuffled) = [["ann"], ["bo"], ["cy"]], lists
    assert ambignq.f1_answers(gold, predicted) == ambignq.f1_answers(gold, shuffled)
    assert ambignq.f1_answers(gold[::-1], predicted) == ambignq.f1_answers(gold, predicted)


@given(texts, texts, texts)
def test_question_scores_are_bounded(prompt: str, gold: str, predicted: str) -> None:
    assert all(0 <= score <= 1 + 1e-9 for score in ambignq.question_scores(prompt, gold, predicted))
    assert ambignq.question_scores(prompt, gold, gold)[4] == 1.0


@given(texts, texts)
def test_more_references_never_lower_a_score(gold: str, predicted: str) -> None:
    one = ambignq.question_scores("who", gold, predicted)[4]
    assert ambignq.question_scores("who", f"{gold}|{predicted}", predicted)[4] >= one


def plain_bleu(references: list[tuple[str, ...]], prediction: tuple[str, ...], order: int) -> float:
    """BLEU word for word as its definition goes; the guards are those of the captioning script."""
    product = 1.0
    for n in range(1, order + 1):
        ours, *golds = (
            Counter(words[i : i + n] for i in range(len(words) - n + 1))
            for words in (prediction, *references)
        )
        correct = sum(min(count, max(gold[gram] for gold in golds)) for gram, count in ours.items())
        product *= (correct + 1e-15) / (ours.total() + 1e-9)
    closest = min(
        (len(reference) for reference in references), key=lambda n: (abs(n - len(prediction)), n)
    )
    ratio = (len(prediction) + 1e-15) / (closest + 1e-9)
    return product ** (1 / order) * min(1.0, math.exp(1 - 1 / ratio))


@given(st.lists(sentences.map(tuple), min_size=1, max_size=3), sentences.map(tuple))
def test_bleu_is_what_its_definition_says(
    references: list[tuple[str, ...]], prediction: tuple[str, ...]
) -> None:
    expected = [plain_bleu(references, prediction, order) for order in (1, 2, 3, 4)]
    assert sentence_bleu(references, prediction) == pytest.approx(expected, rel=1e-9)
    own = sentence_bleu([*references, prediction], prediction)
    assert own[: len(prediction)] == pytest.approx([1.0] * min(4, len(prediction)), abs=1e-8)


@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_corpus_bleu_bounds(references: list[str], data: st.DataObject) -> None:
    predictions = [data.draw(texts) for _ in references]
    assert 0 <= corpus_bleu(references, predictions) <= 1
    assert corpus_bleu(references, references, order=1) == pytest.approx(1.0)


@given(texts, texts)
def test_rouge_bounds_and_identity(reference: str, prediction: str) -> None:
    assert all(0 <= value <= 1 for value in rouge_l_scores(reference, prediction))
    assert rouge_l_scores(reference, reference)[2] == 1.0
    assert rouge_l_best([reference, prediction], prediction) == 1.0


@given(gold_answers, texts)
def test_str_em_grows_with_the_text(gold: list[list[str]], text: str) -> None:
    short = str_em(gold, text)
    assert 0 <= short <= str_em(gold, f"{text} {' '.join(aliases[0] for aliases in gold)}") == 1


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=6))
def test_assignment_is_scipys(scores: list[list[float]]) -> None:
    scipy = pytest.importorskip("scipy.optimize")
    rows, columns = scipy.linear_sum_assignment(scores, maximize=True)
    best = sum(scores[i][j] for i, j in zip(rows, columns, strict=True))
    assert best_total(scores) == pytest.approx(best, abs=1e-9)


@given(gold_answers, st.lists(texts, max_size=6), st.integers(1, 6))
def test_recall_grows_with_depth(gold: list[list[str]], passages: list[str], k: int) -> None:
    ranks = answer_ranks(gold, [*passages, "by ann and bo"])
    assert answer_recall(ranks, k) <= answer_recall(ranks, k + 1) <= 1
    assert any_answer_recall(ranks, k) >= answer_recall(ranks, k)
    assert 0 <= reciprocal_rank(ranks) <= 1


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_perfect_detection(labels: list[bool]) -> None:
    result = detection(labels, labels)
    assert result.accuracy == 1.0
    assert result.f1 == (1.0 if any(labels) else 0.0)


def test_empty_sides_are_errors() -> None:
    with pytest.raises(BadInput, match="at least one"):
        ambignq.f1_answers([["a"]], [])
    with pytest.raises(BadInput, match="one decision per question"):
        detection([True], [])
