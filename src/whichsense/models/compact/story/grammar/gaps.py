"""Take a question apart: a statement with a gap for its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from whichsense.models.compact.story.grammar import word_lists
from whichsense.models.compact.story.grammar.verbs import (
    find_base,
    find_participle,
    has_verb,
    is_finite,
    is_participle,
    past,
    third_person,
)

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
_SIZES = ("tall", "long", "high", "wide", "deep", "old")
_LASTING_STATES = ("valid", "open", "closed", "available")
# Prepositions that a question may end with: what they belong to is then not certain.
_STRANDED = word_lists.PREPOSITIONS - {"since"}


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
    place = _find_verb_place(rest)
    if wh.lower() not in ("what", "which") or place is None:
        return None
    asks = "time" if rest[place - 1].lower() in _TIME_NOUNS else "place"
    return _parse_adverb(f"in {wh} {' '.join(rest[:place])}", rest[place:], asks)


def _parse_when(wh: str, rest: list[str]) -> Gap | None:
    return _parse_adverb(wh, rest, "time")


def _parse_where(wh: str, rest: list[str]) -> Gap | None:
    return _parse_adverb(wh, rest, "place")


def _parse_who(wh: str, rest: list[str]) -> Gap | None:
    if rest[1:3] == ["the", "voice"] and rest[0] in ("does", "did"):
        return Gap("", " ".join(rest), "name", wh)
    if rest[0] in word_lists.DO:
        return _parse_object(wh, rest, "name")
    if rest[-1].lower() in _STRANDED:
        return None
    return Gap("", " ".join(rest), "name", wh)


def _parse_what(wh: str, rest: list[str]) -> Gap | None:
    if rest[0] in word_lists.COPULAS:
        return _parse_copula(wh, rest)
    if rest[0] in word_lists.DO:
        return _parse_object(wh, rest, "value")
    place = _find_verb_place(rest)
    if place is None:
        return _parse_subject(wh, rest)
    return _parse_which(f"{wh} {' '.join(rest[:place])}", rest[place:])


def _parse_which(wh: str, behind: list[str]) -> Gap | None:
    """which team won X: … won X; what year did X open: X opened …"""
    noun, verb = wh.rsplit(maxsplit=1)[-1].lower(), behind[0]
    gap: Gap | None = None
    if noun == "date" and verb in word_lists.DO and _CHOSEN.intersection(behind):
        gap = _parse_object(wh, behind, "value")
    elif noun in _TIME_NOUNS and (verb in word_lists.DO or verb in word_lists.COPULAS):
        gap = _parse_adverb(wh, behind, "time")
    elif noun in _PLACE_NOUNS and behind[-1].lower() == "in":
        gap = _parse_adverb(wh, behind[:-1], "place")
    elif verb in word_lists.DO:
        gap = _parse_object(wh, behind, "value")
    elif behind[-1].lower() not in _STRANDED and _is_subject(wh, behind):
        gap = Gap("", " ".join(behind), "name", wh)
    return gap


def _is_subject(wh: str, behind: list[str]) -> bool:
    """Whether "which NOUN" is the subject of the verb behind it."""
    noun = wh.rsplit(maxsplit=1)[-1].lower()
    if noun.endswith("ly") or " of " in wh:
        return False
    if behind[0] not in word_lists.AUXILIARIES:
        return True
    follows = behind[1].lower() if len(behind) > 1 else ""
    if follows in word_lists.DETERMINERS:
        return noun in _NAMED_NOUNS or behind[0] in ("has", "have", "had")
    return is_participle(follows)


def _parse_subject(wh: str, rest: list[str]) -> Gap | None:
    """what causes rust: a verb in -s directly behind "what"."""
    if wh == "what" and rest[0].endswith("s") and not rest[0].endswith("ss"):
        if rest[-1].lower() in _STRANDED:
            return None
        return Gap("", " ".join(rest), "name", wh)
    return None


def _parse_copula(wh: str, rest: list[str]) -> Gap | None:
    """what is the capital of X: the capital of X is …"""
    verb, *subject = rest
    if len(subject) < 2 or subject[-1].lower() in _STRANDED:
        return None
    if subject[-1] in ("called", "named"):
        before = f"{' '.join(subject[:-1])} {verb} {subject[-1]}"
        return Gap(before, "", "value", wh)
    opens_noun = subject[0].lower() in word_lists.DETERMINERS
    if not opens_noun and not subject[0][0].isupper():
        return None
    if find_participle(subject) is not None and not subject[0][0].islower():
        return None
    return Gap(f"{' '.join(subject)} {verb}", "", "value", wh)


def _parse_how(_: str, rest: list[str]) -> Gap | None:
    """The statement that a question with "how" asks to complete; `rest` stands behind "how"."""
    asked, verb = rest[0], rest[1]
    gap: Gap | None = None
    if len(rest) < 3:
        return None
    if asked == "many":
        gap = _parse_number(rest[1:])
    elif asked == "much":
        gap = _parse_amount(rest)
    elif asked in _SIZES and verb in word_lists.COPULAS:
        gap = _parse_size(rest)
    elif asked == "long" and (verb in word_lists.DO or verb in word_lists.MODALS):
        gap = _parse_duration(rest[1:])
    elif asked == "often" and verb in word_lists.COPULAS:
        gap = _parse_state("how often", rest[1:], "frequency")
    return gap


def _parse_amount(rest: list[str]) -> Gap | None:
    """how much does X cost: X costs …; how much leave does X get: X gets …"""
    for place, word in enumerate(rest):
        if word not in word_lists.DO and word not in word_lists.MODALS:
            continue
        gap = _parse_object(f"how {' '.join(rest[:place])}", rest[place:], "value")
        noun = " ".join(rest[1:place])
        return replace(gap, noun=f"of {noun}") if gap and noun else gap
    return None


def _parse_size(rest: list[str]) -> Gap | None:
    """how tall is X: X is … tall; how long is X valid: X is valid for …"""
    size, verb, *subject = rest
    if subject[-1].lower() in _STRANDED or _has_participle(subject):
        return None
    if size == "long" and subject[-1] in _LASTING_STATES and len(subject) > 1:
        before = f"{' '.join(subject[:-1])} {verb} {subject[-1]}"
        return Gap(before, "", "value", "how long", "for")
    return Gap(f"{' '.join(subject)} {verb}", "", "value", f"how {size}", size)


def _parse_duration(rest: list[str]) -> Gap | None:
    """how long does X last for Y: X lasts … for Y; how long does X keep Y: X keeps Y for …"""
    clause = _uninvert(rest)
    if clause is None:
        return None
    before, after = clause
    if before.split()[-1] in ("lasts", "last", "lasted", "takes", "take", "took"):
        return Gap(before, after, "value", "how long")
    return Gap(f"{before} {after}".strip(), "", "value", "how long", "for")


def _parse_number(words: list[str]) -> Gap | None:
    """how many seasons of X are there: there are … seasons of X."""
    place = _find_verb_place(words)
    if place is None:
        return None
    counted, behind = " ".join(words[:place]), words[place:]
    wh = f"how many {counted}"
    gap: Gap | None = None
    if behind[0] in word_lists.DO or behind[0] in word_lists.MODALS:
        clause = _parse_object(wh, behind, "number")
        gap = replace(clause, noun=counted) if clause is not None else None
    elif behind[0] in word_lists.COPULAS and behind[1:2] == ["there"]:
        after = " ".join(behind[2:])
        gap = Gap(f"there {behind[0]}", after, "number", wh, counted)
    elif behind[-1].lower() not in _STRANDED and _counts_subject(behind):
        gap = Gap("", " ".join(behind), "number", wh, counted)
    return gap


def _counts_subject(behind: list[str]) -> bool:
    """Whether what is counted does what the verb says: "have won", not "have they won"."""
    return behind[0] not in ("have", "has", "had") or is_participle(behind[1])


def _find_verb_place(words: Sequence[str]) -> int | None:
    """The place of the first verb behind a noun."""
    for place in range(1, len(words)):
        word = words[place]
        if word in word_lists.CLAUSE_STARTS or words[place - 1].endswith(","):
            return None
        if is_finite(word, words[place - 1]):
            return place
    return None


def _parse_object(wh: str, rest: list[str], asks: str) -> Gap | None:
    """who did X marry: X married …"""
    clause = _uninvert(rest)
    if clause is None:
        return None
    before, after = clause
    if has_verb(f"it {after}"):
        return None
    if after and after.split()[-1].lower() in _STRANDED and len(after.split()) == 1:
        return Gap(f"{before} {after}", "", asks, wh)
    first = after.split()[0].lower() if after else "in"
    is_known = first in word_lists.PREPOSITIONS or first in ("a", "an", "each", "every")
    return Gap(before, after, asks, wh) if is_known else None


def _parse_adverb(wh: str, rest: list[str], asks: str) -> Gap | None:
    """when was X released in Y: X was released in Y …"""
    if rest[0] in word_lists.COPULAS and len(rest) > 1:
        return _parse_state(wh, rest, asks)
    clause = _uninvert(rest)
    if clause is None:
        return None
    return Gap(" ".join(filter(None, clause)), "", asks, wh)


def _parse_state(wh: str, rest: list[str], asks: str) -> Gap | None:
    """when was X released, where is X: the verb goes behind the subject."""
    verb, *subject = rest
    if any(word.endswith("ing") and word.islower() for word in subject[1:]):
        return None  # "is X being held", "is X coming out"
    place = find_participle(subject)
    if subject[1:3] in (["last", "time"], ["first", "time"]):
        return Gap(f"{' '.join(subject)} {verb}", "", asks, wh)
    if place is None:
        if subject[-1].lower() in _STRANDED - {"from"} or _has_participle(subject):
            return None
        if subject[-1].lower() == "from":
            subject, verb = subject[:-1], f"{verb} from"
        return Gap(f"{' '.join(subject)} {verb}", "", asks, wh)
    if subject[place - 1] in ("first", "last", "originally", "officially"):
        place -= 1
    words = [*subject[:place], verb, *subject[place:]]
    if place == 0 or words[-1].lower() in _STRANDED:
        return None
    return Gap(" ".join(words), "", asks, wh)


def _has_participle(words: list[str]) -> bool:
    return any(is_participle(word) for word in words[1:])


def _uninvert(rest: list[str]) -> tuple[str, str] | None:
    """Subject with its verb, and what follows, of "did X win Y" or "will X open"."""
    auxiliary, *words = rest
    place = find_base(words)
    if place is None:
        return None
    verb = words[place]
    if auxiliary == "did":
        verb = past(verb)
    elif auxiliary == "does":
        verb = third_person(verb)
    elif auxiliary in word_lists.MODALS:
        verb = f"{auxiliary} {verb}"
    elif auxiliary != "do":
        return None
    subject = " ".join(words[:place])
    after = words[place + 1 :]
    if after[:1] == ["and"]:
        return None  # "start and end"
    if after and after[0] in word_lists.PARTICLES:
        verb, after = f"{verb} {after[0]}", after[1:]
    if after[:1] == ["place"] and words[place] == "take":
        verb, after = f"{verb} place", after[1:]
    return f"{subject} {verb}", " ".join(after)


_PARSERS: dict[str, Callable[[str, list[str]], Gap | None]] = {
    "who": _parse_who,
    "what": _parse_what,
    "which": _parse_what,
    "when": _parse_when,
    "where": _parse_where,
    "how": _parse_how,
    "in": _parse_in_which,
}
