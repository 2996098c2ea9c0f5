"""What a batch of lists teaches: every answer of a passage, what people told and what a model guessed, ambiguity."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from whichsense.lab.compact import losses
from whichsense.lab.compact.batches_of_lists import ListBatch, SoftLabels, build_list_batch
from whichsense.lab.compact.lists import Pack, RaggedArray
from whichsense.lab.compact.questions import TrainingQuestion

LONGEST = 20
Spans = list[tuple[int, int, int]]
ONE, TWO = (0, 3, 4), (1, 6, 6)
"""Spans of two answers in a passage."""


def pack(*lists: tuple[TrainingQuestion, list[Spans]]) -> Pack:
    """Lists whose passages all read the same; what differs is where the answers are said to stand."""
    slots = [spans for _, every in lists for spans in every]
    ends = np.cumsum([0, *(len(every) for _, every in lists)]).tolist()
    return Pack(
        RaggedArray.from_rows([[110, 111, 112]] * len(lists), np.int32),
        RaggedArray.from_rows([range(first, last) for first, last in pairwise(ends)], np.int32),
        RaggedArray.from_rows(slots, np.int16, width=3),
        RaggedArray.from_rows([[120, 121]] * len(slots), np.int32),
        RaggedArray.from_rows([range(130, 138)] * len(slots), np.int32),
        tuple(asked for asked, _ in lists),
    )


def asked(*, ambiguous: int = -1) -> TrainingQuestion:
    return TrainingQuestion("who made it", "a", (("a",), ("b",)), ambiguous=ambiguous)


def batch_of(*lists: tuple[TrainingQuestion, list[Spans]], **given: Any) -> ListBatch:
    made = pack(*lists)
    return build_list_batch(
        made,
        range(len(made)),
        [made.slot_range(number) for number in range(len(made))],
        LONGEST,
        **given,
    )


def output_of(batch: ListBatch, seed: int = 0) -> dict[str, Any]:
    """As a net would give it."""
    dice = torch.Generator().manual_seed(seed)
    sizes = {name: batch.pairs.ids.shape[:1] for name in ("relevance", "exit", "ambiguity")}
    sizes["span"] = (*batch.pairs.ids.shape, 2)
    return {
        name: torch.randn(size, generator=dice, requires_grad=True) for name, size in sizes.items()
    }


def span_loss(batch: ListBatch, shares: list[float]) -> float:
    """Of a net that gives the spans of the first passage these shares of its trust."""
    chances = torch.full((*batch.pairs.ids.shape, 2), 1e-6)
    for place, share in enumerate(shares):
        chances[0, batch.first[0, 0, place], 0] += share
        chances[0, batch.last[0, 0, place], 1] += share
    first, last = losses.start_end(chances.log(), batch.pairs.region)
    return float(losses.span_loss(batch, torch.zeros(1, batch.valid.shape[1] + 1), first, last))


def test_every_answer_of_a_passage_should_be_likely() -> None:
    """Trust is best parted between them; between two places of one answer it may be parted in any way."""
    several = batch_of((asked(), [[ONE, TWO]]))
    found = {
        share: span_loss(several, [share, 1 - share])
        for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    }
    assert min(found, key=found.__getitem__) == 0.5
    assert found[0.0] > found[0.1] > found[0.3] > found[0.5] < found[0.7] < found[0.9] < found[1.0]
    assert found[0.5] == pytest.approx(-2 * np.log(0.5), abs=1e-3)
    twice = batch_of((asked(), [[ONE, (0, 6, 6)]]))
    assert span_loss(twice, [1.0, 0.0]) == pytest.approx(0, abs=1e-3)
    assert span_loss(twice, [0.0, 1.0]) == pytest.approx(0, abs=1e-3)


def test_the_teacher_is_heard_where_answers_may_be_missing() -> None:
    """Not of lists whose answers are complete."""
    complete = replace(asked(), complete=True)
    spans: list[Spans] = [[ONE, TWO], [], [ONE]]
    batch = batch_of((asked(), spans), (complete, spans))
    relevance = torch.linspace(-1, 2, 6).view(2, 3)
    chances = batch.pairs.region / batch.pairs.region.sum(1, keepdim=True)
    batch = batch._replace(taught=SoftLabels(relevance, chances, chances))
    output = output_of(batch)
    parts = losses.read(output, batch)
    by = {
        "relevance": "relevance",
        "span": "span",
        "exit": "exit",
        "taught": "relevance",
        "taught_span": "span",
    }
    for name, source in by.items():
        (slope,) = torch.autograd.grad(parts[name], output[source], retain_graph=True)
        moved = slope.reshape(2, -1).abs().sum(1)
        assert moved[0] > 0, name
        assert (moved[1] == 0) == name.startswith("taught"), name


def test_a_question_alone_is_judged_by_its_last_slot() -> None:
    """Where somebody said something; and its slot is none of the passages'."""
    lists = [(asked(ambiguous=label), [[ONE], []]) for label in (1, 0, -1)]
    batch, plain = batch_of(*lists, alone=True), batch_of(*lists)
    assert "alone" not in losses.read(output_of(plain), plain)
    output = output_of(batch)
    parts = losses.read(output, batch)
    logits = output["ambiguity"].view(3, 3)
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        logits[:2, -1], torch.tensor([1.0, 0.0])
    )
    assert parts["alone"].item() == pytest.approx(wanted.item(), rel=1e-5)
    (alone,) = torch.autograd.grad(parts["alone"], output["ambiguity"], retain_graph=True)
    (beside,) = torch.autograd.grad(parts["ambiguity"], output["ambiguity"], retain_graph=True)
    last = torch.tensor([[False, False, True]]).expand(3, 3).flatten()
    said = torch.tensor([True, True, False]).repeat_interleave(3)
    assert ((alone != 0) == (last & said)).all() and ((beside != 0) == (~last & said)).all()
    for name, source in (("relevance", "relevance"), ("span", "span"), ("exit", "exit")):
        (slope,) = torch.autograd.grad(parts[name], output[source], retain_graph=True)
        assert not slope[last].any(), name


