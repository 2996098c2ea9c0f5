"""The loop: it learns, selects by the metric, stops early, and resumes to the last bit after a real kill."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from whichsense.errors import BadConfig, BadInput
from whichsense.jobs.limits import Stopped
from whichsense.jobs.workers import usable_processes
from whichsense.lab.train import loop
from whichsense.lab.train.loop import Settings, rate_share, train
from whichsense.lab.train.processes import current_processes
from whichsense.lab.train.task import Lazy, Task, prefetch, shard_batches, shuffle_batches

HERE = Path(__file__).parent
SETTINGS = Settings(
    epochs=6,
    learning_rate=0.05,
    warmup=0.1,
    weight_decay=0.01,
    accumulate=2,
    checkpoint_every=1,
    log_every=1,
)


class Curve(Task[nn.Module, Any]):
    """A small net with dropout learns a curve: enough to need the random state, the optimiser's and the order."""

    metric, higher_is_better = "error", False

    def __init__(
        self,
        scripted: Sequence[float] = (),
        interrupt_at: int = 0,
        interrupt: signal.Signals = signal.SIGINT,
    ) -> None:
        self.scripted, self.evaluations = list(scripted), 0
        self.interrupt_at, self.interrupt, self.losses = interrupt_at, interrupt, 0
        dots = torch.linspace(-1, 1, 42).unsqueeze(1)
        self.rows = torch.cat([dots, torch.sin(2 * dots)], dim=1)

    def build(self) -> nn.Module:
        return nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], Any]:
        return Lazy(
            shuffle_batches(len(self.rows), 4, epoch, seed),
            lambda places: {"rows": self.rows[places]},
        )

    def loss(self, model: nn.Module, batch: Any) -> Any:
        self.losses += 1
        if self.losses == self.interrupt_at:
            os.kill(os.getpid(), self.interrupt)
        squares = (model(batch["rows"][:, :1]) - batch["rows"][:, 1:]).square()
        return squares.mean(), {"worst": squares.max()}

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert not model.training and not torch.is_grad_enabled()
        self.evaluations += 1
        error = float((model(self.rows[:, :1]) - self.rows[:, 1:]).square().mean())
        return {"error": self.scripted.pop(0) if self.scripted else error, "true_error": error}

    def save(self, model: nn.Module, folder: Path) -> None:
        torch.save(model.state_dict(), folder / "weights.pt")

    def data(self) -> list[Path]:
        return []


def weights(folder: Path) -> dict[str, Any]:
    path = loop.newest_checkpoint(folder)
    assert path is not None
    body: dict[str, Any] = torch.load(path, weights_only=True)
    return body


def logged(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "log.csv").read_text().splitlines()))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def test_learns_and_keeps_the_best(tmp_path: Path) -> None:
    trained = train(Curve(), SETTINGS, tmp_path, recipe={"about": "a curve", "base": "tiny"})
    assert trained.steps == 36 and trained.ended == "steps"  # 11 batches in groups of 2, 6 epochs
    assert trained.best < 0.03
    selected = json.loads((trained.model / "selected.json").read_text())
    assert selected["step"] == trained.best_step and selected["error"] == trained.best
    run = json.loads((tmp_path / "run.json").read_text())
    assert (
        run["recipe"] == {"base": "tiny"}
        and run["starts"][0]["seed"] == 0
        and run["starts"][0]["command"]
    )
    rows = logged(tmp_path)
    assert [int(row["step"]) for row in rows if row["name"] == "loss"] == list(range(1, 37))
    assert {row["name"] for row in rows} >= {"loss", "worst", "gradient", "rate", "error"}
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1


def test_selection_is_by_metric_and_patience_ends(tmp_path: Path) -> None:
    task = Curve(scripted=[0.5, 0.2, 0.3, 0.4, 0.1, 0.1])
    trained = train(task, Settings(epochs=6, patience=2), tmp_path)
    assert (trained.ended, trained.best, trained.best_step, task.evaluations) == (
        "patience",
        0.2,
        22,
        4,
    )
    again = Curve()
    assert train(again, Settings(epochs=6, patience=2), tmp_path).best == 0.2
    assert again.evaluations == 0  # a finished run is not run again


