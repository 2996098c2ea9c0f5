"""The form of a clarification, whoever made it: what is wrong with it, and the same one repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from whichsense.models.compact.clarification.grouping import (
    MOST_OPTIONS,
    describe,
    group,
    numbered,
)
from whichsense.models.compact.clarification.labels import (
    LONGEST_HEADER,
    LONGEST_LABEL,
    clean,
    header_of,
    key,
    shorten,
    without_category,
)
from whichsense.text.clarification import compose_question
from whichsense.types import Clarification, Option

_LONGEST_CATEGORY = 30


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


def repair(clarification: Clarification) -> Clarification | None:
    """The same clarification in the right form; None where fewer than two options are left.

    Options that stand for no reading go, equal ones are merged, long labels are cut between words, a category that
    repeats in the options is taken out of them, and more than six options are put into groups.
    """
    options = _merged(clarification.options)
    if len(options) < 2:
        return None
    lead = clean(clarification.lead) or "Which one"
    category = clean(clarification.category) or "one"
    if len(category) > _LONGEST_CATEGORY or len(lead) > 2 * _LONGEST_CATEGORY:
        lead, category = "Which one", "one"
    shorter = without_category([option.label for option in options], category)
    if shorter is None:
        lead, category = "Which one", "one"
    else:
        renamed = []
        for option, label in zip(options, shorter, strict=True):
            renamed.append(replace(option, label=label))
        options = renamed
    return compose(lead, category, options)


def compose(lead: str, category: str, options: Sequence[Option]) -> Clarification:
    """A clarification of merged options; more than six are put into groups first."""
    broader, few = group(options)
    if broader:
        lead, category = f"Which {broader}", broader
    labels = [option.label for option in few]
    question = compose_question(lead, labels)
    return Clarification(header_of(category), question, category, numbered(few))


def _merged(options: Sequence[Option]) -> list[Option]:
    """Options that stand for readings, each reading in one of them, equal labels merged."""
    merged: dict[str, Option] = {}
    taken: list[object] = []
    for option in options:
        label = shorten(option.label)
        own = []
        for reading in option.readings:
            if reading not in taken:
                own.append(reading)
                taken.append(reading)
        same = key(label)
        if not own or not same:
            continue
        if same in merged:
            before = merged[same]
            merged[same] = replace(before, readings=(*before.readings, *own))
            continue
        description = clean(option.description) or describe(own[0])
        merged[same] = replace(
            option, label=label, description=description, readings=tuple(own)
        )
    return list(merged.values())
