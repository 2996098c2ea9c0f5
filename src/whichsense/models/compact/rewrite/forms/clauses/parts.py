"""Parts and kinds of the question's thing: the written part of the test, a size S parcel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.holders import lower_common
from whichsense.models.compact.rewrite.forms.clauses.subjects import stem
from whichsense.text.words import words

_TOPIC = re.compile(
    r"(?P<ask>(?:how \w+|what|when|where|who) (?:is|was|will|does|did)) (?P<topic>.+)",
    re.IGNORECASE,
)
_CODE = re.compile(r"(?:[A-Za-z]\w+ )?(?:\d+\w?|[A-Z]\d*)|[A-Z][a-z]+[^\Ws]")
# An indefinite noun of one word: "an incident", not "a key deposit".
_INDEFINITE = re.compile(r"\b(?P<article>an?) (?P<noun>[a-z]+)\b(?P<next> \w+)?")
_SPELT_WITH_VOWEL = "AEFHILMNORSX"  # letters whose names begin with a vowel


def part_questions(question: str, noun: str) -> Iterator[str]:
    """The question about a part: "the written part of" before its topic.

    >>> list(part_questions("how long is the orla test", "The written part"))
    ['how long is the written part of the orla test']
    """
    said = words(noun)
    asked = {stem(word) for word in words(question)}
    matched = _TOPIC.fullmatch(question)
    if not matched or not said or said[-1] not in vocabulary.PART_NOUNS:
        return
    content = [word for word in said if word not in vocabulary.ARTICLES]
    if not 2 <= len(content) <= 3 or any(stem(word) in asked for word in content):
        return
    if words(matched["topic"])[0] in vocabulary.PRONOUNS:
        return
    plain = " ".join(
        part for part in noun.split() if part.lower() not in vocabulary.ARTICLES
    )
    plain = lower_common(plain, [])
    text = f"{matched['ask']} the {plain} of {matched['topic']}"
    yield text.lower() if question == question.lower() else text


def kind_questions(question: str, label: str) -> Iterator[str]:
    """The question about a kind: a code or name before the question's one indefinite noun.

    >>> list(kind_questions("How fast is the reply to an incident?", "Severity 1"))
    ['How fast is the reply to a Severity 1 incident?']
    """
    nouns = list(_INDEFINITE.finditer(question))
    if len(nouns) != 1 or not _CODE.fullmatch(label):
        return
    match = nouns[0]
    following = (match["next"] or "").strip().lower()
    is_single = (
        not following
        or following in vocabulary.PREPOSITIONS
        or following in vocabulary.VALUE_VERBS
    )
    asked = {stem(word) for word in words(question)}
    is_known = any(stem(word) in asked for word in words(label))
    if not is_single or is_known or match["noun"] in vocabulary.UNITS:
        return
    text = f"{question[: match.start()]}{_article(label)} {label} {question[match.start('noun') :]}"
    yield text.lower() if question == question.lower() else text


def _article(label: str) -> str:
    """ "a" or "an", by how a name or a code is spoken.

    >>> _article("Atlas"), _article("L40"), _article("Severity 1")
    ('an', 'an', 'a')
    """
    if label[1:2].isdigit() or len(label) == 1:
        return "an" if label[0].upper() in _SPELT_WITH_VOWEL else "a"
    return "an" if label[0].lower() in "aeiou" else "a"
