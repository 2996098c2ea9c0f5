"""A trial of the kernels on the machine where they run: compilers err, and a wrong gradient raises no error.

The first training step on a GPU computes a small example by the kernels and by PyTorch. (ptxas 12.8 and 12.9 lost
bytes of casts to float8 that were stored twice. The kernels avoid that fault; the trial guards against the next.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from whichsense.errors import BadConfig
from whichsense.models.seq2seq.fused import reference
from whichsense.models.seq2seq.fused.plan import Plan
from whichsense.models.seq2seq.fused.precision import BACKWARD, FORWARD, Eight
from whichsense.models.seq2seq.fused.reference import RowsOfSoftmax
from whichsense.models.seq2seq.ragged import RaggedRows
from whichsense.models.seq2seq.weights import Style

_NEAR = 0.02  # of the norm: bfloat16's own rounding is a tenth of it
_LENGTHS = (70, 3, 140)


def failures(
    size: int, inner: int, plan: Plan, dtype: torch.dtype, device: torch.device
) -> list[str]:
    """The kernels whose results differ from PyTorch's, with the relative error."""
    from whichsense.models.seq2seq.fused import launch_kernels

    trial = _Trial((launch_kernels, reference), plan, dtype, device)
    trial.embedding(size)
    trial.norms(size)
    trial.gelu(inner)
    trial.attention(size)
    if plan.float8:
        trial.casts(size)
    return trial.wrong


def reading_failures(plan: Plan, dtype: torch.dtype, device: torch.device) -> list[str]:
    """The same for the kernels of absorbed attention."""
    from whichsense.models.seq2seq.fused import launch_kernels

    trial = _Trial((launch_kernels, reference), plan, dtype, device)
    trial.softmax()
    return trial.wrong


class KernelTrials:
    """Remembers whether the kernels compute on this machine what they should: each plan is tried once."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._failures: list[str] = []
        self.reading_failures: list[str] | None = None
        """Those of absorbed attention; None before its trial."""

    @property
    def were_run(self) -> bool:
        """Whether a plan of the encoder was tried."""
        return self._plan is not None

    def passes(self, plan: Plan, x: Tensor, inner: int) -> bool:
        """Whether a plan's kernels pass, for inputs like `x` and feed-forward layers of width `inner`."""
        if self._plan != plan:
            self._failures = failures(x.shape[1], inner, plan, x.dtype, x.device)
            self._plan = plan
        if self._failures and plan.float8:
            raise BadConfig(
                f"train.float8 cannot be used: its kernels, as compiled here, err ({', '.join(self._failures)}). "
                "Leave it out, or try another release of PyTorch."
            )
        return not self._failures

    def reads_well(self, memory: Tensor, style: Style) -> bool:
        """Whether the kernels of absorbed attention pass, for a memory like this."""
        if self.reading_failures is None:
            self.reading_failures = []
            if memory.is_cuda:
                plan = Plan.of(style, float8=False)
                self.reading_failures = reading_failures(
                    plan, memory.dtype, memory.device
                )
        return not self.reading_failures


