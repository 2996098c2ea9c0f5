"""The options of commands that search: which index, and how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from whichsense.cluster import Cluster
    from whichsense.index import Index
    from whichsense.index.saved_hits import SavedHits
    from whichsense.jobs.workers import Executor
    from whichsense.types import Method


def evidence_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --index and --method to a command."""
    folder = click.option(
        "--index",
        "folder",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Index folder to search, or handbook, the embedded documents. [default: the embedded sample]",
    )
    method = click.option(
        "--method",
        type=click.Choice(["bm25", "dense", "hybrid"]),
        help="Search by words, by meaning, or by both. [default: hybrid if there are vectors]",
    )
    return folder(method(command))


def cluster_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --cluster to a command."""
    return click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on the Ray cluster at HOST:PORT; local: a cluster of this machine's own cores.",
    )(command)


def workers_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers to a command that has --cluster."""
    return click.option(
        "--workers",
        type=click.IntRange(1),
        metavar="N",
        help="With --cluster: workers, of one core each. [default: one for each core]",
    )(command)


def gpus_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --gpus to a command that has --cluster."""
    return click.option(
        "--gpus",
        type=click.FloatRange(0),
        default=0,
        metavar="N",
        help="With --cluster: GPUs of each worker; at 0.5, two share one.",
    )(command)


def use_executor(
    address: str | None, workers: int | None = None, gpus: float = 0
) -> Executor:
    """Workers on the cluster at an address, until the command ends; this process without one."""
    from whichsense.jobs.workers import run_here

    connected = use_cluster(address)
    if connected is None:
        return run_here
    from whichsense.cluster import run_on

    return run_on(connected, workers, gpus)


def use_cluster(address: str | None) -> Cluster | None:
    """The cluster at an address, until the command ends; None without an address."""
    if address is None:
        return None
    from whichsense.cluster import connect

    return click.get_current_context().with_resource(connect(address))


def open_evidence(
    folder: Path | None, method: str | None, cluster: str | None = None
) -> tuple[Index, Method]:
    """The index and the method: as given, as whichsense.toml says, or the embedded sample and the best it has."""
    from whichsense import config, sample

    place = folder or config.find_config().retrieve.index or None
    if use_cluster(cluster):
        from whichsense.cluster import ClusterIndex

        index: Index = ClusterIndex.on_cluster(sample.place_of(place))
    else:
        index = sample.open_index(place)
    return index, index.method(named_method(method))


def named_method(method: str | None) -> Method | None:
    """Return the method that the option or whichsense.toml names; None leaves the choice to each index."""
    from whichsense import config

    return cast("Method | None", method) or config.find_config().retrieve.method


def stored_index(folder: Path | None) -> str | None:
    """The URL of an index in an object store, if that is what is meant: machines of a cluster fetch it themselves."""
    from whichsense import config
    from whichsense.index.object_store import fetch_manifest, url_of

    url = url_of(folder or config.find_config().retrieve.index)
    if url:
        fetch_manifest(url)  # an error, if there is none
    return url


def hits_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --hits to a command."""
    return click.option(
        "--hits",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Hits saved by whichsense retrieve, in place of --index.",
    )(command)


def open_hits_or_index(
    hits: Path | None, folder: Path | None, method: str | None
) -> tuple[Index | SavedHits, Method | None]:
    """The saved hits, or else the index and the method."""
    if hits is None:
        return open_evidence(folder, method)
    if folder is not None:
        raise click.UsageError("Give either --hits FILE or --index DIR.")
    from whichsense.index.saved_hits import SavedHits

    return SavedHits.open(hits), cast("Method | None", method)
