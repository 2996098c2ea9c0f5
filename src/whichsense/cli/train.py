"""whichsense train and cotrain: train a model from a recipe; train readers that teach each other."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whichsense.cli.evidence import (
    flag_option,
    json_option,
    path_option,
    repeated_option,
    spread_options,
    use_executor,
)

if TYPE_CHECKING:
    from whichsense.lab.train.loop import Trained


# whichsense train: a model from a recipe.


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path), metavar="RECIPE")
@path_option("--out", "[default: runs/ and the recipe's name]")
@repeated_option("--set", "changes", "KEY=VALUE", "Change a setting: --set train.steps=100.")
@flag_option("--tiny", "At the recipe's tiny size: a minute on a CPU, over the embedded sample.")
@click.option(
    "--sweep",
    metavar="KEY=VALUE,…",
    help="Train once for each value of a setting: --sweep train.seed=0,1,2.",
)
@spread_options
@json_option
def command(
    recipe: Path,
    out: Path | None,
    changes: tuple[str, ...],
    tiny: bool,
    sweep: str | None,
    cluster: str | None,
    workers: int | None,
    gpus: float,
    as_json: bool,
) -> None:
    """Train what RECIPE describes: a TOML file, FILE.toml:VARIANT, or the name of a recipe that ships.

    The same command resumes a run that was stopped or killed. On several GPUs:
    torchrun --nproc-per-node 8 -m whichsense train RECIPE

    With --cluster, the runs of a sweep, or else the lists to train on, are made by its workers.
    """
    from whichsense.jobs.workers import spread_over
    from whichsense.lab.train.chain import train_recipe, train_sweep
    from whichsense.lab.train.processes import is_first_process

    say = partial(click.echo, err=True)
    if cluster and not sweep and not _has_lists(recipe, changes, tiny):
        raise click.UsageError(
            "--cluster spreads the runs of --sweep KEY=VALUE,…, or the lists of a recipe that has a folder for them: "
            "--set lists.folder=DIR."
        )
    executor = use_executor(cluster, workers, gpus)
    if sweep:
        folder = out or Path("runs") / f"{recipe.stem}-sweep"
        _print_runs(train_sweep(recipe, folder, changes, sweep, tiny=tiny, executor=executor))
        return
    with spread_over(executor) if cluster else nullcontext():
        trained = train_recipe(recipe, out, changes, tiny=tiny, say=say)
    if not is_first_process():
        return
    if as_json:
        body = {
            "model": str(trained.model),
            "steps": trained.steps,
            "best_step": trained.best_step,
            "ended": trained.ended,
            "metrics": dict(trained.metrics),
        }
        print(json.dumps(body))
        return
    numbers = ", ".join(f"{name} {value:.4f}" for name, value in trained.metrics.items())
    steps = f"step {trained.best_step:,} of {trained.steps:,}"
    print(f"{trained.model}: {steps}, {numbers}")


def _print_runs(runs: Iterable[tuple[str, Trained]]) -> None:
    for change, run in runs:
        line = {"change": change, "model": str(run.model), "metrics": run.metrics}
        print(json.dumps(line), flush=True)


def _has_lists(recipe: Path, changes: tuple[str, ...], tiny: bool) -> bool:
    """Tell whether the recipe trains on lists that are stored in a folder."""
    from whichsense.lab.train.recipes import load_recipe

    options = load_recipe(recipe, changes, tiny=tiny).options
    lists = getattr(options, "lists", None)
    return bool(getattr(lists, "folder", ""))


# whichsense cotrain: readers that teach each other.


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path), metavar="RECIPE.toml")
@path_option("--out", "[default: runs/ and the recipe's name]")
@flag_option("--tiny", "At its tiny size: minutes on a CPU, over the embedded sample.")
@json_option
def cotrain_command(recipe: Path, out: Path | None, tiny: bool, as_json: bool) -> None:
    """Co-train readers as RECIPE.toml describes. The same command resumes a run that was stopped or killed."""
    from whichsense.lab.tasks.cotraining import cotrain, load_cotraining

    settings = load_cotraining(recipe, tiny=tiny)
    name = f"{recipe.stem}-tiny" if tiny else recipe.stem
    folder = out or Path("runs") / name
    result = cotrain(settings, recipe.parent, folder, say=partial(click.echo, err=True))
    several, single = result.silver
    if as_json:
        models = [str(model) for model in result.models]
        body = {"models": models, "f1_ans": result.f1_ans, "silver": result.silver}
        print(json.dumps(body))
        return
    print(f"F1ans {result.f1_ans:.4f} by the vote of:", *result.models, sep="\n  ")
    print(
        f"Added from single answers: {several:,} questions with several answers, {single:,} with one."
    )
