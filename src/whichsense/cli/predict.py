"""whichsense predict: a system over a dataset."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from whichsense.cli.evidence import evidence_options, hits_option, open_hits_or_index
from whichsense.jobs.progress import show_progress


@click.command()
@click.option(
    "--system",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="Which model does each stage.",
)
@click.option(
    "--provider",
    metavar="NAME",
    help="In place of --system: a provider's own system, such as compact.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Another compact model than the shipped.",
)
@click.option(
    "--dataset",
    required=True,
    metavar="NAME|FILE",
    help="For example ambignq/dev, or a file of that form.",
)
@evidence_options
@hits_option
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The predictions.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the datasets lie.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions."
)
@click.option(
    "--batch",
    default=8,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Questions at once.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, with where the predictions come from.",
)
def command(
    system: Path | None,
    provider: str | None,
    weights: Path | None,
    dataset: str,
    folder: Path | None,
    method: str | None,
    hits: Path | None,
    out: Path,
    data_dir: Path | None,
    limit: int | None,
    batch: int,
    as_json: bool,
) -> None:
    """Answer every question of a dataset and write the official form: {id: [{question, answer}…]}.

    A run that was stopped or killed goes on where it was when the same command is given again.
    """
    from whichsense.evaluation.predict import predict
    from whichsense.systems.build import build
    from whichsense.systems.settings import describe, load_settings
    from whichsense.types import FOR_BENCHMARKS

    if (system is None) == (provider is None):
        raise click.UsageError("Give either --system FILE.toml or --provider NAME.")
    index, chosen = open_hits_or_index(hits, folder, method)
    table = load_settings(system or str(provider))
    table = dataclasses.replace(table, weights=str(weights)) if weights else table
    ready = build(
        dataclasses.replace(table, method=chosen if method else table.method or chosen),
        index,
        FOR_BENCHMARKS,
    )
    with show_progress("answering", "questions") as progress:
        done = predict(
            ready.answerer,
            dataset,
            out,
            system=describe(ready.settings, index),
            rewrites=ready.rewrites,
            data_dir=data_dir,
            limit=limit,
            batch=batch,
            progress=progress,
        )
    if as_json:
        print(json.dumps(dataclasses.asdict(done) | {"path": str(done.path)}))
        return
    print(
        f"{done.path}: {done.questions:,} questions, {done.seconds_per_question:.3f} s each"
    )
