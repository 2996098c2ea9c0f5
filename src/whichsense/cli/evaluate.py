"""whichsense evaluate: measure systems over a dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.errors import BadInput
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.evaluation.leaderboard import Leaderboard
    from whichsense.evaluation.retrieval import RetrievalResult
    from whichsense.index import Index
    from whichsense.protocols import Reranker

# Passages of a hundred that compact reads to the end. With 20, its first layers alone would choose the 20 best.
_KEEP = 40
_PATH = click.Path(path_type=Path)
_DATA_DIR = click.option(
    "--data-dir",
    type=_PATH,
    metavar="DIR",
    help="The data folder. [default: WHICHSENSE_DATA, or the user's cache]",
)
_LIMIT = click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Use only the first N questions.",
)
_JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON, with the provenance of its numbers.",
)
# Metrics that the table shows, in percent, and their titles.
_COLUMNS = {
    "f1_ans": "F1ans",
    "f1_ans_multi": "(multi)",
    "f1_bleu4": "F1BLEU",
    "f1_edit": "F1EDIT",
}


class _FileOrCommand(click.Group):
    """`evaluate systems.toml` is short for `evaluate systems systems.toml`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name.endswith(".toml"):
            cmd_name = "systems"
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0].endswith(".toml"):
            args = ["systems", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_FileOrCommand)
def command() -> None:
    """Measure systems over a dataset.

    whichsense evaluate SYSTEMS.toml compares systems in one table.
    """


@command.command()
@click.argument("file", type=_PATH, metavar="SYSTEMS.toml")
@_DATA_DIR
@_LIMIT
@_JSON
def systems(
    file: Path, data_dir: Path | None, limit: int | None, as_json: bool
) -> None:
    """Compare systems: answers, rewrites, seconds per question.

    A system with predictions is not run again; a stopped one resumes.
    """
    from whichsense.evaluation.leaderboard import evaluate_systems

    leaderboard = evaluate_systems(
        file,
        data_dir=data_dir,
        limit=limit,
        progress=lambda name: show_progress(name, "questions"),
    )
    if as_json:
        print(json.dumps(leaderboard.as_dict()))
    else:
        _print_leaderboard(leaderboard)


def _print_leaderboard(leaderboard: Leaderboard) -> None:
    counts = f"{leaderboard.questions:,} questions, {leaderboard.multi:,} of them"
    print(f"{leaderboard.dataset}: {counts} with several answers")
    width = max(6, *(len(system.name) for system in leaderboard.systems))
    titles = "".join(f"{title:>10}" for title in (*_COLUMNS.values(), "s each"))
    print(f"{'':<{width}}{titles}")
    for system in leaderboard.systems:
        cells = []
        for metric in _COLUMNS:
            value = system.metrics.get(metric)
            cells.append("–" if value is None else f"{100 * value:.1f}")
        seconds = system.seconds_per_question
        cells.append("–" if seconds is None else f"{seconds:.3f}")
        row = "".join(f"{cell:>10}" for cell in cells)
        print(f"{system.name:<{width}}{row}")


@command.command()
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
@_DATA_DIR
@_LIMIT
@click.option(
    "--out", type=_PATH, metavar="FILE", help="Write the result to this JSON file, too."
)
@_JSON
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
