"""The encoder's training step in few kernels: the same gradients as PyTorch's own, and eight bits that lose little."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from seq2seq_models import batch, sequences, tiny
from torch import Tensor

from whichsense.errors import BadConfig
from whichsense.lab.train.loop import Settings, prepare_model
from whichsense.models.seq2seq import fused_plan, fused_reference
from whichsense.models.seq2seq.fused_layers import (
    fused_embedding,
    fused_layer,
    keys_values,
)
from whichsense.models.seq2seq.fused_plan import (
    Plan,
    input_gradient,
    largest_of,
    product,
    weight_gradient,
)
from whichsense.models.seq2seq.fused_reference import (
    BACKWARD,
    FORWARD,
    keep_mask,
    largest,
    thinned,
)
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import Linear, RaggedRows
from whichsense.models.seq2seq.transformer import (
    apply,
    encoder_layer,
    memory_of,
    normalised,
)

LENGTHS = [[5, 9, 3], [17, 4, 4], [2, 3, 3]]
ROWS = RaggedRows.of([5, 9, 3, 17])
SEEDS = torch.tensor([[2**32 - 5, 3], [7, 2**31], [11, 13], [17, 19]])


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer_of(dropout: float = 0.0) -> tuple[Any, Any, list[Tensor]]:
    """Style, weights, and the weights' tensors one by one."""
    network = Network(tiny("bart", dropout))
    weights = network.layers().encoder[0]
    joined = Linear(
        *(tensor.detach().requires_grad_() for tensor in weights.attention.joined)
    )
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


def bounds_of(x: Tensor) -> Tensor:
    """The largest number and the longest row."""
    return torch.stack([x.abs().max(), x.norm(dim=1).max()]).detach()


def cosine(a: Tensor, b: Tensor) -> float:
    return float(
        torch.cosine_similarity(
            a.flatten().double(), b.flatten().double(), dim=0
        ).detach()
    )


def masked_layer(x: Tensor, w: Any, style: Any, plan: Plan) -> Tensor:
    """The layer by PyTorch's gradients, with the very decisions that the fused one draws."""

    def thin(t: Tensor, seed: Tensor, dropped: int) -> Tensor:
        return thinned(t, keep_mask(t.shape, seed, dropped), dropped)

    qkv = apply(w.attention.joined, x).view(-1, 3, style.heads, style.width)
    q, k, v = (ROWS.padded(part).transpose(1, 2) for part in qkv.unbind(1))
    mask = ROWS.mask()
    assert mask is not None
    p = (
        (q @ k.transpose(-1, -2) * style.scale)
        .masked_fill(~mask[:, None, None], float("-inf"))
        .softmax(-1)
    )
    keep = keep_mask(
        (ROWS.rows, style.heads, ROWS.longest, ROWS.longest),
        SEEDS[0],
        plan.attention_dropped,
    )
    seen = ROWS.flat(
        (thinned(p, keep, plan.attention_dropped) @ v).transpose(1, 2)
    ).flatten(1)
    y = normalised(
        x + thin(apply(w.attention.out, seen), SEEDS[1], plan.dropped),
        w.attention.norm,
        style,
    )
    h = thin(
        torch.nn.functional.gelu(apply(w.feed.up, y)), SEEDS[2], plan.activation_dropped
    )
    return normalised(
        y + thin(apply(w.feed.down, h), SEEDS[3], plan.dropped), w.feed.norm, style
    )


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_are_those_of_the_plain_layer(dropout: float) -> None:
    style, w, tensors = layer_of(dropout)
    plan = Plan.of(style, float8=False)
    x, g = drawn(34, 32).requires_grad_(), drawn(34, 32, seed=2)
    theirs = (
        masked_layer(x, w, style, plan)
        if dropout
        else encoder_layer(x, w, ROWS, None, None, style, True)
    )
    ours, again, _ = fused_layer(x, x, torch.empty(0), w, ROWS, SEEDS, plan)
    assert torch.allclose(ours, theirs, atol=1e-5)
    wanted = torch.autograd.grad(theirs, [x, *tensors], g)
    found = torch.autograd.grad(
        [ours, again], [x, *tensors], [g * 0.25, g * 0.75]
    )  # they are added up
    for ours_, theirs_ in zip(found, wanted, strict=True):
        assert torch.allclose(
            ours_, theirs_, atol=1e-4 * float(theirs_.abs().max() + 1e-3)
        )


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_embedding_is_that_of_the_plain_network(dropout: float) -> None:
    network = Network(tiny("bart", dropout)).train()
    tables = network.family.encoder_embedding(network.model)
    assert tables.scale == pytest.approx(32**0.5)  # not one, so that it shows
    ids, plan = (
        torch.tensor([5, 9, 5, 1, 40, 9]),
        Plan.of(network.family.encoder_style, float8=False),
    )
    position = torch.tensor([0, 1, 2, 0, 1, 2])
    tensors = [tables.words, tables.places, *tables.norm]
    torch.manual_seed(3)
    ours, again, _ = fused_embedding(ids, position, tables, plan, torch.float32)
    torch.manual_seed(3)
    seed = torch.randint(0, 2**32, (2,))
    network.eval()
    theirs = network.family.embedded(
        network.model, "encoder", ids, position, torch.float32
    )
    if dropout:
        theirs = thinned(theirs, keep_mask((6, 32), seed, plan.dropped), plan.dropped)
    assert torch.allclose(ours, theirs, atol=1e-5) and torch.equal(ours, again)
    g = drawn(6, 32)
    wanted = torch.autograd.grad(theirs, tensors, g)
    found = torch.autograd.grad(
        [ours, again], tensors, [g * 0.25, g * 0.75]
    )  # they are added up
    for own, other in zip(found, wanted, strict=True):
        assert torch.allclose(own, other, atol=1e-4 * float(other.abs().max()))
    assert not found[0][1].any() and found[0][5].any()  # padding learns nothing


