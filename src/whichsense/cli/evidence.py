"""What commands that search have in common: which index, and how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from whichsense.index import Index
    from whichsense.types import Method


def evidence_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--index and --method."""
    folder = click.option(
        "--index", "folder", type=click.Path(path_type=Path), metavar="DIR", help="[default: the embedded sample]"
    )
    method = click.option(
        "--method", type=click.Choice(["bm25", "dense", "hybrid"]), help="[default: hybrid if there are vectors]"
    )
    return folder(method(command))


def open_evidence(folder: Path | None, method: str | None) -> tuple[Index, Method]:
    """The index and the method: as given, as whichsense.toml says, or the embedded sample and the best it has."""
    from whichsense import config, sample
    from whichsense.index import Index

    settings = config.found().retrieve
    chosen = folder or (Path(settings.index) if settings.index else None)
    index = Index.open(chosen) if chosen else sample.index()
    return index, index.method(cast("Method | None", method) or settings.method)
