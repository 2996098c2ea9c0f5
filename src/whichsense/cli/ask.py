"""whichsense ask: every reading of a question, with its answer and where it was found."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.cli.search import printable, utf8
from whichsense.errors import BadInput

if TYPE_CHECKING:
    from whichsense.compact import Asked
    from whichsense.models.compact.scene import Compact
    from whichsense.types import Reading, Span

_WIDTH = 100
_TOGETHER = 32  # questions of a file that are searched for at once
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
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Give every answer that is at least this probable; the best one in any case.",
)
@click.option("--k", type=click.IntRange(1, 100), help="At most so many readings.")
@click.option(
    "--depth",
    default=40,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Passages to look at.",
)
@click.option(
    "--keep",
    default=20,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Passages to read to the end.",
)
@click.option(
    "--threads",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processor cores to use.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="[default: the model that is shipped]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one line for each question."
)
def command(
    question: str | None,
    path: Path | None,
    folder: Path | None,
    method: str | None,
    threshold: float | None,
    k: int | None,
    depth: int,
    keep: int,
    threads: int,
    weights: Path | None,
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
    model = _begun(weights, threads, keep)
    from whichsense import compact

    questions = iter(alone or _usable(lines, path))
    index, chosen = open_evidence(folder, method)
    pipeline = compact.load(
        index, method=chosen, depth=depth, keep=keep, threshold=threshold, model=model
    )
    if lines:
        model.load()  # what is damaged is told now, not after hours
    while batch := list(islice(questions, _TOGETHER)):
        for asked in compact.ask(pipeline, batch):
            click.echo(_shown(asked, k, as_json, chosen_by_hand=threshold is not None))


def _begun(weights: Path | None, threads: int, keep: int) -> Compact:
    """The model, which begins to load before the index and all that searches it is even imported: that takes as long,
    and leaves a core free."""
    from whichsense.models.compact.encoder.runtime import WEIGHTS
    from whichsense.models.compact.scene import Compact, Settings

    model = Compact(weights or WEIGHTS, threads, Settings(keep=keep))
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
    from whichsense.index.search import usable

    for number, question in lines.items():
        try:
            usable(question)
        except BadInput as error:
            raise BadInput(f"{_name(path)}, line {number}: {error}") from None
    return list(lines.values())


def _name(path: Path | None) -> str:
    return f"'{path}'" if path else "standard input"


def _shown(asked: Asked, k: int | None, as_json: bool, chosen_by_hand: bool) -> str:
    """At most k readings of what was found; `chosen_by_hand`: by a threshold, which may leave out some."""
    if as_json:
        return json.dumps(asked.first(k).to_json(), ensure_ascii=not utf8())
    head = click.style(printable(asked.question), bold=True)
    if not asked.readings:
        nearest = [
            _indented(f"{printable(hit.passage.title)}: {_beginning(hit.passage.text)}")
            for hit in asked.nearest
        ]
        return "\n".join(
            [
                head,
                "No answer found." + " Nearest passages:" * bool(nearest),
                *nearest,
                "",
            ]
        )
    note = ""
    if len(asked.readings) == 1:
        alone = asked.ambiguous and not chosen_by_hand
        note = (
            "  (the only reading that is answered here)" if alone else "  (one reading)"
        )
    return "\n".join(
        [
            head + note,
            *(
                _reading(rank, one)
                for rank, one in enumerate(asked.first(k).readings, 1)
            ),
        ]
    )


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