def train_and_kill(folder: Path, loss: int) -> int:
    """A process that kills itself in the middle of a step; returns its exit code."""
    code = (
        f"import signal, sys; sys.path.insert(0, {str(HERE)!r}); import torch; torch.set_num_threads(1)\n"
        "from test_loop import Curve, SETTINGS, train\n"
        f"train(Curve(interrupt_at={loss}, interrupt=signal.SIGKILL), SETTINGS, sys.argv[1])"
    )
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.run(command, check=False, stderr=subprocess.PIPE).returncode


def step_of(folder: Path) -> int:
    found = loop.newest_checkpoint(folder)
    return int(found.stem.removeprefix("step-")) if found else 0


def test_killed_and_resumed_gives_the_same_weights(tmp_path: Path) -> None:
    """kill -9 in the middle of an epoch, then to the end. Weights, optimiser and log equal an unbroken run's."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    torch.set_num_threads(1)
    train(Curve(), SETTINGS, whole)
    # 11 losses make an epoch of 6 steps: the 29th is in the 16th step.
    assert train_and_kill(broken, loss=29) == -signal.SIGKILL
    assert step_of(broken) == 15
    train(Curve(), SETTINGS, broken)
    assert same(weights(whole), weights(broken))
    assert same(
        torch.load(whole / "model" / "weights.pt"), torch.load(broken / "model" / "weights.pt")
    )
    first, second = (logged(folder) for folder in (whole, broken))
    assert [row | {"seconds": ""} for row in first] == [row | {"seconds": ""} for row in second]
    assert len(json.loads((broken / "run.json").read_text())["starts"]) == 2


def test_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    settings = dataclasses.replace(SETTINGS, checkpoint_every=1000)
    train(Curve(), settings, whole)
    task = Curve(interrupt_at=29)
    with pytest.raises(Stopped, match="Run the same command again"):
        train(task, settings, broken)
    assert step_of(broken) == 16  # the step in which it was asked is finished first
    train(Curve(), settings, broken)
    assert same(weights(whole), weights(broken))


def test_another_recipe_is_refused(tmp_path: Path) -> None:
    train(Curve(), Settings(steps=2), tmp_path)
    with pytest.raises(BadConfig, match=r"train.learning_rate \(1e-05 before, now 0.1\)"):
        train(Curve(), Settings(steps=2, learning_rate=0.1), tmp_path)
    with pytest.raises(BadConfig, match=r"recipe.base"):
        train(Curve(), Settings(steps=2), tmp_path, recipe={"base": "other"})


def test_what_changes_no_weight_may_change(tmp_path: Path) -> None:
    train(
        Curve(),
        Settings(steps=2, workers=2),
        tmp_path,
        recipe={"about": "a curve", "train": {"workers": 2}},
    )
    again = train(
        Curve(),
        Settings(steps=2, keep=3),
        tmp_path,
        recipe={"about": "another", "train": {"keep": 3}},
    )
    assert again.steps == 2


def test_a_broken_checkpoint_is_named(tmp_path: Path) -> None:
    train(Curve(), Settings(steps=2), tmp_path)
    path = loop.newest_checkpoint(tmp_path)
    assert path is not None
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BadInput, match="step-000000002"):
        train(Curve(), Settings(steps=2), tmp_path)


def test_loss_that_explodes_is_told(tmp_path: Path) -> None:
    class Exploding(Curve):
        def loss(self, model: nn.Module, batch: Any) -> Any:
            return super().loss(model, batch)[0] / 0

    with pytest.raises(BadInput, match=r"train.learning_rate"):
        train(Exploding(), Settings(steps=20), tmp_path)


def test_parameter_groups(tmp_path: Path) -> None:
    from whichsense.lab.train.loop import build_optimizer

    model = Curve().build()
    settings = Settings(steps=1, learning_rate=0.1, learning_rates={"3.": 0.5}, weight_decay=0.01)
    groups = {
        (g["full_rate"], g["weight_decay"]): len(g["params"])
        for g in build_optimizer(model, settings).param_groups
    }
    assert groups == {(0.1, 0.01): 1, (0.1, 0.0): 1, (0.5, 0.01): 1, (0.5, 0.0): 1}
    with pytest.raises(BadConfig, match="'head'"):
        build_optimizer(model, Settings(steps=1, learning_rates={"head": 1.0}))


def test_bf16_trains(tmp_path: Path) -> None:
    assert train(Curve(), Settings(epochs=6, learning_rate=0.05, bf16=True), tmp_path).best < 0.03


def test_accumulation_equals_a_larger_batch(tmp_path: Path) -> None:
    class Plain(Curve):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.size, self.rows = size, self.rows[:40]

        def build(self) -> nn.Module:
            return nn.Linear(1, 1)

        def batches(self, epoch: int, seed: int) -> Lazy[list[int], Any]:
            order = [place for batch in shuffle_batches(40, 8, epoch, seed) for place in batch]
            pieces = [order[i : i + self.size] for i in range(0, 40, self.size)]
            return Lazy(pieces, lambda places: {"rows": self.rows[places]})

    train(Plain(8), Settings(epochs=2, learning_rate=0.1), tmp_path / "large")
    train(Plain(2), Settings(epochs=2, learning_rate=0.1, accumulate=4), tmp_path / "small")
    large, small = (weights(tmp_path / name)["model"] for name in ("large", "small"))
    assert all(torch.allclose(large[name], small[name], atol=1e-6) for name in large)


def test_two_processes_average_their_gradients(tmp_path: Path) -> None:
    """Two processes under gloo end with the weights of one process that sees both their batches in each step."""
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import torch; torch.set_num_threads(1)\n"
        "from test_loop import Gathering, Settings, train\n"
        "train(Gathering(), Settings(epochs=3, learning_rate=0.1), sys.argv[1])"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    both = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "two")],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    try:
        for process in both:
            _, complaint = process.communicate(timeout=600)
            assert process.returncode == 0, complaint
    finally:
        for process in both:
            process.kill()
            process.communicate()
    train(Straight(), Settings(epochs=3, learning_rate=0.1, accumulate=2), tmp_path / "one")
    two, one = (weights(tmp_path / name) for name in ("two", "one"))
    assert one["state"]["step"] == two["state"]["step"] == 15
    assert all(
        torch.allclose(one["model"][name], two["model"][name], atol=1e-6) for name in one["model"]
    )


class Straight(Curve):
    """Without dropout, so that processes and accumulation can be compared; 10 batches of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = self.rows[:40]

    def build(self) -> nn.Module:
        return nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))


