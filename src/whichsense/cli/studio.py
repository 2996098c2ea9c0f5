"""whichsense studio: projects in which people make and judge data."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.errors import require

if TYPE_CHECKING:
    from whichsense.studio import Studio

# As in studio/kinds.py, studio/project.py and studio/members.py, which are imported only when a command runs.
KINDS = (
    "generate",
    "validate",
    "clarification",
    "preference",
    "long-answer",
    "compare",
    "readings",
)
ORDERS = ("least annotated", "most uncertain", "most different", "random")
PARTS = ("training", "test", "gold", "attention")
FORMATS = ("ambignq", "ambignq-full", "cambignq", "asqa", "readings", "jsonl")
ROLES = ("annotator", "adjudicator", "owner")
_PORT = 8010
_PATH = click.Path(path_type=Path)
_project = click.argument("folder", type=_PATH, metavar="PROJECT")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """Make data: people annotate in a browser, and what they write becomes a dataset."""
    require("sqlalchemy", "studio")
    require("alembic", "studio")
    require("fastapi", "studio")


@command.command()
@click.argument("folder", type=_PATH, metavar="NAME")
@click.option("--kind", required=True, type=click.Choice(KINDS), help="What is asked of people.")
@click.option(
    "--questions",
    type=_PATH,
    metavar="FILE",
    help="The items: questions one a line (.txt), JSON lines, or a dataset's file.",
)
@click.option(
    "--from",
    "source",
    type=_PATH,
    metavar="PROJECT",
    help="In place of --questions: what another project made. generate → validate, say.",
)
@click.option(
    "--suggest",
    type=_PATH,
    metavar="PRED.json",
    help="What a system suggests, by id: predictions as whichsense predict writes them.",
)
@click.option(
    "--index",
    default="sample",
    show_default=True,
    metavar="DIR",
    help="What is searched beside the form.",
)
@click.option(
    "--overlap",
    default=1,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Annotators of each item.",
)
@click.option("--tiebreak", is_flag=True, help="Ask one annotator more where the others disagree.")
@click.option(
    "--order",
    default="least annotated",
    show_default=True,
    type=click.Choice(ORDERS),
    help="What comes first.",
)
@click.option("--show-suggestions", is_flag=True, help="Show annotators what a system suggests.")
@click.option(
    "--database",
    default="",
    metavar="URL",
    help="A PostgreSQL database.  [default: a SQLite file in the folder]",
)
@click.option("--guidelines", type=_PATH, metavar="FILE.md", help="Instead of the kind's own.")
@click.option(
    "--qualifying",
    multiple=True,
    type=(click.Choice(PARTS), _PATH),
    metavar="PART FILE",
    help="Items with their right value, for training, test, gold or attention. Repeatable.",
)
def new(
    folder: Path,
    kind: str,
    questions: Path | None,
    source: Path | None,
    suggest: Path | None,
    index: str,
    overlap: int,
    tiebreak: bool,
    order: str,
    show_suggestions: bool,
    database: str,
    guidelines: Path | None,
    qualifying: tuple[tuple[str, Path], ...],
) -> None:
    """Make a project: a folder with project.toml, where everything can be changed, and a database."""
    from whichsense.files import read_bytes, read_json
    from whichsense.studio import Settings, create_project

    if (questions is None) == (source is None):
        raise click.UsageError("Give --questions FILE, or --from PROJECT.")
    settings = Settings(
        kind=kind,
        index=index,
        overlap=overlap,
        tiebreak=tiebreak,
        order=order,  # type: ignore[arg-type]  # click has checked it
        suggestions="shown" if show_suggestions else "hidden",
        database=database,
        guidelines=read_bytes(guidelines).decode() if guidelines else "",
    )
    project = create_project(
        folder,
        settings,
        questions or _made_by(source, kind),
        qualifying=dict(qualifying),
        suggested=read_json(suggest) if suggest else None,
    )
    with _opened(folder) as studio:
        count = studio.database.count_items()
        token = studio.members.invite("owner", "owner")
    _say_made(project.name, folder, count, token)
    click.echo(f"Serve it: whichsense studio serve {folder}")


def _made_by(source: Path | None, kind: str) -> list[dict[str, Any]]:
    from whichsense.studio.following import next_rows

    assert source is not None
    with _opened(source) as studio:
        return next_rows(studio, kind)


@command.command()
@_project
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    default=_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port; 0 takes a free one.",
)
@click.option(
    "--host-name",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another name under which it is reached. Repeatable.",
)
def serve(folder: Path, host: str, port: int, hosts: tuple[str, ...]) -> None:
    """Serve a project until Ctrl-C."""
    require("uvicorn", "studio")
    from whichsense.studio.api import run_studio, service_settings

    with _opened(folder) as studio:
        run_studio(studio, service_settings(studio, host, port, hosts), click.echo)


@command.command()
@_project
@click.argument("name")
@click.option(
    "--role",
    default="annotator",
    show_default=True,
    type=click.Choice(ROLES),
    help="What they may do.",
)
@click.option(
    "--url", metavar="URL", help=f"Where the studio is served.  [default: http://127.0.0.1:{_PORT}]"
)
def invite(folder: Path, name: str, role: str, url: str | None) -> None:
    """Make an invitation for NAME and print its link. It cannot be printed again."""
    with _opened(folder) as studio:
        click.echo(_link(url, studio.members.invite(name, role)))


@command.command()
@_project
@_json
def status(folder: Path, as_json: bool) -> None:
    """Print how far a project is, and who did what."""
    with _opened(folder) as studio:
        _print(studio.status(), as_json, _status_lines)


@command.command()
@_project
@_json
def agreement(folder: Path, as_json: bool) -> None:
    """Print how far annotators agree, with intervals."""
    from whichsense.studio import reports

    with _opened(folder) as studio:
        _print(reports.agreement(studio), as_json, _agreement_lines)


@command.command()
@_project
@_json
def pay(folder: Path, as_json: bool) -> None:
    """Print what everyone is owed, by the rules in project.toml."""
    from whichsense.studio import reports

    with _opened(folder) as studio:
        _print(reports.pay(studio), as_json, _pay_lines)


@command.command()
@_project
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="[default: the release that the kind has]"
)
@click.option("--out", type=_PATH, required=True, metavar="DIR", help="The folder for the files.")
def export(folder: Path, form: str | None, out: Path) -> None:
    """Write the data as a dataset's file, with a data statement."""
    from whichsense.studio.exports import default_format, export_to

    with _opened(folder) as studio:
        for path in export_to(studio, form or default_format(studio.kind), out):
            click.echo(path)


