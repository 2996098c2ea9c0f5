"""whichsense traces: what a service was asked, and what people said of its answers."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import sys
from pathlib import Path

import click

from whichsense.cli.ask.screen import format_case
from whichsense.cli.search import printable
from whichsense.cli.system import state_option
from whichsense.errors import BadInput
from whichsense.serve.settings import state_folder
from whichsense.serve.state.conversations import Conversations
from whichsense.serve.state.traces import FILE, Traces

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.group(help="List, show, export and delete the cases that a service has kept.")
def command() -> None:
    pass


@command.command(name="list")
@state_option
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="Newest cases to list.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_traces(state: Path | None, limit: int, as_json: bool) -> None:
    """List what was asked, newest first, and how many cases were lost."""
    traces = _open(state)
    summaries = traces.summaries(limit)
    gaps = traces.gaps()
    traces.close()
    if as_json:
        table = {
            "cases": [dataclasses.asdict(one) for one in summaries],
            "gaps": [dataclasses.asdict(one) for one in gaps],
        }
        click.echo(json.dumps(table))
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


@command.command()
@click.argument("case_id", metavar="ID")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(case_id: str, state: Path | None, as_json: bool) -> None:
    """Print one case and what was said of it."""
    traces = _open(state)
    case = traces.find(case_id)
    feedback = traces.feedback(case_id)
    traces.close()
    if case is None:
        raise BadInput(f"No case has the id '{case_id}'. See: whichsense traces list")
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
        click.echo(
            f"feedback      {printable(' · '.join(word for word in words if word))}"
        )


@command.command()
@state_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write.  [default: standard output]",
)
def export(state: Path | None, out: Path | None) -> None:
    """Write every case with its feedback as JSON lines, oldest first."""
    traces = _open(state)
    stream = open(out, "w", encoding="utf-8") if out else sys.stdout
    count = 0
    try:
        for count, row in enumerate(traces.export(), 1):  # noqa: B007
            stream.write(json.dumps(row) + "\n")
    finally:
        traces.close()
        if out:
            stream.close()
    if out:
        click.echo(f"{out}: {count:,} cases")


@command.command()
@click.argument("case_ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--older-than", metavar="AGE", help="Delete all that are older: 90d, 12h, 30m."
)
@state_option
def delete(
    case_ids: tuple[str, ...], older_than: str | None, state: Path | None
) -> None:
    """Delete cases by id or by age, with their feedback; by age, conversations too."""
    if not case_ids and not older_than:
        raise click.UsageError("Say what to delete: ID... or --older-than AGE.")
    seconds = parse_age(older_than) if older_than else None
    traces = _open(state)
    deleted = sum(traces.delete(case_id) for case_id in case_ids)
    if seconds is not None:
        deleted += traces.delete_older(seconds)
        conversations = Conversations((state or state_folder()) / FILE)
        conversations.delete_older(seconds)
        conversations.close()
    traces.close()
    click.echo(f"{deleted:,} cases deleted")


def parse_age(text: str) -> float:
    """Seconds of an age.

    >>> parse_age("90d"), parse_age("1.5h")
    (7776000.0, 5400.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if match is None:
        raise BadInput(
            f"'{text}' is no age. Write a number and a unit: 30m, 12h, 90d, 2w."
        )
    return float(match[1]) * _UNITS[match[2]]


def _open(state: Path | None) -> Traces:
    path = (state or state_folder()) / FILE
    if not path.exists():
        raise BadInput(
            f"There are no traces at '{path}'. A service that runs with --state DIR keeps them there."
        )
    return Traces(path)


def _time(seconds: float) -> str:
    local = datetime.datetime.fromtimestamp(seconds).astimezone()
    return local.isoformat(" ", "seconds")[:19]
