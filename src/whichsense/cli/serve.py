"""whichsense serve, mcp, keys and traces: the service, who may ask it, and what it was asked."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from whichsense import types
from whichsense.cli.ask import format_case
from whichsense.cli.evidence import (
    cluster_option,
    flag_option,
    indexes_option,
    json_option,
    method_option,
    named_method,
    named_places,
    number_option,
    repeated_option,
    service_options,
    state_option,
    system_option,
)
from whichsense.errors import BadConfig, BadInput, did_you_mean, require
from whichsense.serve.settings import SCOPES, ApiKey, KeyFile, ServiceSettings
from whichsense.serve.state import FILE, Conversations, Traces
from whichsense.text.rendering import printable

# whichsense serve: the HTTP service over an index.


class _ServeCommand(click.Command):
    """Takes what no option says from the environment (WHICHSENSE_SERVE_PORT for --port), then from the table [serve]
    of whichsense.toml."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        from whichsense import config

        names = {name.removeprefix("--"): option for name, option in self._options()}
        parameters = {parameter.name: parameter for parameter in self.params}
        given: dict[str, Any] = {}
        for key, value in config.find_config().serve.items():
            if key not in names:
                advice = did_you_mean(key, list(names))
                raise BadConfig(f"whichsense.toml: unknown key 'serve.{key}'. {advice}")
            given[names[key]] = value
            if isinstance(value, dict):  # [serve.index]: a folder by each name
                pairs = [f"{name}={place}" for name, place in value.items()]
                given[names[key]] = pairs
        for name, option in names.items():
            # By what a person types: click's own prefix goes by the parameter's name, "origins" for --allow-origin.
            variable = name.upper().replace("-", "_")
            parameters[option].envvar = f"WHICHSENSE_SERVE_{variable}"
        extra = {"default_map": given, **extra}
        return super().make_context(info_name, args, parent, **extra)

    def _options(self) -> Iterator[tuple[str, str]]:
        for parameter in self.params:
            for name in parameter.opts:
                yield name, str(parameter.name)


@click.command(cls=_ServeCommand)
@indexes_option
@method_option
@cluster_option
@click.option(
    "--replicas",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="With --cluster: actors of each shard, of which a slow or lost one is not waited for.",
)
@system_option("Serve")
@click.option(
    "--compare",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE.toml",
    help="Also serve this system, to compare answers side by side at /compare. Repeatable.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at. One that other machines reach needs an API key.",
)
@number_option("--port", 8000, 0, 65535, help="Port to listen at; 0 takes a free one.")
@number_option("--workers", 1, 1, 64, help="Processes, each with its own models.")
@number_option("--parallel", 2, 1, 64, help="Questions that each worker answers at once.")
@number_option(
    "--queue",
    64,
    0,
    10_000,
    help="Questions that may wait in each worker. One more is refused with 429.",
)
@service_options(threads=1)
@repeated_option(
    "--host-name",
    "hosts",
    "NAME",
    "Name under which this machine may be asked, beside localhost. Repeatable.",
)
@repeated_option(
    "--allow-origin",
    "origins",
    "ORIGIN",
    "Site whose pages may ask, such as https://example.org. Repeatable.",
)
@click.option(
    "--root-path",
    default="",
    metavar="PATH",
    help="What a proxy puts before every path, such as /whichsense.",
)
@repeated_option(
    "--proxy",
    "proxies",
    "ADDRESS",
    "Address or network of a proxy whose X-Forwarded-For and -Proto are believed. Repeatable.",
)
@click.option(
    "--access-log",
    default="",
    metavar="FILE",
    help="Write a line of JSON for each request; - for standard error.",
)
@flag_option("--log-questions", "Write the questions into these lines, too.")
def command(
    places: tuple[str, ...], cluster: str | None, compare: tuple[Path, ...], **given: Any
) -> None:
    """Serve indexes over HTTP: /v1/ask, /v1/search and the rest of /openapi.json.

    What no option says is taken from the environment, WHICHSENSE_SERVE_PORT for --port and so on, then from the table
    [serve] of whichsense.toml. An API key in WHICHSENSE_API_KEY is accepted beside those of whichsense keys, with the
    scopes that WHICHSENSE_API_KEY_SCOPES names ("ask write"; without it ask alone).
    """
    require("fastapi", "serve")
    require("uvicorn", "serve")
    from whichsense.serve.app import serve

    settings = _settings(
        named_places(places, is_stored=bool(cluster)),
        cluster=cluster or "",
        compare=tuple(str(path) for path in compare),
        api_key=os.environ.get("WHICHSENSE_API_KEY", ""),
        api_key_scopes=_scopes(os.environ.get("WHICHSENSE_API_KEY_SCOPES", "ask")),
        **given,
    )
    serve(settings, say=click.echo)


