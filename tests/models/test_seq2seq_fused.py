"""The encoder's training step in few kernels: the same gradients as PyTorch's own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from seq2seq_models import batch, sequences, tiny
from torch import Tensor

from whichsense.lab.fused import fused_plan, fused_reference
from whichsense.lab.fused.fused_layers import FusedNetwork, fused_layer
from whichsense.lab.fused.fused_plan import Plan
from whichsense.lab.fused.fused_reference import keep_mask, thinned
from whichsense.models.seq2seq.ragged import Linear, RaggedRows
from whichsense.models.seq2seq.transformer import apply, encoder_layer, normalised

LENGTHS = [[5, 9, 3], [17, 4, 4], [2, 3, 3]]
ROWS = RaggedRows.of([5, 9, 3, 17])
SEEDS = torch.tensor([[2**32 - 5, 3], [7, 2**31], [11, 13], [17, 19]])


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer_of(dropout: float = 0.0) -> tuple[Any, Any, list[Tensor]]:
    """Style, weights, and the weights' tensors one by one."""
    network = FusedNetwork(tiny("bart", dropout))
    weights = network.layers().encoder[0]
    joined = Linear(*(tensor.detach().requires_grad_() for tensor in weights.attention.joined))
    w = weights._replace(attention=weights.attention._replace(joined=joined))
    tensors = [
        *w.attention.joined,
        *w.attention.out,
        *w.attention.norm,
        *w.feed.up,
        *w.feed.down,
        *w.feed.norm,
    ]
    return network.family.encoder_style, w, tensors


def cosine(a: Tensor, b: Tensor) -> float:
    return float(
        torch.cosine_similarity(a.flatten().double(), b.flatten().double(), dim=0).detach()
    )


def masked_layer(x: Tensor, w: Any, style: Any, plan: Plan) -> Tensor:
    """The layer by PyTorch's gradients, with the very decisions that the fused one draws."""

    def thin(t: Tensor, seed: Tensor, dropped: int) -> Tensor:
        return thinned(t, keep_mask(t.shape, seed, dropped), dropped)

    qkv = apply(w.attention.joined, x).view(-1, 3, style.heads, style.width)
    q, k, v = (ROWS.padded(part).transpose(1, 2) for part in qkv.unbind(1))
    mask = ROWS.mask()
    assert mask is not None
    p = (q @ k.transpose(-1, -2) * style.scale).masked_fill(~mask, float("-inf")).softmax(-1)
    keep = keep_mask(
        (ROWS.rows, style.heads, ROWS.longest, ROWS.longest), SEEDS[0], plan.attention_dropped
    )
    seen = ROWS.flat((thinned(p, keep, plan.attention_dropped) @ v).transpose(1, 2)).flatten(1)
    y = normalised(
        x + thin(apply(w.attention.out, seen), SEEDS[1], plan.dropped), w.attention.norm, style
    )
    h = thin(torch.nn.functional.gelu(apply(w.feed.up, y)), SEEDS[2], plan.activation_dropped)
    return normalised(y + thin(apply(w.feed.down, h), SEEDS[3], plan.dropped), w.feed.norm, style)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_are_those_of_the_plain_layer(dropout: float) -> None:
    style, w, tensors = layer_of(dropout)
    plan = Plan.of(style)
    x, g = drawn(34, 32).requires_grad_(), drawn(34, 32, seed=2)
    theirs = (
        masked_layer(x, w, style, plan) if dropout else encoder_layer(x, w, ROWS, None, style, True)
    )
    ours, again = fused_layer(x, x, w, ROWS, SEEDS, plan)
    assert torch.allclose(ours, theirs, atol=1e-5)
    wanted = torch.autograd.grad(theirs, [x, *tensors], g)
    found = torch.autograd.grad(
        [ours, again], [x, *tensors], [g * 0.25, g * 0.75]
    )  # they are added up
    for ours_, theirs_ in zip(found, wanted, strict=True):
        assert torch.allclose(ours_, theirs_, atol=1e-4 * float(theirs_.abs().max() + 1e-3))


def test_dropout_takes_its_share_and_no_pattern() -> None:
    rate, seeds = (0.1, torch.randint(0, 2**32, (6, 2), generator=torch.Generator().manual_seed(0)))
    tables = [keep_mask((256, 1024), seed, round(rate * 2**32)).float() for seed in seeds]
    for table in tables:
        assert table.mean() == pytest.approx(1 - rate, abs=0.004)
        assert (
            table.mean(0).std() < 0.022 and table.mean(1).std() < 0.012
        )  # binomial: 0.0188, 0.0094
        off = table - table.mean()
        for step in (1, 2, 4, 16, 64, 160, 1024, 4096):
            flat = off.flatten()
            assert abs(float((flat[step:] * flat[:-step]).mean() / flat.var())) < 0.012
    assert abs(cosine(tables[0] - tables[0].mean(), tables[1] - tables[1].mean())) < 0.012
    assert torch.equal(keep_mask((4, 64), seeds[0], 0), torch.ones(4, 64, dtype=torch.bool))


def gradients(network: FusedNetwork, made: Any) -> tuple[float, dict[str, Tensor]]:
    network.zero_grad()
    torch.manual_seed(5)
    loss = network(made)
    loss.backward()
    return loss.item(), {
        name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None
    }


