"""The one training loop. `whichsense.train` tells how to write a task for it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig, BadInput
from whichsense.jobs.progress import Progress, silent, unsaid
from whichsense.jobs.stopping import Stopped, stop_requested
from whichsense.jobs.workers import usable_processes
from whichsense.train.loop import checkpoint, record
from whichsense.train.loop.batches import ahead, grouped, own_share
from whichsense.train.loop.checkpoint import State
from whichsense.train.loop.logs import Logs
from whichsense.train.loop.optimizer import make_optimizer, prepared, to_device
from whichsense.train.loop.processes import Processes, started
from whichsense.train.loop.settings import Settings, rate_share
from whichsense.train.loop.task import BatchT, ModelT, Task
from whichsense.train.loop.workers import BatchWorkers, Place


@dataclass(frozen=True, slots=True)
class Trained:
    """How a run ended. The best model lies in `model`."""

    folder: Path
    steps: int
    best: float
    best_step: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    ended: str = "steps"

    @property
    def model(self) -> Path:
        return self.folder / checkpoint.MODEL


def train(
    task: Task[ModelT, BatchT],
    settings: Settings,
    folder: str | Path,
    *,
    recipe: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = unsaid,
) -> Trained:
    """Train, or go on where a killed or stopped run was; a finished one is returned as it is.

    `recipe` is written into the folder's record, and a resumption must bring the same.
    """
    with started(settings.device) as processes, stop_requested() as stop:
        return _Run(
            task,
            settings,
            Path(folder),
            processes,
            recipe=recipe or {},
            progress=progress,
            say=say,
        ).go(stop)


class _Run(Generic[ModelT, BatchT]):
    """One run: what is constant in it, and the state that moves."""

    def __init__(
        self,
        task: Task[ModelT, BatchT],
        settings: Settings,
        folder: Path,
        processes: Processes,
        *,
        recipe: Mapping[str, Any],
        progress: Progress,
        say: Callable[[str], None],
    ) -> None:
        self.task, self.settings, self.folder, self.processes = (
            task,
            settings,
            folder,
            processes,
        )
        self.progress, self.say = progress, say
        if processes.is_first:
            record.begin(folder, settings, recipe, task.data())
            checkpoint.repair(folder)
        processes.from_first(
            None
        )  # nobody reads the folder before the first one has prepared it
        processes.seed(settings.seed, -1)
        self.model = task.build().to(processes.device)
        self.optimizer = make_optimizer(self.model, settings)
        found = checkpoint.newest(folder)
        self.state = (
            checkpoint.load(found, self.model, self.optimizer) if found else State()
        )
        processes.share_weights(self.model)
        prepared(self.model, settings)
        self.logs = Logs(folder, self.state.step) if processes.is_first else None
        self.crew: BatchWorkers | None = None
        self._sums: dict[str, Any] = {}

    def go(self, stop: Callable[[], bool]) -> Trained:
        if self.state.step and not self.state.ended:
            self.say(f"Resuming at step {self.state.step:,}.")
        try:
            while not self.state.ended:
                self._epoch(stop)
        finally:
            if self.crew is not None:
                self.crew.close()
            if self.logs is not None:
                self.logs.close()
        state = self.state
        assert state.best is not None  # no run ends without an evaluation
        return Trained(
            self.folder,
            state.step,
            state.best,
            state.best_step,
            state.best_metrics,
            state.ended,
        )

    def _epoch(self, stop: Callable[[], bool]) -> None:
        settings, state, processes = self.settings, self.state, self.processes
        batches = self._batches(state.epoch)
        total = self._total(batches)
        empty = state.position == 0
        self.model.train()
        with contextlib.closing(self._made(batches)) as ready:
            for group in grouped(ready, settings.accumulate):
                empty = False
                self._step(group, total)
                if state.step >= total:
                    return self._evaluate(total, ended="steps")
                if (
                    settings.evaluate_every
                    and state.step % settings.evaluate_every == 0
                ):
                    self._evaluate(total)
                if state.ended:
                    return None
                if processes.any(stop()):
                    self._save()
                    raise Stopped(
                        "Stopped. Run the same command again: it resumes where it was."
                    )
                if state.step % settings.checkpoint_every == 0:
                    self._save()
        if empty:
            raise BadInput(
                "The task gave no batch to train on. Is the training data empty, or are there too few?"
            )
        state.epoch, state.position = state.epoch + 1, 0
        if not settings.evaluate_every:
            self._evaluate(total)
        return None

    def _made(self, batches: Iterable[Any]) -> Generator[Any, None, None]:
        """This process's batches of an epoch that it has not had: a thread makes them, or a crew."""
        share = self._share(batches, self.state.position)
        helpers = usable_processes(self.settings.workers)
        if not helpers or not isinstance(share, Sequence) or not share:
            return ahead(share)
        if self.crew is None:
            share[
                0
            ]  # what a task works out once is there before the crew begins, as copies of this process
            places = self._places(self.state.epoch, self.state.position)
            self.crew = BatchWorkers(self._batches, places, helpers)
        return self.crew.take(len(share))

    def _places(self, epoch: int, position: int) -> Iterator[Place]:
        """From here on, without end."""
        while True:
            numbers = range(len(self._batches(epoch)))
            yield from ((epoch, number) for number in self._share(numbers, position))
            epoch, position = epoch + 1, 0

    def _batches(self, epoch: int) -> Any:
        return self.task.batches(epoch, self.settings.seed)

    def _share(self, batches: Iterable[Any], position: int) -> Iterable[Any]:
        processes = self.processes
        return own_share(
            batches,
            processes.rank,
            processes.count,
            skip=position * self.settings.accumulate,
        )

    def _total(self, batches: Iterable[Any]) -> int:
        """The steps of the whole run, which the learning rate's schedule needs."""
        settings = self.settings
        if not settings.epochs:
            return settings.steps
        if not isinstance(batches, Sequence):
            raise BadConfig(
                "This task does not know how long an epoch is: give train.steps in place of train.epochs."
            )
        per_epoch = math.ceil(
            len(batches) // self.processes.count / settings.accumulate
        )
        return min(
            settings.epochs * per_epoch, settings.steps or settings.epochs * per_epoch
        )

    def _step(self, group: Sequence[Any], total: int) -> None:
        settings, state, processes = self.settings, self.state, self.processes
        processes.seed(settings.seed, state.step)
        for batch in group:
            with torch.autocast(
                processes.device.type, torch.bfloat16, enabled=settings.bf16
            ):
                found = self.task.loss(self.model, to_device(batch, processes.device))
            loss, parts = found if isinstance(found, tuple) else (found, {})
            (loss / len(group)).backward()  # type: ignore[no-untyped-call]
            self._add(len(group), {"loss": loss, **parts})
        processes.average_gradients(self.model)
        norm = nn.utils.clip_grad_norm_(
            self.model.parameters(), settings.clip or math.inf
        )
        share = rate_share(state.step, total, settings)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = parameters["full_rate"] * share
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        state.step, state.position = state.step + 1, state.position + 1
        if state.step % settings.log_every == 0 or state.step == total:
            self._log(float(norm), settings.learning_rate * share, total)

    def _add(self, size: int, parts: Mapping[str, Any]) -> None:
        """Tensors stay on the device until the sums are logged: asking for a number makes the device wait."""
        for name, part in parts.items():
            value = part.detach() if isinstance(part, Tensor) else part
            self._sums[name] = self._sums.get(name, 0.0) + value / size
        self._sums["steps"] = self._sums.get("steps", 0.0) + 1 / size

    def _log(self, norm: float, rate: float, total: int) -> None:
        steps = self._sums.pop("steps")
        values = {name: float(value) / steps for name, value in self._sums.items()}
        self._sums = {}
        if not math.isfinite(values["loss"]):
            advice = "Lower train.learning_rate, or train without bf16."
            raise BadInput(
                f"The loss is {values['loss']} at step {self.state.step}. {advice}"
            )
        if self.logs is not None:
            self.logs.write(
                self.state.step,
                self.state.epoch,
                "train",
                {**values, "gradient": norm, "rate": rate},
            )
            self.progress(self.state.step / total, self.state.step)

    def _evaluate(self, total: int, ended: str = "") -> None:
        """Measure, keep the model if it is the best so far, and write a checkpoint."""
        state, task = self.state, self.task
        metrics = self.processes.from_first(
            self._measured() if self.processes.is_first else {}
        )
        if task.metric not in metrics:
            raise BadConfig(
                f"The task selects by '{task.metric}', but its evaluation gives: {', '.join(metrics)}."
            )
        value = metrics[task.metric]
        better = state.best is None or (
            value > state.best if task.higher_is_better else value < state.best
        )
        if better:
            state.best, state.best_step, state.best_metrics, state.without_gain = (
                value,
                state.step,
                metrics,
                0,
            )
        else:
            state.without_gain += 1
        if self.settings.patience and state.without_gain >= self.settings.patience:
            ended = ended or "patience"
        state.ended = ended
        if self.logs is not None:
            self.logs.write(state.step, state.epoch, "evaluate", metrics)
            self.say(
                f"step {state.step:,} of {total:,}: {task.metric} {value:.4f}{' (best)' if better else ''}"
            )
            if better:
                about = {"step": state.step, "metric": task.metric, **metrics}
                checkpoint.save_model(
                    self.folder, lambda place: task.save(self.model, place), about
                )
        self._save()

    def _measured(self) -> dict[str, float]:
        self.model.eval()
        with (
            torch.inference_mode(),
            torch.autocast(
                self.processes.device.type, torch.bfloat16, enabled=self.settings.bf16
            ),
            torch.compiler.set_stance(
                "force_eager"
            ),  # the sizes of batches differ: compiling for each takes longer
        ):
            found = {
                name: float(value)
                for name, value in self.task.evaluate(self.model).items()
            }
        self.model.train()
        return found

    def _save(self) -> None:
        if self.processes.is_first:
            checkpoint.save(
                self.folder, self.state, self.model, self.optimizer, self.settings.keep
            )
