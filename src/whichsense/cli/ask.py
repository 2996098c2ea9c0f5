"""whichsense ask and search: readings or passages for one question, as the terminal shows them."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import (
    choose_system,
    cluster_option,
    evidence_options,
    flag_option,
    llm_options,
    number_option,
    open_evidence,
    path_option,
    system_option,
    threads_option,
    threshold_option,
    weights_option,
)
from whichsense.errors import BadInput
from whichsense.text.rendering import TERMINAL, show_case, show_hit

if TYPE_CHECKING:
    from whichsense.conversation import Conversation
    from whichsense.models.compact.scene import Compact
    from whichsense.pipeline import Pipeline
    from whichsense.types import Case


# whichsense search: the passages that may answer a question.


@click.command(context_settings={"ignore_unknown_options": True})  # "-5 degrees" is a question
@click.argument("question")
@evidence_options
@cluster_option
@number_option("--k", 100, 1, 10_000, help="Passages to retrieve.")
@flag_option("--json", "Print JSON: {question, method, hits: [...], coverage}.", to="as_json")
def search_command(
    question: str,
    folder: Path | None,
    method: str | None,
    cluster: str | None,
    k: int,
    as_json: bool,
) -> None:
    """Find the passages that may answer QUESTION, best first. A '-' reads the question from standard input."""
    from whichsense.index.shards import coverage_of, missing_note

    if question == "-":
        question = sys.stdin.read().strip()
    index, chosen = open_evidence(folder, method, cluster)
    hits = index.search(question, k, chosen)
    missing = missing_note(hits)
    if as_json:
        rows = [dataclasses.asdict(hit.passage) | {"score": hit.score} for hit in hits]
        table = {
            "question": question,
            "method": chosen,
            "hits": rows,
            "coverage": coverage_of(hits),
        }
        print(json.dumps(table, ensure_ascii=not utf8()))
        return
    for rank, hit in enumerate(hits, 1):
        print(TERMINAL.write([show_hit(rank, hit)]) + "\n")
    if missing:
        click.echo(missing, err=True)
    if not hits:
        click.echo("No passage matches. Try other words.", err=True)


def utf8() -> bool:
    """Tell whether standard output can show every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def format_case(case: Case, k: int | None = None, show_possible: bool = False) -> str:
    """Return at most k of the readings, then those that are merely possible: all of them, or their number in one
    line.
    """
    return TERMINAL.write(show_case(case, k, show_possible)) + "\n"


# whichsense ask: every reading of a question, with its answer and where it was found.


@click.command(context_settings={"ignore_unknown_options": True})  # "-5 degrees" is a question
@click.argument("question", required=False)
@path_option("--file", "Ask every line of a file.", "FILE", to="path")
@evidence_options
@cluster_option
@system_option()
@llm_options
@threshold_option
@click.option("--k", type=click.IntRange(1, 100), help="Show at most this many readings.")
@flag_option("--all", "Show the readings that are merely possible, too.", to="show_possible")
@click.option(
    "--depth",
    type=click.IntRange(1, 1000),
    help="Passages to retrieve.  [default: 40, or as the system's file says]",
)
@click.option(
    "--keep",
    type=click.IntRange(1, 100),
    help="Passages to read to the end.  [default: 20, or as the system's file says]",
)
@threads_option()
@weights_option
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Give each question this much time, and print what is there by then.",
)
@flag_option("--json", "Print JSON, one line for each question.", to="as_json")
def command(
    question: str | None,
    path: Path | None,
    k: int | None,
    show_possible: bool,
    timeout: float | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find every reading of QUESTION: its answers, a rewrite for each, how sure each is, and where it was found.

    A '-' reads questions from standard input, one a line. Answers that are less probable than the threshold are kept
    apart as merely possible: --all shows them. A low threshold finds more answers, a high one only the surest.
    """
    lines = read_questions(question, path)
    model = begin_loading(asked)
    from whichsense.jobs.limits import Limits

    questions = usable_questions(lines, path)
    pipeline = open_pipeline(model, asked)
    if ALONE not in lines and model:
        model.load()  # damaged weights are reported now, not after hours
    for one in questions:
        case = pipeline.ask(one, limits=Limits.of(timeout))
        if as_json:
            print_record(replace(case, readings=case.readings[:k]))
        else:
            click.echo(format_case(case, k, show_possible))


# What ask shares with chat, clarify and explain.


def begin_loading(asked: Mapping[str, Any]) -> Compact | None:
    """Return the model, which begins to load before the index and all that searches it is even imported: that takes
    as long, and leaves a core free. None where another system is asked.
    """
    if asked["system"]:
        return None
    from whichsense.models.compact.encoder import WEIGHTS
    from whichsense.models.compact.scene import Compact

    model = Compact(asked.get("weights") or WEIGHTS, asked["threads"])
    model.prepare()
    return model


def open_pipeline(model: Compact | None, asked: Mapping[str, Any]) -> Pipeline:
    """Return the pipeline that a command's options name, over the index that they name."""
    from whichsense.systems import load

    searched = asked["folder"], asked["method"], asked.get("cluster")
    index, method = open_evidence(*searched)
    system, llm = choose_system(asked["system"], asked["llm_url"], asked["llm_model"])
    names = ("depth", "keep", "threshold", "threads", "weights")
    given = {name: asked[name] for name in names if name in asked}
    return load(system, index, method=method, llm=llm, model=model, **given)


def print_record(record: Case | Conversation) -> None:
    """Print a record as one line of JSON."""
    click.echo(json.dumps(record.to_json(), ensure_ascii=not utf8()))


ALONE = 0  # the line of a question that is given by itself


def check_no_option(question: str | None) -> None:
    """Refuse an option that there is not; a single '-' may begin a number."""
    if question and question.startswith("--") and len(question.split()) == 1:
        raise click.NoSuchOption(question)


def read_questions(question: str | None, path: Path | None) -> dict[int, str]:
    """Return the questions by the number of their line: the one that is given, those of standard input ('-') or of a
    file.
    """
    check_no_option(question)
    if (question is None) == (path is None):
        raise click.UsageError("Give a QUESTION, '-' for standard input, or --file FILE.")
    if question not in (None, "-"):
        return {ALONE: " ".join(question.split())}
    return read_lines(path)


def read_lines(path: Path | None) -> dict[int, str]:
    """Return the questions of a file or of standard input by the number of their line; empty lines are passed over."""
    try:
        text = (path.read_bytes() if path else sys.stdin.buffer.read()).decode("utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"There is no file '{path}'. Check the path.") from None
    except IsADirectoryError:
        raise BadInput(
            f"'{path}' is a folder; a file with one question a line is needed."
        ) from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{_name(path)} is not valid UTF-8 (byte {error.start:,}). Convert it with iconv."
        ) from None
    found = {
        number: line.strip() for number, line in enumerate(text.splitlines(), 1) if line.strip()
    }
    if not found:
        raise BadInput(f"{_name(path)} holds no question. Write one on each line.")
    return found


def usable_questions(lines: Mapping[int, str], path: Path | None) -> list[str]:
    """Return the questions, all of which can be asked: one that cannot is told now, not after hours."""
    from whichsense.index.search import check_question

    for number, question in lines.items():
        try:
            if number != ALONE:
                check_question(question)
        except BadInput as error:
            raise BadInput(f"{_name(path)}, line {number}: {error}") from None
    return list(lines.values())


def _name(path: Path | None) -> str:
    return f"'{path}'" if path else "standard input"
