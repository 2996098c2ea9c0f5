"""whichsense tune: the threshold of a system's verification."""

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
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="With a verifier.",
)
@click.option(
    "--dataset",
    required=True,
    metavar="NAME|FILE",
    help="Validation questions, such as ambignq/val.",
)
@evidence_options
@hits_option
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the datasets lie.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    system: Path,
    dataset: str,
    folder: Path | None,
    method: str | None,
    hits: Path | None,
    data_dir: Path | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Find the threshold of LM verification that gives the highest F1ans. Write it into the system's file."""
    from whichsense.errors import BadConfig
    from whichsense.evaluation.predict import questions_of
    from whichsense.evaluation.tune import tune
    from whichsense.pipeline import Pipeline
    from whichsense.systems.build import build
    from whichsense.systems.settings import load_settings
    from whichsense.types import FOR_BENCHMARKS

    index, chosen = open_hits_or_index(hits, folder, method)
    table = load_settings(system)
    ready = build(
        dataclasses.replace(table, method=chosen if method else table.method or chosen),
        index,
        FOR_BENCHMARKS,
    )
    if not isinstance(ready.answerer, Pipeline):
        raise BadConfig(f"'{system}' does not verify: there is no threshold to tune.")
    questions = [
        question
        for question in questions_of(dataset, data_dir, limit)[0]
        if question.answers
    ]
    with show_progress("answering", "questions") as progress:
        found = tune(ready.answerer, questions, progress)
    if as_json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    print(
        f"threshold = {found.threshold:.3f}: F1ans {found.f1_ans:.4f} over {found.questions:,} questions"
    )
    print(
        f"as given: {found.f1_ans_given:.4f}; without verification: {found.f1_ans_unverified:.4f}"
    )
