"""English verbs of questions: where they stand, and their forms."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.tokens import (
    find_verb,
    is_participle,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Base forms that questions ask with behind "did", "does" or "will".
_REGULAR = _words(
    """air appear arrive attend belong call change climb close compete compose contain cost create debut defeat die
    direct discover divorce earn end enter establish expire feature finish gain graduate happen host include
    introduce invade join kill land last launch live marry mean move name need open occur originate own paint
    pass perform play premiere produce publish qualify reach receive record reign release represent resign
    retire return score separate serve settle sign start stay stop support surrender turn use visit want weigh
    work apply allow charge require offer carry cover deliver borrow accept expect pay provide measure 
    arrest elect vote affect extract hire rent store replace repair answer ask export import transfer recommend
    accrue approve insure warn remain keep drive declare border flood complete reopen adopt ban abolish legalize
    sail crash collapse explode erupt succeed lead rule"""
)
# Past forms that vocabulary.BASE_OF_PAST does not list, and their base forms.
_MORE_PAST = {
    "had": "have", "did": "do", "hit": "hit", "bore": "bear", "hung": "hang", "ate": "eat", "drank": "drink",
    "caught": "catch", "threw": "throw", "hid": "hide", "slept": "sleep", "forbade": "forbid", "stuck": "stick",
    "crept": "creep", "meant": "mean", "felt": "feel", "thought": "think", "stole": "steal", "froze": "freeze",
    "split": "split", "cut": "cut", "quit": "quit", "let": "let", "shut": "shut", "said": "say", "heard": "hear",
}  # fmt: skip
_PAST_OF_BASE = {base: past for past, base in vocabulary.BASE_OF_PAST.items()}
_PAST_OF_BASE |= {base: past for past, base in _MORE_PAST.items()}
_PAST_OF_BASE |= {base: past for past, base in vocabulary.BASE_OF_EVENT.items()}
_PAST_OF_BASE |= {"cost": "cost", "pay": "paid", "lead": "led", "mean": "meant"}
# "do" stands for another verb, which the answer has.
_BASES = (_REGULAR | frozenset(_PAST_OF_BASE)) - {"do"}
_MORE_BASES = _words(
    "voice portray sing write tell follow describe take become come win hold make build stand know see consist refer"
)
_DOUBLING = _words("ban stop star plan drop")
_VOWELS = "aeiou"
# Words before a noun: behind them "play" is no verb.
_NOUN_OPENERS = (
    vocabulary.DETERMINERS
    | vocabulary.PREPOSITIONS
    | vocabulary.ORDINALS
    | vocabulary.CONJUNCTIONS
    | vocabulary.ADJECTIVES
    | _words("new old best most world live american british national real")
)


def past(base: str) -> str:
    """The past form of a base form.

    >>> past("sink"), past("move"), past("marry"), past("play"), past("stop")
    ('sank', 'moved', 'married', 'played', 'stopped')
    """
    if base in _PAST_OF_BASE:
        return _PAST_OF_BASE[base]
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ied"
    if base in _DOUBLING:
        return base + base[-1] + "ed"
    return base + "ed"


def third_person(base: str) -> str:
    """The form of a base form behind "he", "she" and "it", in the present.

    >>> third_person("have"), third_person("reach"), third_person("carry"), third_person("play")
    ('has', 'reaches', 'carries', 'plays')
    """
    if base in ("have", "do", "go"):
        return {"have": "has", "do": "does", "go": "goes"}[base]
    if base.endswith(("s", "x", "z", "ch", "sh")):
        return base + "es"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ies"
    return base + "s"


_PRESENT = frozenset(map(third_person, _BASES | _MORE_BASES))


def has_verb(text: str) -> bool:
    """Whether a text has a finite verb.

    >>> has_verb("Lon Chaney plays the Phantom"), has_verb("Cast and crew"), has_verb("The plays of Shakespeare")
    (True, False, False)
    """
    if find_verb(text) is not None:
        return True
    words = text.split()
    for place in range(1, len(words)):
        if words[place] in _PRESENT and not _opens_noun(words[place - 1]):
            return True
    return False


def find_base(words: Sequence[str]) -> int | None:
    """The place of the only base form behind a subject; None where there is none or a second one.

    >>> find_base("the play open on broadway".split()), find_base("the titanic sink".split())
    (2, 2)
    >>> find_base("the movie open season come out".split()) is None
    True
    """
    places = []
    for place in range(1, len(words)):
        if words[place] in _BASES and not _opens_noun(words[place - 1]):
            places.append(place)
    return places[0] if len(places) == 1 and not _opens_clause(words) else None


def find_participle(words: Sequence[str]) -> int | None:
    """The place of the only participle behind a subject; None where there is none or a second one.

    >>> find_participle("the film released in the united states".split())
    2
    """
    places = []
    for place in range(1, len(words)):
        word = words[place]
        is_verb = is_participle(word) and word.islower() and word != "united"
        if is_verb and not _opens_noun(words[place - 1]):
            places.append(place)
    return places[0] if len(places) == 1 and not _opens_clause(words) else None


def _opens_noun(word: str) -> bool:
    if word in ("first", "last"):
        return False  # "first appeared", "last seen"
    return word.lower() in _NOUN_OPENERS or word.endswith(("'s", "’s"))


def _opens_clause(words: Sequence[str]) -> bool:
    """Whether there is a clause inside: which verb is the question's own is then not certain."""
    return any(word in vocabulary.WH_WORDS for word in words)
