"""The one training loop: settings, optimizer, steps, feed of batches, checkpoints, logs, exact resume."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Generic, Literal

import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig, BadInput
from whichsense.files import read_json, write_atomically
from whichsense.jobs.limits import Progress, Stopped, silent, stop_requested, unsaid
from whichsense.jobs.workers import usable_processes
from whichsense.lab.provenance import provenance
from whichsense.lab.train.processes import BatchWorkers, Place, Processes, start_processes
from whichsense.lab.train.task import BatchT, ModelT, Task, group_batches, prefetch, shard_batches
from whichsense.types import frozen

# What a recipe's `[train]` table may say: the settings of the one training loop.

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


@frozen
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
    clip: float = 1.0
    """The largest norm of the gradient; 0: not clipped."""
    accumulate: int = 1
    """Batches whose gradients make one step."""
    bf16: bool = False
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
        return table


def rate_share(step: int, total: int, settings: Settings) -> float:
    """Return the share of the full learning rate at a step, counted from 0.

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


# AdamW with parameter groups, what the settings change about a model, batches on a device.


def build_optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """AdamW. Parameters are grouped by learning rate and by whether they are decayed (matrices are)."""
    # (learning rate, weight decay) → parameters
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    unused = set(settings.learning_rates)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        prefixes = _matching_prefixes(name, settings)
        unused -= set(prefixes)
        rate = settings.learning_rate
        if prefixes:
            rate = settings.learning_rates[max(prefixes, key=len)]
        decay = settings.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    if unused:
        names = sorted({name.split(".")[0] for name, _ in model.named_parameters()})
        raise BadConfig(
            f"train.learning_rates: no parameter begins with '{min(unused)}'. There are: {', '.join(names)}."
        )
    if not groups:
        raise BadConfig("The model has no parameter that could be trained.")
    # full_rate: what the schedule's share is taken of at every step.
    tables = [
        {"params": parameters, "lr": rate, "full_rate": rate} | {"weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    return torch.optim.AdamW(tables)


def _matching_prefixes(name: str, settings: Settings) -> list[str]:
    """Return the prefixes with a learning rate of their own that a parameter's name begins with."""
    return [prefix for prefix in settings.learning_rates if fnmatchcase(name, f"{prefix}*")]


def _checkpoint_activations(part: Any) -> None:
    """Newer releases of transformers have another name for it; our own networks have the older one."""
    options = {"use_reentrant": False}
    if hasattr(part, "activation_checkpointing_enable"):
        part.activation_checkpointing_enable(options)
    else:
        part.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)


def prepare_model(model: nn.Module, settings: Settings) -> None:
    """Turn on gradient checkpointing and compilation, in place, where the settings ask for them."""
    if settings.gradient_checkpointing:
        parts = _parts_with(model, "gradient_checkpointing_enable")
        if not parts:
            raise BadConfig(
                "This model cannot trade time for memory: leave train.gradient_checkpointing out."
            )
        for part in parts:
            _checkpoint_activations(part)
    if settings.compile:
        # Sizes of another recipe in the same process would make this one's variable.
        torch.compiler.reset()
        model.compile()  # in place: the weights keep their names


def _parts_with(model: nn.Module, method: str) -> list[Any]:
    return [part for part in model.modules() if hasattr(part, method)]


def to_device(batch: Any, device: torch.device) -> Any:
    """Move every tensor of a batch to the device; anything else stays as it is."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch


# One training step: the gradients of a group of batches, clipping, the learning rate, the optimizer's
# update.


class TrainingStep(Generic[ModelT, BatchT]):
    """Updates the model, and sums the losses since the last log."""

    def __init__(
        self,
        task: Task[ModelT, BatchT],
        model: ModelT,
        optimizer: torch.optim.Optimizer,
        settings: Settings,
        processes: Processes,
    ) -> None:
        self._task = task
        self._model = model
        self._optimizer = optimizer
        self._settings = settings
        self._processes = processes
        # Tensors stay on the device until they are logged: reading a number makes the device wait.
        self._sums: dict[str, float | Tensor] = {}
        self._steps = 0.0

    def update(self, group: Sequence[BatchT], step: int, total: int) -> tuple[Tensor, float]:
        """Train on the batches of one step; returns the gradient's norm, on the device, and the learning rate."""
        settings, processes = self._settings, self._processes
        processes.seed(settings.seed, step)
        for batch in group:
            self._add_gradients(batch, len(group))
        processes.average_gradients(self._model)
        longest = settings.clip or math.inf
        norm = nn.utils.clip_grad_norm_(self._model.parameters(), longest)
        share = rate_share(step, total, settings)
        for parameters in self._optimizer.param_groups:
            parameters["lr"] = parameters["full_rate"] * share
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return norm, settings.learning_rate * share

    def pop_means(self, step: int) -> dict[str, float]:
        """Return the mean loss and its parts since the last call; a loss that is not finite is an error."""
        means = {name: float(value) / self._steps for name, value in self._sums.items()}
        self._sums = {}
        self._steps = 0.0
        if not math.isfinite(means["loss"]):
            raise BadInput(
                f"The loss is {means['loss']} at step {step}. "
                "Lower train.learning_rate, or train without bf16."
            )
        return means

    def _add_gradients(self, batch: BatchT, group_size: int) -> None:
        device = self._processes.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._settings.bf16):
            loss = self._task.loss(self._model, to_device(batch, device))
        parts: Mapping[str, float | Tensor] = {}
        if isinstance(loss, tuple):
            loss, parts = loss
        # The mean over the group, whatever its size.
        (loss / group_size).backward()  # type: ignore[no-untyped-call]
        for name, part in {"loss": loss, **parts}.items():
            value = part.detach() if isinstance(part, Tensor) else part
            self._sums[name] = self._sums.get(name, 0.0) + value / group_size
        self._steps += 1 / group_size