def _settings(
    indexes: dict[str, str],
    *,
    system: Path | None,
    method: str | None,
    no_traces: bool,
    **given: Any,
) -> ServiceSettings:
    """Return the settings of a service; options that are called as they are go on unchanged."""
    return ServiceSettings(
        indexes=indexes,
        system=str(system or "compact"),
        method=named_method(method),
        traces=not no_traces,
        **given,
    )


def _scopes(text: str) -> tuple[str, ...]:
    """Return the scopes that a text names.

    >>> _scopes("ask write")
    ('ask', 'write')
    """
    scopes = tuple(text.split())
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise BadConfig(
            f"WHICHSENSE_API_KEY_SCOPES is '{text}'. Set it to 'ask', 'write' or 'ask write'."
        )
    return scopes


# whichsense mcp: the service as tools of a model, over standard input and output.


@click.command()
@indexes_option
@method_option
@system_option()
@service_options(threads=2)
def mcp_command(places: tuple[str, ...], **given: Any) -> None:
    """Serve an index to the program that starts this one, by the Model Context Protocol over stdin and stdout.

    Tools: ask, clarify, reply, explain, search, read. A program adds it as the command: whichsense mcp --index DIR
    """
    require("mcp", "serve")
    require("fastapi", "serve")
    from whichsense.serve.mcp import serve_stdio

    settings = _settings(named_places(places), **given)
    if sys.stdin.isatty():
        hint = "Waiting for a program that speaks MCP. Ctrl-C ends it."
        click.echo(hint, err=True)
    serve_stdio(settings)


# whichsense keys: who may ask a service.


@click.group(help="Make, list and revoke the API keys of a service.")
def keys_command() -> None:
    pass


@keys_command.command()
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
@repeated_option(
    "--index",
    "indexes",
    "NAME",
    "Index that the key may use, by its name in the service. Repeatable.  [default: all]",
)
@click.option(
    "--rate",
    type=click.IntRange(1, 1_000_000),
    help="Requests a minute.  [default: the service's own]",
)
@click.option(
    "--quota",
    type=click.IntRange(1, 2**40),
    metavar="MB",
    help="Most of files that it may upload in a day.  [default: as much as there is room for]",
)
@click.option("--expires", metavar="AGE", help="After so long it is refused: 90d, 12h, 2w.")
@state_option
def add(
    name: str,
    scopes: tuple[str, ...],
    indexes: tuple[str, ...],
    rate: int | None,
    quota: int | None,
    expires: str | None,
    state: Path,
) -> None:
    """Make a key for NAME and print it. It is kept as a hash and cannot be printed again."""
    token = KeyFile(state).add(
        name,
        scopes,
        indexes=indexes,
        rate=rate,
        quota=quota * 2**20 if quota else None,
        expires=time.time() + parse_age(expires) if expires else None,
    )
    click.echo(token)


@keys_command.command(name="list")
@state_option
@json_option
def list_keys(state: Path, as_json: bool) -> None:
    """List all keys, revoked ones too."""
    keys = list(KeyFile(state).keys().values())
    if as_json:
        click.echo(json.dumps([_row(key) for key in keys]))
        return
    for key in keys:
        scopes = "+".join(key.scopes)
        indexes = f"  of {', '.join(key.indexes)}" if key.indexes else ""
        click.echo(
            f"{key.id}  {_day(key.created)}  {scopes:<10} {_status(key)}  {key.name}{indexes}"
        )
    if not keys:
        click.echo("There is no key. Make one: whichsense keys add NAME", err=True)


def _status(key: ApiKey) -> str:
    if key.revoked:
        return f"revoked {_day(key.revoked)}"
    if key.expires is None:
        return "active"
    return f"{'until' if key.is_active else 'expired'} {_day(key.expires)}"


def _row(key: ApiKey) -> dict[str, Any]:
    """Return a key without its hash."""
    row = dataclasses.asdict(key)
    for name in ("created", "revoked", "expires"):
        row[name] = _day(row[name]) if row[name] else None
    return {name: row[name] for name in row if name not in ("salt", "digest")}


@keys_command.command()
@click.argument("name", metavar="ID|NAME")
@state_option
def revoke(name: str, state: Path) -> None:
    """Revoke the key with this id, or all keys of this name. Services that run refuse it at once."""
    for key in KeyFile(state).revoke(name):
        click.echo(f"revoked {key.id} ({key.name})")


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()


# whichsense backup, restore: keys, traces and indexes of a service.

