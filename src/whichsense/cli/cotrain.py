"""whichsense cotrain: readers that teach each other."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path), metavar="RECIPE.toml")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="[default: runs/ and the recipe's name]",
)
@click.option(
    "--tiny",
    is_flag=True,
    help="At its tiny size: minutes on a CPU, over the embedded sample.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(recipe: Path, out: Path | None, tiny: bool, as_json: bool) -> None:
    """Co-train readers as RECIPE.toml describes. The same command resumes a run that was stopped or killed."""
    from whichsense.train.cotraining.run import cotrain
    from whichsense.train.cotraining.settings import load_cotraining

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
