"""Take a question apart, so that an answer can be put into its gap."""

from __future__ import annotations

import re
from collections.abc import Callable

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.tokens import is_participle
from whichsense.models.compact.story.grammar.gaps import (
    COPULAS,
    DO,
    STRANDED,
    Gap,
    find_verb,
    parse_adverb,
    parse_object,
)
from whichsense.models.compact.story.grammar.quantities import parse_how
from whichsense.models.compact.story.grammar.verbs import find_participle

_TIME_NOUNS = ("year", "date", "day", "month", "decade", "time")
_PLACE_NOUNS = ("city", "country", "state", "place", "town", "county", "continent")
# Verbs whose object a date may be.
_CHOSEN = frozenset(("set", "choose", "give", "name"))
# Nouns of which "which … is the …" asks for a name.
_NAMED_NOUNS = (
    *("city", "country", "state", "team", "company", "band", "person", "player"),
    *("film", "movie", "song", "book", "animal", "planet", "actor", "actress", "river"),
)
# Words that say that a verb's clause is not all that is asked.
_TWO_QUESTIONS = re.compile(r"\b(?:and|or) (?:who|what|when|where|how|which)\b", re.I)


def parse_question(question: str) -> Gap | None:
    """The statement that a question asks to complete; None where its grammar is not certain.

    >>> parse_question("Who played the Joker in the 1989 film Batman?")
    Gap(before='', after='played the Joker in the 1989 film Batman', asks='name', wh='who', noun='')
    >>> parse_question("when did the Titanic sink").before
    'the Titanic sank'
    """
    words = question.strip(" ?.!").split()
    if len(words) < 3 or _TWO_QUESTIONS.search(question):
        return None
    first = words[0].lower()
    parse = _PARSERS.get(first)
    return parse(first, words[1:]) if parse is not None else None


def _parse_in_which(_: str, rest: list[str]) -> Gap | None:
    """in which city was X held: X was held …"""
    wh, *rest = rest
    place = find_verb(rest)
    if wh.lower() not in ("what", "which") or place is None:
        return None
    asks = "time" if rest[place - 1].lower() in _TIME_NOUNS else "place"
    return parse_adverb(f"in {wh} {' '.join(rest[:place])}", rest[place:], asks)


def _parse_when(wh: str, rest: list[str]) -> Gap | None:
    return parse_adverb(wh, rest, "time")


def _parse_where(wh: str, rest: list[str]) -> Gap | None:
    return parse_adverb(wh, rest, "place")


def _parse_who(wh: str, rest: list[str]) -> Gap | None:
    if rest[1:3] == ["the", "voice"] and rest[0] in ("does", "did"):
        return Gap("", " ".join(rest), "name", wh)
    if rest[0] in DO:
        return parse_object(wh, rest, "name")
    if rest[-1].lower() in STRANDED:
        return None
    return Gap("", " ".join(rest), "name", wh)


def _parse_what(wh: str, rest: list[str]) -> Gap | None:
    if rest[0] in COPULAS:
        return _parse_copula(wh, rest)
    if rest[0] in DO:
        return parse_object(wh, rest, "value")
    place = find_verb(rest)
    if place is None:
        return _parse_subject(wh, rest)
    return _parse_which(f"{wh} {' '.join(rest[:place])}", rest[place:])


def _parse_which(wh: str, behind: list[str]) -> Gap | None:
    """which team won X: … won X; what year did X open: X opened …"""
    noun, verb = wh.rsplit(maxsplit=1)[-1].lower(), behind[0]
    gap: Gap | None = None
    if noun == "date" and verb in DO and _CHOSEN.intersection(behind):
        gap = parse_object(wh, behind, "value")
    elif noun in _TIME_NOUNS and (verb in DO or verb in COPULAS):
        gap = parse_adverb(wh, behind, "time")
    elif noun in _PLACE_NOUNS and behind[-1].lower() == "in":
        gap = parse_adverb(wh, behind[:-1], "place")
    elif verb in DO:
        gap = parse_object(wh, behind, "value")
    elif behind[-1].lower() not in STRANDED and _is_subject(wh, behind):
        gap = Gap("", " ".join(behind), "name", wh)
    return gap


def _is_subject(wh: str, behind: list[str]) -> bool:
    """Whether "which NOUN" is the subject of the verb behind it."""
    noun = wh.rsplit(maxsplit=1)[-1].lower()
    if noun.endswith("ly") or " of " in wh:
        return False
    if behind[0] not in vocabulary.AUXILIARIES:
        return True
    follows = behind[1].lower() if len(behind) > 1 else ""
    if follows in vocabulary.DETERMINERS:
        return noun in _NAMED_NOUNS or behind[0] in ("has", "have", "had")
    return is_participle(follows)


def _parse_subject(wh: str, rest: list[str]) -> Gap | None:
    """what causes rust: a verb in -s directly behind "what"."""
    if wh == "what" and rest[0].endswith("s") and not rest[0].endswith("ss"):
        if rest[-1].lower() in STRANDED:
            return None
        return Gap("", " ".join(rest), "name", wh)
    return None


def _parse_copula(wh: str, rest: list[str]) -> Gap | None:
    """what is the capital of X: the capital of X is …"""
    verb, *subject = rest
    if len(subject) < 2 or subject[-1].lower() in STRANDED:
        return None
    if subject[-1] in ("called", "named"):
        before = f"{' '.join(subject[:-1])} {verb} {subject[-1]}"
        return Gap(before, "", "value", wh)
    opens_noun = subject[0].lower() in vocabulary.DETERMINERS
    if not opens_noun and not subject[0][0].isupper():
        return None
    if find_participle(subject) is not None and not subject[0][0].islower():
        return None
    return Gap(f"{' '.join(subject)} {verb}", "", "value", wh)


_PARSERS: dict[str, Callable[[str, list[str]], Gap | None]] = {
    "who": _parse_who,
    "what": _parse_what,
    "which": _parse_what,
    "when": _parse_when,
    "where": _parse_where,
    "how": parse_how,
    "in": _parse_in_which,
}
