"""What tools give, as a model reads it: plain text, with what to do next where something is to be done."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.serve.mcp.outputs import (
    ExplainOutput,
    PassageOutput,
    ReadingOutput,
    ReadOutput,
    SearchOutput,
    TurnOutput,
)

_MOST_POSSIBLE = 3  # that are named
_LATE = "The time was up before there was an answer. Call the tool again, or `search`."


def turn_text(output: TurnOutput, *, has_buttons: bool = False) -> str:
    """What to show to the user, or to ask them."""
    blocks = [output.message] if output.message else []
    if output.clarification is not None:
        blocks += _question_back(output, has_buttons)
    elif output.shown == "nothing":
        blocks += _nothing(output)
    else:
        head = output.dependence
        if output.shown == "possible" and output.readings:
            head = "Not probable, but possible:"
        blocks += [head] if head else []
        blocks += _readings(output.readings, is_tentative=output.tentative)
    if output.clarification is None and output.possible and output.readings:
        blocks.append(_possible(output.possible))
    if output.shown == "more":
        blocks.append(f"Ask the user, then call {_reply(output)}.")
    blocks += [f"Note: {note}" for note in output.notes]
    if output.stopped and output.readings:
        blocks.append(
            "The time was up before all was read: there may be more readings."
        )
    return "\n\n".join(blocks)


def unasked_text(output: TurnOutput) -> str:
    """For who wanted to know what to ask: there is nothing to ask."""
    return f"There is no need to ask back.\n\n{turn_text(output)}"


def _question_back(output: TurnOutput, has_buttons: bool) -> list[str]:
    """The options, how to hand the choice back, and what to do where nobody can be asked."""
    assert output.clarification is not None
    lines = [output.clarification.question]
    for option in output.clarification.options:
        # What describes an option is in the readings, too, where they follow.
        is_described = option.description and not output.readings
        about = f" – {option.description}" if is_described else ""
        lines.append(f"{option.id}. {option.label}{about}")
    several = f"“{output.question}” has several readings."
    if has_buttons:
        ask = f"{several} The user sees these options as buttons; wait for the choice:"
        then = f"If they choose in words instead, call {_reply(output)}."
    else:
        ask = f"{several} Ask the user which one they mean:"
        then = f"Then call {_reply(output)}."
    blocks = [ask, "\n".join(lines), then]
    if output.readings:
        blocks.append("Only if nobody can be asked, give every reading:")
        blocks += _readings(output.readings, numbered=False)
    return blocks


def _reply(output: TurnOutput) -> str:
    return f'`reply` with conversation "{output.conversation}" and what the user says as `text`'


def _nothing(output: TurnOutput) -> list[str]:
    if output.stopped:
        return [_LATE]
    blocks = [f"The corpus has no probable answer to “{output.question}”."]
    if output.nearest:
        lines = ["The nearest passages:"]
        for one in output.nearest:
            lines.append(f"- {one.title} [{one.passage}]: {one.quote}")
        blocks.append("\n".join(lines))
    blocks.append(
        "Say so. Call `search` with other words; or ask the user to say more about what they mean, "
        f"and call {_reply(output)}."
    )
    return blocks


def _readings(
    readings: Sequence[ReadingOutput],
    *,
    numbered: bool = True,
    is_tentative: bool = False,
) -> list[str]:
    blocks = []
    for number, one in enumerate(readings, 1):
        mark = ""
        if len(readings) > 1:
            mark = f"{number}. " if numbered else "- "
        perhaps = "Perhaps: " if is_tentative else ""
        about = f" – {one.told_apart}" if one.told_apart else ""
        lines = [f"{mark}{perhaps}{one.answer}{about} ({one.confidence:.0%})"]
        for evidence in one.evidence[:1]:
            lines.append(f"   “{evidence.quote}” {evidence.title} [{evidence.passage}]")
        blocks.append("\n".join(lines))
    return blocks


def _possible(readings: Sequence[ReadingOutput]) -> str:
    names = [one.answer for one in readings[:_MOST_POSSIBLE]]
    more = len(readings) - len(names)
    rest = f" and {more} more" if more else ""
    return f"Not probable enough to count as an answer: {'; '.join(names)}{rest}."


def explain_text(output: ExplainOutput) -> str:
    if not output.text and output.stopped:
        return _LATE
    if not output.text:
        return f"The corpus has no probable answer to “{output.question}”."
    lines = [output.text, ""]
    for number, source in enumerate(output.sources, 1):
        lines.append(f"[{number}] {source.title} [{source.passage}]")
    return "\n".join(lines)


def search_text(output: SearchOutput) -> str:
    if not output.hits:
        return "No passage matches. Try other words."
    blocks = []
    for number, hit in enumerate(output.hits, 1):
        blocks.append(f"{number}. {_passage(hit.passage)}")
    return "\n\n".join(blocks)


def read_text(output: ReadOutput) -> str:
    """The passage between its neighbours, as they follow each other in the document."""
    blocks = []
    for one in output.before:
        blocks.append(f"(before) {_passage(one)}")
    blocks.append(_passage(output.passage))
    for one in output.after:
        blocks.append(f"(after) {_passage(one)}")
    return "\n\n".join(blocks)


def _passage(passage: PassageOutput) -> str:
    section = f" › {passage.section}" if passage.section else ""
    return f"{passage.title}{section} [{passage.id}]\n{passage.text}"