# The batches of one process: its share of an epoch, made ahead of need by a thread or by worker
# processes.


class BatchFeed(Generic[ModelT, BatchT]):
    """Gives a run its batches. Worker processes are started once and live as long as the run."""

    def __init__(
        self, task: Task[ModelT, BatchT], settings: Settings, processes: Processes
    ) -> None:
        self._task = task
        self._settings = settings
        self._processes = processes
        self._workers: BatchWorkers | None = None

    def batches(self, epoch: int) -> Any:
        """Return all batches of an epoch: an Iterable, mostly a Sequence."""
        return self._task.batches(epoch, self._settings.seed)

    def remaining(
        self, batches: Iterable[BatchT], epoch: int, position: int
    ) -> Generator[BatchT, None, None]:
        """This process's share of an epoch's batches, after the first `position` steps."""
        shard = self._shard(batches, position)
        count = usable_processes(self._settings.workers)
        if not count or not isinstance(shard, Sequence) or not shard:
            return prefetch(shard)
        if self._workers is None:
            # Workers are forked: what a task computes once must be there before they are.
            shard[0]
            places = self._places(epoch, position)
            self._workers = BatchWorkers(self.batches, places, count)
        return self._workers.take(len(shard))

    def total_steps(self, batches: Iterable[BatchT]) -> int:
        """Return the steps of the whole run, which the learning rate's schedule needs."""
        settings = self._settings
        if not settings.epochs:
            return settings.steps
        if not isinstance(batches, Sequence):
            raise BadConfig(
                "This task does not know how long an epoch is: give train.steps in place of train.epochs."
            )
        own_batches = len(batches) // self._processes.count
        total = settings.epochs * math.ceil(own_batches / settings.accumulate)
        return min(total, settings.steps or total)

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def _places(self, epoch: int, position: int) -> Iterator[Place]:
        """Yield the places of this process's batches from here on, without end."""
        while True:
            numbers = range(len(self.batches(epoch)))
            for number in self._shard(numbers, position):
                yield epoch, number
            epoch += 1
            position = 0

    def _shard(self, batches: Iterable[Any], position: int) -> Iterable[Any]:
        rank, count = self._processes.rank, self._processes.count
        return shard_batches(batches, rank, count, position * self._settings.accumulate)


