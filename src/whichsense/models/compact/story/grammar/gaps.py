"""A question as a statement with a gap, and the clauses that such statements are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.tokens import (
    is_finite,
    is_participle,
)
from whichsense.models.compact.story.grammar.verbs import (
    find_base,
    find_participle,
    has_verb,
    past,
    third_person,
)

COPULAS = ("is", "was", "are", "were")
DO = ("did", "does", "do")
MODALS = ("will", "can", "may", "must", "should", "could", "would")
STRANDED = vocabulary.PREPOSITIONS - {"since"}


@dataclass(frozen=True, slots=True)
class Gap:
    """A question as a statement with a gap for its answer."""

    before: str
    """What stands before the answer; empty where the answer comes first."""
    after: str
    """What stands behind it."""
    asks: str
    """What fills the gap: "name", "time", "place", "frequency", "number" or "value"."""
    wh: str
    """The words that ask: "when", "which team", "how many seasons"."""
    noun: str = ""
    """Of a number: what is counted. Of a value: what it may end with ("tall")."""

    @property
    def clause(self) -> str:
        """The question as part of a sentence: "when the Titanic sank".

        >>> Gap("the Titanic sank", "", "time", "when").clause
        'when the Titanic sank'
        """
        words = [self.wh, self.before, self.after]
        return " ".join(" ".join(words).split())


def find_verb(words: Sequence[str]) -> int | None:
    """The place of the first verb behind a noun."""
    for place in range(1, len(words)):
        word = words[place]
        if word in vocabulary.WH_WORDS or words[place - 1].endswith(","):
            return None
        is_verb = is_finite(word, words[place - 1])
        if is_verb or word in DO or word in COPULAS:
            return place
    return None


def parse_object(wh: str, rest: list[str], asks: str) -> Gap | None:
    """who did X marry: X married …"""
    clause = uninvert(rest)
    if clause is None:
        return None
    before, after = clause
    if has_verb(f"it {after}"):
        return None
    if after and after.split()[-1].lower() in STRANDED and len(after.split()) == 1:
        return Gap(f"{before} {after}", "", asks, wh)
    first = after.split()[0].lower() if after else "in"
    is_known = first in vocabulary.PREPOSITIONS or first in ("a", "an", "each", "every")
    return Gap(before, after, asks, wh) if is_known else None


def parse_adverb(wh: str, rest: list[str], asks: str) -> Gap | None:
    """when was X released in Y: X was released in Y …"""
    if rest[0] in COPULAS and len(rest) > 1:
        return parse_state(wh, rest, asks)
    clause = uninvert(rest)
    if clause is None:
        return None
    return Gap(" ".join(filter(None, clause)), "", asks, wh)


def parse_state(wh: str, rest: list[str], asks: str) -> Gap | None:
    """when was X released, where is X: the verb goes behind the subject."""
    verb, *subject = rest
    if any(word.endswith("ing") and word.islower() for word in subject[1:]):
        return None  # "is X being held", "is X coming out"
    place = find_participle(subject)
    if subject[1:3] in (["last", "time"], ["first", "time"]):
        return Gap(f"{' '.join(subject)} {verb}", "", asks, wh)
    if place is None:
        if subject[-1].lower() in STRANDED - {"from"} or has_participle(subject):
            return None
        if subject[-1].lower() == "from":
            subject, verb = subject[:-1], f"{verb} from"
        return Gap(f"{' '.join(subject)} {verb}", "", asks, wh)
    if subject[place - 1] in ("first", "last", "originally", "officially"):
        place -= 1
    words = [*subject[:place], verb, *subject[place:]]
    if place == 0 or words[-1].lower() in STRANDED:
        return None
    return Gap(" ".join(words), "", asks, wh)


def has_participle(words: list[str]) -> bool:
    return any(is_participle(word) for word in words[1:])


def uninvert(rest: list[str]) -> tuple[str, str] | None:
    """Subject with its verb, and what follows, of "did X win Y" or "will X open"."""
    auxiliary, *words = rest
    place = find_base([word.lower() if word.islower() else word for word in words])
    if place is None:
        return None
    verb = words[place]
    if auxiliary == "did":
        verb = past(verb)
    elif auxiliary == "does":
        verb = third_person(verb)
    elif auxiliary in MODALS:
        verb = f"{auxiliary} {verb}"
    elif auxiliary != "do":
        return None
    subject = " ".join(words[:place])
    after = words[place + 1 :]
    if after[:1] == ["and"]:
        return None  # "start and end"
    if after and after[0] in vocabulary.PARTICLES:
        verb, after = f"{verb} {after[0]}", after[1:]
    if after[:1] == ["place"] and words[place] == "take":
        verb, after = f"{verb} place", after[1:]
    return f"{subject} {verb}", " ".join(after)
