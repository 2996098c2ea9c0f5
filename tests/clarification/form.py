"""The form that every clarification has."""

from __future__ import annotations

from whichsense.models.compact.categories import (
    LONGEST_HEADER,
    LONGEST_LABEL,
    clean,
    key,
    without_category,
)
from whichsense.models.compact.clarifier import MOST_OPTIONS
from whichsense.types import Clarification, Option


def find_problems(clarification: Clarification) -> list[str]:
    """What breaks the form, in words; nothing where all is well.

    >>> find_problems(Clarification("Year", "Which year: 2017?", "year", (Option("1", "2017"),)))
    ['fewer than two options', 'option 1 stands for no reading']
    """
    problems = []
    options = clarification.options
    if len(clarification.header) > LONGEST_HEADER or not clarification.header:
        problems.append(f"a header that has not 1 to {LONGEST_HEADER} characters")
    if len(options) < 2:
        problems.append("fewer than two options")
    if len(options) > MOST_OPTIONS:
        problems.append(f"more than {MOST_OPTIONS} options")
    labels = [option.label for option in options]
    if len(set(map(key, labels))) < len(labels):
        problems.append("two options with one label")
    if without_category(labels, clarification.category) != labels:
        problems.append(f"'{clarification.category}' is repeated inside the options")
    for option in options:
        problems += _option_problems(option)
    return problems


def _option_problems(option: Option) -> list[str]:
    problems = []
    if not 0 < len(option.label) <= LONGEST_LABEL:
        problems.append(f"option {option.id} has not 1 to {LONGEST_LABEL} characters")
    if option.label != clean(option.label):
        problems.append(f"option {option.id} has a label that is not clean")
    if not option.readings:
        problems.append(f"option {option.id} stands for no reading")
    return problems
