"""The options that several of these commands have."""

from __future__ import annotations

from pathlib import Path

import click

PATH = click.Path(path_type=Path)
data_dir_option = click.option(
    "--data-dir",
    type=PATH,
    metavar="DIR",
    help="The data folder. [default: WHICHSENSE_DATA, or the user's cache]",
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Use only the first N questions.",
)
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON, with the provenance of its numbers.",
)
