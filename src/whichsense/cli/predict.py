"""whichsense predict and tune: answer a dataset's questions with a system; find its threshold."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import (
    choice_option,
    data_dir_option,
    evidence_options,
    hits_option,
    json_option,
    limit_option,
    number_option,
    open_hits_or_index,
    path_option,
    spread_options,
    use_executor,
)
from whichsense.jobs.limits import show_progress

if TYPE_CHECKING:
    from whichsense.jobs.workers import LoadedOnce
    from whichsense.lab.evaluation.prediction import ForWhom, Given, Goal, Options
    from whichsense.protocols import Answerer, Searchable
    from whichsense.types import Method


# whichsense predict: a system over a dataset.

# As in lab/evaluation/prediction.py, which is imported only when the command runs.
GOALS = ("readings", "ambiguity", "clarification", "clarified answers", "long answer")
GIVENS = ("question", "answers", "clarification", "documents")
OPTIONS = ("bound", "read", "dialogue")
POLICIES = ("benchmarks", "people")


@click.command()
@path_option("--system", "Which model does each stage.", "FILE.toml")
@click.option(
    "--provider",
    metavar="NAME",
    help="In place of --system: a provider's own system, such as compact.",
)
@path_option("--weights", "Another compact model than the shipped.", "DIR")
@click.option(
    "--dataset",
    required=True,
    metavar="NAME|FILE",
    help="For example ambignq/dev, or a file of that form; several are joined by +.",
)
@choice_option("--goal", GOALS, "readings", "What is predicted.")
@choice_option(
    "--given",
    GIVENS,
    "question",
    "What the dataset gives: the question, gold answers, a gold clarification, or documents in place of --index.",
)
@choice_option(
    "--options",
    OPTIONS,
    "bound",
    "Clarified answers: of the reading that an option is bound to, read anew (CAmbigNQ), or in a dialogue.",
)
@choice_option(
    "--policy",
    POLICIES,
    "benchmarks",
    "Answer everything, as benchmarks want it, or what ask would show to people.",
)
@evidence_options
@hits_option
@spread_options
@path_option("--out", "The predictions.", "FILE", required=True)
@data_dir_option
@limit_option
@number_option("--batch", 8, 1, help="Questions at once.", metavar="N")
@json_option
def command(
    system: Path | None,
    provider: str | None,
    weights: Path | None,
    dataset: str,
    goal: Goal,
    given: Given,
    options: Options,
    policy: ForWhom,
    folder: Path | None,
    method: Method | None,
    hits: Path | None,
    cluster: str | None,
    workers: int | None,
    gpus: float,
    as_json: bool,
    **more: Any,
) -> None:
    """Answer every question of a dataset and write {id: prediction}.

    By goal: readings are the official [{question, answer}…]; ambiguity is true or false; a clarification is a text;
    clarified answers are one for each option; a long answer is a text with its citations.

    A run that was stopped or killed goes on where it was when the same command is given again.
    """
    from whichsense.lab.evaluation.prediction import (
        GivenDocuments,
        Setting,
        loaded_elsewhere,
        predict,
        questions_of,
    )
    from whichsense.systems import build, describe, load_settings
    from whichsense.types import FOR_BENCHMARKS, FOR_PEOPLE

    if (system is None) == (provider is None):
        raise click.UsageError("Give either --system FILE.toml or --provider NAME.")
    setting = Setting(goal, given, options, policy)
    index: Searchable
    if given == "documents":
        index = GivenDocuments(questions_of(dataset, more["data_dir"], more["limit"])[0])
        chosen = method
    else:
        index, chosen = open_hits_or_index(hits, folder, method)
    table = load_settings(system or str(provider))
    table = dataclasses.replace(
        table, weights=str(weights or table.weights), method=method or table.method or chosen
    )
    for_whom = FOR_PEOPLE if policy == "people" else FOR_BENCHMARKS
    ready = build(table, index, for_whom)
    answerer: Answerer | LoadedOnce[Answerer] = ready.answerer
    executor = use_executor(cluster, workers, gpus)
    if cluster:
        answerer = loaded_elsewhere(table, index, for_whom)
    with show_progress("answering", "questions") as progress:
        done = predict(
            answerer,
            dataset,
            setting=setting,
            system=describe(ready.settings, index),
            rewrites=ready.rewrites,
            progress=progress,
            executor=executor,
            **more,
        )
    if as_json:
        print(json.dumps(dataclasses.asdict(done) | {"path": str(done.path)}))
        return
    print(f"{done.path}: {done.questions:,} questions, {done.seconds_per_question:.3f} s each")


# whichsense tune: the threshold of a system's verification.


@click.command()
@path_option("--system", "With a verifier.", "FILE.toml", required=True)
@click.option(
    "--dataset",
    required=True,
    metavar="NAME|FILE",
    help="Validation questions, such as ambignq/val.",
)
@evidence_options
@hits_option
@data_dir_option
@limit_option
@json_option
def tune_command(
    system: Path,
    dataset: str,
    folder: Path | None,
    method: Method | None,
    hits: Path | None,
    data_dir: Path | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Find the threshold of LM verification that gives the highest F1ans. Write it into the system's file."""
    from whichsense.errors import BadConfig
    from whichsense.lab.evaluation.prediction import questions_of, tune
    from whichsense.pipeline import Pipeline
    from whichsense.systems import build, load_settings
    from whichsense.types import FOR_BENCHMARKS

    index, chosen = open_hits_or_index(hits, folder, method)
    table = load_settings(system)
    table = dataclasses.replace(table, method=method or table.method or chosen)
    ready = build(table, index, FOR_BENCHMARKS)
    if not isinstance(ready.answerer, Pipeline):
        raise BadConfig(f"'{system}' does not verify: there is no threshold to tune.")
    questions = [
        question for question in questions_of(dataset, data_dir, limit)[0] if question.answers
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
