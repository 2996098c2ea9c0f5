"""whichsense evaluate readings: people judge what is shown to people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from whichsense.cli.evaluate.options import PATH, data_dir_option, json_option
from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.cli.system import system_option, weights_option
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.evaluation.readings.form import Draw, Form
    from whichsense.evaluation.readings.result import Band, ReadingsResult, Row

_COLUMN = 11  # characters
# As in evaluation/readings/form.py, which is imported only when the command runs.
DRAWS = ("several", "all", "ambiguous")


@click.command()
@click.argument("forms", nargs=-1, type=PATH, metavar="[FILLED.json…]")
@click.option(
    "--filled",
    is_flag=True,
    help="Count the marks of filled forms: --filled ann.json ben.json",
)
@click.option(
    "--dataset",
    metavar="NAME|FILE",
    help="Draw the questions from this dataset, or from a file in AmbigNQ's form.",
)
@evidence_options
@click.option(
    "--seed",
    default=13,
    show_default=True,
    metavar="N",
    help="Decides which questions are drawn.",
)
@click.option(
    "--questions",
    default=60,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Questions in the form.",
)
@click.option(
    "--draw",
    type=click.Choice(DRAWS),
    default="ambiguous",
    show_default=True,
    help="Ask until N questions got several readings; or the first N of all, or of those to which all annotators gave "
    "several answers, whatever they get.",
)
@system_option()
@weights_option
@data_dir_option
@click.option(
    "--out",
    type=PATH,
    metavar="FILE.json",
    help="The form to write, with its page FILE.html beside it; with --filled, the result.",
)
@json_option
def readings(
    forms: tuple[Path, ...],
    filled: bool,
    dataset: str | None,
    folder: Path | None,
    method: str | None,
    seed: int,
    questions: int,
    draw: str,
    system: Path | None,
    weights: Path | None,
    data_dir: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Have people judge the readings that whichsense ask shows.

    First, --dataset NAME --out FORM.json draws questions, asks them and writes a form with the rubric, as JSON and as a
    page. A stopped run resumes when the same command is given again. Then, with one form or more filled in, --filled
    prints the table: the share of readings that are right, true, apart, fluent, correct and good, with 95% bootstrap
    intervals over questions; of ambiguous questions precision, recall and judged F; the readers' agreement, and how
    well the confidence predicts a correct reading.
    """
    if filled:
        if dataset:
            raise click.UsageError("Give either --dataset NAME or --filled FORMS.")
        _count_marks(forms, out, as_json)
        return
    if forms or dataset is None or out is None:
        raise click.UsageError(
            "Give --dataset NAME --out FORM.json to draw a form, or --filled FORMS to count its marks."
        )
    from whichsense.evaluation.readings.drawing import draw_form
    from whichsense.systems.build import build
    from whichsense.systems.settings import describe, load_settings
    from whichsense.types import FOR_PEOPLE

    index, chosen = open_evidence(folder, method)
    settings = load_settings(system or "compact")
    settings = dataclasses.replace(
        settings,
        method=chosen if method else settings.method or chosen,
        weights=str(weights or settings.weights),
    )
    ready = build(settings, index, FOR_PEOPLE)
    with show_progress("asking", "questions") as progress:
        form = draw_form(
            ready.answerer,
            dataset,
            out,
            seed=seed,
            questions=questions,
            draw=cast("Draw", draw),
            system=describe(ready.settings, index),
            data_dir=data_dir,
            progress=progress,
        )
    _print_form(form, out, as_json)


def _print_form(form: Form, out: Path, as_json: bool) -> None:
    counts = {
        "draw": form.draw,
        "questions": len(form.questions),
        "readings": form.shown,
        "asked": form.asked,
        "one_reading": form.one_reading,
        "no_reading": form.no_reading,
    }
    page = out.with_suffix(".html")
    if as_json:
        body = {"form": str(out), "page": str(page), **counts}
        print(json.dumps(body | {"provenance": form.provenance}))
        return
    print(
        f"{out}, {page}: {len(form.questions):,} questions, {form.shown:,} readings to mark"
    )
    kind = "ambiguous questions" if form.draw == "ambiguous" else "questions"
    print(
        f"Asked {form.asked:,} of {form.available:,} {kind}: {form.one_reading:,} got one reading, "
        f"{form.no_reading:,} none."
    )


