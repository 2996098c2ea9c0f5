"""Words of a text: their stems, and which are verbs or function words, by closed lists and endings."""

from __future__ import annotations

import re

from whichsense.models.compact.rewrite.forms.clauses import vocabulary

# Words with the numbers that commas and dots are part of, and marks.
TOKEN = re.compile(r"\d+(?:[,.:]\d+)+\w*|[^\s,;:()“”\"?!]+|[,;:?!]")


def find_verb(text: str) -> tuple[int, int] | None:
    """The span of the first finite verb of a text; None where it has none.

    >>> find_verb("the exterior was finished in"), find_verb("for recorded auditions")
    ((13, 16), None)
    """
    previous = ""
    for match in TOKEN.finditer(text):
        if is_finite(match[0], previous):
            return match.span()
        previous = match[0]
    return None


def is_finite(word: str, previous: str) -> bool:
    """Whether a word can only be, or most likely is, a finite verb behind the word before it."""
    if word in vocabulary.AUXILIARIES:
        return True
    lowered = previous.lower()
    opens_noun = lowered in vocabulary.DETERMINERS or lowered in vocabulary.PREPOSITIONS
    if opens_noun or not previous or previous == ",":
        is_past = word.endswith("ed") or word in vocabulary.BASE_OF_PAST
        return is_past and not opens_noun and word.islower()
    if word in vocabulary.BASE_OF_PAST or word in vocabulary.VALUE_VERBS:
        return True
    return len(word) > 4 and word.endswith("ed") and word.islower() and "-" not in word


def is_participle(word: str) -> bool:
    """Whether a word is a past participle."""
    return word.endswith("ed") or word in vocabulary.PARTICIPLES


def is_function(word: str) -> bool:
    """Whether a word is an article, a preposition or another word that names nothing."""
    lowered = word.lower()
    return (
        lowered in vocabulary.DETERMINERS
        or lowered in vocabulary.PREPOSITIONS
        or lowered in vocabulary.CONJUNCTIONS
        or lowered in vocabulary.WH_WORDS
        or lowered in vocabulary.PRONOUNS
        or lowered in vocabulary.AUXILIARIES
    )


def stem(word: str) -> str:
    """A word without its plural, for comparison; people of one kind are one word.

    >>> stem("Volumes") == stem("volume"), stem("staff") == stem("employees")
    (True, True)
    """
    lowered = word.lower().removesuffix("’s").removesuffix("'s")
    for group in vocabulary.PEOPLE:
        if lowered in group:
            return min(group)
    if lowered.endswith("ies") and len(lowered) > 4:
        return lowered[:-3] + "y"
    if lowered.endswith("s") and not lowered.endswith("ss") and len(lowered) > 3:
        return lowered[:-1]
    return lowered