# Checkpoints: written to a temporary file and renamed, so that a kill at any moment leaves one to
# resume from.

MODEL = "model"
"""The folder of the best model, inside the run's folder."""
_CHECKPOINTS = "checkpoints"
_NEW_MODEL, _OLD_MODEL = ".model.new", ".model.old"


@dataclass(slots=True)
class RunState:
    """How far a run is. With the weights and the optimizer's state this is all that resuming needs."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    """Steps done in this epoch."""
    best: float | None = None
    best_step: int = 0
    best_metrics: dict[str, float] = field(default_factory=dict)
    without_gain: int = 0
    ended: str = ""
    """Why the run is over: "steps" or "patience"; empty while it is not."""

    def note(self, metrics: dict[str, float], metric: str, higher_is_better: bool) -> bool:
        """Take in an evaluation; returns whether it is the best so far."""
        value = metrics[metric]
        if self.best is None:
            is_best = True
        elif higher_is_better:
            is_best = value > self.best
        else:
            is_best = value < self.best
        if is_best:
            self.best = value
            self.best_step = self.step
            self.best_metrics = metrics
            self.without_gain = 0
        else:
            self.without_gain += 1
        return is_best


def save(
    folder: Path,
    state: RunState,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    keep: int,
) -> None:
    """Write one file with everything, then remove older checkpoints beyond `keep`."""
    checkpoints = folder / _CHECKPOINTS
    checkpoints.mkdir(parents=True, exist_ok=True)
    path = checkpoints / f"step-{state.step:09d}.pt"
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    body = {
        "state": asdict(state),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    try:
        with open(temporary, "wb") as file:
            torch.save(body, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    # A kill may have left temporary files of other processes.
    older = sorted(checkpoints.glob("step-*.pt"))[:-keep]
    for stale in (*older, *checkpoints.glob("*.tmp")):
        stale.unlink(missing_ok=True)


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint that a run resumes from."""
    return max((folder / _CHECKPOINTS).glob("step-*.pt"), default=None)


def load(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> RunState:
    """Load the weights into model and optimizer; an error says what to do with a file that does not fit."""
    try:
        body: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(body["model"])
        optimizer.load_state_dict(body["optimizer"])
        return RunState(**body["state"])
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, EOFError) as error:
        why = str(error).splitlines()[0]
        raise BadInput(
            f"'{path}' is not a checkpoint of this recipe: {why}. Remove it, or choose another --out."
        ) from None


def save_model(folder: Path, write: Callable[[Path], None], about: dict[str, Any]) -> None:
    """Replace `folder/model` by the best model so far in two renames. `about` is written into it as selected.json."""
    new = folder / _NEW_MODEL
    old = folder / _OLD_MODEL
    place = folder / MODEL
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    new.mkdir(parents=True)
    write(new)
    write_atomically(new / "selected.json", json.dumps(about, indent=2) + "\n")
    if place.exists():
        os.replace(place, old)
    os.replace(new, place)
    shutil.rmtree(old, ignore_errors=True)


def repair(folder: Path) -> None:
    """Bring back the old model after a kill between the two renames of `save_model`."""
    old = folder / _OLD_MODEL
    place = folder / MODEL
    if old.exists() and not place.exists():
        os.replace(old, place)


# The record of a run: recipe, command, commit, checksums and seed, written before the first step.

_FILE = "run.json"