def mass_of(output: dict[str, Any], batch: ListBatch) -> Any:
    logs = losses.passage_shares(output["relevance"], batch.valid)
    first, last = losses.start_end(output["span"], batch.pairs.region)
    return losses.answer_mass(batch, logs, first, last)


def test_a_refuted_answer_becomes_less_likely() -> None:
    """Of its list nothing else is learnt, and no other list is touched."""
    refuted = replace(asked(), refuted=True, complete=True)
    batch = batch_of((refuted, [[ONE], []]), (asked(), [[ONE], []]))
    output = output_of(batch)
    parts = losses.read(output, batch)
    before = mass_of(output, batch)
    slopes = torch.autograd.grad(
        parts["refuted"], [output["relevance"], output["span"]], retain_graph=True
    )
    place = batch.first[0, 0, 0]
    assert slopes[1][0, place, 0] > 0  # a higher score of its first token is worse
    assert slopes[0][0] > 0  # as is a higher one of its passage
    for slope in slopes:
        assert not slope.reshape(2, -1)[1].any()  # of the list that is not refuted
    parts["refuted"].backward(retain_graph=True)
    moved = {}
    for name in ("relevance", "span"):
        moved[name] = (output[name] - output[name].grad).detach()
    after = mass_of(moved, batch)
    assert after[0] < before[0] and after[1] == before[1]
    for name, source in (("relevance", "relevance"), ("span", "span")):
        (slope,) = torch.autograd.grad(parts[name], output[source], retain_graph=True)
        found = slope.reshape(2, -1).abs().sum(1)
        assert found[0] == 0 and found[1] > 0, name


def test_refuting_costs_more_the_likelier_the_answer() -> None:
    refuted = replace(asked(), refuted=True)
    batch = batch_of((refuted, [[ONE]]))
    found = []
    for score in (-5.0, 0.0, 5.0, 500.0):
        output = {
            "relevance": torch.tensor([score]),
            "span": torch.zeros(*batch.pairs.ids.shape, 2),
        }
        output["span"][0, batch.first[0, 0, 0], 0] = score
        output["span"][0, batch.last[0, 0, 0], 1] = score
        found.append(losses.read(output, batch)["refuted"].item())
    assert 0 < found[0] < found[1] < found[2] < found[3] < float("inf")
    plain = batch_of((asked(), [[ONE]]))
    assert losses.read(output_of(plain), plain)["refuted"].item() == 0
