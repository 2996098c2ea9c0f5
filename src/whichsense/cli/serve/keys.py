"""whichsense keys: who may ask a service."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import click

from whichsense.cli.system import state_option
from whichsense.serve.settings import state_folder
from whichsense.serve.state.keys import SCOPES, ApiKey, KeyFile


@click.group(help="Make, list and revoke the API keys of a service.")
def command() -> None:
    pass


@command.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("ask",),
    show_default=True,
    help="What the key allows: to ask, or to see and change everything (write). Repeatable.",
)
@click.option(
    "--rate",
    type=click.IntRange(1, 1_000_000),
    help="Requests a minute.  [default: the service's own]",
)
@state_option
def add(
    name: str, scopes: tuple[str, ...], rate: int | None, state: Path | None
) -> None:
    """Make a key for NAME and print it. It is kept as a hash and cannot be printed again."""
    click.echo(KeyFile(state or state_folder()).add(name, scopes, rate))


@command.command(name="list")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_keys(state: Path | None, as_json: bool) -> None:
    """List all keys, revoked ones too."""
    keys = list(KeyFile(state or state_folder()).keys().values())
    if as_json:
        click.echo(json.dumps([_row(key) for key in keys]))
        return
    for key in keys:
        status = f"revoked {_day(key.revoked)}" if key.revoked else "active"
        scopes = "+".join(key.scopes)
        click.echo(f"{key.id}  {_day(key.created)}  {scopes:<10} {status}  {key.name}")
    if not keys:
        click.echo("There is no key. Make one: whichsense keys add NAME", err=True)


def _row(key: ApiKey) -> dict[str, Any]:
    """A key without its hash."""
    return {
        "id": key.id,
        "name": key.name,
        "scopes": key.scopes,
        "rate": key.rate,
        "created": _day(key.created),
        "revoked": _day(key.revoked) if key.revoked else None,
    }


@command.command()
@click.argument("name", metavar="ID|NAME")
@state_option
def revoke(name: str, state: Path | None) -> None:
    """Revoke the key with this id, or all keys of this name. Services that run refuse it at once."""
    for key in KeyFile(state or state_folder()).revoke(name):
        click.echo(f"revoked {key.id} ({key.name})")


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()
