"""whichsense data: list, describe, count, check and fetch the datasets."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The data folder; otherwise WHICHSENSE_DATA, otherwise the user's cache.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """List, describe, count, check and fetch the datasets."""


@command.command("list")
@_JSON
@_DATA_DIR
def list_(as_json: bool, data_dir: Path | None) -> None:
    """All datasets, and where those lie that are here."""
    from whichsense import datasets

    places = {
        name: datasets.find(datasets.entry(name), data_dir) for name in datasets.names()
    }
    if as_json:
        _print_json(
            [
                {"name": name, "path": str(path) if path else None}
                for name, path in places.items()
            ]
        )
        return
    wide = max(map(len, places))
    for name, path in places.items():
        click.echo(f"{name:<{wide}}  {path or '–'}")
    here = sum(path is not None for path in places.values())
    click.echo(
        f"{here} of {len(places)} are here. Data folder: {datasets.data_folder(data_dir)}",
        err=True,
    )


@command.command()
@click.argument("name")
@_JSON
@_DATA_DIR
def info(name: str, as_json: bool, data_dir: Path | None) -> None:
    """Where a dataset comes from, its licence, citation and releases."""
    from dataclasses import asdict

    from whichsense import datasets

    about = datasets.entry(name)
    path = datasets.find(about, data_dir)
    if as_json:
        _print_json({**asdict(about), "path": str(path) if path else None})
        return
    click.echo(
        f"{about.name}: {about.family.title}\n{about.family.about}"
        + (f"\n{about.about}" if about.about else "")
    )
    click.echo(f"\nhomepage  {about.family.homepage}\nlicence   {about.family.licence}")
    click.echo(
        f"download  {about.download.url if about.download else 'not automatically: see the homepage'}"
    )
    click.echo(f"here      {path or 'no'}\n\nreleases")
    for release in about.releases:
        count = "" if release.count is None else f", {release.count:,} records"
        note = f" ({release.note})" if release.note else ""
        click.echo(f"  {release.name}: {' or '.join(release.files)}{count}{note}")
        click.echo(f"    sha256 {release.sha256 or 'not on record'}")
    click.echo(f"\n{about.family.citation}")


@command.command()
@click.argument("name")
@_JSON
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the charts: FILE.svg or FILE.html.",
)
@_DATA_DIR
def stats(name: str, as_json: bool, plot: Path | None, data_dir: Path | None) -> None:
    """Count what the papers print: answers per question, edits, categories, lengths, agreement."""
    if plot and plot.suffix not in (".svg", ".html"):
        raise click.UsageError(
            f"--plot takes a file that ends in .svg or .html, not '{plot}'."
        )
    from whichsense.evaluation.report.dataset_page import to_html, to_svg
    from whichsense.evaluation.stats import statistics
    from whichsense.files import write_atomically

    found = statistics(name, data_dir)
    if plot:
        write_atomically(
            plot, to_svg(found) if plot.suffix == ".svg" else to_html(found)
        )
    if as_json:
        _print_json(found.to_json())
        return
    from whichsense.evaluation.report.tables import format_cell

    click.echo(f"{found.name} (release: {found.release})")
    for table in found.tables:
        click.echo(f"\n{table.title}" + (f"  [{table.note}]" if table.note else ""))
        _print_table(
            [
                table.columns,
                *([format_cell(cell) for cell in row] for row in table.rows),
            ]
        )
    for chart in found.charts:
        click.echo(
            f"\n{chart.title}, {chart.unit}"
            + (f"  [{chart.note}]" if chart.note else "")
        )
        _print_table(
            [
                [label, format_cell(value), _bar(value, chart.bars)]
                for label, value in chart.bars
            ]
        )
    if plot:
        click.echo(f"\nThe charts are in {plot}.")


@command.command()
@click.argument("names", nargs=-1)
@_JSON
@_DATA_DIR
def check(names: Sequence[str], as_json: bool, data_dir: Path | None) -> None:
    """Compare files with the catalog: checksum, count, schema of every record. Without NAMES: all that are here."""
    from whichsense import datasets

    chosen = names or [
        n for n in datasets.names() if datasets.find(datasets.entry(n), data_dir)
    ]
    if not chosen:
        click.echo(
            f"No dataset is in '{datasets.data_folder(data_dir)}'. See: whichsense data list",
            err=True,
        )
    reports = []
    for name in chosen:
        report = datasets.check(name, data_dir)
        reports.append(report)
        if not as_json:
            told = f"{report.count:,} records, {report.release} release, checksum {report.checksum}"
            click.echo(
                f"{'ok  ' if report.ok else 'BAD '} {name}: {report.problem or told}"
            )
    if as_json:
        fields = ("name", "ok", "count", "release", "checksum", "problem")
        _print_json(
            [
                {f: getattr(r, f) for f in fields} | {"path": r.path and str(r.path)}
                for r in reports
            ]
        )
    if not all(report.ok for report in reports):
        sys.exit(1)


@command.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Fetch it though it is here.")
@_DATA_DIR
def fetch(name: str, force: bool, data_dir: Path | None) -> None:
    """Download a dataset into the data folder."""
    from whichsense import datasets
    from whichsense.jobs.progress import show_progress

    with show_progress(name, "kB") as progress:
        path = datasets.fetch(name, data_dir, force=force, progress=progress)
    click.echo(path)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    """Columns aligned: the first to the left, numbers to the right, text after them to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  " + "  ".join(_aligned(row, widths)).rstrip())


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield (
            cell.ljust(width)
            if column == 0 or cell.startswith("█")
            else cell.rjust(width)
        )


def _bar(value: float, bars: Sequence[tuple[str, float]]) -> str:
    most = max(value for _, value in bars) or 1.0
    return "█" * max(1 if value else 0, round(30 * value / most))
