"""whichsense data and prompts: what is shipped or fetched, listed, described and checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import data_dir_option, flag_option, json_option, repeated_option
from whichsense.errors import BadInput, did_you_mean
from whichsense.models.llm.prompts import copy_prompts, load_prompt, names, read_text

if TYPE_CHECKING:
    from whichsense.lab.datasets.dataset import CheckReport

# whichsense data: list, describe, check and fetch the datasets.

# Fields of a check's report that --json prints, beside the path.
_CHECKED = ("name", "ok", "count", "release", "checksum", "problem")


@click.group()
def command() -> None:
    """List, describe, check and fetch the datasets."""


@command.command("list")
@json_option
@data_dir_option
def list_(as_json: bool, data_dir: Path | None) -> None:
    """List all datasets, with the path of those that are present."""
    from whichsense.lab import datasets

    paths = {name: datasets.find(datasets.entry(name), data_dir) for name in datasets.names()}
    if as_json:
        _print_json([{"name": name, "path": path and str(path)} for name, path in paths.items()])
        return
    width = max(map(len, paths))
    for name, path in paths.items():
        click.echo(f"{name:<{width}}  {path or '–'}")
    present = sum(path is not None for path in paths.values())
    folder = datasets.data_folder(data_dir)
    click.echo(f"{present} of {len(paths)} are present. Data folder: {folder}", err=True)


@command.command()
@click.argument("name")
@json_option
@data_dir_option
def info(name: str, as_json: bool, data_dir: Path | None) -> None:
    """Print a dataset's source, licence, citation and releases."""
    from dataclasses import asdict

    from whichsense.lab import datasets

    about = datasets.entry(name)
    path = datasets.find(about, data_dir)
    if as_json:
        _print_json({**asdict(about), "path": str(path) if path else None})
        return
    family = about.family
    download = about.download.url if about.download else "not automatically: see the homepage"
    click.echo(f"{about.name}: {family.title}\n{family.about}")
    if about.about:
        click.echo(about.about)
    click.echo(f"\nhomepage  {family.homepage}\nlicence   {family.licence}")
    click.echo(f"download  {download}")
    click.echo(f"path      {path or '–'}\n\nreleases")
    for release in about.releases:
        count = "" if release.count is None else f", {release.count:,} records"
        note = f" ({release.note})" if release.note else ""
        files = " or ".join(release.files)
        click.echo(f"  {release.name}: {files}{count}{note}")
        click.echo(f"    sha256 {release.sha256 or 'not on record'}")
    click.echo(f"\n{family.citation}")


@command.command()
@click.argument("names", nargs=-1)
@json_option
@data_dir_option
def check(names: Sequence[str], as_json: bool, data_dir: Path | None) -> None:
    """Compare files with the catalog: checksum, count, schema of every record. Without NAMES: all that are present."""
    from whichsense.lab import datasets

    names = names or _present(data_dir)
    if not names:
        folder = datasets.data_folder(data_dir)
        click.echo(f"No dataset is in '{folder}'. See: whichsense data list", err=True)
    rows = []
    for name in names:
        report = datasets.check(name, data_dir)
        row = {field: getattr(report, field) for field in _CHECKED}
        rows.append(row | {"path": report.path and str(report.path)})
        if not as_json:
            click.echo(_checked_line(report))
    if as_json:
        _print_json(rows)
    # Exit status 1 lets a script notice.
    sys.exit(0 if all(row["ok"] for row in rows) else 1)


def _present(data_dir: Path | None) -> list[str]:
    """Return the names of the datasets that are there."""
    from whichsense.lab import datasets

    known = datasets.names()
    return [one for one in known if datasets.find(datasets.entry(one), data_dir)]


def _checked_line(report: CheckReport) -> str:
    """Return what a check found, for a person."""
    mark = "ok  " if report.ok else "BAD "
    checked = f"{report.release} release, checksum {report.checksum}"
    summary = f"{report.count:,} records, {checked}"
    return f"{mark} {report.name}: {report.problem or summary}"


@command.command()
@click.argument("name")
@flag_option("--force", "Download it even if it is present.")
@data_dir_option
def fetch(name: str, force: bool, data_dir: Path | None) -> None:
    """Download a dataset into the data folder."""
    from whichsense.jobs.limits import show_progress
    from whichsense.lab import datasets

    with show_progress(name, "kB") as progress:
        path = datasets.fetch(name, data_dir, force=force, progress=progress)
    click.echo(path)


@command.command("make-clarifications")
@click.argument("name")
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; what it was made from is written beside it.",
)
@repeated_option(
    "--readings",
    "more",
    "NAME",
    "Another dataset, whose readings questions of the same id take that have none.",
)
@data_dir_option
def make_clarifications(name: str, out: Path, more: Sequence[str], data_dir: Path | None) -> None:
    """Write a clarification question, in CAmbigNQ's form, for each question of NAME with several rewrites.

    They are silver data to train a generator with. Made for CAmbigNQ's own questions, they are predictions that
    `whichsense score cambignq` scores.
    """
    from whichsense.lab.evaluation.components import write_clarifications

    count = write_clarifications(name, out, more, data_dir)
    click.echo(f"{count:,} clarification questions → {out}", err=True)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


# whichsense prompts: what language models are asked, to read and to replace.

_own = click.option(
    "--prompts",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of your own: its files take the place of those that ship.",
)


@click.group(help="List, show and copy the prompts of language models.")
def prompts_command() -> None:
    pass


@prompts_command.command(name="list")
@_own
def list_prompts(folder: Path | None) -> None:
    """List the prompts: name, fields, what each is for."""
    for name in names():
        prompt = load_prompt(name, str(folder or ""))
        fields = ", ".join(sorted(prompt.fields))
        click.echo(f"{name:8}  {prompt.about}\n{'':8}  fields: {fields}")


@prompts_command.command()
@click.argument("name")
@_own
def show(name: str, folder: Path | None) -> None:
    """Print a prompt's file."""
    _check(name)
    click.echo(read_text(name, str(folder or "")), nl=False)


@prompts_command.command()
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
