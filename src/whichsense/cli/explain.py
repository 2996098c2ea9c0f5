"""whichsense explain: the whole story of a question in one paragraph, with sources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.ask import (
    begin_loading,
    open_pipeline,
    print_record,
    read_questions,
    usable_questions,
)
from whichsense.cli.ask import command as ask
from whichsense.text.rendering import TERMINAL, show_story

if TYPE_CHECKING:
    from whichsense.pipeline import Pipeline


# whichsense explain: one paragraph over all readings of a question, a citation on every sentence.

_NOT_SHARED = ("k", "show_possible")


def _parse_range(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    if value is None:
        return None
    least, _, most = value.partition("-")
    if not (least.isdecimal() and most.isdecimal() and 1 <= int(least) <= int(most)):
        raise click.BadParameter("give a range of words, as in 60-100")
    return int(least), int(most)


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
    lines = read_questions(asked["question"], asked["path"])
    questions = usable_questions(lines, asked["path"])
    pipeline = _with_length(open_pipeline(begin_loading(asked), asked), words)
    from whichsense.jobs.limits import Limits

    for one in questions:
        limits = Limits.of(asked["timeout"])
        case = pipeline.run([one], "long answer", limits=limits)[0]
        if asked["as_json"]:
            print_record(case)
        else:
            click.echo(TERMINAL.write(show_story(case)) + "\n")


# What ask takes, explain takes, too.
command.params[:0] = [option for option in ask.params if option.name not in _NOT_SHARED]


def _with_length(pipeline: Pipeline, words: tuple[int, int] | None) -> Pipeline:
    """Return the pipeline whose summarizer writes so many words."""
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
