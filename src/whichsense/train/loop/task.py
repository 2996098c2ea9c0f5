"""What the training loop asks of a task. `whichsense.train` tells how to write one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor, nn

ModelT = TypeVar("ModelT", bound=nn.Module)
BatchT = TypeVar("BatchT")
OptionsT = TypeVar("OptionsT")
Loss = Tensor | tuple[Tensor, Mapping[str, float | Tensor]]
"""The mean loss of a batch; with it, if wanted, its parts for the log."""


class Task(Protocol[ModelT, BatchT]):
    """Something to train. The loop asks for nothing else."""

    metric: str
    """The key of `evaluate` that selects the best model."""
    higher_is_better: bool

    def build(self) -> ModelT:
        """Build the model with the weights that training starts from. Random weights must follow torch's seed."""

    def batches(self, epoch: int, seed: int) -> Iterable[BatchT]:
        """The batches of an epoch, decided by `epoch` and `seed` alone. A Sequence is skipped through for free."""

    def loss(self, model: ModelT, batch: BatchT) -> Loss:
        """The mean loss of a batch, whose tensors are on the model's device."""

    def evaluate(self, model: ModelT) -> Mapping[str, float]:
        """Compute the task's metrics, without gradients; the model is in evaluation mode."""

    def save(self, model: ModelT, folder: Path) -> None:
        """Write the model as it is used later: weights, tokenizer, settings."""

    def data(self) -> Sequence[Path]:
        """The files that it learns from: their checksums go into the run's record."""

    def finish(self, folder: Path) -> None:
        """Make what is made once, when training is over, of the best model in `folder`. Most tasks need nothing."""
        return


@dataclass(frozen=True, slots=True)
class TaskSpec(Generic[OptionsT]):
    """A task as the catalogue knows it."""

    options: type[OptionsT]
    """A frozen dataclass: the recipe's tables other than `[train]`."""
    build: Callable[[OptionsT], Task[Any, Any]]