class Gathering(Straight):
    """The same, and at its first loss it checks what processes tell each other. Runs in each of two."""

    def loss(self, model: nn.Module, batch: Any) -> Any:
        if not self.losses:
            here = current_processes()
            assert here.count == 2
            own = torch.full((2, 1), float(here.rank + 1), requires_grad=True)
            rows = here.gather(own * 3)
            assert rows.flatten().tolist() == [3, 3, 6, 6]
            assert here.gather_constants(torch.tensor([here.rank])).tolist() == [0, 1]
            # Each process weighs all rows by its own number; a row's gradient is the sum over the processes.
            (rows.sum() * (here.rank + 1)).backward()
            assert own.grad is not None and own.grad.flatten().tolist() == [9.0, 9.0]
            assert (
                here.any(here.rank == 1) and not here.any(False) and here.broadcast(here.rank) == 0
            )
        return super().loss(model, batch)


needs_fork = pytest.mark.skipif(
    not usable_processes(2), reason="batches are made in a thread on this system"
)


@needs_fork
def test_processes_that_make_batches_change_nothing(tmp_path: Path) -> None:
    """Over six epochs, stopped in the middle of one."""
    train(Curve(), SETTINGS, tmp_path / "thread")
    several = dataclasses.replace(SETTINGS, workers=2)
    makers = Makers(interrupt_at=29)
    with pytest.raises(Stopped):
        train(makers, several, tmp_path / "processes")
    train(makers, several, tmp_path / "processes")
    assert same(weights(tmp_path / "thread"), weights(tmp_path / "processes"))
    others = set(makers.makers.tolist()) - {0, os.getpid()}
    assert len(others) == 4 and not any(
        map(alive, others)
    )  # two before and two after the stop, and none is left


