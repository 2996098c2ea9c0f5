"""whichsense retrieve: search once for all questions of datasets."""

from __future__ import annotations

from pathlib import Path

import click

from whichsense.cli.evidence import (
    cluster_option,
    evidence_options,
    open_evidence,
    use_executor,
    workers_option,
)
from whichsense.jobs.progress import show_progress


@click.command()
@click.argument("datasets", nargs=-1, required=True, metavar="NAME|FILE…")
@evidence_options
@cluster_option
@workers_option
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write: hits.jsonl, or compressed (.zst, .gz, .bz2, .xz).",
)
@click.option(
    "--k",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Passages to retrieve for each question.",
)
@click.option(
    "--rewrites", is_flag=True, help="Also search for the annotators' rewrites."
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the datasets.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Search only for the first N questions of each dataset.",
)
def command(
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
    from whichsense.datasets import load_questions, rewrites_as_questions
    from whichsense.index.saved_hits import save_hits

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