def test_a_fused_network_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.randint(4, 60, (3, 6), generator=torch.Generator().manual_seed(1))
    made = batch(sequences(LENGTHS), labels)
    network = FusedNetwork(tiny("bart")).train()
    loss, plain = gradients(network, made)
    asked = []

    def planned(self: FusedNetwork, x: Tensor, longest: int) -> Plan:
        asked.append(longest)
        return Plan.of(self.family.encoder_style)

    monkeypatch.setattr(FusedNetwork, "_plan", planned)
    own_loss, own = gradients(network, made)
    assert asked == [17] and own_loss == pytest.approx(loss, abs=1e-5)
    assert own.keys() == plain.keys()
    assert all(torch.allclose(own[name], plain[name], atol=1e-5) for name in plain)
    network.gradient_checkpointing_enable()
    again_loss, again = gradients(network, made)
    assert again_loss == own_loss
    assert all(torch.equal(again[name], own[name]) for name in own)


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_training_in_half_precision_stays_close(kind: str) -> None:
    made = batch(sequences(LENGTHS), torch.full((3, 5), 9))
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


class Faulty:
    """The reference, with a compiler's fault: what is dropped is not scaled up."""

    def __getattr__(self, name: str) -> Any:
        return getattr(fused_reference, name)

    def gelu_forward(self, *rest: Any, **more: Any) -> Any:
        return fused_reference.gelu_forward(*rest, **more) * 0.9


def test_a_trial_finds_faults() -> None:
    plan = Plan.of(layer_of(0.1)[0])
    for way, wrong in ((fused_reference, []), (Faulty(), ["GELU (0.1)"])):
        tried = fused_plan._Trial((way, fused_reference), plan, torch.bfloat16, torch.device("cpu"))
        tried.norms(32)
        tried.gelu(64)
        tried.attention(32)
        assert tried.wrong == wrong


def test_faulty_kernels_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "whichsense.lab.fused.fused_plan.failures", lambda *_: asked.append(1) or ["GELU (0.87)"]
    )
    style = FusedNetwork(tiny("bart")).family.encoder_style
    x = torch.zeros(3, 32)
    trials = fused_plan.KernelTrials()
    # PyTorch's own layers are used instead.
    assert not trials.passes(Plan.of(style), x, inner=64)
    assert not trials.passes(Plan.of(style), x, inner=64)
    assert len(asked) == 1  # it is tried once


KERNELS = """
import torch
from whichsense.lab.fused import fused_launch_kernels as ours, fused_reference as theirs
from whichsense.models.seq2seq.ragged import RaggedRows
device, dtype, near = ("cuda", torch.bfloat16, 1e-2) if torch.cuda.is_available() else ("cpu", torch.float32, 1e-4)
torch.manual_seed(0)
rows = RaggedRows.of([70, 3, 140])
rows = rows._replace(starts=rows.starts.to(device), place=rows.place.to(device))
tokens, size, heads, dropped = 213, 64, 2, round(0.1 * 2**32)
seed = torch.randint(0, 2**32, (2,), device=device)

def same(name, found, wanted, limit=near):
    for a, b in zip(found, wanted, strict=True):
        if b is not None and b.numel():
            far = float((a.float() - b.float()).norm() / b.float().norm().clamp_min(1e-12))
            assert far < limit, (name, far)

x, change, dy, dy2 = (torch.randn(tokens, size, device=device).to(dtype) for _ in range(4))
weight, bias = torch.randn(2, size, device=device)
options = {"dropped": dropped}
made = [run.norm_forward(x, change, weight, bias, seed, epsilon=1e-5, **options) for run in (ours, theirs)]
same("norm", *made)
kept = (made[1][1], made[1][2], made[1][3], weight, seed)
same("norm back", *(run.norm_backward(dy, dy2, *kept, **options) for run in (ours, theirs)))
same("norm back", *(run.norm_backward(dy, None, *kept, **options) for run in (ours, theirs)))
u, dh = (torch.randn(tokens, 4 * size, device=device).to(dtype) for _ in range(2))
same("gelu", *([run.gelu_forward(u, seed, **options)] for run in (ours, theirs)))
same("gelu back", *(run.gelu_backward(dh, u, seed, **options) for run in (ours, theirs)))
qkv = torch.randn(tokens, 3 * size, device=device).to(dtype)
for rate in (0, dropped):
    options = {"heads": heads, "scale": 0.2, "dropped": rate}
    out, levels = ours.attention_forward(qkv, rows, seed, **options)
    wanted = theirs.attention_forward(qkv, rows, seed, **options)
    same("attention", [out], [wanted[0]])
    found = ours.attention_backward(dy, qkv, out, levels, rows, seed, **options)
    same("attention back", found, theirs.attention_backward(dy, qkv, wanted[0], None, rows, seed, **options))
"""


@pytest.mark.slow
def test_kernels_compute_what_the_reference_says() -> None:
    """On the GPU if there is one, else in Triton's interpreter if Triton is there."""
    pytest.importorskip("triton")
    environment = os.environ | ({} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"})
    call = [sys.executable, "-c", KERNELS]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
