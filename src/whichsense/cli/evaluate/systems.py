"""whichsense evaluate systems: several systems in one table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whichsense.cli.evaluate.options import (
    PATH,
    data_dir_option,
    json_option,
    limit_option,
)
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.evaluation.leaderboard import Leaderboard

# Metrics that the table shows, in percent, and their titles.
_COLUMNS = {
    "f1_ans": "F1ans",
    "f1_ans_multi": "(multi)",
    "f1_bleu4": "F1BLEU",
    "f1_edit": "F1EDIT",
}


@click.command()
@click.argument("file", type=PATH, metavar="SYSTEMS.toml")
@data_dir_option
@limit_option
@json_option
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
