"""Parts and kinds of the question's thing: the written part of the test, a size S parcel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.holders import lower_common
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.models.compact.rewrite.forms.clauses.tokens import stem
from whichsense.text.words import words

_TOPIC = re.compile(
    r"(?P<ask>(?:how \w+|what|when|until when|where|who) (?:is|was|will|does|did)) (?P<topic>.+)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"[A-Za-z]+ (?:\d+|[A-Z])")
_OF = re.compile(
    r"(?:that|those|(?:the )?(?:\w+ ){0,2}(?P<noun>\w+)) (?P<whole>of (?:the )?[\w ]+)",
    re.IGNORECASE,
)
_TRAILING = re.compile(r" (?:on|in|at|by|until|from|for|to|within|after)$")
_FIRST_OF = re.compile(r"(\w+) of ")
_CODE = re.compile(r"(?:[A-Za-z]\w+ )?(?:\d+\w?|[A-Z]\d*)|[A-Z][a-z]+[^\Ws]")
# An indefinite noun of one word: "an incident", not "a key deposit".
_INDEFINITE = re.compile(r"\b(?P<article>an?) (?P<noun>[a-z]+)\b(?P<next> \w+)?")
_MOST_WORDS = 4  # of the whole that a noun is part of
_SPELT_WITH_VOWEL = "AEFHILMNORSX"  # letters whose names begin with a vowel


def part_questions(question: str, noun: str) -> Iterator[str]:
    """The question about a part: "the written part of" before its topic.

    >>> list(part_questions("how long is the orla test", "The written part"))
    ['how long is the written part of the orla test']
    """
    said = words(noun)
    asked = {stem(word) for word in words(question)}
    matched = _TOPIC.fullmatch(question)
    is_numbered = _NUMBERED.fullmatch(noun) and said[0] in vocabulary.PART_NOUNS
    is_part = said and said[-1] in vocabulary.PART_NOUNS
    if not matched or not (is_part or is_numbered):
        return
    content = [word for word in said if word not in vocabulary.ARTICLES]
    if not 2 <= len(content) <= 3 or any(stem(word) in asked for word in content):
        return
    if words(matched["topic"])[0] in vocabulary.PRONOUNS:
        return
    # With "did", only where nobody does something to something else: "When did X appear?"
    is_intransitive = words(question)[-1] in vocabulary.EVENT_BASES | {"out"}
    if matched["ask"].lower().endswith("did") and not is_intransitive:
        return
    plain = " ".join(
        part for part in noun.split() if part.lower() not in vocabulary.ARTICLES
    )
    plain = lower_common(plain, [])
    article = "" if is_numbered else "the "
    if is_numbered:
        plain = plain[0].lower() + plain[1:]
    text = f"{matched['ask']} {article}{plain} of {matched['topic']}"
    yield text.lower() if question == question.lower() else text


def whole_questions(question: str, clause: Clause) -> Iterator[tuple[str, str]]:
    """The whole that the question's noun is part of in the clause, and the question with it: the lease of Unit 4."""
    said = _OF.fullmatch(_TRAILING.sub("", clause.subject))
    first = _FIRST_OF.search(clause.sentence)
    if not said or not first:
        return
    noun = said["noun"] or first[1]
    whole = said["whole"]
    asked = list(
        re.finditer(rf"\b{re.escape(noun)}\b(?! of\b)", question, re.IGNORECASE)
    )
    known = {stem(word) for word in words(question)}
    content = [word for word in words(whole) if word not in ("of", "the")]
    is_new = not any(stem(word) in known for word in content)
    is_name = any(part[0].isupper() or part[0].isdigit() for part in whole.split())
    if len(asked) != 1 or not is_new or not is_name or len(content) > _MOST_WORDS:
        return
    addition = whole.lower() if question == question.lower() else whole
    end = asked[0].end()
    if not _ends_noun(question[end:]):
        return
    yield whole, f"{question[:end]} {addition}{question[end:]}"


def _ends_noun(following: str) -> bool:
    """Whether a noun ends where it does: a preposition, a verb or nothing follows it."""
    token = following.strip(" ?.!").split(" ")[0]
    verbs = vocabulary.VALUE_VERBS | vocabulary.AUXILIARIES | vocabulary.EVENT_BASES
    bases = vocabulary.BASE_OF_PAST.values()
    return not token or token in vocabulary.PREPOSITIONS | verbs or token in bases


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
