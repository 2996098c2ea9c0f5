"""Asks which reading is meant: after six examples, and again where the form is not kept."""

from __future__ import annotations

from collections.abc import Callable

from whichsense.models.llm.exchange import LLMFault, Reply
from whichsense.models.llm.fences import clean
from whichsense.models.llm.replies import without_thoughts
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.windows import fence_lines
from whichsense.text.clarification import ParsedClarification, parse_clarification
from whichsense.text.words import words
from whichsense.types import Case

_MOST_TOKENS = 120
_ATTEMPTS = 3
_WARM = 0.7
LONGEST_LABEL = 40


def write_clarification(talk: Talk, case: Case) -> ParsedClarification:
    """A clarification in the right form, with an option for each reading in their order. Raises `LLMFault` where the
    model keeps giving another form."""
    lines = []
    for number, reading in enumerate(case.readings, 1):
        text = reading.question
        if reading.source:
            text = f"{reading.question} (as in {reading.source})"
        lines.append(f"{number}. {clean(text)}")
    for seed in range(_ATTEMPTS):
        request = talk.request(
            "clarify",
            _MOST_TOKENS,
            temperature=_WARM if seed else 0.0,
            seed=seed,
            question=clean(case.question),
            rewrites=fence_lines(lines, "readings"),
            number=str(len(lines)),
        )
        (parsed,) = talk.ask([request], _reader_of(len(lines)))
        if parsed is not None and keeps_form(parsed, len(lines)):
            return parsed
    raise LLMFault(
        f"The language model '{talk.endpoint.model}' wrote no clarification question in the right form."
    )


def _reader_of(count: int) -> Callable[[Reply], ParsedClarification | None]:
    def read(reply: Reply) -> ParsedClarification:
        """Every reply is understood here; its form is looked at by the caller, who asks again."""
        for line in without_thoughts(reply.text).splitlines():
            parsed = parse_clarification(line.strip("*\"' "), expected=count)
            if parsed is not None:
                return parsed
        return ParsedClarification("", ())

    return read


def keeps_form(parsed: ParsedClarification, count: int) -> bool:
    """Whether there are as many options as readings, distinct, short, and without the category.

    >>> keeps_form(ParsedClarification("year", ("2017", "2018")), 2)
    True
    >>> [keeps_form(ParsedClarification("year", options), 2) for options in (("2017",), ("year 2017", "2018"))]
    [False, False]
    """
    labels = [" ".join(words(option)) for option in parsed.options]
    if len(labels) != count or len(set(labels)) < count:
        return False
    if any(len(option) > LONGEST_LABEL for option in parsed.options):
        return False
    category = set(words(parsed.category)) - {"one"}
    return not any(category & set(label.split()) for label in labels)