def test_eight_bits_stay_close_to_the_plain_layer() -> None:
    style, w, tensors = layer_of(0.1)
    x, g = drawn(34, 32).requires_grad_(), drawn(34, 32, seed=2)
    results = []
    for float8 in (False, True):
        y, _, bounds = fused_layer(
            x, x, bounds_of(x), w, ROWS, SEEDS, Plan.of(style, float8=float8)
        )
        results.append((y, *torch.autograd.grad(y, [x, *tensors], g)))
    assert torch.allclose(bounds, bounds_of(y), rtol=1e-5)
    for plain, coarse in zip(*results, strict=True):
        assert cosine(plain, coarse) > 0.97
        assert (
            not torch.equal(plain, coarse) or plain is results[0][-1]
        )  # the last bias's is a plain sum


def test_products_of_eights_are_products() -> None:
    x, weight, g = drawn(21, 48), drawn(32, 48, seed=2), drawn(21, 32, seed=3) * 1e-6
    x8, w8 = (
        fused_reference.cast(one, largest_of(one), FORWARD) for one in (x, weight)
    )
    g8 = fused_reference.cast(g, largest_of(g), BACKWARD)
    bias = drawn(32, seed=4)
    for found, exact in (
        (product(x8, w8, bias, torch.float32), x @ weight.t() + bias),
        (input_gradient(g8, w8, torch.float32), g @ weight),
        (weight_gradient(g8, x8), g.t() @ x),
    ):
        assert found.shape == exact.shape and cosine(found, exact) > 0.99
        assert float((found - exact).norm() / exact.norm()) < 0.12


@pytest.mark.parametrize("kind", [FORWARD, BACKWARD])
def test_cast_turns_and_never_overflows(kind: Any) -> None:
    x = drawn(21, 48) * 100
    made = fused_reference.cast(
        x, largest_of(x) / 2, kind
    )  # a bound that does not hold: the ends are cut
    assert made.turned.shape == (48, 64) and not made.turned[:, 21:].float().any()
    assert torch.equal(made.turned[:, :21].float(), made.straight.float().t())
    assert (
        made.straight.float().abs().max() == largest(kind)
        and torch.isfinite(made.straight.float()).all()
    )
    nothing = fused_reference.cast(x * 0, largest_of(x * 0), kind)
    assert not nothing.straight.float().any() and torch.isfinite(nothing.scale)


def test_dropout_takes_its_share_and_no_pattern() -> None:
    rate, seeds = (
        0.1,
        torch.randint(0, 2**32, (6, 2), generator=torch.Generator().manual_seed(0)),
    )
    tables = [
        keep_mask((256, 1024), seed, round(rate * 2**32)).float() for seed in seeds
    ]
    for table in tables:
        assert table.mean() == pytest.approx(1 - rate, abs=0.004)
        assert (
            table.mean(0).std() < 0.022 and table.mean(1).std() < 0.012
        )  # binomial: 0.0188, 0.0094
        off = table - table.mean()
        for step in (1, 2, 4, 16, 64, 160, 1024, 4096):
            flat = off.flatten()
            assert abs(float((flat[step:] * flat[:-step]).mean() / flat.var())) < 0.012
    assert (
        abs(cosine(tables[0] - tables[0].mean(), tables[1] - tables[1].mean())) < 0.012
    )
    assert torch.equal(
        keep_mask((4, 64), seeds[0], 0), torch.ones(4, 64, dtype=torch.bool)
    )


