"""Questions that ask how many, how much, how long, how often or how tall."""

from __future__ import annotations

from dataclasses import replace

from whichsense.models.compact.rewrite.forms.clauses.tokens import is_participle
from whichsense.models.compact.story.grammar.gaps import (
    COPULAS,
    DO,
    MODALS,
    STRANDED,
    Gap,
    find_verb,
    has_participle,
    parse_object,
    parse_state,
    uninvert,
)

_SIZES = ("tall", "long", "high", "wide", "deep", "old")
_LASTING_STATES = ("valid", "open", "closed", "available")


def parse_how(_: str, rest: list[str]) -> Gap | None:
    """The statement that a question with "how" asks to complete; `rest` stands behind "how"."""
    asked, verb = rest[0], rest[1]
    gap: Gap | None = None
    if len(rest) < 3:
        return None
    if asked == "many":
        gap = _parse_number(rest[1:])
    elif asked == "much":
        gap = _parse_amount(rest)
    elif asked in _SIZES and verb in COPULAS:
        gap = _parse_size(rest)
    elif asked == "long" and (verb in DO or verb in MODALS):
        gap = _parse_duration(rest[1:])
    elif asked == "often" and verb in COPULAS:
        gap = parse_state("how often", rest[1:], "frequency")
    return gap


def _parse_amount(rest: list[str]) -> Gap | None:
    """how much does X cost: X costs …; how much leave does X get: X gets …"""
    for place, word in enumerate(rest):
        if word not in DO and word not in MODALS:
            continue
        gap = parse_object(f"how {' '.join(rest[:place])}", rest[place:], "value")
        noun = " ".join(rest[1:place])
        return replace(gap, noun=f"of {noun}") if gap and noun else gap
    return None


def _parse_size(rest: list[str]) -> Gap | None:
    """how tall is X: X is … tall; how long is X valid: X is valid for …"""
    size, verb, *subject = rest
    if subject[-1].lower() in STRANDED or has_participle(subject):
        return None
    if size == "long" and subject[-1] in _LASTING_STATES and len(subject) > 1:
        before = f"{' '.join(subject[:-1])} {verb} {subject[-1]}"
        return Gap(before, "", "value", "how long", "for")
    return Gap(f"{' '.join(subject)} {verb}", "", "value", f"how {size}", size)


def _parse_duration(rest: list[str]) -> Gap | None:
    """how long does X last for Y: X lasts … for Y; how long does X keep Y: X keeps Y for …"""
    clause = uninvert(rest)
    if clause is None:
        return None
    before, after = clause
    if before.split()[-1] in ("lasts", "last", "lasted", "takes", "take", "took"):
        return Gap(before, after, "value", "how long")
    return Gap(f"{before} {after}".strip(), "", "value", "how long", "for")


def _parse_number(words: list[str]) -> Gap | None:
    """how many seasons of X are there: there are … seasons of X."""
    place = find_verb(words)
    if place is None:
        return None
    counted, behind = " ".join(words[:place]), words[place:]
    wh = f"how many {counted}"
    gap: Gap | None = None
    if behind[0] in DO or behind[0] in MODALS:
        clause = parse_object(wh, behind, "number")
        if clause is not None:
            gap = Gap(clause.before, clause.after, "number", wh, counted)
    elif behind[0] in COPULAS and behind[1:2] == ["there"]:
        after = " ".join(behind[2:])
        gap = Gap(f"there {behind[0]}", after, "number", wh, counted)
    elif behind[-1].lower() not in STRANDED and _is_subject(behind):
        gap = Gap("", " ".join(behind), "number", wh, counted)
    return gap


def _is_subject(behind: list[str]) -> bool:
    """Whether what is counted does what the verb says: "have won", not "have they won"."""
    return behind[0] not in ("have", "has", "had") or is_participle(behind[1])
