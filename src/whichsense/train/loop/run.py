"""The one training loop. `whichsense.train` tells how to write a task for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

import torch

from whichsense.errors import BadConfig, BadInput
from whichsense.jobs.progress import Progress, silent, unsaid
from whichsense.jobs.stopping import Stopped, stop_requested
from whichsense.train.loop import checkpoint, record
from whichsense.train.loop.batches import group_batches
from whichsense.train.loop.checkpoint import RunState
from whichsense.train.loop.feed import BatchFeed
from whichsense.train.loop.logs import Logs
from whichsense.train.loop.optimizer import build_optimizer, prepare_model
from whichsense.train.loop.processes import Processes, start_processes
from whichsense.train.loop.settings import Settings
from whichsense.train.loop.step import TrainingStep
from whichsense.train.loop.task import BatchT, ModelT, Task


@dataclass(frozen=True, slots=True)
class Trained:
    """How a run ended. The best model is in the folder `model`."""

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
    """Train, or resume a killed or stopped run; a finished run is returned as it is.

    `recipe` is written into the folder's record, and a resumed run must bring the same.
    """
    with start_processes(settings.device) as processes, stop_requested() as stop:
        run = _Run(task, settings, Path(folder), processes, progress=progress, say=say)
        run.prepare(recipe or {})
        return run.finish_epochs(stop)


class _Run(Generic[ModelT, BatchT]):
    """One run: the task and its settings, and the state that changes."""

    model: ModelT
    state: RunState
    step: TrainingStep[ModelT, BatchT]
    logs: Logs | None

    def __init__(
        self,
        task: Task[ModelT, BatchT],
        settings: Settings,
        folder: Path,
        processes: Processes,
        *,
        progress: Progress,
        say: Callable[[str], None],
    ) -> None:
        self.task = task
        self.settings = settings
        self.folder = folder
        self.processes = processes
        self.progress = progress
        self.say = say
        self.feed = BatchFeed(task, settings, processes)

    def prepare(self, recipe: Mapping[str, Any]) -> None:
        """Check the folder, then build or load model, optimizer and state."""
        settings, processes = self.settings, self.processes
        if processes.is_first:
            record.begin(self.folder, settings, recipe, self.task.data())
            checkpoint.repair(self.folder)
        # No process reads the folder before the first one has prepared it.
        processes.broadcast(None)
        processes.seed(settings.seed, -1)
        self.model = self.task.build().to(processes.device)
        self.optimizer = build_optimizer(self.model, settings)
        newest = checkpoint.newest(self.folder)
        if newest is None:
            self.state = RunState()
        else:
            self.state = checkpoint.load(newest, self.model, self.optimizer)
        processes.share_weights(self.model)
        prepare_model(self.model, settings)
        self.step = TrainingStep(
            self.task, self.model, self.optimizer, settings, processes
        )
        self.logs = Logs(self.folder, self.state.step) if processes.is_first else None

    def finish_epochs(self, stop: Callable[[], bool]) -> Trained:
        """Train until the run ends: by its steps, or by patience."""
        state = self.state
        if state.step and not state.ended:
            self.say(f"Resuming at step {state.step:,}.")
        try:
            while not state.ended:
                self._run_epoch(stop)
        finally:
            self.feed.close()
            if self.logs is not None:
                self.logs.close()
        assert state.best is not None  # every run ends with an evaluation
        return Trained(
            self.folder,
            state.step,
            state.best,
            state.best_step,
            state.best_metrics,
            state.ended,
        )

    def _run_epoch(self, stop: Callable[[], bool]) -> None:
        """Train from the state's position to the end of its epoch, or of the run."""
        settings, state = self.settings, self.state
        batches = self.feed.batches(state.epoch)
        total = self.feed.total_steps(batches)
        is_empty = state.position == 0
        self.model.train()
        own = self.feed.remaining(batches, state.epoch, state.position)
        with contextlib.closing(own):
            for group in group_batches(own, settings.accumulate):
                is_empty = False
                self._train_step(group, total)
                self._after_step(total, stop)
                if state.ended:
                    return
        if is_empty:
            raise BadInput(
                "The task gave no batch to train on. Is the training data empty, or are there too few?"
            )
        state.epoch += 1
        state.position = 0
        if not settings.evaluate_every:
            self._evaluate(total)

    def _train_step(self, group: list[BatchT], total: int) -> None:
        settings, state = self.settings, self.state
        gradient, rate = self.step.update(group, state.step, total)
        state.step += 1
        state.position += 1
        if state.step % settings.log_every == 0 or state.step == total:
            means = self.step.pop_means(state.step)
            self._log(means | {"gradient": float(gradient), "rate": rate}, total)

    def _after_step(self, total: int, stop: Callable[[], bool]) -> None:
        """Evaluate, stop or write a checkpoint, where this step asks for it."""
        settings, state = self.settings, self.state
        if state.step >= total:
            self._evaluate(total, ended="steps")
            return
        if settings.evaluate_every and state.step % settings.evaluate_every == 0:
            self._evaluate(total)
        if state.ended:
            return
        if self.processes.any(stop()):
            self._save()
            raise Stopped(
                "Stopped. Run the same command again: it resumes where it was."
            )
        if state.step % settings.checkpoint_every == 0:
            self._save()

    def _log(self, values: Mapping[str, float], total: int) -> None:
        if self.logs is not None:
            self.logs.write(self.state.step, self.state.epoch, "train", values)
            self.progress(self.state.step / total, self.state.step)

    def _evaluate(self, total: int, ended: str = "") -> None:
        """Compute the metrics, keep the model if it is the best so far, and write a checkpoint."""
        state, task = self.state, self.task
        # Only the first process evaluates; the others wait for its metrics.
        own = self._compute_metrics() if self.processes.is_first else {}
        metrics = self.processes.broadcast(own)
        if task.metric not in metrics:
            raise BadConfig(
                f"The task selects by '{task.metric}', but its evaluation gives: {', '.join(metrics)}."
            )
        is_best = state.note(metrics, task.metric, task.higher_is_better)
        patience = self.settings.patience
        if patience and state.without_gain >= patience:
            ended = ended or "patience"
        state.ended = ended
        if self.logs is not None:
            self.logs.write(state.step, state.epoch, "evaluate", metrics)
            mark = " (best)" if is_best else ""
            value = f"{task.metric} {metrics[task.metric]:.4f}"
            self.say(f"step {state.step:,} of {total:,}: {value}{mark}")
            if is_best:
                about = {"step": state.step, "metric": task.metric, **metrics}
                checkpoint.save_model(self.folder, self._write_model, about)
        self._save()

    def _compute_metrics(self) -> dict[str, float]:
        self.model.eval()
        device = self.processes.device.type
        with (
            torch.inference_mode(),
            torch.autocast(device, torch.bfloat16, enabled=self.settings.bf16),
            # The sizes of batches differ here: compiling for each takes longer.
            torch.compiler.set_stance("force_eager"),
        ):
            metrics = self.task.evaluate(self.model)
            values = {name: float(value) for name, value in metrics.items()}
        self.model.train()
        return values

    def _write_model(self, folder: Path) -> None:
        self.task.save(self.model, folder)

    def _save(self) -> None:
        if self.processes.is_first:
            keep = self.settings.keep
            checkpoint.save(self.folder, self.state, self.model, self.optimizer, keep)