def test_memory_of_all_layers_in_one_product() -> None:
    network = Network(tiny("bart"))
    layers, style = (
        [layer.cross for layer in network.layers().decoder],
        network.family.decoder_style,
    )
    memory = drawn(21, 32).requires_grad_()
    plain = [memory_of(memory, layer, style) for layer in layers]
    ours = keys_values(memory, layers, style)
    parameters = [
        memory,
        *(part.weight for layer in layers for part in (layer.key, layer.value)),
    ]
    parameters += [part.bias for layer in layers for part in (layer.key, layer.value)]
    sums = [
        sum(
            (one * drawn(*one.shape, seed=n)).sum()
            for n, one in enumerate(t for pair in pairs for t in pair)
        )
        for pairs in (plain, ours)
    ]
    for own, other in zip(ours, plain, strict=True):
        assert all(
            a.shape == b.shape and cosine(a, b) > 0.995
            for a, b in zip(own, other, strict=True)
        )
    wanted, found = (torch.autograd.grad(one, parameters) for one in sums)
    assert all(cosine(a, b) > 0.99 for a, b in zip(found, wanted, strict=True))


def gradients(network: Network, made: Any) -> tuple[float, dict[str, Tensor]]:
    network.zero_grad()
    torch.manual_seed(5)
    loss = network(made)
    loss.backward()
    return loss.item(), {
        name: p.grad.clone()
        for name, p in network.named_parameters()
        if p.grad is not None
    }


def test_whole_network_in_eight_bits() -> None:
    model, labels = (
        tiny("bart"),
        torch.randint(4, 60, (3, 6), generator=torch.Generator().manual_seed(1)),
    )
    made = batch(sequences(LENGTHS), labels)
    loss, plain = gradients(Network(model).train(), made)
    network = Network(model).train()
    network.float8_enable()
    coarse_loss, coarse = gradients(network, made)
    assert coarse_loss == pytest.approx(loss, rel=0.03) and coarse_loss != loss
    whole = [
        torch.cat([one.flatten() for one in found.values()])
        for found in (plain, coarse)
    ]
    assert (
        plain.keys() == coarse.keys() and cosine(*whole) > 0.85
    )  # weights this large magnify every rounding
    network.gradient_checkpointing_enable()
    again_loss, again = gradients(network, made)
    assert again_loss == coarse_loss and all(
        torch.equal(again[name], coarse[name]) for name in coarse
    )
    network.eval()
    assert network(made).item() == pytest.approx(
        Network(model).eval()(made).item()
    )  # in use it is exact


def test_dropout_in_eight_bits_follows_the_seed() -> None:
    network = Network(tiny("bart", dropout=0.2)).train()
    network.float8_enable()
    made = batch(sequences(LENGTHS), torch.full((3, 4), 9))
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(network(made).item())
    assert losses[0] == losses[1] != losses[2]


def test_who_cannot_is_told() -> None:
    with pytest.raises(BadConfig, match="built for BART"):
        Network(tiny("t5")).float8_enable()
    with pytest.raises(BadConfig, match=r"leave train\.float8 out"):
        prepare_model(torch.nn.Linear(2, 2), Settings(steps=1, float8=True))
    network = Network(tiny("bart"))
    prepare_model(network, Settings(steps=1, float8=True))
    assert network._float8
    plain = Settings(steps=1)
    assert plain.binding["float8"] is False
    assert dataclasses.replace(plain, float8=True).binding["float8"] is True


class Faulty:
    """The reference, with a compiler's fault: a quarter of the transposed bytes is never written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(fused_reference, name)

    def cast(self, *rest: Any, **more: Any) -> Any:
        made = fused_reference.cast(*rest, **more)
        made.turned[::4] = 0
        return made


@pytest.mark.parametrize("float8", [False, True])
def test_a_trial_finds_faults(float8: bool) -> None:
    plan = Plan.of(layer_of(0.1)[0], float8=float8)
    for way, wrong in (
        (fused_reference, []),
        (Faulty(), ["cast (0.5)", "cast (0.5)"] if float8 else []),
    ):
        tried = fused_plan._Trial(
            (way, fused_reference), plan, torch.bfloat16, torch.device("cpu")
        )
        tried.embedding(32)
        tried.norms(32)
        tried.gelu(64)
        tried.attention(32)
        if float8:
            tried.casts(32)
        assert tried.wrong == wrong


def test_faulty_kernels_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "whichsense.models.seq2seq.fused_plan.failures",
        lambda *_: asked.append(1) or ["cast (0.87)"],
    )
    style = Network(tiny("bart")).family.encoder_style
    x = torch.zeros(3, 32)
    trials = fused_plan.KernelTrials()
    # PyTorch's own layers are used instead.
    assert not trials.passes(Plan.of(style, float8=False), x, inner=64)
    with pytest.raises(BadConfig, match=r"err \(cast \(0\.87\)\)"):
        trials.passes(Plan.of(style, float8=True), x, inner=64)
    with pytest.raises(BadConfig):
        trials.passes(Plan.of(style, float8=True), x, inner=64)
    assert len(asked) == 2  # each is tried once


KERNELS = """
import torch
from whichsense.models.seq2seq import fused_launch_kernels as ours, fused_reference as theirs
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
for bounded in (False, True):
    options = {"dropped": dropped, "bounded": bounded}
    made = [run.norm_forward(x, change, weight, bias, seed, epsilon=1e-5, **options) for run in (ours, theirs)]
    same("norm", *made)
    kept = (made[1][1], made[1][2], made[1][3], weight, seed)
    same("norm back", *(run.norm_backward(dy, dy2, *kept, **options) for run in (ours, theirs)))
    same("norm back", *(run.norm_backward(dy, None, *kept, **options) for run in (ours, theirs)))
    words, places = torch.randn(2, 300, size, device=device)
    ids, position = torch.randint(0, 298, (2, tokens), device=device)
    at = {"scale": 3.0, "offset": 2, "epsilon": 1e-5, "dtype": dtype, **options}
    made = [run.embedding_forward(ids, position, words, places, weight, bias, seed, **at) for run in (ours, theirs)]
    same("embedding", *made)
    kept = (*made[1][1:4], weight, seed)
    for more in (dy2, None):
        same("embedding back", *(run.embedding_backward(dy, more, *kept, dropped=dropped) for run in (ours, theirs)))
