"""whichsense explain: the whole story of a question in one paragraph, with sources."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.ask import (
    begin_loading,
    printable,
    read_lines,
    usable_questions,
    utf8,
)
from whichsense.cli.ask import command as ask
from whichsense.cli.evidence import choose_system, open_evidence

if TYPE_CHECKING:
    from whichsense.pipeline import Pipeline
    from whichsense.types import Case, Passage


# A long answer as a person reads it: the paragraph, and the passages that it cites beneath.

_WIDTH = 100
_LONGEST_PASSAGE = 1200  # characters that are shown


def format_explanation(case: Case) -> str:
    """The question, the paragraph with its citations, and the cited passages with what supports it marked."""
    head = click.style(printable(case.question), bold=True)
    if case.stopped:
        head += f"  (stopped: {case.stopped})"
    answer = case.long_answer
    if answer is None or not answer.sentences:
        reason = (
            "Stopped before it was explained." if case.stopped else "No answer found."
        )
        return f"{head}\n{reason}\n"
    lines = [head, _filled(printable(answer.cited_text)), ""]
    for number, passage in enumerate(answer.passages, 1):
        title = click.style(printable(passage.title), bold=True)
        lines.append(f"[{number}] {title}")
        lines.append(_filled(_marked(passage, case), indent="    "))
    return "\n".join(lines) + "\n"


def _marked(passage: Passage, case: Case) -> str:
    """A passage with the sentences that support the text between stars."""
    spans = sorted(_supporting(passage, case))
    text, marked, end = passage.text, "", 0
    for start, stop in spans:
        marked += f"{text[end:start]}*{text[start:stop]}*"
        end = stop
    marked += text[end:]
    plain = printable(" ".join(marked.split()))
    first = plain.find("*")
    if len(plain) > _LONGEST_PASSAGE and first > _LONGEST_PASSAGE // 2:
        plain = "… " + plain[first - 200 :]
    return textwrap.shorten(plain, _LONGEST_PASSAGE, placeholder=" …")


def _supporting(passage: Passage, case: Case) -> set[tuple[int, int]]:
    """Where a passage gives the answers, and what else is told of it alone."""
    from whichsense.text.words import sentence_at, supporting_spans

    spans = set()
    for reading in case.readings:
        for span in reading.evidence:
            if span.passage.id == passage.id and span.end > span.start:
                spans.add(sentence_at(passage.text, span.start))
    claims = []
    for citation in case.long_answer.sentences if case.long_answer else ():
        if [one.id for one in citation.passages] == [passage.id]:
            claims.append(citation.sentence)
    return spans.union(supporting_spans(claims, passage.text))


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
    )


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
            click.echo(format_explanation(case))


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
