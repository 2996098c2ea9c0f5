"""whichsense prompts: what language models are asked, to read and to replace."""

from __future__ import annotations

from pathlib import Path

import click

from whichsense.errors import BadInput, did_you_mean
from whichsense.models.llm.prompts import copy_prompts, load_prompt, names, read_text

_own = click.option(
    "--prompts",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of your own: its files take the place of those that ship.",
)


@click.group(help="List, show and copy the prompts of language models.")
def command() -> None:
    pass


@command.command(name="list")
@_own
def list_prompts(folder: Path | None) -> None:
    """List the prompts: name, fields, what each is for."""
    for name in names():
        prompt = load_prompt(name, str(folder or ""))
        fields = ", ".join(sorted(prompt.fields))
        click.echo(f"{name:8}  {prompt.about}\n{'':8}  fields: {fields}")


@command.command()
@click.argument("name")
@_own
def show(name: str, folder: Path | None) -> None:
    """Print a prompt's file."""
    _check(name)
    click.echo(read_text(name, str(folder or "")), nl=False)


@command.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("chosen", metavar="[NAME]...", nargs=-1)
def copy(folder: Path, chosen: tuple[str, ...]) -> None:
    """Copy prompts into a folder, all of them or those that are named.

    What is there already stays as it is. A system's file reads the folder: [llm] prompts = "FOLDER".
    """
    for name in chosen:
        _check(name)
    for path in copy_prompts(folder, chosen or names()):
        click.echo(path)


def _check(name: str) -> None:
    if name not in names():
        raise BadInput(f"There is no prompt '{name}'. {did_you_mean(name, names())}")
