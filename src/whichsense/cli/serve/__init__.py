"""whichsense serve: the HTTP service over an index."""

from __future__ import annotations

import os
from pathlib import Path

import click

from whichsense.cli.evidence import (
    cluster_option,
    evidence_options,
    named_method,
    open_evidence,
    stored_index,
)
from whichsense.cli.system import service_options, system_option
from whichsense.errors import require


@click.command()
@evidence_options
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
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen at; 0 takes a free one.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processes, each with its own models.",
)
@click.option(
    "--parallel",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Questions that each worker answers at once.",
)
@click.option(
    "--queue",
    default=64,
    show_default=True,
    type=click.IntRange(0, 10_000),
    help="Questions that may wait in each worker. One more is refused with 429.",
)
@service_options(threads=1)
@click.option(
    "--recall",
    default=32,
    show_default=True,
    type=click.IntRange(0, 100_000),
    metavar="MB",
    help="Memory of each worker for searches that were answered before.",
)
@click.option(
    "--host-name",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Name under which this machine may be asked, beside localhost. Repeatable.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Site whose pages may ask, such as https://example.org. Repeatable.",
)
def command(
    folder: Path | None,
    method: str | None,
    cluster: str | None,
    replicas: int,
    system: Path | None,
    compare: tuple[Path, ...],
    host: str,
    port: int,
    workers: int,
    parallel: int,
    threshold: float | None,
    threads: int,
    queue: int,
    deadline: float,
    recall: int,
    state: Path | None,
    no_traces: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> None:
    """Serve an index over HTTP: /v1/ask, /v1/search and the rest of /openapi.json.

    An API key in the environment variable WHICHSENSE_API_KEY is accepted beside those of whichsense keys.
    """
    require("fastapi", "serve")
    require("uvicorn", "serve")
    from whichsense.serve.run import serve
    from whichsense.serve.settings import ServiceSettings, state_folder

    place = stored_index(folder) if cluster else None
    if place is None:
        index, _ = open_evidence(folder, method)
        place = str(index.folder)
    settings = ServiceSettings(
        index=place,
        cluster=cluster or "",
        replicas=replicas,
        system=str(system or "compact"),
        compare=tuple(str(path) for path in compare),
        method=named_method(method),
        threshold=threshold,
        host=host,
        port=port,
        workers=workers,
        parallel=parallel,
        threads=threads,
        queue=queue,
        deadline=deadline,
        recall_bytes=recall * 2**20,
        state=state or state_folder(),
        traces=not no_traces,
        hosts=hosts,
        origins=origins,
        api_key=os.environ.get("WHICHSENSE_API_KEY", ""),
    )
    index.close()
    serve(settings, say=click.echo)
