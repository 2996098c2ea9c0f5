"""whichsense ask and search: readings or passages for one question, as the terminal shows them."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whichsense.cli.evidence import (
    choose_system,
    cluster_option,
    evidence_options,
    llm_options,
    open_evidence,
    system_option,
    threads_option,
    threshold_option,
    weights_option,
)
from whichsense.errors import BadInput
from whichsense.text.rendering import TERMINAL, show_case, show_hit

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.types import Case


# whichsense search: the passages that may answer a question.


@click.command(
    context_settings={"ignore_unknown_options": True}
)  # "-5 degrees" is a question
@click.argument("question")
@evidence_options
@cluster_option
@click.option(
    "--k",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Passages to retrieve.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON: {question, method, hits: [...], coverage}.",
)
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
        rows = []
        for hit in hits:
            rows.append(dataclasses.asdict(hit.passage) | {"score": hit.score})
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
    """Whether standard output can show every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def format_case(case: Case, k: int | None = None, show_possible: bool = False) -> str:
    """At most k of the readings, then those that are merely possible: all of them, or their number in one line."""
    return TERMINAL.write(show_case(case, k, show_possible)) + "\n"


# whichsense ask: every reading of a question, with its answer and where it was found.


@click.command(
    context_settings={"ignore_unknown_options": True}
)  # "-5 degrees" is a question
@click.argument("question", required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Ask every line of a file.",
)
@evidence_options
@cluster_option
@system_option()
@llm_options
@threshold_option
@click.option(
    "--k", type=click.IntRange(1, 100), help="Show at most this many readings."
)
@click.option(
    "--all",
    "show_possible",
    is_flag=True,
    help="Show the readings that are merely possible, too.",
)
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
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one line for each question."
)
def command(
    question: str | None,
    path: Path | None,
    folder: Path | None,
    method: str | None,
    cluster: str | None,
    system: Path | None,
    llm_url: str | None,
    llm_model: str | None,
    threshold: float | None,
    k: int | None,
    show_possible: bool,
    depth: int | None,
    keep: int | None,
    threads: int,
    weights: Path | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Find every reading of QUESTION: its answers, a rewrite for each, how sure each is, and where it was found.

    A '-' reads questions from standard input, one a line. Answers that are less probable than the threshold are kept
    apart as merely possible: --all shows them. A low threshold finds more answers, a high one only the surest.
    """
    if (
        question and question.startswith("--") and len(question.split()) == 1
    ):  # a single '-' may begin a number
        raise click.NoSuchOption(question)
    if (question is None) == (path is None):
        raise click.UsageError(
            "Give a QUESTION, '-' for standard input, or --file FILE."
        )
    alone = [" ".join(question.split())] if question not in (None, "-") else []
    lines = {} if alone else read_lines(path)
    model = None if system else begin_loading(weights, threads)
    from whichsense.jobs.limits import Limits
    from whichsense.systems import load

    questions = alone or usable_questions(lines, path)
    index, chosen = open_evidence(folder, method, cluster)
    asked_system, llm = choose_system(system, llm_url, llm_model)
    pipeline = load(
        asked_system,
        index,
        method=chosen,
        llm=llm,
        depth=depth,
        keep=keep,
        threshold=threshold,
        threads=threads,
        weights=weights,
        model=model,
    )
    if lines and model:
        model.load()  # damaged weights are reported now, not after hours
    for asked in questions:
        case = pipeline.ask(asked, limits=Limits.of(timeout))
        if as_json:
            shown = replace(case, readings=case.readings[:k])
            click.echo(json.dumps(shown.to_json(), ensure_ascii=not utf8()))
        else:
            click.echo(format_case(case, k, show_possible))


def begin_loading(weights: Path | None, threads: int) -> Compact:
    """The model, which begins to load before the index and all that searches it is even imported: that takes as long,
    and leaves a core free."""
    from whichsense.models.compact.encoder import WEIGHTS
    from whichsense.models.compact.scene import Compact

    model = Compact(weights or WEIGHTS, threads)
    model.prepare()
    return model


def read_lines(path: Path | None) -> dict[int, str]:
    """The questions of a file or of standard input by the number of their line; empty lines are passed over."""
    try:
        text = (path.read_bytes() if path else sys.stdin.buffer.read()).decode(
            "utf-8-sig"
        )
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
        number: line.strip()
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    }
    if not found:
        raise BadInput(f"{_name(path)} holds no question. Write one on each line.")
    return found


def usable_questions(lines: Mapping[int, str], path: Path | None) -> list[str]:
    """The questions, all of which can be asked: one that cannot is told now, not after hours."""
    from whichsense.index.search import check_question

    for number, question in lines.items():
        try:
            check_question(question)
        except BadInput as error:
            raise BadInput(f"{_name(path)}, line {number}: {error}") from None
    return list(lines.values())


def _name(path: Path | None) -> str:
    return f"'{path}'" if path else "standard input"
