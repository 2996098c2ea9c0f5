"""A case as a person reads it: its readings, what is merely possible, or the nearest passages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from whichsense.cli.search import printable

if TYPE_CHECKING:
    from whichsense.types import Case, Reading, Span

_WIDTH = 100
_NEAREST = 3  # passages that are shown where there is no answer
_LONGEST_SENTENCE = 300


def format_case(case: Case, k: int | None = None, show_possible: bool = False) -> str:
    """At most k of the readings, then those that are merely possible: all of them, or their number in one line."""
    from whichsense.text.clarification import say_dependence

    shown = case.readings[:k]
    lines = [_head(case)]
    if case.has_several_readings:
        lines.append(say_dependence(case.clarification))
    lines += format_readings(shown, case.question, is_tentative=case.is_tentative)
    if not case.readings:
        lines += [*_unanswered(case), ""]
    elif case.possible and show_possible:
        lines.append("Merely possible:")
        lines += format_readings(case.possible, case.question, len(shown) + 1)
    elif case.possible:
        lines += [_folded(len(case.possible)), ""]
    for note in case.notes:
        lines.append(_indented(f"Note. {printable(note)}") + "\n")
    return "\n".join(lines)


def _head(case: Case) -> str:
    """The question, why it was stopped, and whether a single reading is all that was found."""
    head = click.style(printable(case.question), bold=True)
    if case.stopped:
        head += f"  (stopped: {case.stopped})"
    if len(case.readings) != 1 or case.is_tentative:
        return head
    return f"{head}  (one reading{' is probable' if case.possible else ''})"


def format_readings(
    readings: Sequence[Reading],
    asked: str,
    first: int = 1,
    *,
    is_tentative: bool = False,
) -> list[str]:
    """One block of lines for each reading of the question that was asked, numbered; a tentative one is called so."""
    blocks = []
    for number, reading in enumerate(readings, first):
        answer = click.style(printable(reading.answer), bold=True)
        perhaps = "Perhaps: " if is_tentative else ""
        lines = [f"{number:>3}. {perhaps}{answer}  {reading.confidence:.0%}"]
        told = reading.told_apart(asked)
        if told:
            lines.append(_indented(printable(told)))
        if reading.evidence:
            lines.append(_indented(_evidence(reading.evidence[0], reading.answer)))
        blocks.append("\n".join(lines) + "\n")
    return blocks


def _folded(count: int) -> str:
    """How many readings are merely possible, in one line."""
    if count == 1:
        return "  + 1 more that is merely possible (--all shows it)"
    return f"  + {count} more that are merely possible (--all shows them)"


def _unanswered(case: Case) -> list[str]:
    """Lines for a case without an answer: the passages that came nearest."""
    reason = "No answer found."
    if case.stopped:
        reason = "Stopped before it was answered."
    nearest = " Nearest passages:" if case.hits else ""
    lines = [f"{reason}{nearest}"]
    for hit in case.hits[:_NEAREST]:
        title = printable(hit.passage.title)
        lines.append(_indented(f"{title}: {_beginning(hit.passage.text)}"))
    return lines


def _evidence(span: Span, answer: str) -> str:
    """The sentence in which an answer stands and its title, with the answer between stars."""
    from whichsense.text.sentences import excerpt

    title, text = span.passage.title, span.passage.text
    if span.start == span.end:  # the answer stands in the title
        return f"{_beginning(text)}  [{printable(_starred(title, answer))}]"
    before, found, after = excerpt(text, span.start, span.end, _LONGEST_SENTENCE)
    sentence = " ".join(f"{before}*{found}*{after}".split())
    return f"{printable(sentence)}  [{printable(title)}]"


def _starred(title: str, answer: str) -> str:
    """A title with the answer in it between stars; all of it where it has the answer in other words.

    >>> _starred("Paris (city)", "paris"), _starred("Paris (city)", "The city of Paris")
    ('*Paris* (city)', '*Paris (city)*')
    """
    start = title.lower().find(answer.lower())
    if start < 0:
        return f"*{title}*"
    end = start + len(answer)
    return f"{title[:start]}*{title[start:end]}*{title[end:]}"


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