def begin(
    folder: Path, settings: Settings, recipe: Mapping[str, Any], data: Sequence[Path]
) -> None:
    """Write the record, or check that the folder holds this same run. Every start is added to its list."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _FILE
    start = provenance(data, settings.seed)
    # What a resumed run must have in common with the one that began.
    binding = {
        "recipe": json.loads(json.dumps(_binding_tables(recipe))),
        "train": settings.binding,
        "data": start.pop("data"),
    }
    starts = []
    if path.exists():
        before = read_json(path)
        before["recipe"] = _binding_tables(before.get("recipe", {}))
        for part, value in binding.items():
            if before.get(part) != value:
                difference = _first_difference(before.get(part), value, part)
                raise BadConfig(
                    f"'{folder}' holds a run with another {difference}. "
                    "Take the same recipe to resume it, or another --out to begin anew."
                )
        starts = before["starts"]
    starts.append(start)
    body = json.dumps({**binding, "starts": starts}, indent=2, ensure_ascii=False)
    write_atomically(path, body + "\n")


def _binding_tables(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe without its description, and without settings that do not change the weights."""
    tables = dict(recipe)
    tables.pop("about", None)
    if "train" in tables:
        tables["train"] = dict(tables["train"])
        for name in FREE:
            tables["train"].pop(name, None)
    return tables


def _first_difference(before: Any, now: Any, name: str) -> str:
    """Return the first setting that is not the same.

    >>> _first_difference({"seed": 1, "a": {"b": 1}}, {"seed": 1, "a": {"b": 2}}, "train")
    'train.a.b (1 before, now 2)'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                return _first_difference(before.get(key), now.get(key), f"{name}.{key}")
    return f"{name} ({before!r} before, now {now!r})"


# Logs of a run.

_LOGS_FILE = "log.csv"
_COLUMNS = ("step", "epoch", "seconds", "kind", "name", "value")


class Logs:
    """One row for each number: `step,epoch,seconds,kind,name,value`. Long form: tasks differ in what they report."""

    def __init__(self, folder: Path, step: int) -> None:
        """Drop rows after `step`: a kill undid their steps, which are logged again when they are repeated."""
        self._path = folder / _LOGS_FILE
        rows = _read_rows(self._path)
        valid = [row for row in rows if int(row["step"]) <= step]
        # Seconds count on from those of the interrupted run.
        self._seconds_before = float(valid[-1]["seconds"]) if valid else 0.0
        self._start = time.monotonic()
        if len(valid) < len(rows) or not self._path.exists():
            lines = [",".join(_COLUMNS)]
            lines.extend(",".join(row[column] for column in _COLUMNS) for row in valid)
            write_atomically(self._path, "\n".join(lines) + "\n")

    def write(self, step: int, epoch: int, kind: str, values: Mapping[str, float]) -> None:
        seconds = self._seconds_before + time.monotonic() - self._start
        with open(self._path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            for name, value in values.items():
                row = [step, epoch, f"{seconds:.2f}", kind, name, repr(value)]
                writer.writerow(row)


def _read_rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        # A kill in mid-write leaves half a line: it is not a row.
        return [row for row in csv.DictReader(file) if all(row.get(column) for column in _COLUMNS)]


# The one training loop. `whichsense.lab.train` tells how to write a task for it.


@frozen
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
        return self.folder / MODEL


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
            begin(self.folder, settings, recipe, self.task.data())
            repair(self.folder)
        # No process reads the folder before the first one has prepared it.
        processes.broadcast(None)
        processes.seed(settings.seed, -1)
        self.model = self.task.build().to(processes.device)
        self.optimizer = build_optimizer(self.model, settings)
        newest = newest_checkpoint(self.folder)
        if newest is None:
            self.state = RunState()
        else:
            self.state = load(newest, self.model, self.optimizer)
        processes.share_weights(self.model)
        prepare_model(self.model, settings)
        self.step = TrainingStep(self.task, self.model, self.optimizer, settings, processes)
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
        assert state.best is not None  # every run ends with an evaluation
        return Trained(
            self.folder, state.step, state.best, state.best_step, state.best_metrics, state.ended
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
            raise Stopped("Stopped. Run the same command again: it resumes where it was.")
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
                save_model(self.folder, self._write_model, about)
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
            save(self.folder, self.state, self.model, self.optimizer, keep)
