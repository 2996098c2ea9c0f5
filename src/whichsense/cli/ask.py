"""whichsense ask: every reading of a question, with its answer and where it was found."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.cli.search import printable, utf8
from whichsense.errors import BadInput

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.types import Case, Reading, Span

_WIDTH = 100
_NEAREST = 3  # passages that are shown where there is no answer
_LONGEST_SENTENCE = 300


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
@click.option(
    "--system",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="Ask this system instead of the embedded model.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Give every answer that is at least this probable, and the best one in any case.",
)
@click.option(
    "--k", type=click.IntRange(1, 100), help="Show at most this many readings."
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
@click.option(
    "--threads",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processor cores that the embedded model uses.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Weights folder of the embedded model.  [default: the one that ships]",
)
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
    system: Path | None,
    threshold: float | None,
    k: int | None,
    depth: int | None,
    keep: int | None,
    threads: int,
    weights: Path | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Find every reading of QUESTION: its answers, a rewrite for each, how sure each is, and where it was found.

    A '-' reads questions from standard input, one a line. Without --threshold the answers are given that together have
    the highest expected F1; a low threshold finds more of them, a high one only the surest.
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
    lines = {} if alone else _lines(path)
    model = None if system else _begin_loading(weights, threads)
    from whichsense.jobs.limits import Limits
    from whichsense.systems.build import load

    questions = alone or _usable(lines, path)
    index, chosen = open_evidence(folder, method)
    pipeline = load(
        system or "compact",
        index,
        method=chosen,
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
        click.echo(format_case(case, k, as_json, by_threshold=threshold is not None))


def _begin_loading(weights: Path | None, threads: int) -> Compact:
    """The model, which begins to load before the index and all that searches it is even imported: that takes as long,
    and leaves a core free."""
    from whichsense.models.compact.encoder.runtime import WEIGHTS
    from whichsense.models.compact.scene import Compact

    model = Compact(weights or WEIGHTS, threads)
    model.prepare()
    return model


def _lines(path: Path | None) -> dict[int, str]:
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


def _usable(lines: Mapping[int, str], path: Path | None) -> list[str]:
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


def format_case(case: Case, k: int | None, as_json: bool, by_threshold: bool) -> str:
    """At most k readings of a case; `by_threshold`: the user chose which answers are given."""
    shown = replace(case, readings=case.readings[:k])
    if as_json:
        return json.dumps(shown.to_json(), ensure_ascii=not utf8())
    head = click.style(printable(case.question), bold=True)
    if case.stopped:
        head += f"  (stopped: {case.stopped})"
    if not case.readings:
        return "\n".join([head, *_nearest(case), ""])
    if len(case.readings) == 1:
        only_one_answered = case.has_several_readings and not by_threshold
        head += (
            "  (the only reading that is answered here)"
            if only_one_answered
            else "  (one reading)"
        )
    readings = []
    for rank, reading in enumerate(shown.readings, 1):
        readings.append(_reading(rank, reading))
    return "\n".join([head, *readings])


def _nearest(case: Case) -> list[str]:
    """Lines for a case without an answer: the passages that came nearest."""
    told = "Stopped before it was answered." if case.stopped else "No answer found."
    lines = [told + " Nearest passages:" * bool(case.hits)]
    for hit in case.hits[:_NEAREST]:
        title = printable(hit.passage.title)
        lines.append(_indented(f"{title}: {_beginning(hit.passage.text)}"))
    return lines


def _reading(rank: int, reading: Reading) -> str:
    answer = click.style(printable(reading.answer), bold=True)
    lines = [
        f"{rank:>3}. {answer}  {reading.confidence:.0%}",
        _indented(printable(reading.question)),
    ]
    if reading.evidence:
        best = reading.evidence[0]
        lines.append(_indented(f"{_marked(best)}  [{printable(best.passage.title)}]"))
    return "\n".join(lines) + "\n"


def _marked(span: Span) -> str:
    """The sentence in which an answer stands, with the answer between stars."""
    from whichsense.text.sentences import sentence_spans

    text = span.passage.text
    if span.start == span.end:  # the answer is the title
        return _beginning(text)
    for start, end in sentence_spans(text):
        if start <= span.start < end:
            before, answer = text[start : span.start], text[span.start : span.end]
            after = text[span.end : max(end, span.end)]
            room = max(_LONGEST_SENTENCE - len(answer), 40) // 2
            before = before if len(before) <= room else "…" + before[-room:]
            after = after if len(after) <= room else after[:room] + "…"
            return printable(" ".join(f"{before}*{answer}*{after}".split()))
    return _beginning(text)


def _beginning(text: str) -> str:
    return printable(
        textwrap.shorten(" ".join(text.split()), _LONGEST_SENTENCE, placeholder=" …")
    )


def _indented(text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent="     ",
        subsequent_indent="     ",
        break_long_words=False,
    )
