"""whichsense evaluate retrieval: how many gold answers a search finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evaluate.options import (
    PATH,
    data_dir_option,
    json_option,
    limit_option,
)
from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.errors import BadInput
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.evaluation.retrieval import RetrievalResult
    from whichsense.index import Index
    from whichsense.protocols import Reranker

# Passages of a hundred that compact reads to the end. With 20, its first layers alone would choose the 20 best.
_KEEP = 40


@click.command()
@click.option(
    "--dataset",
    required=True,
    metavar="NAME",
    help="Name of the dataset, for example ambignq/dev or sample/questions.",
)
@evidence_options
@click.option(
    "--rerank",
    metavar="MODEL",
    help="Rerank the passages: compact, or the folder of a trained reranker.",
)
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="With --rerank compact: read N passages to the end. [default: 40]",
)
@data_dir_option
@limit_option
@click.option(
    "--out", type=PATH, metavar="FILE", help="Write the result to this JSON file, too."
)
@json_option
def retrieval(
    dataset: str,
    folder: Path | None,
    method: str | None,
    rerank: str | None,
    keep: int | None,
    data_dir: Path | None,
    limit: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print how many gold answers are among the first 1, 5, 10, 20 and 100 passages.

    With --out, a stopped run resumes when the same command is given again.
    """
    from whichsense.evaluation.retrieval import evaluate_retrieval

    index, chosen = open_evidence(folder, method)
    if keep and rerank != "compact":
        raise BadInput(
            "--keep is the number of passages that compact reads: add --rerank compact."
        )
    # What the reranker is goes into the result's provenance.
    reranker: Reranker | None = None
    about: Mapping[str, Any] = {}
    if rerank:
        reranker, about = _reranker(rerank, index, keep or _KEEP)
    with show_progress("searching", "questions") as progress:
        result = evaluate_retrieval(
            dataset,
            index,
            method=chosen,
            reranker=reranker,
            limit=limit,
            data_dir=data_dir,
            out=out,
            about=about,
            progress=progress,
        )
    if as_json:
        print(json.dumps(result.as_dict()))
    else:
        _print_retrieval(result)


def _print_retrieval(result: RetrievalResult) -> None:
    counts = f"{result.questions:,} questions, {result.answers:,} answers"
    print(f"{result.dataset}, {result.method}: {counts}")
    print(f"{'top':<18}" + "".join(f"{k:>8}" for k in result.answer_recall))
    for title, recall in (
        ("gold answers", result.answer_recall),
        ("of each annotation", result.annotated_recall),
        ("any answer", result.any_recall),
    ):
        row = "".join(f"{share:>8.3f}" for share in recall.values())
        print(f"{title:<18}{row}")
    milliseconds = 1000 * result.seconds_per_question
    print(f"MRR {result.mrr:.3f}, {milliseconds:.1f} ms a question")


def _reranker(name: str, index: Index, keep: int) -> tuple[Reranker, dict[str, Any]]:
    """The reranker, and what decides its order."""
    from whichsense.models.compact.encoder.runtime import WEIGHTS
    from whichsense.systems.build import build_reranker
    from whichsense.systems.settings import training_runs

    reranker = build_reranker(name, index, keep)
    if name == "compact":
        return reranker, {"reranker": WEIGHTS.name, "keep": keep}
    return reranker, {"reranker": name, "models": training_runs([name])}
