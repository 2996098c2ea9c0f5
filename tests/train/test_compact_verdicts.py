"""Verdicts on spans: which are asked about, what is right, and that two answers of a passage can both be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from whichsense.lab.compact import losses
from whichsense.lab.compact.batches_of_lists import ListBatch, SoftLabels, build_list_batch
from whichsense.lab.compact.lists import Pack, RaggedArray
from whichsense.lab.compact.questions import TrainingQuestion
from whichsense.models.compact.nets import CompactConfig, CompactNet

LONGEST = 24
Spans = set[tuple[int, int]]
NO_ARTICLES = torch.tensor([], dtype=torch.long)
ONE, TWO = (0, 3, 4), (1, 7, 7)
"""Spans of two answers in a passage."""


def batch(*, complete: bool = True, spans: Any = (ONE, TWO)) -> ListBatch:
    asked = TrainingQuestion("who made it", "a", (("a",), ("b",)), complete=complete)
    pack = Pack(
        RaggedArray.from_rows([[110, 111]], np.int32),
        RaggedArray.from_rows([[0]], np.int32),
        RaggedArray.from_rows([list(spans)], np.int16, width=3),
        RaggedArray.from_rows([[120, 121]], np.int32),
        RaggedArray.from_rows([list(range(130, 140))], np.int32),
        (asked,),
    )
    return build_list_batch(pack, [0], [[0]], LONGEST)


def scores(made: ListBatch, *spans: tuple[int, int], height: float = 9.0) -> Any:
    """Span scores that hold these spans for likely, each less than the one before."""
    found = torch.zeros(*made.pairs.ids.shape, 2)
    for rank, (first, last) in enumerate(spans):
        found[0, first, 0] += height - 2 * rank
        found[0, last, 1] += height - 2 * rank
    return found


def gold(made: ListBatch) -> list[tuple[int, int]]:
    return [(int(made.first[0, 0, n]), int(made.last[0, 0, n])) for n in range(2)]


def test_later_rounds_find_what_the_best_hides() -> None:
    made = batch()
    one, two = gold(made)
    first, last, chances = losses.likely_spans(scores(made, one, two), made.pairs.region)
    found = list(zip(first[0].tolist(), last[0].tolist(), strict=True))
    assert found[0] == one and two in found
    trusted = [float(chance) for span, chance in zip(found, chances[0], strict=True) if span == two]
    assert trusted[0] < 0.1 and max(trusted) > 0.5  # once the best one is gone
    assert all(made.pairs.region[0, a : b + 1].all() for a, b in found[:4])


class Judge(CompactNet):
    """Gives fixed verdicts: of the spans that it is told, no of all others."""

    def __init__(self, said: Spans) -> None:
        super().__init__(
            CompactConfig(
                vocabulary=200, width=8, heads=2, inner=8, positions=32, layers=2, early=1
            )
        )

        def verdict(states: Any, first: Any, last: Any) -> Any:
            asked = zip(first[0].tolist(), last[0].tolist(), strict=True)
            return torch.tensor([[8.0 if span in said else -8.0 for span in asked]])

        self.verdict.forward = verdict  # type: ignore[method-assign]


def loss_of(
    made: ListBatch, said: Spans, *likely: tuple[int, int], articles: Any = NO_ARTICLES
) -> float:
    output = {
        "span": scores(made, *likely),
        "relevance": torch.zeros(1),
        "states": torch.zeros(1, LONGEST, 8),
    }
    return float(losses.loss(Judge(said), output, made, articles))


def test_both_answers_of_a_passage_are_right() -> None:
    made = batch()
    one, two = gold(made)
    both = loss_of(made, {one, two}, one, two)
    assert both < 0.01
    assert loss_of(made, {one}, one, two) > 0.5 > 50 * both
    assert loss_of(made, {one, two}, one) < 0.01  # gold ones are asked about, likely or not


def test_a_gold_span_that_is_found_and_hardly_believed_is_asked_about() -> None:
    made = batch(spans=(ONE,))
    one = gold(made)[0]
    others = [(place, place) for place in range(one[1] + 1, one[1] + 4)]
    believed = scores(made, *others, height=60.0)
    believed[0, one[0], 0] += 2.0
    believed[0, one[1], 1] += 2.0
    first, last, chances = losses.likely_spans(believed, made.pairs.region)
    output = {"span": believed, "relevance": torch.zeros(1), "states": torch.zeros(1, LONGEST, 8)}
    assert (
        float(losses.loss(Judge(set()), output, made, NO_ARTICLES)) > 1
    )  # nothing is right but it, and it is denied
    assert max(chances[(first == one[0]) & (last == one[1])].tolist(), default=0.0) < 1e-3


def test_what_else_is_likely_is_wrong() -> None:
    made = batch()
    one, two = gold(made)
    other = (two[0] + 3, two[0] + 3)
    right = {one, two}
    assert loss_of(made, right | {other}, one, two, other) > 0.3
    assert loss_of(made, right, one, two, other) < 0.01


def test_a_span_too_long_counts_where_all_answers_are_told() -> None:
    def said(complete: bool) -> float:
        made = batch(complete=complete, spans=(ONE,))
        first, last = gold(made)[0]
        return loss_of(made, {(first, last), (first, last + 1)}, (first, last + 1))

    assert said(complete=True) > 0.3 and said(complete=False) < 0.01


def test_an_article_in_front_changes_nothing() -> None:
    made = batch(spans=(ONE,))
    first, last = gold(made)[0]
    longer = (first - 1, last)
    said = {(first, last), longer}
    article = made.pairs.ids[0, first - 1 : first]
    assert loss_of(made, said, longer, articles=article) < 0.05 < loss_of(made, said, longer)


def test_no_teacher_is_heard_where_answers_are_complete() -> None:
    found = []
    for complete in (False, True):
        made = batch(complete=complete)
        chances = made.pairs.region / made.pairs.region.sum()
        made = made._replace(taught=SoftLabels(torch.tensor([[3.0]]), chances, chances))
        output = {
            "span": scores(made, *gold(made)),
            "relevance": torch.zeros(1),
            "exit": torch.zeros(1),
        }
        found.append(
            {
                name: float(part)
                for name, part in losses.read(output, made).items()
                if "taught" in name
            }
        )
    assert all(value > 0 for value in found[0].values()) and set(found[1].values()) == {0.0}
    assert found[0].keys() == found[1].keys() == {"taught", "taught_exit", "taught_span"}
