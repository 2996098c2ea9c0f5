"""Options from labels: those that say the same are merged, the rest ordered, and many put into groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from whichsense.models.compact.clarification.labels import (
    LONGEST_LABEL,
    key,
    order_key,
    shorten,
)
from whichsense.text.sentences import sentence_at
from whichsense.types import Option, Reading

MOST_OPTIONS = 6
_LONGEST_DESCRIPTION = 160  # characters
_UNNAMED = "a reading without a name"
_REST = ("another one", "one of the others", "one of the rest")
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")


def make_options(
    labels: Sequence[str], readings: Sequence[Reading], *, ordered: bool
) -> list[Option]:
    """An option for each label that differs, with the readings of all equal ones; `ordered`: by time or number where
    all labels have one."""
    merged: dict[str, Option] = {}
    for label, reading in zip(labels, readings, strict=True):
        short = shorten(label) or _UNNAMED
        same = key(short)
        if same in merged:
            before = merged[same]
            together = (*before.readings, reading)
            merged[same] = replace(before, readings=together)
        else:
            merged[same] = Option("", short, describe(reading), (reading,))
    options = list(merged.values())
    if ordered:
        options = in_order(options)
    return options


def in_order(options: Sequence[Option]) -> list[Option]:
    """By year, date or number where every label has one; otherwise as they are, most probable first."""
    keys = [order_key(option.label) for option in options]
    placed = [place for place in keys if place is not None]
    if len(placed) < len(options):
        return list(options)
    order = sorted(range(len(options)), key=lambda number: placed[number])
    return [options[number] for number in order]


def describe(reading: Reading) -> str:
    """A line beneath an option: where its evidence is from, and what it says."""
    if not reading.evidence:
        return shorten(reading.source or reading.question, _LONGEST_DESCRIPTION)
    span = reading.evidence[0]
    start, end = sentence_at(span.passage.text, span.start)
    sentence = " ".join(span.passage.text[start:end].split())
    title = " ".join(span.passage.title.split())
    return shorten(f"{title}: {sentence}" if title else sentence, _LONGEST_DESCRIPTION)


def numbered(options: Sequence[Option], within: str = "") -> tuple[Option, ...]:
    """Options with their ids: "1", "2", …, and "2.1" inside a group."""
    result = []
    for number, option in enumerate(options, 1):
        identifier = f"{within}{number}"
        inner = numbered(option.options, f"{identifier}.")
        result.append(replace(option, id=identifier, options=inner))
    return tuple(result)


def group(options: Sequence[Option]) -> tuple[str, list[Option]]:
    """At most six options: more are put into groups of a broader category, which is given with them.

    By decade, or by the text that the evidence is from; where neither makes few groups, the first five stay and the
    others are one group.
    """
    if len(options) <= MOST_OPTIONS:
        return "", list(options)
    for category, of_option in (("decade", _decade), ("source", _title)):
        groups = _grouped(options, of_option)
        if groups is not None:
            return category, groups
    first = list(options[: MOST_OPTIONS - 1])
    used = {key(option.label) for option in first}
    name = next((name for name in _REST if key(name) not in used), _REST[0])
    return "", [*first, _as_group(name, options[MOST_OPTIONS - 1 :])]


def _grouped(
    options: Sequence[Option], name_of: Callable[[Option], str]
) -> list[Option] | None:
    """The options under their names; None where one has no name or there are too few or too many groups."""
    groups: dict[str, list[Option]] = {}
    for option in options:
        groups.setdefault(name_of(option), []).append(option)
    if "" in groups or not 2 <= len(groups) <= MOST_OPTIONS:
        return None
    result = []
    for name, members in groups.items():
        if len(members) == 1:
            result.append(members[0])
        else:
            result.append(_as_group(name, members))
    labels = {key(option.label) for option in result}
    return result if len(labels) == len(result) else None


def _as_group(name: str, members: Sequence[Option]) -> Option:
    readings = tuple(reading for member in members for reading in member.readings)
    _, inner = group(members)
    listed = ", ".join(member.label for member in members)
    description = shorten(listed, _LONGEST_DESCRIPTION)
    return Option("", shorten(name, LONGEST_LABEL), description, readings, tuple(inner))


def _decade(option: Option) -> str:
    year = _YEAR.search(option.label)
    return f"the {year.group()[:3]}0s" if year else ""


def _title(option: Option) -> str:
    reading = option.readings[0] if option.readings else None
    if reading is None or not reading.evidence:
        return ""
    return reading.evidence[0].passage.title
