"""Write docs/commands.md from the commands' own help. A test holds that it is up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from whichsense.cli import command

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
HEAD = "# Commands\n\nMade from `--help` by `python scripts/commands.py`.\n"


def helps(
    current: click.Command, words: tuple[str, ...] = ("whichsense",)
) -> Iterator[tuple[str, str]]:
    """Each command, outermost first, with its help."""
    context = click.Context(
        current, info_name=words[-1], max_content_width=100, terminal_width=100
    )
    context.parent = None
    text = current.get_help(context).replace(
        f"Usage: {words[-1]}", f"Usage: {' '.join(words)}"
    )
    yield " ".join(words), text
    if isinstance(current, click.Group):
        for name in current.list_commands(context):
            inner = current.get_command(context, name)
            assert inner is not None
            yield from helps(inner, (*words, name))


def page() -> str:
    return HEAD + "".join(
        f"\n## {name}\n```text\n{text}\n```\n" for name, text in helps(command)
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
