"""What a recipe's `[train]` table may say: the settings of the one training loop."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from whichsense.errors import BadConfig

FREE = ("checkpoint_every", "keep", "log_every", "workers", "device")
"""Settings that may change between a stopped run and its resumption."""
_AT_LEAST_1 = ("accumulate", "checkpoint_every", "keep", "log_every")
_AT_LEAST_0 = (
    "epochs",
    "steps",
    "patience",
    "evaluate_every",
    "workers",
    "warmup",
    "weight_decay",
    "clip",
    "learning_rate",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How to train. Give `epochs` or `steps`; everything else has a sensible default."""

    epochs: int = 0
    steps: int = 0
    """Updates of the weights. With `epochs` too, whichever ends first ends the run."""
    learning_rate: float = 1e-5
    learning_rates: dict[str, float] = field(default_factory=dict)
    """Other rates for parameters whose names begin with a key (* in it: anything); the longest fitting key decides."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: float = 0.0
    """Steps over which the rate rises to its full value; below 1: a share of all steps."""
    weight_decay: float = 0.0
    """Of matrices; biases and norms are never decayed."""
    betas: tuple[float, ...] = (0.9, 0.999)
    epsilon: float = 1e-8
    clip: float = 1.0
    """The largest norm of the gradient; 0: not clipped."""
    accumulate: int = 1
    """Batches whose gradients make one step."""
    bf16: bool = False
    float8: bool = False
    """The encoder's matrix products in float8, where model and GPU can; less exact."""
    gradient_checkpointing: bool = False
    compile: bool = False
    seed: int = 0
    evaluate_every: int = 0
    """Steps between evaluations; 0: at the end of each epoch. The end of the run is always evaluated."""
    patience: int = 0
    """Evaluations without a better metric after which training ends early; 0: never."""
    checkpoint_every: int = 500
    """Steps between checkpoints; one is written at every evaluation and at Ctrl-C too."""
    keep: int = 1
    """Checkpoints that are kept. The best model is kept beside them in any case."""
    log_every: int = 10
    workers: int = 0
    """Processes that make batches, at most one a core, on Linux; 0, and elsewhere: a thread makes them."""
    device: str = ""
    """cpu, cuda, mps; empty: the best available."""

    def __post_init__(self) -> None:
        for name in _AT_LEAST_1:
            if getattr(self, name) < 1:
                self._reject(name)
        for name in _AT_LEAST_0:
            if getattr(self, name) < 0:
                self._reject(name)
        if len(self.betas) != 2:
            self._reject("betas")
        if not self.epochs and not self.steps:
            raise BadConfig("Say how long to train: train.epochs or train.steps.")

    def _reject(self, name: str) -> None:
        raise BadConfig(f"train.{name} cannot be {getattr(self, name)!r}.")

    @property
    def binding(self) -> dict[str, Any]:
        """Settings that must not change between a stopped run and its resumption, as the weights depend on them."""
        table = dataclasses.asdict(self)
        for name in FREE:
            del table[name]
        return table | {"betas": list(self.betas)}  # as JSON gives it back


def rate_share(step: int, total: int, settings: Settings) -> float:
    """The share of the full learning rate at a step, counted from 0.

    >>> [rate_share(step, 10, Settings(steps=10, warmup=2)) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.125]
    """
    warmup_steps = settings.warmup
    if warmup_steps < 1:
        warmup_steps *= total
    if step < warmup_steps:
        return min(1.0, (step + 1) / warmup_steps)
    if settings.schedule == "constant":
        return 1.0
    left = (total - step) / max(1.0, total - warmup_steps)
    if settings.schedule == "linear":
        return left
    return 0.5 * (1 - math.cos(math.pi * left))
