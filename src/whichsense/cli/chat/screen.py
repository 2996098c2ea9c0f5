"""A turn of a conversation as a person reads it."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from whichsense.cli.ask.screen import format_case, format_readings
from whichsense.cli.explain.screen import format_explanation
from whichsense.cli.search import printable

if TYPE_CHECKING:
    from whichsense.conversation import Conversation, Turn
    from whichsense.types import Clarification, Passage, Reading

_WIDTH = 100
_LONGEST_PASSAGE = 600
_WAYS = "A number, a few words, several, “all” or “none”. An empty line shows every reading."


def format_turn(conversation: Conversation) -> str:
    """What the last turn shows."""
    turn = conversation.last
    blocks = _message(turn)
    if turn.shown == "clarification" and turn.clarification is not None:
        blocks.append(format_clarification(turn.clarification))
    elif turn.shown == "nothing" and conversation.case is not None:
        blocks.append(format_case(conversation.case).rstrip())
    elif turn.shown == "explanation" and conversation.case is not None:
        told = replace(conversation.case, long_answer=turn.long_answer)
        blocks.append(format_explanation(told).rstrip())
    elif turn.shown == "possible":
        blocks.append("Merely possible:")
    elif conversation.dependence:
        blocks.append(conversation.dependence)
    if turn.shown in ("answer", "readings", "possible"):
        asked = conversation.case.question if conversation.case else ""
        readings = format_readings(turn.readings, asked, is_tentative=turn.is_tentative)
        blocks += [block.rstrip() for block in readings]
    if conversation.case is not None:
        blocks += [f"({printable(note)})" for note in conversation.case.notes]
    return "\n\n".join(blocks) + "\n"


def _message(turn: Turn) -> list[str]:
    if not turn.message:
        return []
    lines = []
    for line in turn.message.splitlines():
        lines.append(textwrap.fill(printable(line), _WIDTH, subsequent_indent="   "))
    return ["\n".join(lines)]


def format_clarification(clarification: Clarification) -> str:
    """The question with its numbered options, and how to reply."""
    lines = [click.style(f"{printable(clarification.lead)}?", bold=True)]
    for number, option in enumerate(clarification.options, 1):
        lines.append(f"{number:>3}. {printable(option.label)}")
        if option.description:
            about = printable(option.description)
            short = textwrap.shorten(about, _WIDTH - 5, placeholder=" …")
            lines.append(click.style(f"     {short}", dim=True))
    return "\n".join([*lines, click.style(_WAYS, dim=True)])


def format_sources(readings: tuple[Reading, ...]) -> str:
    """The passages that the readings rest on, each once."""
    passages: dict[str, Passage] = {}
    for reading in readings:
        for span in reading.evidence:
            passages.setdefault(span.passage.id, span.passage)
    if not passages:
        return "There is no evidence to show."
    blocks = []
    for passage in passages.values():
        title = click.style(printable(passage.title), bold=True)
        body = " ".join(printable(passage.text).split())
        short = textwrap.shorten(body, _LONGEST_PASSAGE, placeholder=" …")
        indent = "  "
        lines = textwrap.fill(
            short, _WIDTH, initial_indent=indent, subsequent_indent=indent
        )
        blocks.append(f"{title}  [{printable(passage.id)}]\n{lines}")
    return "\n\n".join(blocks) + "\n"
