"""A clarification question as the released scorer parses it, with its bugs; `text.clarification` is correct."""

from __future__ import annotations

INVALID = "invalid form"


def parse_released(question: str) -> tuple[str, list[str]]:
    """Category and options as the released scorer reads them, traps included.

    >>> parse_released("Which one: party, leader, or faction?")
    ('Which one', ['party', 'leader', 'faction'])
    >>> parse_released("Which one: film or book?")
    ('Which one', ['film or book'])
    >>> parse_released("Which herb: basil, oregano?")
    ('Which herb', ['basil', 'egano'])
    >>> parse_released("Could you be more specific?")
    ('invalid form', ['invalid form'])
    """
    category, colon, rest = question.partition(":")
    if not colon:
        return INVALID, [INVALID]
    return category, [
        option.strip(" ?") for part in rest.split(", or") for option in part.split(",")
    ]
