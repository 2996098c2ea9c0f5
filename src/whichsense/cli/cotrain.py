"""whichsense cotrain: readers that teach each other."""

from __future__ import annotations

import json
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
    from whichsense.train.cotraining import cotrain, load_cotraining

    settings = load_cotraining(recipe, tiny=tiny)
    folder = out or Path("runs") / (f"{recipe.stem}-tiny" if tiny else recipe.stem)
    done = cotrain(
        settings, recipe.parent, folder, say=lambda line: click.echo(line, err=True)
    )
    if as_json:
        print(
            json.dumps(
                {
                    "models": [str(one) for one in done.models],
                    "f1_ans": done.f1_ans,
                    "silver": done.silver,
                }
            )
        )
        return
    several, single = done.silver
    print(f"F1ans {done.f1_ans:.4f} by the vote of:", *done.models, sep="\n  ")
    print(
        f"Added from single answers: {several:,} questions with several answers, {single:,} with one."
    )
