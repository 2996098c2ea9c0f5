"""Write docs/commands.md from the help of every command. A test checks that the file is up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from whichsense.cli import command

_PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
_HEAD = "# Commands\n\nMade from `--help` by `python scripts/commands.py`.\n"
_WIDTH = 100  # characters in a line


def _helps(
    current: click.Command, words: tuple[str, ...] = ("whichsense",)
) -> Iterator[tuple[str, str]]:
    """Each command, outermost first, with its help."""
    context = click.Context(
        current, info_name=words[-1], max_content_width=_WIDTH, terminal_width=_WIDTH
    )
    name = " ".join(words)
    # Without a parent context, click shows only the command's last word.
    usage = f"Usage: {words[-1]}"
    yield name, current.get_help(context).replace(usage, f"Usage: {name}")
    if isinstance(current, click.Group):
        for inner_name in current.list_commands(context):
            inner = current.get_command(context, inner_name)
            assert inner is not None
            yield from _helps(inner, (*words, inner_name))


def page() -> str:
    """The text of docs/commands.md."""
    parts = [_HEAD]
    for name, text in _helps(command):
        parts.append(f"\n## {name}\n```text\n{text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    _PAGE.write_text(page(), encoding="utf-8")
