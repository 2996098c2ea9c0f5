"""A long answer as a person reads it: the paragraph, and the passages that it cites beneath."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from whichsense.cli.search import printable

if TYPE_CHECKING:
    from whichsense.types import Case, Passage

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
    from whichsense.text.sentences import sentence_at
    from whichsense.text.spans import supporting_spans

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
