"""For "who" questions: the role of each answer, where several share the question: words by one, music by another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.models.compact.rewrite.forms.clauses.tokens import stem
from whichsense.text.words import words

_QUESTION = re.compile(r"(?P<who>who) (?P<verb>[a-z]+) (?P<rest>.+)", re.IGNORECASE)
_COPULAR = re.compile(
    r"(?P<who>who (?:is|was)) (?:the )?(?P<noun>[\w' -]+?) (?P<rest>(?:of|in|at|for) .+)",
    re.IGNORECASE,
)
_NOUNS = "|".join(sorted(vocabulary.ROLE_NOUNS))
_NOUN_BY = re.compile(rf"\b(?P<noun>{_NOUNS})(?: is| was| are| were)? by$")
_VERB_BY = re.compile(r"\b(?P<verb>[a-z]+) by(?: the)?(?: [a-z]+){0,2}$")
_ACTIVE = re.compile(
    rf"^(?P<verb>[a-z]+) (?:the )?(?:(?P<noun>{_NOUNS})\b|(?P<object>.*))"
)
_COMPLEMENT = re.compile(
    r"^(?:is|was) (?:the )?(?P<noun>[a-z-]+(?: [a-z-]+){0,3}?)(?= of\b| in\b| at\b| for\b|,|$)"
)
_APPOSITION = re.compile(
    r"^, (?:an?|the|his|her) (?P<noun>[a-z-]+(?: [a-z-]+)?)(?=,|$| and\b| of\b)"
)
_TITLE_BEFORE = re.compile(r"\b(?:the|his|her|an?) (?P<noun>[a-z]+)$")


@dataclass(frozen=True, slots=True)
class Role:
    """A question about the role of one answer."""

    question: str
    addition: str
    support: str


def role_questions(question: str, clause: Clause, answer: str) -> Iterator[Role]:
    """The question with the verb or the noun that the clause has for the answer's role.

    >>> from whichsense.models.compact.rewrite.forms.snippets import Snippet
    >>> from whichsense.models.compact.rewrite.forms.clauses.segmentation import find_clause
    >>> text = "The song has words by Ida Brand and music by Ole Sund."
    >>> clause = find_clause(Snippet("Tide", text, 45, 53), [(22, 31)])
    >>> [role.question for role in role_questions("Who wrote the song Tide?", clause, "Ole Sund")]
    ['Who composed the music of the song Tide?']
    """
    if not answer[:1].isupper():
        return
    copular = _COPULAR.fullmatch(question)
    if copular:
        yield from _copular_role(question, copular, clause)
        return
    asked = _QUESTION.fullmatch(question)
    if not asked:
        return
    is_role = asked["verb"].lower() in vocabulary.ROLE_VERBS
    is_role = is_role and vocabulary.ROLE_VERBS.isdisjoint(words(asked["rest"]))
    if is_role and not vocabulary.ROLE_NOUNS.intersection(words(asked["rest"])):
        yield from _verb_role(question, asked, clause)
    if asked["verb"].lower() not in vocabulary.AUXILIARIES:
        yield from _which(question, asked, clause)


def _verb_role(question: str, asked: re.Match[str], clause: Clause) -> Iterator[Role]:
    """The question with the clause's verb, or with the part that the answer wrote."""
    noun_by = _NOUN_BY.search(clause.before)
    active = _ACTIVE.match(clause.after) if not clause.before else None
    verb_by = _VERB_BY.search(clause.before)
    if noun_by:
        yield _part_written(question, asked, noun_by["noun"], noun_by[0])
    elif active and active["noun"]:
        yield _part_written(question, asked, active["noun"], active[0])
    elif active and _speaks_of(asked["rest"], active["object"] or ""):
        yield from _other_verb(question, asked, active["verb"], active["verb"])
    elif verb_by and _speaks_of(asked["rest"], clause.subject or clause.inherited):
        verb = vocabulary.PAST_OF_PARTICIPLE.get(verb_by["verb"], verb_by["verb"])
        yield from _other_verb(question, asked, verb, verb_by["verb"])


def _part_written(question: str, asked: re.Match[str], noun: str, support: str) -> Role:
    verb = "composed" if noun in ("music", "score", "tune") else "wrote"
    if noun in ("pictures", "drawings", "illustrations"):
        verb = "made"
    text = f"{asked['who']} {verb} the {noun} of {asked['rest']}"
    return Role(text, noun, support)


def _other_verb(
    question: str, asked: re.Match[str], verb: str, support: str
) -> Iterator[Role]:
    """The question with another verb of making."""
    if verb in vocabulary.ROLE_VERBS and verb != asked["verb"].lower():
        yield Role(f"{asked['who']} {verb} {asked['rest']}", verb, support)


def _speaks_of(rest: str, noun: str) -> bool:
    """Whether a noun of the clause is the question's thing: a pronoun, "the film", or words of the question."""
    said = words(noun)
    if not said or said[0] in vocabulary.PRONOUNS or said[0] == "the":
        return True
    asked = {stem(word) for word in words(rest)} - vocabulary.ARTICLES
    return any(stem(word) in asked for word in said)


def _copular_role(
    question: str, asked: re.Match[str], clause: Clause
) -> Iterator[Role]:
    """ "Who was the first leader of X?" with the noun that the clause has: the first prime minister."""
    complement = _COMPLEMENT.match(clause.after)
    if not complement or clause.before:
        return
    noun = complement["noun"]
    if not vocabulary.DETERMINERS.isdisjoint(words(noun)):
        return
    mine = {stem(word) for word in words(noun)}
    theirs = {stem(word) for word in words(asked["noun"])}
    is_general = not theirs.isdisjoint(vocabulary.GENERAL_ROLES)
    if mine == theirs or not (is_general or mine & theirs) or mine < theirs:
        return
    text = f"{asked['who']} the {noun} {asked['rest']}"
    new = " ".join(word for word in words(noun) if stem(word) not in theirs)
    yield Role(text, new, complement[0])


def _which(question: str, asked: re.Match[str], clause: Clause) -> Iterator[Role]:
    """ "Which lawyer invented it?", by what stands beside the answer's name."""
    match = _APPOSITION.match(clause.after) or _TITLE_BEFORE.search(clause.before)
    if not match:
        return
    noun = match["noun"]
    said = words(noun)
    asked_words = {stem(word) for word in words(question)}
    is_person = (
        said[-1].endswith(vocabulary.PERSON_ENDINGS) or said[-1] in vocabulary.PERSONS
    )
    unwanted = (
        vocabulary.RELATIONS
        | vocabulary.PREPOSITIONS
        | vocabulary.ORDINALS
        | vocabulary.NO_MODIFIERS
    )
    if not is_person or not unwanted.isdisjoint(said):
        return
    if asked_words & {stem(word) for word in said}:
        return
    which = "which" if asked["who"].islower() else "Which"
    text = f"{which} {noun} {asked['verb']} {asked['rest']}"
    yield Role(text, noun, match[0].strip(", "))
