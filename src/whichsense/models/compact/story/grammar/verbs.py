"""English verbs: which words are verbs, where a question has its own, and their forms."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.models.compact.story.grammar import word_lists

# Words with the numbers that commas and dots are part of, and marks.
_TOKEN = re.compile(r"\d+(?:[,.:]\d+)+\w*|[^\s,;:()“”\"?!]+|[,;:?!]")
_VOWELS = "aeiou"


def past(base: str) -> str:
    """The past form of a base form.

    >>> past("sink"), past("move"), past("marry"), past("play"), past("stop")
    ('sank', 'moved', 'married', 'played', 'stopped')
    """
    if base in word_lists.PAST_OF_BASE:
        return word_lists.PAST_OF_BASE[base]
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ied"
    if base in word_lists.DOUBLING:
        return base + base[-1] + "ed"
    return base + "ed"


def third_person(base: str) -> str:
    """The form of a base form behind "he", "she" and "it", in the present.

    >>> third_person("have"), third_person("reach"), third_person("carry"), third_person("play")
    ('has', 'reaches', 'carries', 'plays')
    """
    if base in ("have", "go"):
        return {"have": "has", "go": "goes"}[base]
    if base.endswith(("s", "x", "z", "ch", "sh")):
        return base + "es"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ies"
    return base + "s"


_PRESENT = frozenset(map(third_person, word_lists.PRESENT_BASES))


def has_verb(text: str) -> bool:
    """Whether a text has a finite verb.

    >>> has_verb("Lon Chaney plays the Phantom"), has_verb("Cast and crew"), has_verb("The plays of Shakespeare")
    (True, False, False)
    """
    if find_verb(text) is not None:
        return True
    words = text.split()
    for place in range(1, len(words)):
        if words[place] in _PRESENT and not _starts_noun(words[place - 1]):
            return True
    return False


def find_verb(text: str) -> tuple[int, int] | None:
    """The span of the first finite verb of a text; None where it has none.

    >>> find_verb("the exterior was finished in"), find_verb("for recorded auditions")
    ((13, 16), None)
    """
    previous = ""
    for match in _TOKEN.finditer(text):
        if is_finite(match[0], previous):
            return match.span()
        previous = match[0]
    return None


def is_finite(word: str, previous: str) -> bool:
    """Whether a word can only be, or most likely is, a finite verb behind the word before it."""
    if word in word_lists.AUXILIARIES:
        return True
    lowered = previous.lower()
    opens_noun = lowered in word_lists.DETERMINERS or lowered in word_lists.PREPOSITIONS
    if opens_noun or not previous or previous == ",":
        is_past = word.endswith("ed") or word in word_lists.BASE_OF_PAST
        return is_past and not opens_noun and word.islower()
    if word in word_lists.BASE_OF_PAST or word in word_lists.VALUE_VERBS:
        return True
    return len(word) > 4 and word.endswith("ed") and word.islower() and "-" not in word


def is_participle(word: str) -> bool:
    """Whether a word is a past participle."""
    return word.endswith("ed") or word in word_lists.PARTICIPLES


def find_base(words: Sequence[str]) -> int | None:
    """The place of the only base form behind a subject; None where there is none or a second one.

    >>> find_base("the play open on broadway".split()), find_base("the titanic sink".split())
    (2, 2)
    >>> find_base("the movie open season come out".split()) is None
    True
    """
    places = []
    for place in range(1, len(words)):
        if words[place] in word_lists.BASES and not _starts_noun(words[place - 1]):
            places.append(place)
    return places[0] if len(places) == 1 and not _has_clause(words) else None


def find_participle(words: Sequence[str]) -> int | None:
    """The place of the only participle behind a subject; None where there is none or a second one.

    >>> find_participle("the film released in the united states".split())
    2
    """
    places = []
    for place in range(1, len(words)):
        word = words[place]
        is_verb = is_participle(word) and word.islower() and word != "united"
        if is_verb and not _starts_noun(words[place - 1]):
            places.append(place)
    return places[0] if len(places) == 1 and not _has_clause(words) else None


def _starts_noun(word: str) -> bool:
    if word in ("first", "last"):
        return False  # "first appeared", "last seen"
    return word.lower() in word_lists.NOUN_STARTS or word.endswith(("'s", "’s"))


def _has_clause(words: Sequence[str]) -> bool:
    """Whether there is a clause inside: which verb is the question's own is then not certain."""
    return any(word in word_lists.CLAUSE_STARTS for word in words)
