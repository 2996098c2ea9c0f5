"""A case as a person reads it: the probable readings, what is merely possible, or the nearest passages."""

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
    shown = case.readings[:k]
    possible: list[str] = []
    if case.possible and show_possible:
        possible = ["Merely possible:", *format_readings(case.possible, len(shown) + 1)]
    elif case.possible:
        possible = [_folded(case), ""]
    if case.readings:
        lines = [*format_readings(shown, 1), *possible]
    else:
        lines = [*_unanswered(case, possible), ""]
    notes = []
    for note in case.notes:
        notes.append(_indented(f"Note. {printable(note)}") + "\n")
    return "\n".join([_head(case), *lines, *notes])


def _head(case: Case) -> str:
    """The question, why it was stopped, and whether a single reading is all that could be meant."""
    head = click.style(printable(case.question), bold=True)
    if case.stopped:
        head += f"  (stopped: {case.stopped})"
    if len(case.readings) != 1:
        return head
    if case.possible:
        return f"{head}  (one reading is probable)"
    # By a threshold of the user's, others may be answered, too, if less surely.
    by_threshold = case.policy.threshold is not None
    if case.has_several_readings and not by_threshold:
        return f"{head}  (the only reading that is answered here)"
    return f"{head}  (one reading)"


def format_readings(readings: Sequence[Reading], first: int = 1) -> list[str]:
    """One block of lines for each reading, numbered."""
    blocks = []
    for number, reading in enumerate(readings, first):
        blocks.append(_reading(number, reading))
    return blocks


def _folded(case: Case) -> str:
    """How many readings are merely possible, in one line."""
    count = len(case.possible)
    number = f"{count} more" if case.readings else str(count)
    if count == 1:
        return f"  + {number} that is merely possible (--all shows it)"
    return f"  + {number} that are merely possible (--all shows them)"


def _unanswered(case: Case, possible: Sequence[str]) -> list[str]:
    """Lines for a case without a probable answer: what is possible, and the passages that came nearest."""
    reason = "No answer is probable." if possible else "No answer found."
    if case.stopped:
        reason = "Stopped before it was answered."
    nearest = "Nearest passages:" if case.hits else ""
    lines = [reason, *possible, nearest]
    if not possible:
        lines = [f"{reason} {nearest}".rstrip()]
    for hit in case.hits[:_NEAREST]:
        title = printable(hit.passage.title)
        lines.append(_indented(f"{title}: {_beginning(hit.passage.text)}"))
    return lines


def _reading(number: int, reading: Reading) -> str:
    answer = click.style(printable(reading.answer), bold=True)
    question = reading.question
    if reading.source:
        # There is no rewrite: to repeat the question would say nothing.
        question = f"as asked; from “{reading.source}”"
    lines = [
        f"{number:>3}. {answer}  {reading.confidence:.0%}",
        _indented(printable(question)),
    ]
    if reading.evidence:
        lines.append(_indented(_evidence(reading.evidence[0], reading.answer)))
    return "\n".join(lines) + "\n"


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
