"""Cross-attention without keys and values: the same outputs and gradients as with them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from seq2seq_models import batch, sequences, tiny
from torch import Tensor

from whichsense.lab.fused import fused_plan, fused_reference
from whichsense.lab.fused.fused_layers import FusedNetwork, absorbed, absorbs
from whichsense.lab.fused.fused_plan import Plan
from whichsense.lab.fused.fused_reference import cast_together, keep_mask, thinned
from whichsense.models.seq2seq.ragged import CrossAttention, RaggedRows, Style, cross_attention
from whichsense.models.seq2seq.transformer import memory_of

LENGTH = 5
RAGGED, FULL = RaggedRows.of([17, 70, 3]), RaggedRows.of([64, 64])


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layers_of(kind: str, dropout: float) -> tuple[Style, list[CrossAttention], list[Tensor]]:
    """Style, weights of two layers, and those tensors that cross-attention reads."""
    network = FusedNetwork(tiny(kind, dropout))
    cross = [layer.cross for layer in network.layers().decoder]
    tensors = [
        tensor for w in cross for part in (w.key, w.value) for tensor in part if tensor is not None
    ]
    return network.family.decoder_style, cross, tensors


def masked_attention(
    query: Tensor, pairs: tuple[Tensor, Tensor], rows: RaggedRows, style: Style, seed: Tensor
) -> Tensor:
    """With keys and values, by PyTorch's gradients, with the very decisions that the absorbed one draws."""
    keys, values = (rows.padded(part).transpose(1, 2) for part in pairs)
    scores = query.transpose(1, 2) @ keys.transpose(-1, -2) * style.scale
    mask = rows.mask()
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None], float("-inf"))
    dropped, span = (Plan.of(style).attention_dropped, rows.aligned(64).longest)
    shape = (rows.rows, style.heads, LENGTH, span)
    keep = keep_mask((rows.rows * style.heads * LENGTH, span), seed, dropped).view(shape)[
        ..., : rows.longest
    ]
    return (thinned(scores.softmax(-1), keep, dropped) @ values).transpose(1, 2)


