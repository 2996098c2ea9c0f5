"""whichsense data and prompts: what is shipped or fetched, listed, described and checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.errors import BadInput, did_you_mean
from whichsense.models.llm.prompts import copy_prompts, load_prompt, names, read_text

if TYPE_CHECKING:
    from whichsense.lab.evaluation.report import Statistics


# whichsense data: list, describe, count, check and fetch the datasets.

_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The data folder. [default: WHICHSENSE_DATA, or the user's cache]",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
# Fields of a check's report that --json prints, beside the path.
_CHECKED = ("name", "ok", "count", "release", "checksum", "problem")
_LONGEST_BAR = 30  # characters


@click.group()
def command() -> None:
    """List, describe, count, check and fetch the datasets."""


@command.command("list")
@_JSON
@_DATA_DIR
def list_(as_json: bool, data_dir: Path | None) -> None:
    """List all datasets, with the path of those that are present."""
    from whichsense.lab import datasets

    paths = {}
    for name in datasets.names():
        paths[name] = datasets.find(datasets.entry(name), data_dir)
    if as_json:
        rows = []
        for name, path in paths.items():
            rows.append({"name": name, "path": str(path) if path else None})
        _print_json(rows)
        return
    width = max(map(len, paths))
    for name, path in paths.items():
        click.echo(f"{name:<{width}}  {path or '–'}")
    present = sum(path is not None for path in paths.values())
    folder = datasets.data_folder(data_dir)
    click.echo(
        f"{present} of {len(paths)} are present. Data folder: {folder}", err=True
    )


@command.command()
@click.argument("name")
@_JSON
@_DATA_DIR
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
    download = "not automatically: see the homepage"
    if about.download:
        download = about.download.url
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
@click.argument("name")
@_JSON
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the charts into this file, FILE.svg or FILE.html.",
)
@_DATA_DIR
def stats(name: str, as_json: bool, plot: Path | None, data_dir: Path | None) -> None:
    """Count what the papers print: answers per question, edits, categories, lengths, agreement."""
    if plot and plot.suffix not in (".svg", ".html"):
        raise click.UsageError(
            f"--plot takes a file that ends in .svg or .html, not '{plot}'."
        )
    from whichsense.files import write_atomically
    from whichsense.lab.evaluation.report import to_html, to_svg
    from whichsense.lab.evaluation.stats import statistics

    counted = statistics(name, data_dir)
    if plot:
        draw = to_svg if plot.suffix == ".svg" else to_html
        write_atomically(plot, draw(counted))
    if as_json:
        _print_json(counted.to_json())
        return
    _print_statistics(counted)
    if plot:
        click.echo(f"\nThe charts are in {plot}.")


def _print_statistics(counted: Statistics) -> None:
    from whichsense.lab.evaluation.report import format_cell

    click.echo(f"{counted.name} (release: {counted.release})")
    for table in counted.tables:
        note = f"  [{table.note}]" if table.note else ""
        click.echo(f"\n{table.title}{note}")
        rows: list[Sequence[str]] = [table.columns]
        for row in table.rows:
            rows.append(list(map(format_cell, row)))
        _print_table(rows)
    for chart in counted.charts:
        note = f"  [{chart.note}]" if chart.note else ""
        click.echo(f"\n{chart.title}, {chart.unit}{note}")
        highest = max(value for _, value in chart.bars) or 1.0
        rows = []
        for label, value in chart.bars:
            rows.append([label, format_cell(value), _bar(value / highest)])
        _print_table(rows)


@command.command()
@click.argument("names", nargs=-1)
@_JSON
@_DATA_DIR
def check(names: Sequence[str], as_json: bool, data_dir: Path | None) -> None:
    """Compare files with the catalog: checksum, count, schema of every record. Without NAMES: all that are present."""
    from whichsense.lab import datasets

    if not names:
        known = datasets.names()
        names = [one for one in known if datasets.find(datasets.entry(one), data_dir)]
    if not names:
        folder = datasets.data_folder(data_dir)
        click.echo(f"No dataset is in '{folder}'. See: whichsense data list", err=True)
    reports = []
    for name in names:
        report = datasets.check(name, data_dir)
        reports.append(report)
        if not as_json:
            mark = "ok  " if report.ok else "BAD "
            checked = f"{report.release} release, checksum {report.checksum}"
            summary = f"{report.count:,} records, {checked}"
            click.echo(f"{mark} {name}: {report.problem or summary}")
    if as_json:
        rows = []
        for report in reports:
            row = {field: getattr(report, field) for field in _CHECKED}
            row["path"] = report.path and str(report.path)
            rows.append(row)
        _print_json(rows)
    # Exit status 1 lets a script notice.
    if not all(report.ok for report in reports):
        sys.exit(1)


@command.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Download it even if it is present.")
@_DATA_DIR
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
@click.option(
    "--readings",
    "more",
    multiple=True,
    metavar="NAME",
    help="Another dataset, whose readings questions of the same id take that have none.",
)
@_DATA_DIR
def make_clarifications(
    name: str, out: Path, more: Sequence[str], data_dir: Path | None
) -> None:
    """Write a clarification question, in CAmbigNQ's form, for each question of NAME with several rewrites.

    They are silver data to train a generator with. Made for CAmbigNQ's own questions, they are predictions that
    `whichsense score cambignq` scores.
    """
    from whichsense.lab.evaluation.components import write_clarifications

    count = write_clarifications(name, out, more, data_dir)
    click.echo(f"{count:,} clarification questions → {out}", err=True)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    """Align the first column and bars to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            is_left = column == 0 or cell.startswith("█")
            cells.append(cell.ljust(width) if is_left else cell.rjust(width))
        line = "  ".join(cells)
        click.echo(f"  {line}".rstrip())


def _bar(share: float) -> str:
    """A bar of block characters; anything above zero shows at least one."""
    length = round(_LONGEST_BAR * share)
    if share > 0:
        length = max(1, length)
    return "█" * length


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