backup_indexes_option = repeated_option(
    "--index", "places", "NAME=DIR", "Index folder, and its name in the backup. Repeatable."
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@backup_indexes_option
@state_option
def backup_command(folder: Path, places: tuple[str, ...], state: Path) -> None:
    """Save the state of a service, which may run meanwhile, and indexes to FOLDER. A backup that was stopped is resumed
    by the same command."""
    from whichsense.serve.backup import back_up

    done = back_up(folder, state, _folders(places))
    click.echo(f"{folder}: {done['files']:,} files, {done['bytes']:,} bytes")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@backup_indexes_option
@state_option
def restore_command(folder: Path, places: tuple[str, ...], state: Path) -> None:
    """Put the state of the backup in FOLDER, and the indexes that are named, where nothing is yet. What was stopped is
    resumed by the same command."""
    from whichsense.serve.backup import restore

    done = restore(folder, state, _folders(places))
    click.echo(f"{done['files']:,} files, {done['bytes']:,} bytes restored")


def _folders(places: tuple[str, ...]) -> dict[str, Path]:
    folders = {}
    for given in places:
        name, _, place = given.partition("=")
        if not place or name in folders:
            raise BadInput(f"'{given}' names no index. Write --index NAME=DIR")
        folders[name] = Path(place)
    return folders


# whichsense traces: what a service was asked, and what people said of its answers.

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.group(help="List, show, export and delete the cases that a service has kept.")
def traces_command() -> None:
    pass


@traces_command.command(name="list")
@state_option
@number_option("--limit", 20, 1, 100_000, help="Newest cases to list.")
@json_option
def list_traces(state: Path, limit: int, as_json: bool) -> None:
    """List what was asked, newest first, and how many cases were lost."""
    with closing(_open(state)) as traces:
        summaries, gaps = traces.summaries(limit), traces.gaps()
    if as_json:
        click.echo(json.dumps(types.encode({"cases": summaries, "gaps": gaps})))
        return
    for one in summaries:
        said = f"  +{one.up} -{one.down}" if one.up or one.down else ""
        stopped = f"  [{one.stopped}]" if one.stopped else ""
        counts = f"{one.seconds:6.2f} s  {one.readings} readings"
        question = printable(one.question)
        click.echo(f"{one.id}  {_time(one.at)}  {counts}{said}{stopped}  {question}")
    for gap in gaps:
        when = f"between {_time(gap.since)} and {_time(gap.until)}"
        click.echo(f"{gap.lost} cases were lost {when}: {gap.reason}", err=True)


@traces_command.command()
@click.argument("case_id", metavar="ID")
@state_option
@json_option
def show(case_id: str, state: Path, as_json: bool) -> None:
    """Print one case and what was said of it."""
    traces = _open(state)
    served = traces.find(case_id)
    feedback = traces.feedback(case_id)
    traces.close()
    if served is None:
        raise BadInput(f"No case has the id '{case_id}'. See: whichsense traces list")
    case = served.case
    said = [dataclasses.asdict(one) for one in feedback]
    if as_json:
        table = {"id": case_id, "case": case.to_json(), "feedback": said}
        click.echo(json.dumps(table))
        return
    click.echo(format_case(case, None, True))
    for stage, cost in case.spent.items():
        click.echo(f"{stage:<14}{cost.seconds:8.3f} s")
    for one in feedback:
        words = (one.verdict, one.about, one.correction)
        click.echo(f"feedback      {printable(' · '.join(word for word in words if word))}")


@traces_command.command()
@state_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write.  [default: standard output]",
)
def export(state: Path, out: Path | None) -> None:
    """Write every case with its feedback as JSON lines, oldest first."""
    count = 0
    with closing(_open(state)) as traces, ExitStack() as stack:
        stream = stack.enter_context(open(out, "w")) if out else sys.stdout
        for count, row in enumerate(traces.export(), 1):  # noqa: B007
            stream.write(json.dumps(row) + "\n")
    if out:
        click.echo(f"{out}: {count:,} cases")


@traces_command.command()
@click.argument("case_ids", nargs=-1, metavar="[ID]...")
@click.option("--older-than", metavar="AGE", help="Delete all that are older: 90d, 12h, 30m.")
@state_option
def delete(case_ids: tuple[str, ...], older_than: str | None, state: Path) -> None:
    """Delete cases by id or by age, with their feedback; by age, conversations too."""
    if not case_ids and not older_than:
        raise click.UsageError("Say what to delete: ID... or --older-than AGE.")
    seconds = parse_age(older_than) if older_than else None
    with closing(_open(state)) as traces:
        deleted = sum(traces.delete(case_id) for case_id in case_ids)
        if seconds is not None:
            deleted += traces.delete_older(seconds)
            with closing(Conversations(state / FILE)) as conversations:
                conversations.delete_older(seconds)
    click.echo(f"{deleted:,} cases deleted")


def parse_age(text: str) -> float:
    """Return the seconds of an age.

    >>> parse_age("90d"), parse_age("1.5h")
    (7776000.0, 5400.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if match is None:
        raise BadInput(f"'{text}' is no age. Write a number and a unit: 30m, 12h, 90d, 2w.")
    return float(match[1]) * _UNITS[match[2]]


def _open(state: Path) -> Traces:
    path = state / FILE
    if not path.exists():
        raise BadInput(
            f"There are no traces at '{path}'. A service that runs with --state DIR keeps them there."
        )
    return Traces(path)


def _time(seconds: float) -> str:
    local = datetime.datetime.fromtimestamp(seconds).astimezone()
    return local.isoformat(" ", "seconds")[:19]
