"""For "when" questions: the event that the answer's clause names, where it is another than the question's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.models.compact.rewrite.forms.clauses.tokens import is_participle, stem
from whichsense.text.words import words

_QUESTION = re.compile(
    r"(?P<ask>when|(?:in |on )?(?:what|which) (?:year|date|day)) (?P<aux>was|were|did) (?P<topic>.+?) "
    r"(?P<verb>\w+(?: out| place)?)(?P<end>\W*)$",
    re.IGNORECASE,
)
_PREPOSITION = r"(?:on|in|at|by|from|until)?$"
_ADVERB = r"(?P<adverb>first |finally |officially )?"
_WORDS = r"(?P<rest>(?: \w+){0,8}?) ?"
# "was first published in Paris on": the participle, and what stands between it and the date.
_PASSIVE = re.compile(
    rf"\b(?P<aux>was|were) {_ADVERB}(?P<verb>\w+){_WORDS}{_PREPOSITION}"
)
_BARE = re.compile(rf"^{_ADVERB}(?P<verb>[a-z]+){_WORDS}{_PREPOSITION}")


@dataclass(frozen=True, slots=True)
class Event:
    """A "when" question about an event of the clause, and the words that name the event."""

    question: str
    addition: str
    support: str


def event_questions(question: str, clause: Clause) -> Iterator[Event]:
    """The question asked about the event of the clause.

    >>> from whichsense.models.compact.rewrite.forms.snippets import Snippet
    >>> from whichsense.models.compact.rewrite.forms.clauses.segmentation import find_clause
    >>> text = "The pact was signed on 4 May 1985 and took effect on 6 June 1995."
    >>> first, second = Snippet("Orla Pact", text, 23, 33), Snippet("Orla Pact", text, 53, 64)
    >>> [event.question for event in event_questions("When did the Orla Pact start?", find_clause(first, []))]
    ['When was the Orla Pact signed?']
    >>> [event.question for event in event_questions("When did the Orla Pact start?", find_clause(second, []))]
    ['When did the Orla Pact take effect?']
    """
    asked = _QUESTION.fullmatch(question.strip())
    if not asked or not _is_event_verb(asked):
        return
    subject = _subject(asked["topic"], clause.subject or clause.inherited)
    if not subject:
        return
    predicate = _predicate(clause)
    if predicate is None:
        return
    auxiliary, verb = predicate
    same_verb = stem(asked["verb"])[:4] == stem(verb.split()[-1])[:4]
    if same_verb and subject == asked["topic"]:
        return
    text = f"{asked['ask']} {auxiliary} {subject} {verb}{asked['end']}"
    if question == question.lower():
        text = text.lower()
    addition = verb if subject == asked["topic"] else subject.split(" of ")[0]
    support = clause.before
    yield Event(text, addition, support)


def _is_event_verb(asked: re.Match[str]) -> bool:
    """Whether the question's last word is its verb."""
    verb = asked["verb"].lower()
    if asked["aux"].lower() == "did":
        return (
            verb in vocabulary.EVENT_BASES or verb in vocabulary.BASE_OF_PAST.values()
        )
    return is_participle(verb)


def _subject(topic: str, subject: str) -> str:
    """The subject of the clause as the question would name it; empty where it is something else."""
    said = words(subject)
    if not said or said[0] in vocabulary.PRONOUNS:
        return topic
    head = said[-1]
    if head in vocabulary.WORK_NOUNS and len(said) <= 2:
        preposition = "on" if head in ("work", "works") else "of"
        return f"{head} {preposition} {topic}"
    if head in vocabulary.PART_NOUNS and said[0] in vocabulary.DETERMINERS:
        asked = {stem(word) for word in words(topic)}
        if stem(head) in asked:
            return ""
        part = " ".join(subject.split()[1:])
        return f"the {part} of {topic}"
    asked = {stem(word) for word in words(topic)} - vocabulary.ARTICLES
    content = [word for word in said if word not in vocabulary.DETERMINERS]
    if all(stem(word) in asked for word in content):
        return topic
    # "The pact", "the building": another word for the question's thing.
    is_thing = len(content) == 1 and content[0] in vocabulary.THINGS
    return topic if is_thing and said[0] == "the" else ""


def _predicate(clause: Clause) -> tuple[str, str] | None:
    """Auxiliary and verb for a question about the clause's event; None where it is too long or unclear."""
    passive = _PASSIVE.search(clause.before)
    if passive and is_participle(passive["verb"]):
        return _passive(passive["aux"], passive)
    bare = _BARE.match(f"{clause.verb} {clause.middle}".strip())
    if not bare or not clause.verb:
        return None
    # "was drawn in May and signed in June": the second verb has the first one's auxiliary.
    shared = re.search(r"\b(was|were)\b", clause.sentence.split(clause.before)[0])
    is_active = bare["verb"] in vocabulary.INTRANSITIVE
    if clause.inherited and shared and is_participle(bare["verb"]) and not is_active:
        return _passive(shared[1], bare)
    return _active(bare)


def _passive(auxiliary: str, match: re.Match[str]) -> tuple[str, str] | None:
    verb = match["verb"]
    rest = match["rest"].split()
    particle = [word for word in rest[:1] if word in vocabulary.PARTICLES]
    if verb in vocabulary.LIGHT_PARTICIPLES and not match["adverb"] and not particle:
        return None
    return auxiliary, " ".join([*(match["adverb"] or "").split(), verb, *particle])


def _active(match: re.Match[str]) -> tuple[str, str] | None:
    """ "did" and the base form with the words that belong to it: "take effect", "go on sale"."""
    verb = match["verb"]
    base = vocabulary.BASE_OF_PAST.get(verb) or vocabulary.BASE_OF_EVENT.get(verb)
    rest = _object(match["rest"].split())
    is_light = verb in vocabulary.BASE_OF_PAST and base not in vocabulary.FULL_BASES
    if base is None or rest is None or (is_light and not rest):
        return None
    return "did", " ".join([*(match["adverb"] or "").split(), base, *rest])


def _object(rest: list[str]) -> list[str] | None:
    """The words that belong to a verb: "effect" of "took effect in Paris", "on sale" of "went on sale"."""
    kept: list[str] = []
    for place, word in enumerate(rest):
        following = rest[place + 1 : place + 2]
        joins = following and following[0] in vocabulary.SET_NOUNS
        if word in vocabulary.PREPOSITIONS and not joins and word not in ("out", "off"):
            break
        kept.append(word)
    unwanted = vocabulary.PRONOUNS | vocabulary.DETERMINERS
    if len(kept) > 2 or unwanted.intersection(kept):
        return None
    return None if any(word[0].isupper() for word in kept) else kept
