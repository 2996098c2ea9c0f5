"""The options of commands that answer: which system, on how many cores, and what a service keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def system_option(verb: str = "Ask") -> Decorator:
    """Add --system to a command that does this with a system."""
    return click.option(
        "--system",
        type=click.Path(path_type=Path),
        metavar="FILE.toml",
        help=f"{verb} this system instead of the embedded model.",
    )


def threads_option(default: int = 2, each: str = "") -> Decorator:
    """Add --threads to a command; `each` says what the cores are for."""
    return click.option(
        "--threads",
        default=default,
        show_default=True,
        type=click.IntRange(1, 64),
        help=f"Processor cores that the embedded model uses{each}.",
    )


threshold_option = click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="X",
    help="Show every answer that is at least this probable, and the best one in any case.  "
    "[0<x<=1; default: a number of the model's for each kind of corpus]",
)

weights_option = click.option(
    "--weights",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Weights folder of the embedded model.  [default: the one that ships]",
)

state_option = click.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of keys and traces.  [default: the user's state folder]",
)


def service_options(threads: int) -> Decorator:
    """Add what every face of the service has: --threshold, --threads, --deadline, --state and --no-traces."""
    options = (
        threshold_option,
        threads_option(threads, " for one question"),
        click.option(
            "--deadline",
            default=60.0,
            show_default=True,
            type=click.FloatRange(0, 3600, min_open=True),
            metavar="SECONDS",
            help="Most time for one answer, with its time in the queue.",
        ),
        state_option,
        click.option(
            "--no-traces",
            is_flag=True,
            help="Keep no case longer than a stream may need it.",
        ),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add
