"""whichsense evaluate: measure systems over a dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.errors import BadInput
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.protocols import Reranker

_READ = 40  # of a hundred passages; were it 20, the first layers alone would choose what the 20 best are


class _OrFile(click.Group):
    """`evaluate systems.toml` is short for `evaluate systems systems.toml`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(
            ctx, "systems" if cmd_name.endswith(".toml") else cmd_name
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(
            ctx, ["systems", *args] if args[0].endswith(".toml") else args
        )


@click.group(cls=_OrFile)
def command() -> None:
    """Measure systems over a dataset.

    whichsense evaluate SYSTEMS.toml compares systems in one table.
    """


@command.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="SYSTEMS.toml")
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
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, with where the numbers come from.",
)
def systems(
    file: Path, data_dir: Path | None, limit: int | None, as_json: bool
) -> None:
    """Compare systems: answers, rewrites, seconds a question.

    A system that was run before is not run again; one that was stopped goes on.
    """
    from whichsense.evaluation.leaderboard import evaluate_systems

    result = evaluate_systems(
        file,
        data_dir=data_dir,
        limit=limit,
        progress=lambda name: show_progress(name, "questions"),
    )
    if as_json:
        print(json.dumps(result.as_dict()))
        return
    print(
        f"{result.dataset}: {result.questions:,} questions, {result.multi:,} of them with several answers"
    )
    wide = max(6, *(len(system.name) for system in result.systems))
    print(
        f"{'':<{wide}}"
        + "".join(f"{title:>10}" for title in (*_COLUMNS.values(), "s each"))
    )
    for system in result.systems:
        cells = [system.metrics.get(name) for name in _COLUMNS]
        row = "".join(
            f"{'–' if cell is None else f'{100 * cell:.1f}':>10}" for cell in cells
        )
        speed = system.seconds_per_question
        print(
            f"{system.name:<{wide}}{row}{'–' if speed is None else f'{speed:.3f}':>10}"
        )


_COLUMNS = {
    "f1_ans": "F1ans",
    "f1_ans_multi": "(multi)",
    "f1_bleu4": "F1BLEU",
    "f1_edit": "F1EDIT",
}


@command.command()
@click.option(
    "--dataset",
    required=True,
    metavar="NAME",
    help="For example ambignq/dev or sample/questions.",
)
@evidence_options
@click.option(
    "--rerank",
    metavar="MODEL",
    help="In this one's order: compact, or the model folder of a reranker.",
)
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="Passages that compact reads to the end.  [default: 40]",
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
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the JSON there, too.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, with where the numbers come from.",
)
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

    With --out, a run that was stopped or killed goes on where it was when the same command is given again.
    """
    from whichsense.evaluation.retrieval import evaluate_retrieval

    index, chosen = open_evidence(folder, method)
    if keep and rerank != "compact":
        raise BadInput(
            "--keep is about how much compact reads: give --rerank compact, too."
        )
    order, about = (
        _reranker(rerank, len(index), keep or _READ) if rerank else (None, {})
    )
    with show_progress("searching", "questions") as progress:
        result = evaluate_retrieval(
            dataset,
            index,
            method=chosen,
            reranker=order,
            limit=limit,
            data_dir=data_dir,
            out=out,
            about=about,
            progress=progress,
        )
    if as_json:
        print(json.dumps(result.as_dict()))
        return
    print(
        f"{result.dataset}, {result.method}: {result.questions:,} questions, {result.answers:,} answers"
    )
    print(f"{'top':<18}" + "".join(f"{k:>8}" for k in result.answer_recall))
    print(
        f"{'gold answers':<18}"
        + "".join(f"{share:>8.3f}" for share in result.answer_recall.values())
    )
    print(
        f"{'of each annotation':<18}"
        + "".join(f"{share:>8.3f}" for share in result.annotated_recall.values())
    )
    print(
        f"{'any answer':<18}"
        + "".join(f"{share:>8.3f}" for share in result.any_recall.values())
    )
    print(
        f"MRR {result.mrr:.3f}, {1000 * result.seconds_per_question:.1f} ms a question"
    )


def _reranker(name: str, passages: int, keep: int) -> tuple[Reranker, dict[str, Any]]:
    """The reranker, and what decides its order."""
    if name != "compact":
        from whichsense.systems import trained_reranker, training_runs

        return trained_reranker(name), {
            "reranker": name,
            "models": training_runs([name]),
        }
    from whichsense.models.compact.scene import Compact, Settings
    from whichsense.stages.rerank import CompactReranker

    compact = Compact(passages=passages, settings=Settings(keep=keep))
    return CompactReranker(compact), {"reranker": compact.folder.name, "keep": keep}
