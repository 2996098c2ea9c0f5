"""whichsense report: saved results as one page."""

from __future__ import annotations

from pathlib import Path

import click

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("results", nargs=-1, required=True, type=_FILE)
@click.option(
    "--out", required=True, type=_FILE, metavar="FILE", help="The HTML file to write."
)
@click.option(
    "--title",
    default="Results",
    show_default=True,
    metavar="TEXT",
    help="The heading of the page.",
)
@click.option(
    "--differences",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    metavar="N",
    help="How many questions to show for each pair of systems, those that differ most first.",
)
def command(results: tuple[Path, ...], out: Path, title: str, differences: int) -> None:
    """Turn result files into one page with tables and plots.

    RESULTS come from: whichsense score … --json --per-question > result.json. The page needs no other file. Where
    two systems were scored on the same questions, the page tests whether the difference may be chance and shows the
    questions where they differ, side by side.
    """
    from whichsense.evaluation.report.result_page import build_page
    from whichsense.evaluation.scoring import load_result
    from whichsense.files import write_atomically

    page = build_page([load_result(path) for path in results], title, differences)
    write_atomically(out, page)
    size = len(page.encode()) / 1000
    print(f"{out}: {len(results)} results, {size:,.0f} kB")
