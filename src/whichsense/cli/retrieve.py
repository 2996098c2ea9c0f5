"""whichsense retrieve: search once for all questions of datasets."""

from __future__ import annotations

from pathlib import Path

import click

from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.jobs.progress import show_progress


@click.command()
@click.argument("datasets", nargs=-1, required=True, metavar="NAME|FILE…")
@evidence_options
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="hits.jsonl.zst, .gz, .xz",
)
@click.option(
    "--k",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Passages of each question.",
)
@click.option(
    "--rewrites", is_flag=True, help="The annotators' rewrites are questions, too."
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the datasets lie.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Only the first N questions of each.",
)
def command(
    datasets: tuple[str, ...],
    folder: Path | None,
    method: str | None,
    out: Path,
    k: int,
    rewrites: bool,
    data_dir: Path | None,
    limit: int | None,
) -> None:
    """Search for every question of the datasets, and keep what is found in a file.

    Training (data.hits), predict and tune (--hits) then read it in place of an index.
    """
    from whichsense.datasets import load_questions, rewrites_as_questions
    from whichsense.index.saved_hits import save_hits

    index, chosen = open_evidence(folder, method)
    found = [
        question
        for name in datasets
        for question in load_questions(name, data_dir)[0][:limit]
    ]
    asked = [question.text for question in found]
    if rewrites:
        asked += [
            one.text for question in found for one in rewrites_as_questions(question)
        ]
    with show_progress("searching", "questions") as progress:
        count = save_hits(index, asked, out, k=k, method=chosen, progress=progress)
    print(f"{out}: {count:,} questions, {k} passages each")
