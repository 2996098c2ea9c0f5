"""whichsense evaluate: measure systems over a dataset, by program and by reading."""

from __future__ import annotations

import click

from whichsense.cli.evaluate.readings import readings
from whichsense.cli.evaluate.retrieval import retrieval
from whichsense.cli.evaluate.support import support
from whichsense.cli.evaluate.systems import systems


class _FileOrCommand(click.Group):
    """`evaluate systems.toml` is short for `evaluate systems systems.toml`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name.endswith(".toml"):
            cmd_name = "systems"
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0].endswith(".toml"):
            args = ["systems", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_FileOrCommand)
def command() -> None:
    """Measure systems over a dataset.

    whichsense evaluate SYSTEMS.toml compares systems in one table.
    """


command.add_command(readings)
command.add_command(retrieval)
command.add_command(support)
command.add_command(systems)
