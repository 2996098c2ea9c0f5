"""whichsense mcp: the service as tools of a model, over standard input and output."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from whichsense.cli.evidence import evidence_options, named_method, open_evidence
from whichsense.cli.system import service_options, system_option
from whichsense.errors import require


@click.command()
@evidence_options
@system_option()
@service_options(threads=2)
def command(
    folder: Path | None,
    method: str | None,
    system: Path | None,
    threshold: float | None,
    threads: int,
    deadline: float,
    state: Path | None,
    no_traces: bool,
) -> None:
    """Serve an index to the program that starts this one, by the Model Context Protocol over stdin and stdout.

    Tools: ask, clarify, reply, explain, search, read. A program adds it as the command: whichsense mcp --index DIR
    """
    require("mcp", "serve")
    require("fastapi", "serve")
    from whichsense.serve.mcp.stdio import serve_stdio
    from whichsense.serve.settings import ServiceSettings, state_folder

    index, _ = open_evidence(folder, method)
    settings = ServiceSettings(
        index=str(index.folder),
        system=str(system or "compact"),
        method=named_method(method),
        threshold=threshold,
        threads=threads,
        deadline=deadline,
        state=state or state_folder(),
        traces=not no_traces,
    )
    index.close()
    if sys.stdin.isatty():
        hint = "Waiting for a program that speaks MCP. Ctrl-C ends it."
        click.echo(hint, err=True)
    serve_stdio(settings)