class Makers(Curve):
    """Tells who made the batches."""

    def __init__(self, interrupt_at: int) -> None:
        super().__init__(interrupt_at=interrupt_at)
        self.makers = torch.zeros(1000, dtype=torch.long).share_memory_()

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], Any]:
        def make(places: list[int]) -> Any:
            self.makers[torch.count_nonzero(self.makers)] = os.getpid()
            return {"rows": self.rows[places]}

        return Lazy(shuffle_batches(len(self.rows), 4, epoch, seed), make)


def alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


@needs_fork
def test_what_fails_in_another_process_is_told_here(tmp_path: Path) -> None:
    class Failing(Curve):
        def batches(self, epoch: int, seed: int) -> Lazy[int, Any]:
            return Lazy(
                range(9), lambda number: {"rows": self.rows[[number]]} if number < 7 else 1 // 0
            )

    with pytest.raises(ZeroDivisionError):
        train(Failing(), dataclasses.replace(SETTINGS, workers=2), tmp_path / "ours")

    class Empty(Curve):
        def batches(self, epoch: int, seed: int) -> Lazy[int, Any]:
            return Lazy(
                range(9),
                lambda number: {"rows": self.rows[[number]]} if number < 7 else self.missing(),
            )

        def missing(self) -> Any:
            raise BadInput("Nothing is there.")

    with pytest.raises(
        BadInput, match=r"^Nothing is there\.$"
    ):  # in one line, as a person reads it
        train(Empty(), dataclasses.replace(SETTINGS, workers=2), tmp_path / "theirs")


def test_schedules() -> None:
    cosine = [
        rate_share(step, 100, Settings(steps=100, schedule="cosine", warmup=0.1))
        for step in (0, 9, 10, 55, 99)
    ]
    assert (
        cosine[:3] == pytest.approx([0.1, 1.0, 1.0])
        and cosine[3] == pytest.approx(0.5)
        and cosine[4] < 0.01
    )
    assert rate_share(99, 100, Settings(steps=100, schedule="constant")) == 1.0


def test_batches() -> None:
    assert sorted(place for batch in shuffle_batches(10, 3, 0, 0) for place in batch) == list(
        range(10)
    )
    lengths = [1, 9] * 20
    assert all(
        len({lengths[i] for i in batch}) == 1 for batch in shuffle_batches(40, 4, 0, 0, lengths)
    )
    whole = Lazy(range(7), str)
    assert (
        list(shard_batches(whole, 1, 2, skip=1))
        == list(shard_batches(iter(whole), 1, 2, skip=1))
        == ["3", "5"]
    )
    assert list(prefetch(range(20))) == list(range(20))

    def failing() -> Any:
        yield 1
        raise KeyError("lost")

    ready = prefetch(failing())
    assert next(ready) == 1
    with pytest.raises(KeyError):
        next(ready)


@pytest.mark.parametrize(
    ("values", "told"),
    [({}, "train.epochs or train.steps"), ({"steps": 1, "accumulate": 0}, "train.accumulate")],
)
def test_settings_that_cannot_be(values: dict[str, int], told: str) -> None:
    with pytest.raises(BadConfig, match=told):
        Settings(**values)  # type: ignore[arg-type]
