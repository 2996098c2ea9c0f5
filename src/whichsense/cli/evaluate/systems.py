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
from whichsense.cli.evidence import (
    cluster_option,
    gpus_option,
    use_executor,
    workers_option,
)
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.evaluation.leaderboard import Leaderboard

# By benchmark, the metrics that the table shows, and their titles.
_COLUMNS = {
    "ambignq": {
        "f1_ans": "F1ans",
        "f1_ans_multi": "(multi)",
        "f1_bleu4": "F1BLEU",
        "f1_edit": "F1EDIT",
    },
    "ambiguity": {
        "accuracy": "accuracy",
        "precision": "precision",
        "recall": "recall",
        "f1": "F1",
    },
    "cambignq": {
        "bleu4": "BLEU-4",
        "category_em": "category",
        "option_f1": "options",
        "options_per_question": "# options",
    },
    "cambignq-answers": {
        "answer_f1": "options F1",
        "end_to_end_f1": "end to end",
        "served_f1": "served",
        "direct_f1": "not asked",
        "distinct_answers": "# answers",
    },
    "asqa": {
        "rouge_l": "ROUGE-L",
        "str_em": "STR-EM",
        "disambig_f1": "Disamb.F1",
        "dr": "DR",
        "citation_recall": "cit. rec.",
        "citation_precision": "cit. prec.",
        "length": "words",
    },
    "ramdocs": {
        "exact_match": "exact",
        "answer_precision": "precision",
        "answer_recall": "recall",
        "answers_per_question": "# answers",
    },
}
# Shown as they are; all others are shares, shown in percent.
_COUNTS = ("options_per_question", "distinct_answers", "length", "answers_per_question")


@click.command()
@click.argument("file", type=PATH, metavar="SYSTEMS.toml")
@data_dir_option
@limit_option
@cluster_option
@workers_option
@gpus_option
@json_option
def systems(
    file: Path,
    data_dir: Path | None,
    limit: int | None,
    cluster: str | None,
    workers: int | None,
    gpus: float,
    as_json: bool,
) -> None:
    """Compare systems: their scores, each over its 95% interval, and seconds per question.

    The file's `goal` says what they predict: readings, ambiguity, clarification, clarified answers, long answer.
    A system with predictions is not run again; a stopped one resumes.
    """
    from whichsense.evaluation.leaderboard import evaluate_systems

    leaderboard = evaluate_systems(
        file,
        data_dir=data_dir,
        limit=limit,
        progress=lambda name: show_progress(name, "questions"),
        executor=use_executor(cluster, workers, gpus),
    )
    if as_json:
        print(json.dumps(leaderboard.as_dict()))
    else:
        _print_leaderboard(leaderboard)


def _print_leaderboard(leaderboard: Leaderboard) -> None:
    columns = _COLUMNS[leaderboard.benchmark]
    counts = ", ".join(f"{name} {n:,}" for name, n in leaderboard.counts.items())
    print(f"{leaderboard.dataset}, {leaderboard.goal}: {counts}")
    width = max(6, *(len(system.name) for system in leaderboard.systems))
    _print_row("", width, [*columns.values(), "s each"])
    for system in leaderboard.systems:
        values = []
        intervals = []
        for metric in columns:
            values.append(_show(metric, system.metrics.get(metric)))
            low, high = system.intervals.get(metric, (None, None))
            interval = f"{_show(metric, low)}–{_show(metric, high)}"
            intervals.append("" if low is None else interval)
        seconds = system.seconds_per_question
        values.append("–" if seconds is None else f"{seconds:.3f}")
        _print_row(system.name, width, values)
        _print_row("", width, intervals)
    for setting in ("reader", "judge"):  # models that a metric depends on
        if setting in leaderboard.systems[0].settings:
            print(f"{setting}: {leaderboard.systems[0].settings[setting]}")


def _show(metric: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if metric in _COUNTS else f"{100 * value:.1f}"


def _print_row(name: str, width: int, cells: list[str]) -> None:
    print(f"{name:<{width}}" + "".join(f" {cell:>12}" for cell in cells))