@pytest.mark.parametrize("rows", [RAGGED, FULL], ids=["ragged", "full"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_outputs_and_gradients_are_those_with_keys_and_values(
    kind: str, dropout: float, rows: RaggedRows
) -> None:
    style, cross, tensors = layers_of(kind, dropout)
    query, memory = (
        drawn(rows.rows, LENGTH, style.heads, style.width),
        drawn(len(rows.place), 32, seed=2),
    )
    query.requires_grad_()
    memory.requires_grad_()
    torch.manual_seed(11)
    reads = absorbed(memory, rows, cross, LENGTH, style)
    torch.manual_seed(11)
    seeds = torch.randint(0, 2**32, (2, 2))
    ours = theirs = query
    for w, read, seed in zip(
        cross, reads, seeds, strict=True
    ):  # the second layer reads with what the first one found
        ours = read(ours)
        pair = memory_of(memory, w, style)
        if dropout:
            theirs = masked_attention(theirs, pair, rows, style, seed)
        else:
            theirs = cross_attention(theirs, *pair, rows, scale=style.scale, dropout=0.0)
    assert torch.allclose(ours, theirs, atol=1e-4)
    wanted, found = (
        torch.autograd.grad(one, [query, memory, *tensors], drawn(*query.shape, seed=3))
        for one in (theirs, ours)
    )
    for own, other in zip(found, wanted, strict=True):
        assert torch.allclose(own, other, atol=1e-4 * float(other.abs().max() + 0.1))
    assert min(float(one.abs().max()) for one in wanted[:3]) > 1e-3


def gradients(network: FusedNetwork, made: Any) -> tuple[float, dict[str, Tensor]]:
    network.zero_grad()
    loss = network(made)
    loss.backward()
    return loss.item(), {
        name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None
    }


def test_a_network_that_absorbs_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every parameter has its gradient, that of the keys' bias too, which is zero."""
    made = batch(sequences([[5, 9, 3], [17, 4, 4], [2, 3, 3]]), torch.full((3, LENGTH), 9))
    network = FusedNetwork(tiny("bart")).train()
    loss, plain = gradients(network, made)
    asked = []

    def read(
        self: FusedNetwork, memory: Tensor, questions: RaggedRows, length: int, layers: Any
    ) -> Any:
        asked.append(length)
        return absorbed(
            memory, questions, [one.cross for one in layers], length, self.family.decoder_style
        )

    monkeypatch.setattr(FusedNetwork, "_reads", read)
    own_loss, own = gradients(network, made)
    assert asked == [LENGTH] and own_loss == pytest.approx(loss, abs=1e-5)
    assert own.keys() == plain.keys()
    assert all(torch.allclose(own[name], plain[name], atol=1e-5) for name in plain)


def test_only_where_it_is_less_work() -> None:
    style, memory = (
        dataclasses.replace(layers_of("bart", 0.1)[0], heads=16, width=64),
        torch.zeros(1),
    )
    assert absorbs(memory, 16_000, 30, style) and absorbs(memory, 1_000, 60, style)
    assert not absorbs(memory, 16_000, 64, style)  # as many queries as keys' numbers
    assert not absorbs(memory, 40, 30, style)  # hardly more memory than targets


class Asked(Exception):
    """Instead of a computation: which one would be made."""


def test_the_network_takes_the_way_that_is_least_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(name: str) -> None:
        def asked(*_: Any) -> None:
            raise Asked(name)

        monkeypatch.setattr(f"whichsense.lab.fused.fused_layers.{name}", asked)

    ask("absorbed")
    network = FusedNetwork(tiny("bart")).train()
    memory, rows, layers = drawn(90, 32), RAGGED, network.layers().decoder
    assert network._reads(memory, rows, LENGTH, layers) == [memory, memory]
    monkeypatch.setattr(FusedNetwork, "_uses_kernels", lambda *_: True)
    with pytest.raises(Asked, match="absorbed"):
        network._reads(memory, rows, LENGTH, layers)
    assert network._reads(memory, rows, 40, layers) == [memory, memory]  # no less work
    network.trials.reading_failures = ["softmax (0.5)"]  # kernels that err are not used
    assert network._reads(memory, rows, LENGTH, layers) == [memory, memory]
    network.trials.reading_failures = None
    assert network.eval()._reads(memory, rows, LENGTH, layers) == [memory, memory]


class Faulty:
    """The reference, with a compiler's fault: the last column of the weights is never written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(fused_reference, name)

    def softmax_forward(self, scores: Tensor, weights: Tensor, *rest: Any, **more: Any) -> Any:
        found = fused_reference.softmax_forward(scores, weights, *rest, **more)
        weights[..., -1] = float("nan")
        return found


def test_a_trial_finds_faults() -> None:
    plan = Plan.of(layers_of("bart", 0.1)[0])
    for way, wrong in ((fused_reference, []), (Faulty(), ["softmax (nan)"])):
        tried = fused_plan._Trial((way, fused_reference), plan, torch.bfloat16, torch.device("cpu"))
        tried.softmax()
        assert tried.wrong == wrong


def test_a_gradient_too_early_is_refused() -> None:
    style, cross, _ = layers_of("bart", 0.0)
    memory = drawn(90, 32).requires_grad_()
    first, _ = absorbed(memory, RAGGED, cross, LENGTH, style)
    with pytest.raises(RuntimeError, match="every decoder layer"):
        first(drawn(3, LENGTH, style.heads, style.width).requires_grad_()).sum().backward()


def test_weights_are_cast_together() -> None:
    network = FusedNetwork(tiny("t5-gated"))
    layers = network.layers().decoder
    made = cast_together(layers, torch.bfloat16)
    assert made[1].feed.gate is not None and made[1].cross.query.bias is None
    parameters = [
        layers[0].cross.key.weight,
        layers[1].feed.norm.weight,
        layers[1].cross.out.weight,
    ]
    used = (made[0].cross.key.weight * 3).sum() + (made[1].feed.norm.weight * 2).sum()
    assert torch.equal(made[0].cross.key.weight, parameters[0].bfloat16())
    first, second, unused = torch.autograd.grad(used, parameters, allow_unused=True)
    assert (
        first.dtype == torch.float32 and first.eq(3).all() and second.eq(2).all() and unused is None
    )


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_training_in_half_precision_stays_close(kind: str) -> None:
    made = batch(sequences([[5, 9, 3], [17, 4, 4], [2, 3, 3]]), torch.full((3, LENGTH), 9))
    network = FusedNetwork(tiny(kind)).train()
    loss, plain = gradients(network, made)
    with torch.autocast("cpu", torch.bfloat16):
        near, half = gradients(network, made)
    assert near == pytest.approx(loss, rel=0.02) and half.keys() == plain.keys()
    whole = [torch.cat([one.flatten() for one in found.values()]) for found in (plain, half)]
    assert all(one.dtype == torch.float32 for one in half.values())
    assert (
        torch.cosine_similarity(*whole, dim=0) > 0.95
    )  # weights this large magnify every rounding
