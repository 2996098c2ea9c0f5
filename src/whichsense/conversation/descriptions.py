"""Questions about the options, answered from what is known of them."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.text.sentences import sentence_at
from whichsense.types import Clarification, Option, Span

_LONGEST = 240  # characters of a sentence that is quoted


def describe(clarification: Clarification, ids: Sequence[str]) -> str:
    """What the named options are, one line each; without ids, why the person is asked.

    One option that a question singled out ("which is the newest?") is named first.
    """
    if not ids:
        count = len(clarification.options)
        return (
            f"The question has {count} answers here, one for each of these:\n"
            + _lines(clarification.options)
        )
    options = [option for option in clarification.options if option.id in ids]
    return _lines(options)


def _lines(options: Sequence[Option]) -> str:
    return "\n".join(describe_option(option) for option in options)


def describe_option(option: Option) -> str:
    """An option with the sentence of its evidence, or with its description where it has none."""
    about = option.description
    for reading in option.readings[:1]:
        if reading.evidence:
            about = _sentence(reading.evidence[0])
    line = f"{option.id}. {option.label}"
    if option.options:
        labels = ", ".join(inner.label for inner in option.options)
        line = f"{line} ({labels})"
    return f"{line} – {about}" if about else line


def _sentence(span: Span) -> str:
    text = span.passage.text
    start, end = sentence_at(text, span.start)
    sentence = " ".join(text[start:end].split())
    if len(sentence) > _LONGEST:
        sentence = sentence[:_LONGEST].rsplit(" ", 1)[0] + " …"
    return f"“{sentence}” [{span.passage.title}]"
