"""whichsense index: build, add, delete, info, check, copy, senses."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whichsense.cli.evidence import cluster_option, use_executor, workers_option
from whichsense.cli.index.printing import health_table, print_built, readable, summary
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.protocols import Encoder

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_folder_argument = click.argument(
    "folder", type=click.Path(path_type=Path), metavar="DIR"
)
_sources_argument = click.argument(
    "sources", nargs=-1, required=True, metavar="SOURCE..."
)
_format_option = click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="Format of the sources. [default: by name and content]",
)
_encoding_option = click.option(
    "--encoding",
    metavar="NAME",
    help="Encoding of text that is not UTF-8, for example cp1252.",
)


@click.group(help="Build, extend and check the folder that a corpus is searched in.")
def command() -> None:
    pass


@command.command()
@_sources_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder of the index.",
)
@click.option(
    "--words",
    default=100,
    show_default=True,
    type=click.IntRange(10, 1000),
    help="Words in a passage.",
)
@click.option(
    "--sentences", is_flag=True, help="Cut passages at the ends of sentences."
)
@click.option(
    "--dense", is_flag=True, help="Encode passages as vectors, for search by meaning."
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="Encoder of the vectors: static, minilm, or a model folder.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Spread the index over N shards, which are searched as one.",
)
@click.option(
    "--shard-by",
    type=click.Choice(["hash", "source"]),
    help="Shards alike, or each source in one shard. [default: hash]",
)
@cluster_option
@workers_option
@_format_option
@_encoding_option
@as_json
def build(
    sources: tuple[str, ...],
    out: Path,
    words: int,
    sentences: bool,
    dense: bool,
    encoder: str | None,
    shards: int | None,
    shard_by: str | None,
    cluster: str | None,
    workers: int | None,
    format_: str | None,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Build an index of SOURCE... in DIR.

    SOURCE is a Wikipedia dump, WikiExtractor or other JSON lines, DPR's TSV, CSV, Parquet, or a folder of text,
    Markdown, HTML, PDF and Word files; compressed or not. After Ctrl-C the same command resumes.
    """
    from whichsense import index

    if shard_by and not shards:
        raise click.UsageError("--shard-by needs --shards N.")
    if cluster and not shards:
        raise click.UsageError("--cluster needs --shards N: shards are what is spread.")
    spread = None
    if shards:
        spread = index.Spread(shards, shard_by or "hash")
    if spread and cluster:
        executor = use_executor(cluster, workers)
        spread = dataclasses.replace(spread, executor=executor, remote=True)
    chosen = _encoder(encoder) if dense or encoder else None
    with show_progress("indexing", "passages") as progress:
        built = index.Index.build(
            sources,
            out,
            cutting=index.Cutting(words, sentences),
            encoder=chosen,
            format=format_,
            encoding=encoding,
            progress=progress,
            say=_say,
            shards=spread,
        )
    print_built(built.manifest, out, as_json)


@command.command()
@_folder_argument
@_sources_argument
@cluster_option
@workers_option
@_format_option
@_encoding_option
@as_json
def add(
    folder: Path,
    sources: tuple[str, ...],
    cluster: str | None,
    workers: int | None,
    format_: str | None,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Add SOURCE... to the index in DIR, cut and encoded as the rest of it."""
    from whichsense import index

    with show_progress("adding", "passages") as progress:
        manifest = index.add(
            sources,
            folder,
            format=format_,
            encoding=encoding,
            progress=progress,
            say=_say,
            executor=use_executor(cluster, workers) if cluster else None,
        )
    print_built(manifest, folder, as_json)


@command.command()
@_folder_argument
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="ID",
    help="Id of a document or a passage. Repeatable.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME",
    help="Source whose passages are deleted. Repeatable.",
)
@as_json
def delete(
    folder: Path, ids: tuple[str, ...], sources: tuple[str, ...], as_json: bool
) -> None:
    """Delete passages from the index in DIR."""
    from whichsense import index

    if not ids and not sources:
        raise click.UsageError("Say what to delete: --id ID or --source NAME.")
    manifest, deleted = index.delete(folder, ids, sources)
    if as_json:
        table = {
            "deleted": deleted,
            "passages": manifest.passages,
            "generation": manifest.generation,
        }
        print(json.dumps(table))
    else:
        print(f"{deleted:,} passages deleted, {manifest.passages:,} left")
    if not deleted:
        click.echo("Nothing in the index has that id or source.", err=True)
        sys.exit(1)


@command.command()
@_folder_argument
@as_json
def info(folder: Path, as_json: bool) -> None:
    """Print what the index in DIR holds and what it was built from."""
    from whichsense.index.object_store import manifest_of

    manifest = manifest_of(folder)
    table = summary(manifest)
    if as_json:
        files = {}
        for name, record in manifest.files.items():
            files[name] = dataclasses.asdict(record)
        print(json.dumps(table | {"files": files}))
        return
    for name, value in table.items():
        print(f"{name:<12}{readable(name, value)}")


@command.command()
@_folder_argument
@cluster_option
@as_json
def check(folder: Path, cluster: str | None, as_json: bool) -> None:
    """Read every byte of the index in DIR, and print any damage and the generation that is served."""
    from whichsense import index
    from whichsense.index.object_store import local_folder

    health = index.check(local_folder(folder), use_executor(cluster))
    if as_json:
        print(json.dumps(health_table(health)))
    else:
        print(health.summary())
    sys.exit(0 if health.sound else 1)


@command.command()
@_folder_argument
@click.argument("url")
def copy(folder: Path, url: str) -> None:
    """Copy the index in DIR to an object store: s3://bucket/wiki, gs://…; then --index URL opens it.

    Readers there see the old index until the new one is complete. After Ctrl-C the same command resumes.
    """
    from whichsense.index.object_store import copy_index, url_of

    place = url_of(url)
    if place is None:
        raise click.UsageError(
            f"'{url}' is not a URL: write s3://…, gs://… or file://…."
        )
    with show_progress("copying", "files") as progress:
        manifest = copy_index(folder, place, progress)
    print(f"{place}: {manifest.passages:,} passages, {len(manifest.files):,} files")


@command.command()
@click.argument("name")
@click.option(
    "--index",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Index folder to look in.",
)
@as_json
def senses(name: str, folder: Path, as_json: bool) -> None:
    """List the senses of NAME, from the corpus's disambiguation pages."""
    from whichsense import index

    entries = index.Index.open(folder).senses(name)
    if as_json:
        table = [dataclasses.asdict(sense) for sense in entries]
        print(json.dumps(table, ensure_ascii=False))
        return
    for sense in entries:
        print(f"{sense.title}: {sense.gloss}")
    if not entries:
        message = f"No disambiguation page in this corpus is about '{name}'."
        click.echo(message, err=True)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _encoder(name: str | None) -> Encoder:
    from whichsense.models.vectors import encoders

    return encoders.load_encoder(name or encoders.DEFAULT)