@command.command("import")
@click.argument("folder", type=_PATH, metavar="NAME")
@click.argument("files", type=_PATH, nargs=-1, required=True, metavar="FILE…")
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What FILE is.")
@click.option("--database", default="", metavar="URL", help="A PostgreSQL database.")
def import_(folder: Path, files: tuple[Path, ...], form: str, database: str) -> None:
    """Make a project of an export, or of released data."""
    from whichsense.studio.imports import import_project

    project = import_project(folder, files, form, database)
    with _opened(folder) as studio:
        token = studio.members.invite("owner", "owner") if form != "jsonl" else ""
        count = studio.database.count_items()
    _say_made(project.name, folder, count, token)


def _print(table: Any, as_json: bool, lines: Callable[[Any], Iterator[str]]) -> None:
    click.echo(json.dumps(table) if as_json else "\n".join(lines(table)))


def _status_lines(table: Any) -> Iterator[str]:
    counts = ", ".join(f"{count:,} {part}" for part, count in table["items"].items())
    yield f"{table['project']} ({table['kind']}): {counts} items"
    annotations = table["annotations"]
    total = sum(annotations.values())
    yield f"{annotations['done']:,} of {total:,} annotations submitted, {annotations['held']:,} in work"
    for member in table["members"]:
        paused = f"  paused: {member['paused']}" if member["paused"] else ""
        minutes = member["seconds"] / 60
        yield f"{member['name']:<20} {member['role']:<12} {member['submitted']:>6,} {minutes:>8.1f} min{paused}"


def _agreement_lines(report: Any) -> Iterator[str]:
    for one in report["measures"]:
        value = "undefined" if one["value"] is None else f"{one['value']:.3f}"
        low = one["low"]
        bounds = "" if low is None else f" ({low:.3f} to {one['high']:.3f})"
        yield f"{one['name']}: {value}{bounds}, {one['units']:,} items. {one['says']}"


def _pay_lines(table: Any) -> Iterator[str]:
    if not table["rows"]:
        yield "Nobody has worked yet."
    for row in table["rows"]:
        sums = (
            f"{row['pay']:>9,.2f} + {row['bonus']:,.2f} = {row['total']:,.2f} {table['currency']}"
        )
        yield f"{row['name']:<20} {row['items']:>6,} {row['seconds'] / 60:>8.1f} min {sums}"


def _say_made(name: str, folder: Path, count: int, token: str) -> None:
    click.echo(f"{name}: {count:,} items in {folder}")
    if token:
        click.echo(f"The owner's link, shown once: {_link(None, token)}")
    else:
        click.echo(f"Invite its owner: whichsense studio invite {folder} NAME --role owner")


def _link(url: str | None, token: str) -> str:
    from whichsense.studio.members import invitation_link

    return invitation_link(url or f"http://127.0.0.1:{_PORT}", token)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Studio]:
    from whichsense.studio import Project, Studio

    studio = Studio(Project.open(folder))
    try:
        yield studio
    finally:
        studio.close()
