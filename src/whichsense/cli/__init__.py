"""The command. Thin: each command parses, calls one library function and prints.

Commands are imported when they are called, so that `whichsense --help` stays fast.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import sys
from collections.abc import Sequence

import click

from whichsense.errors import WhichsenseError, did_you_mean
from whichsense.version import __version__

# name → (module under whichsense.cli, its line in the overview)
COMMANDS = {
    "ask": ("ask", "Answer a question in every sense it has."),
    "index": (
        "index",
        "Build, extend and check the folder that a corpus is searched in.",
    ),
    "search": ("search", "Find the passages that may answer a question."),
    "retrieve": (
        "retrieve",
        "Search once for all questions of datasets, and keep what is found.",
    ),
    "data": ("data", "List, describe, count and check the datasets."),
    "score": ("score", "Score predictions exactly as the official scripts do."),
    "report": ("report", "Turn result files into one page with tables and plots."),
    "train": ("train", "Train a model from a recipe."),
    "cotrain": ("cotrain", "Train readers that teach each other."),
    "tune": ("tune", "Find the threshold of a system's verification."),
    "predict": ("predict", "Answer a dataset's questions with a system."),
    "evaluate": ("evaluate", "Measure systems over a dataset."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            raise click.UsageError(
                f"No command '{cmd_name}'. {did_you_mean(cmd_name, COMMANDS)}", ctx
            )
        module = importlib.import_module(f"whichsense.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, summary) for name, (_, summary) in COMMANDS.items()]
            )


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="whichsense")
def command() -> None:
    """Ambiguous questions, answered in every sense they have."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; errors the user can act on are printed in one line, with exit status 1 (2 for usage)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal that is not UTF-8 shows "?" and goes on
    atexit.register(
        gc.freeze
    )  # what is left goes with the process: to look for cycles in it takes a tenth of a second
    try:
        status = command.main(
            args=arguments, prog_name="whichsense", standalone_mode=False
        )
        sys.exit(status if isinstance(status, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except WhichsenseError as error:
        _fail(str(error))
    except (
        KeyboardInterrupt,
        click.Abort,
    ) as stopped:  # click hides what was raised behind its own Abort
        click.echo(str(stopped.__cause__ or stopped) or "Stopped.", err=True)
        sys.exit(130)
    except OSError as error:
        _fail(
            f"{error.strerror or error}: {error.filename}"
            if error.filename
            else str(error)
        )


def _fail(message: str) -> None:
    click.echo(f"error: {message}", err=True)
    sys.exit(1)
