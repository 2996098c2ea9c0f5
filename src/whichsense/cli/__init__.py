"""The command line: each command parses its arguments, calls one library function and prints the result.

A command's module is imported when the command is called, so that `whichsense --help` stays fast.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import sys
from collections.abc import Sequence

import click

from whichsense import __version__
from whichsense.errors import WhichsenseError, did_you_mean

# Command → summary in the overview. It is `command` of the module of that name, or what _MODULES says.
_COMMANDS = {
    "ask": "Answer a question in every sense it has.",
    "clarify": "Ask back which reading of a question is meant.",
    "chat": "Talk: questions, questions back, replies, answers.",
    "explain": "Tell the whole story of a question in one paragraph, with sources.",
    "index": "Build, extend and check the index folder of a corpus.",
    "search": "Find the passages that may answer a question.",
    "retrieve": "Search once for all questions of datasets, and save the hits.",
    "data": "List, describe, count and check the datasets.",
    "score": "Score predictions exactly as the official scripts do.",
    "train": "Train a model from a recipe.",
    "cotrain": "Train readers that teach each other.",
    "tune": "Find the threshold of a system's verification.",
    "predict": "Answer a dataset's questions with a system.",
    "evaluate": "Measure systems over a dataset.",
    "prompts": "List, show and copy what language models are asked.",
    "serve": "Answer over HTTP: readings, searches, streams.",
    "mcp": "Answer as tools of the Model Context Protocol, over stdio.",
    "keys": "Make, list and revoke the API keys of a service.",
    "traces": "List, show, export and delete what a service was asked.",
    "studio": "Make data: people annotate, and it becomes a dataset.",
    "backup": "Save a service's keys, traces and indexes.",
    "restore": "Put a backup back.",
}
_MODULES = {
    "backup": "serve:backup_command",
    "clarify": "chat:clarify_command",
    "cotrain": "train:cotrain_command",
    "keys": "serve:keys_command",
    "mcp": "serve:mcp_command",
    "prompts": "data:prompts_command",
    "restore": "serve:restore_command",
    "retrieve": "index:retrieve_command",
    "search": "ask:search_command",
    "traces": "serve:traces_command",
    "tune": "predict:tune_command",
}


class _LazyGroup(click.Group):
    """Imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            advice = did_you_mean(cmd_name, _COMMANDS)
            raise click.UsageError(f"No command '{cmd_name}'. {advice}", ctx)
        module, _, name = _MODULES.get(cmd_name, cmd_name).partition(":")
        found = importlib.import_module(f"whichsense.cli.{module}")
        command: click.Command = getattr(found, name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="whichsense")
def command() -> None:
    """Ambiguous questions, answered in every sense they have."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. An error that the user can fix is printed in one line, with exit status 1 (2 for usage)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that is not UTF-8 shows "?" instead of failing.
            stream.reconfigure(errors="replace")
    # Objects left at the end need no search for cycles, which takes a tenth of a second.
    atexit.register(gc.freeze)
    try:
        status = command.main(args=arguments, prog_name="whichsense", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as stopped:
        # click raises its own Abort from what was raised.
        message = str(stopped.__cause__ or stopped)
        click.echo(message or "Stopped.", err=True)
        sys.exit(130)
    except (WhichsenseError, OSError) as error:
        click.echo(f"error: {_reason(error)}", err=True)
        sys.exit(1)


def _reason(error: Exception) -> str:
    """Return an error's message, with the file's name where the system names one."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.strerror or error}: {error.filename}"
    return str(error)
