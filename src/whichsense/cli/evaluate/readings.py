"""whichsense evaluate readings: people judge what is shown to people."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whichsense.cli.evaluate.options import PATH, data_dir_option, json_option
from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.jobs.progress import show_progress

if TYPE_CHECKING:
    from whichsense.evaluation.readings.form import Form


@click.command()
@click.option(
    "--dataset",
    required=True,
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
    "--several/--all-questions",
    default=True,
    help="Draw until N questions got several readings, or take the first N, whatever they get. [default: several]",
)
@click.option(
    "--system",
    type=PATH,
    metavar="FILE.toml",
    help="Ask this system instead of the embedded model.",
)
@click.option(
    "--weights",
    type=PATH,
    metavar="DIR",
    help="Weights folder of the embedded model. [default: the one that ships]",
)
@data_dir_option
@click.option(
    "--out",
    required=True,
    type=PATH,
    metavar="FORM.json",
    help="The form; its page is FORM.html.",
)
@json_option
def readings(
    dataset: str,
    folder: Path | None,
    method: str | None,
    seed: int,
    questions: int,
    several: bool,
    system: Path | None,
    weights: Path | None,
    data_dir: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Draw questions, ask them as people would, and write a form: four marks for every reading that is shown.

    A run that was stopped resumes when the same command is given again.
    """
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
            several=several,
            system=describe(ready.settings, index),
            data_dir=data_dir,
            progress=progress,
        )
    _print_form(form, out, as_json)


def _print_form(form: Form, out: Path, as_json: bool) -> None:
    counts = {
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
    print(
        f"Asked {form.asked:,} of {form.available:,} questions: {form.one_reading:,} got one reading, "
        f"{form.no_reading:,} none."
    )