class _Trial:
    """Compares both implementations on random tensors, without touching the run's own random state."""

    def __init__(
        self,
        ways: tuple[Any, Any],
        plan: Plan,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.ways = ways
        self.plan = plan
        self.dtype = dtype
        self.device = device
        self.generator = torch.Generator().manual_seed(7)
        self.seed = torch.tensor([4_294_967_291, 2_654_435_769], device=device)
        self.bound = torch.tensor(16.0, device=device) if plan.float8 else None
        self.wrong: list[str] = []

    def drawn(self, columns: int) -> Tensor:
        return torch.randn(sum(_LENGTHS), columns, generator=self.generator).to(
            self.device, self.dtype
        )

    def compare(self, name: str, compute: Callable[[Any], Sequence[Any]]) -> None:
        for one, other in zip(*(_flat(compute(way)) for way in self.ways), strict=True):
            far = float(
                (one.float() - other.float()).norm()
                / other.float().norm().clamp_min(1e-12)
            )
            if not far < _NEAR:
                self.wrong.append(f"{name} ({far:.2g})")

    def norms(self, size: int) -> None:
        x, change, dy, dy2 = (self.drawn(size) for _ in range(4))
        weight = self.drawn(size)[0].float()
        bias = self.drawn(size)[0].float()
        there = {"epsilon": self.plan.epsilon, **self.plan.norm}
        self.compare(
            "norm",
            lambda way: way.norm_forward(x, change, weight, bias, self.seed, **there),
        )
        kept = reference.norm_forward(x, change, weight, bias, self.seed, **there)[1:4]
        for more in (None, dy2):
            self.compare(
                "norm's gradient",
                lambda way, more=more: way.norm_backward(
                    dy, more, *kept, weight, self.seed, **self.plan.norm
                ),  # type: ignore[misc]
            )

    def embedding(self, size: int) -> None:
        words, places, dy, dy2 = (self.drawn(size).float() for _ in range(4))
        weight = self.drawn(size)[0].float()
        bias = self.drawn(size)[0].float()
        ids = torch.arange(len(words), device=self.device) * 7 % len(words)
        there = {
            "scale": 2.0,
            "offset": 2,
            "epsilon": self.plan.epsilon,
            "dtype": self.dtype,
            **self.plan.norm,
        }
        rest = (ids, ids % 150, words, places, weight, bias, self.seed)
        self.compare("embedding", lambda way: way.embedding_forward(*rest, **there))
        kept = reference.embedding_forward(*rest, **there)[1:4]
        dy = dy.to(self.dtype)
        dy2 = dy2.to(self.dtype)
        self.compare(
            "embedding's gradient",
            lambda way: way.embedding_backward(
                dy, dy2, *kept, weight, self.seed, dropped=self.plan.dropped
            ),
        )

    def gelu(self, inner: int) -> None:
        u = self.drawn(inner)
        dh = self.drawn(inner)
        options = {"dropped": self.plan.activation_dropped, "bound": self.bound}
        self.compare(
            "GELU",
            lambda way: [way.gelu_forward(u, self.seed, kind=FORWARD, **options)],
        )
        self.compare(
            "GELU's gradient",
            lambda way: way.gelu_backward(dh, u, self.seed, kind=BACKWARD, **options),
        )

    def casts(self, size: int) -> None:
        x = self.drawn(size)
        wide = self.drawn(3 * size)
        self.compare("cast", lambda way: [way.cast(x, self.bound, FORWARD)])
        self.compare(
            "cast",
            lambda way: [
                way.cast(x, self.bound, BACKWARD, self.seed, self.plan.dropped)
            ],
        )
        self.compare(
            "cast with sums", lambda way: way.cast_summed(wide, self.bound, BACKWARD)
        )

    def attention(self, size: int) -> None:
        rows = RaggedRows.of(_LENGTHS)
        rows = rows._replace(
            starts=rows.starts.to(self.device), place=rows.place.to(self.device)
        )
        qkv = self.drawn(3 * size)
        dout = self.drawn(size)

        def both(way: Any) -> list[Tensor]:
            seen, levels, largest = way.attention_forward(
                qkv, rows, self.seed, **self.plan.attention
            )
            gradient, sums, steepest = way.attention_backward(
                dout, qkv, seen, levels, rows, self.seed, **self.plan.attention
            )
            return [
                seen,
                gradient,
                sums,
                *((largest, steepest) if self.plan.float8 else ()),
            ]

        self.compare("attention", both)

    def softmax(self) -> None:
        lengths = torch.tensor(_LENGTHS, dtype=torch.int32, device=self.device)
        shape = (len(_LENGTHS), 5, 192)
        scores, dweights = (
            torch.randn(shape, generator=self.generator).to(self.device, self.dtype) * 4
            for _ in range(2)
        )
        given = (
            dweights.transpose(0, 1).contiguous().transpose(0, 1)[:, :, None]
        )  # rows that lie otherwise
        options = {"scale": self.plan.scale, "dropped": self.plan.attention_dropped}

        def both(way: Any) -> list[Tensor]:
            table = torch.stack(
                [torch.full_like(scores, float("nan")), scores]
            )  # every place is to be written
            levels, factors, masses = way.softmax_forward(
                table[1], table[0], lengths, self.seed, **options
            )
            rows = RowsOfSoftmax(levels, factors, levels, masses)
            way.softmax_backward(
                table[1], dweights, rows, lengths, self.seed, **options
            )
            copied = torch.full(
                scores.shape, float("nan"), dtype=self.dtype, device=self.device
            )
            products = way.copied_product(
                given, copied, dweights[:, :, None], levels, masses
            )
            return [*table, levels, factors, masses, copied, products]

        self.compare("softmax", both)


def _flat(parts: Sequence[Any]) -> list[Tensor]:
    """Tensors with anything in them; the three of a table in eight bits one by one."""
    found = [
        tensor
        for part in parts
        for tensor in (part if isinstance(part, Eight) else [part])
    ]
    return [tensor for tensor in found if tensor is not None and tensor.numel()]
