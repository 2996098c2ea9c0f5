"""whichsense index and retrieve: build, extend and check an index; search once for whole datasets."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import (
    cluster_option,
    data_dir_option,
    evidence_options,
    flag_option,
    json_option,
    limit_option,
    number_option,
    open_evidence,
    path_option,
    repeated_option,
    use_executor,
    workers_option,
)
from whichsense.jobs.limits import show_progress

if TYPE_CHECKING:
    from whichsense.index import Health, Manifest, Spread


# What the commands of whichsense index print.


def health_table(health: Health) -> dict[str, Any]:
    """Return what a check found, as JSON has it."""
    served, manifest = None, health.manifest
    if manifest:
        names = ("generation", "passages")
        served = {name: getattr(manifest, name) for name in names}
    return {
        "sound": health.sound,
        "served": served,
        "problems": health.problems,
        "notes": health.notes,
    }


def print_built(manifest: Manifest, folder: Path, as_json: bool) -> None:
    """Print what a build or an add has made."""
    if as_json:
        print(json.dumps(summary(manifest), ensure_ascii=False))
        return
    from whichsense.corpus import Report

    click.echo(Report.from_dict(dict(manifest.report)).summary(), err=True)
    print(f"{folder}: {manifest.passages:,} passages")


def summary(manifest: Manifest) -> dict[str, Any]:
    """Return what an index holds and what it was built from."""
    return {
        "passages": manifest.passages,
        "generation": manifest.generation,
        "created": manifest.created,
        "bytes": sum(record.size for record in manifest.files.values()),
        "encoder": manifest.encoder,
        "shards": len(manifest.sharding.rows) if manifest.sharding else None,
        "settings": manifest.settings,
        "sources": manifest.sources,
        "report": manifest.report,
    }


def readable(name: str, value: Any) -> str:
    """Return a value of that summary, for a person."""
    if name == "sources":
        paths = []
        for source in value:
            paths += source["paths"]
        more = f" and {len(paths) - 5:,} more" if len(paths) > 5 else ""
        return ", ".join(paths[:5]) + more
    if isinstance(value, dict):
        items = [f"{key} {item}" for key, item in value.items() if not isinstance(item, list)]
        return ", ".join(items)
    return f"{value:,}" if isinstance(value, int) else str(value)


# whichsense index: build, add, delete, info, check, copy, senses.

_folder_argument = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
_sources_argument = click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
_format_option = click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="Format of the sources. [default: by name and content]",
)
_encoding_option = click.option(
    "--encoding", metavar="NAME", help="Encoding of text that is not UTF-8, for example cp1252."
)


@click.group(help="Build, extend and check the folder that a corpus is searched in.")
def command() -> None:
    pass


@command.command()
@_sources_argument
@path_option("--out", "Folder of the index.", required=True)
@number_option("--words", 100, 10, 1000, help="Words in a passage.")
@click.option(
    "--sentences/--no-sentences",
    default=None,
    help="Cut passages at the ends of sentences, or every N words. [default: sentences for files of one document]",
)
@click.option(
    "--dense/--no-dense",
    default=True,
    help="Encode passages as vectors, for search by meaning. [default: dense]",
)
@click.option(
    "--encoder",
    default="static",
    show_default=True,
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
@json_option
def build(
    sources: tuple[str, ...],
    out: Path,
    words: int,
    sentences: bool | None,
    dense: bool,
    encoder: str,
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

    spread = _spread(shards, shard_by, cluster, workers)
    with show_progress("indexing", "passages") as progress:
        built = index.Index.build(
            sources,
            out,
            cutting=index.Cutting(words, sentences),
            encoder=encoder if dense else None,
            format=format_,
            encoding=encoding,
            progress=progress,
            say=_say,
            shards=spread,
        )
    print_built(built.manifest, out, as_json)


def _spread(
    shards: int | None, by: str | None, cluster: str | None, workers: int | None
) -> Spread | None:
    """Return how the index is spread over shards, and these over machines."""
    from whichsense.index import Spread

    if by and not shards:
        raise click.UsageError("--shard-by needs --shards N.")
    if cluster and not shards:
        raise click.UsageError("--cluster needs --shards N: shards are what is spread.")
    if not shards:
        return None
    spread = Spread(shards, by or "hash")
    if not cluster:
        return spread
    executor = use_executor(cluster, workers)
    return dataclasses.replace(spread, executor=executor, remote=True)


@command.command()
@_folder_argument
@_sources_argument
@cluster_option
@workers_option
@_format_option
@_encoding_option
@json_option
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
@repeated_option("--id", "ids", "ID", "Id of a document or a passage. Repeatable.")
@repeated_option("--source", "sources", "NAME", "Source whose passages are deleted. Repeatable.")
@json_option
def delete(folder: Path, ids: tuple[str, ...], sources: tuple[str, ...], as_json: bool) -> None:
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
@json_option
def info(folder: Path, as_json: bool) -> None:
    """Print what the index in DIR holds and what it was built from."""
    from whichsense.index.object_store import manifest_of

    manifest = manifest_of(folder)
    table = summary(manifest)
    if as_json:
        files = {name: dataclasses.asdict(record) for name, record in manifest.files.items()}
        print(json.dumps(table | {"files": files}))
        return
    for name, value in table.items():
        print(f"{name:<12}{readable(name, value)}")


@command.command()
@_folder_argument
@cluster_option
@json_option
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
        raise click.UsageError(f"'{url}' is not a URL: write s3://…, gs://… or file://….")
    with show_progress("copying", "files") as progress:
        manifest = copy_index(folder, place, progress)
    print(f"{place}: {manifest.passages:,} passages, {len(manifest.files):,} files")


@command.command()
@click.argument("name")
@path_option("--index", "Index folder to look in.", to="folder", required=True)
@json_option
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


# whichsense retrieve: search once for all questions of datasets.


@click.command()
@click.argument("datasets", nargs=-1, required=True, metavar="NAME|FILE…")
@evidence_options
@cluster_option
@workers_option
@path_option(
    "--out",
    "File to write: hits.jsonl, or compressed (.zst, .gz, .bz2, .xz).",
    "FILE",
    required=True,
)
@number_option("--k", 100, 1, 10_000, help="Passages to retrieve for each question.")
@flag_option("--rewrites", "Also search for the annotators' rewrites.")
@data_dir_option
@limit_option
def retrieve_command(
    datasets: tuple[str, ...],
    folder: Path | None,
    method: str | None,
    cluster: str | None,
    workers: int | None,
    out: Path,
    k: int,
    rewrites: bool,
    data_dir: Path | None,
    limit: int | None,
) -> None:
    """Search for every question of the datasets and save the hits in a file.

    Training (data.hits), predict and tune (--hits) read it in place of an index.
    """
    from whichsense.index.search import save_hits
    from whichsense.lab.datasets import load_questions, rewrites_as_questions

    index, chosen = open_evidence(folder, method)
    questions = []
    for name in datasets:
        questions += load_questions(name, data_dir)[0][:limit]
    texts = [question.text for question in questions]
    if rewrites:
        for question in questions:
            texts += [rewrite.text for rewrite in rewrites_as_questions(question)]
    executor = use_executor(cluster, workers)
    with show_progress("searching", "questions") as progress:
        count = save_hits(
            index, texts, out, k=k, method=chosen, progress=progress, executor=executor
        )
    print(f"{out}: {count:,} questions, {k} passages each")