def _count_marks(forms: Sequence[Path], out: Path | None, as_json: bool) -> None:
    from whichsense.evaluation.readings.result import evaluate_forms
    from whichsense.files import as_json as to_json
    from whichsense.files import write_atomically

    if out and out.exists() and any(map(out.samefile, forms)):
        raise click.UsageError(f"'{out}' is a filled form. Give another --out.")
    result = evaluate_forms(forms)
    if out:
        write_atomically(out, to_json(result.as_dict(), indent=2))
    if as_json:
        print(json.dumps(result.as_dict()))
    else:
        _print_result(result)


def _print_result(result: ReadingsResult) -> None:
    from whichsense.evaluation.readings.form import LABELS
    from whichsense.evaluation.readings.result import JUDGED_F

    drawn = f"{result.questions:,} questions of {result.asked:,} asked"
    counts = f"{result.one_reading:,} got one reading, {result.no_reading:,} none"
    print(f"{result.dataset}, seed {result.seed}: {drawn} ({counts})")
    rows = list(result.readers)
    if len(rows) > 1:
        rows.append(result.mean)
    shares = (*LABELS, "correct_per_question")
    _print_line("", ["shown", *LABELS, "correct/q"])
    for row in rows:
        _print_row(row, shares)
    print("Below each number: its 95% bootstrap interval over questions.")
    print("correct/q: correct readings a question.")
    print()
    if result.gold:
        _print_line("", ["shown", "precision", "recall", "judged F"])
        for row in rows:
            _print_row(row, JUDGED_F)
        print(
            f"precision: of the {result.shown:,} readings shown, those that are correct."
        )
        print(
            f"recall: of the {result.gold:,} readings that annotators gave, those with the answer of a correct one."
        )
        print(
            "judged F: twice the correct readings, divided by the readings shown and the annotators' together."
        )
        print()
    _print_line("confidence", ["shown", *LABELS])
    for band in result.bands:
        cells = [f"{band.shown:,}", *_shares(band.metrics)]
        _print_line(_name_band(band), cells)
    if result.agreement:
        print()
        _print_line("agreement", ["", *LABELS])
        pairs = result.agreement.values()
        _print_line("same mark", ["", *(f"{pair.equal:.2f}" for pair in pairs)])
        _print_line("kappa", ["", *(f"{pair.kappa:.2f}" for pair in pairs)])
    _print_areas(result)


def _name_band(band: Band) -> str:
    if band.high is None:
        return f"{band.low:.2f} or more"
    if not band.low:
        return f"below {band.high:.2f}"
    return f"{band.low:.2f} to {band.high:.2f}"


def _print_areas(result: ReadingsResult) -> None:
    print("\nPredicting a correct reading: area under the curve")
    _print_line("by", ["readings", "all", "answer ok"])
    for name, area in result.areas.items():
        if area.readings:
            values = [area.all, area.right_answer]
            cells = ["–" if value is None else f"{value:.2f}" for value in values]
            _print_line(name, [f"{area.readings:,}", *cells])
    print("answer ok: only readings whose answer is right.")


def _print_row(row: Row, names: Sequence[str]) -> None:
    metrics = {name: row.metrics[name] for name in names}
    _print_line(row.name, [f"{row.shown:,}", *_shares(metrics)])
    _print_line("", ["", *(_range(row.intervals[name]) for name in names)])


def _shares(metrics: Mapping[str, float]) -> list[str]:
    return [f"{value:.2f}" for value in metrics.values()]


def _range(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{low:.2f}–{high:.2f}"


def _print_line(name: str, cells: Sequence[str]) -> None:
    """A name of any length, then cells of equal width."""
    print(f"{name:<14}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells))
