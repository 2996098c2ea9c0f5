"""whichsense evaluate: measure a system over a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import click

from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.progress import shown


@click.group(help="Measure a system over a dataset.")
def command() -> None:
    pass


@command.command()
@click.option("--dataset", required=True, metavar="NAME", help="For example ambignq/dev or sample/questions.")
@evidence_options
@click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR", help="Where the datasets lie.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with where the numbers come from.")
def retrieval(
    dataset: str, folder: Path | None, method: str | None, data_dir: Path | None, limit: int | None, as_json: bool
) -> None:
    """Print how many gold answers are among the first 1, 5, 10, 20 and 100 passages."""
    from whichsense.evaluate import evaluate_retrieval

    index, chosen = open_evidence(folder, method)
    with shown("searching", "questions") as progress:
        result = evaluate_retrieval(dataset, index, method=chosen, limit=limit, data_dir=data_dir, progress=progress)
    if as_json:
        print(json.dumps(result.as_dict()))
        return
    print(f"{result.dataset}, {result.method}: {result.questions:,} questions, {result.answers:,} answers")
    print(f"{'top':<18}" + "".join(f"{k:>8}" for k in result.answer_recall))
    print(f"{'gold answers':<18}" + "".join(f"{share:>8.3f}" for share in result.answer_recall.values()))
    print(f"{'of each annotation':<18}" + "".join(f"{share:>8.3f}" for share in result.annotated_recall.values()))
    print(f"{'any answer':<18}" + "".join(f"{share:>8.3f}" for share in result.any_recall.values()))
    print(f"MRR {result.mrr:.3f}, {1000 * result.seconds_per_question:.1f} ms a question")