u, dh = (torch.randn(tokens, 4 * size, device=device).to(dtype) for _ in range(2))
bound = torch.tensor(8.0, device=device)
for kind, limit in ((None, near), (torch.float8_e4m3fn, 0.15), (torch.float8_e5m2, 0.15)):
    at = {"dropped": dropped, "bound": None if kind is None else bound, "kind": kind}
    made = [run.gelu_forward(u, seed, **at) for run in (ours, theirs)]
    same("gelu", *([one] if kind is None else one for one in made), limit)
    (a, a_sum), (b, b_sum) = (run.gelu_backward(dh, u, seed, **at) for run in (ours, theirs))
    same("gelu back", [a] if kind is None else a, [b] if kind is None else b, limit)
    same("gelu sums", [a_sum], [b_sum])
    if kind is not None:  # the interpreter rounds worse than a GPU does
        same("cast", *(run.cast(x, bound, kind, seed, dropped) for run in (ours, theirs)), limit)
        (a, a_sum), (b, b_sum) = (run.cast_summed(x, bound, kind) for run in (ours, theirs))
        same("cast summed", a, b, limit)
        same("sums", [a_sum], [b_sum])
qkv = torch.randn(tokens, 3 * size, device=device).to(dtype)
for rate in (0, dropped):
    options = {"heads": heads, "scale": 0.2, "dropped": rate, "bounded": True}
    out, levels, largest = ours.attention_forward(qkv, rows, seed, **options)
    wanted = theirs.attention_forward(qkv, rows, seed, **options)
    same("attention", [out, largest], [wanted[0], wanted[2]])
    found = ours.attention_backward(dy, qkv, out, levels, rows, seed, **options)
    same("attention back", found, theirs.attention_backward(dy, qkv, wanted[0], None, rows, seed, **options))
lengths = torch.tensor([70, 3, 140], dtype=torch.int32, device=device)
scores, dweights = (torch.randn(3, 5, 192, device=device).to(dtype) for _ in range(2))
deltas, lifts = torch.randn(2, 3, 5, device=device)
pair = torch.randn(2, 3, 10, device=device)
given = torch.randn(2, 3, 5, 48, device=device).to(dtype).transpose(0, 1)
for rate in (0, dropped):
    results = []
    for run in (ours, theirs):
        table = torch.stack([scores * float("nan"), scores], 1)  # as in use: rows of a wider table, all to be written
        kept = run.softmax_forward(table[:, 1], table[:, 0], lengths, seed, scale=0.7, dropped=rate)
        of_rows = theirs.RowsOfSoftmax(*kept[:2], deltas, lifts)
        run.softmax_backward(table[:, 1], dweights, of_rows, lengths, seed, scale=0.7, dropped=rate)
        copied = torch.full((3, 10, 48), float("nan"), device=device, dtype=dtype)
        products = run.copied_product(given, copied, given.contiguous(), *pair)
        results.append([table[:, 0], table[:, 1], *kept, products, copied])
    same("softmax", *results)
"""


@pytest.mark.slow
def test_kernels_compute_what_the_reference_says() -> None:
    """On the GPU if there is one, else in Triton's interpreter if Triton is there."""
    pytest.importorskip("triton")
    environment = os.environ | (
        {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    )
    call = [sys.executable, "-c", KERNELS]
    done = subprocess.run(
        call, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
