"""whichsense evaluate support: does the judge know which sentences a passage supports?"""

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
from whichsense.cli.system import weights_option
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.evaluation.support import SupportResult


@click.command()
@click.option(
    "--dataset",
    default="wice/dev",
    show_default=True,
    metavar="NAME",
    help="Name of a dataset of claims.",
)
@weights_option
@data_dir_option
@limit_option
@click.option(
    "--out", type=PATH, metavar="FILE", help="Write the result to this JSON file, too."
)
@json_option
def support(
    dataset: str,
    weights: Path | None,
    data_dir: Path | None,
    limit: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure the support judge on claims with labels.

    Prints the balanced accuracy of "supported or not" with its 95% bootstrap interval, and the area under the curve;
    beside them those of word overlap. "Tuned" chooses the threshold of each fifth of the claims on the other four.
    """
    from whichsense.evaluation.support import evaluate_support
    from whichsense.models.compact.encoder.runtime import WEIGHTS, CompactModel
    from whichsense.models.compact.support.judge import SupportJudge

    folder = weights or WEIGHTS
    with show_progress("judging", "claims") as progress:
        result = evaluate_support(
            dataset,
            SupportJudge(CompactModel(folder)),
            name=folder.name,
            limit=limit,
            data_dir=data_dir,
            out=out,
            progress=progress,
        )
    if as_json:
        print(json.dumps(result.as_dict()))
    else:
        _print_support(result)


def _print_support(result: SupportResult) -> None:
    print(f"{result.dataset}: {result.claims:,} claims, {result.supported:,} supported")
    print(f"{'':<40}{'balanced accuracy':>20}{'area':>8}")
    name = result.judge
    rows = (
        (f"{name}, threshold a half", result.balanced_accuracy, result.interval),
        (f"{name}, tuned", result.tuned_balanced_accuracy, result.tuned_interval),
        (
            "word overlap, tuned",
            result.overlap_balanced_accuracy,
            result.overlap_interval,
        ),
    )
    for (label, value, (low, high)), area in zip(
        rows, (result.area, result.area, result.overlap_area), strict=True
    ):
        accuracy = f"{100 * value:.1f} ({100 * low:.1f}–{100 * high:.1f})"
        print(f"{label:<40}{accuracy:>20}{area:>8.3f}")
    print(
        f"Right at a half: {100 * result.supported_right:.1f}% of the supported claims, "
        f"{100 * result.others_right:.1f}% of the others. Tuned: a claim's threshold is chosen on the other folds."
    )
