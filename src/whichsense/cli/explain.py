"""whichsense explain: the whole story of a question in one paragraph, with sources."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.ask import begin_loading, read_lines, usable_questions, utf8
from whichsense.cli.ask import command as ask
from whichsense.cli.evidence import choose_system, open_evidence
from whichsense.text.rendering import TERMINAL, show_story

if TYPE_CHECKING:
    from whichsense.pipeline import Pipeline


# whichsense explain: one paragraph over all readings of a question, a citation on every sentence.

_RANGE = re.compile(r"(\d+)-(\d+)")
_NOT_SHARED = ("k", "show_possible")


def _parse_range(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    if value is None:
        return None
    match = _RANGE.fullmatch(value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter("give a range of words, as in 60-100")
    return int(match[1]), int(match[2])


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--words",
    metavar="LEAST-MOST",
    callback=_parse_range,
    help="How long the paragraph may be, in words; an only reading takes less.  [default: 60-100]",
)
def command(words: tuple[int, int] | None, **asked: Any) -> None:
    """Tell the whole story of QUESTION in one paragraph: why it has several answers, what each one is, and how they
    relate. Every sentence cites the passages beneath it that support it.

    A '-' reads questions from standard input, one a line. Only what is probable is told.
    """
    question, path = asked["question"], asked["path"]
    if (question is None) == (path is None):
        raise click.UsageError(
            "Give a QUESTION, '-' for standard input, or --file FILE."
        )
    if question not in (None, "-"):
        questions = [" ".join(question.split())]
    else:
        questions = usable_questions(read_lines(path), path)
    pipeline = _with_length(_load(asked), words)
    from whichsense.jobs.limits import Limits

    for one in questions:
        limits = Limits.of(asked["timeout"])
        case = pipeline.run([one], "long answer", limits=limits)[0]
        if asked["as_json"]:
            click.echo(json.dumps(case.to_json(), ensure_ascii=not utf8()))
        else:
            click.echo(TERMINAL.write(show_story(case)) + "\n")


# What ask takes, explain takes, too.
command.params[:0] = [option for option in ask.params if option.name not in _NOT_SHARED]


def _load(asked: dict[str, Any]) -> Pipeline:
    threads, weights = asked["threads"], asked["weights"]
    model = None if asked["system"] else begin_loading(weights, threads)
    from whichsense.systems import load

    index, method = open_evidence(asked["folder"], asked["method"])
    system, llm = choose_system(asked["system"], asked["llm_url"], asked["llm_model"])
    return load(
        system,
        index,
        method=method,
        llm=llm,
        depth=asked["depth"],
        keep=asked["keep"],
        threshold=asked["threshold"],
        threads=threads,
        weights=weights,
        model=model,
    )


def _with_length(pipeline: Pipeline, words: tuple[int, int] | None) -> Pipeline:
    """The pipeline whose summarizer writes so many words."""
    if words is None:
        return pipeline
    from whichsense.stages.summarize import CompactSummarizer

    summarizer = pipeline.summarizer
    if not isinstance(summarizer, CompactSummarizer):
        raise click.UsageError(
            "--words is for the embedded model; another system writes as it was trained."
        )
    least, most = words
    return replace(pipeline, summarizer=replace(summarizer, least=least, most=most))
