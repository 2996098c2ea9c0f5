"""Rewrites on trial: what every form makes of one clause, and how good such additions are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms import grammar
from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.adjuncts import (
    Adjunct,
    find_adjuncts,
)
from whichsense.models.compact.rewrite.forms.clauses.conjuncts import single_questions
from whichsense.models.compact.rewrite.forms.clauses.events import event_questions
from whichsense.models.compact.rewrite.forms.clauses.holders import (
    holder_phrases,
    holders,
)
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause, has_copula
from whichsense.models.compact.rewrite.forms.clauses.parts import (
    kind_questions,
    part_questions,
    whole_questions,
)
from whichsense.models.compact.rewrite.forms.clauses.roles import role_questions
from whichsense.models.compact.rewrite.forms.clauses.subjects import narrowings
from whichsense.models.compact.rewrite.forms.clauses.times import (
    is_edge,
    is_time,
    with_tense,
)
from whichsense.models.compact.rewrite.forms.clauses.tokens import stem
from whichsense.text.words import words

_YEAR = re.compile(r"(?:1\d|20)\d\d")


@dataclass(frozen=True, slots=True)
class Draft:
    """A rewrite on trial: what it adds, where that comes from, and how good such additions are."""

    question: str
    form: str
    addition: str
    support: str
    worth: float


def make_drafts(
    question: str,
    clause: Clause,
    others: Sequence[Clause],
    texts: Sequence[str],
    answer: str,
) -> Iterator[Draft]:
    """All rewrites that the forms make of one clause."""
    for narrowing in narrowings(question, clause):
        # Best where the other answers' clauses name the same kind of thing.
        noun = narrowing.support.split()[-1]
        is_parallel = any(
            stem(noun) in map(stem, words(other.text)) for other in others
        )
        worth = 3.0 if is_parallel or clause.label else 1.8
        yield Draft(
            narrowing.question, "subject", narrowing.addition, narrowing.support, worth
        )
    yield from _adjunct_drafts(question, clause, others, answer)
    yield from _holder_drafts(question, clause, texts, answer)
    for noun in holders(clause):
        for rewrite in part_questions(question, noun):
            yield Draft(rewrite, "part", noun, noun, 3.2)
    for whole, rewrite in whole_questions(question, clause):
        yield Draft(rewrite, "whole", whole, whole, 3.1)
    for single in single_questions(question, clause, answer):
        yield Draft(single.question, "conjunct", single.kept, single.kept, 4.0)
    for event in event_questions(question, clause):
        yield Draft(event.question, "event", event.addition, event.support, 2.8)
    for role in role_questions(question, clause, answer):
        yield Draft(role.question, "role", role.addition, role.support, 2.6)


def _adjunct_drafts(
    question: str, clause: Clause, others: Sequence[Clause], answer: str
) -> Iterator[Draft]:
    """The question with a phrase of the clause at its end."""
    openings = set()
    for other in others:
        for adjunct in find_adjuncts(other):
            openings.add((adjunct.opening, adjunct.is_time))
    asks_value = _asks_value(question, answer)
    if asks_value:
        yield from _opposite_drafts(question, clause, others)
    if not asks_value and not _shares_word(question, clause):
        return
    has_rival = any(other.sentence == clause.sentence for other in others)
    for adjunct in find_adjuncts(clause):
        is_parallel = (adjunct.opening, adjunct.is_time) in openings
        tells_apart = is_parallel and adjunct.is_near and has_rival
        if not asks_value and not tells_apart and not _is_setting(adjunct):
            continue
        rewrite = _append(question, adjunct, clause, answer)
        if rewrite is None:
            continue
        worth = 1.0 + 0.5 * adjunct.is_near
        if is_parallel:
            worth += 2.0 if adjunct.is_near else 1.0
        # "for a boat for the Petrel": the question has such a phrase already.
        if re.search(rf"\b{adjunct.opening} an?\b", question):
            worth -= 2.0
        form = "time" if adjunct.is_time else "place"
        yield Draft(rewrite, form, adjunct.text, adjunct.text, worth)


def _opposite_drafts(
    question: str, clause: Clause, others: Sequence[Clause]
) -> Iterator[Draft]:
    """The question with the opposite of the condition that the other clause of the sentence has."""
    rivals = [other for other in others if other.sentence == clause.sentence]
    if len(rivals) != 1 or find_adjuncts(clause):
        return
    for adjunct in find_adjuncts(rivals[0]):
        opposite = vocabulary.OPPOSITES.get(adjunct.opening)
        has_article = adjunct.text.split()[1] in vocabulary.ARTICLES
        if opposite == "without" and not has_article:
            continue
        if (
            opposite is None
            or not adjunct.is_near
            or _repeats_question(question, adjunct)
        ):
            continue
        phrase = adjunct.text.replace(adjunct.opening, opposite, 1)
        rewrite = grammar.append_phrase(question, phrase)
        yield Draft(rewrite, "opposite", phrase, adjunct.text, 2.0)


def _repeats_question(question: str, adjunct: Adjunct) -> bool:
    """Whether a phrase has a noun that the question has."""
    asked = {stem(word) for word in words(question)}
    for word in words(adjunct.text)[1:]:
        is_content = word not in vocabulary.DETERMINERS | vocabulary.PREPOSITIONS
        if is_content and stem(word) in asked:
            return True
    return False


def _asks_value(question: str, answer: str) -> bool:
    """Whether a question asks for a figure or another value that a document sets, not for a date or a name."""
    is_figure = answer[:1].islower() or any(mark.isdigit() for mark in answer)
    opening = words(question)[:1]
    return is_figure and not is_time(answer) and opening != ["who"]


def _shares_word(question: str, clause: Clause) -> bool:
    """Whether a clause speaks of what is asked: it has a word of the question, or leaves out what went before."""
    asked = {word[:4] for word in words(question) if len(word) > 3}
    said = {word[:4] for word in words(f"{clause.inherited} {clause.text}")}
    opening = words(clause.subject or clause.inherited)[:2]
    points_back = bool(vocabulary.PRONOUNS.intersection(opening[:1])) or opening[
        :1
    ] == ["the"]
    return bool(asked & said) or clause.is_elliptic or points_back


def _is_setting(adjunct: Adjunct) -> bool:
    """Whether a phrase names a time, or a place, work or occasion by its own name."""
    if adjunct.is_time:
        return True
    parts = adjunct.text.split()[1:]
    has_name = any(part[0].isupper() or _YEAR.match(part) for part in parts)
    has_order = not vocabulary.ORDINALS.isdisjoint(parts)
    return (has_name or has_order) and adjunct.opening in (
        "in",
        "on",
        "at",
        "for",
        "during",
        "aboard",
    )


def _holder_drafts(
    question: str, clause: Clause, texts: Sequence[str], answer: str
) -> Iterator[Draft]:
    """The question with whom or what the value is for at its end."""
    # The subject of "The hall closes at 22.00" is what closes, not whom the hour is for.
    is_subject = words(question)[:1] == ["when"] and bool(clause.verb)
    if is_subject or not _asks_value(question, answer):
        return
    worth = 2.5
    for noun in holders(clause):
        is_label = noun == clause.label or clause.is_elliptic
        for rewrite in kind_questions(question, noun) if is_label else ():
            yield Draft(rewrite, "kind", noun, noun, 2.7)
        for phrase in holder_phrases(question, noun, texts):
            rewrite = grammar.append_phrase(question, phrase)
            yield Draft(rewrite, "holder", noun, noun, worth)
            worth -= 0.2


def _append(question: str, adjunct: Adjunct, clause: Clause, answer: str) -> str | None:
    """The question with the phrase at its end and in its tense; None where they do not go together."""
    is_agent = adjunct.opening == "by" and not _is_manner(adjunct.text)
    is_start = adjunct.opening == "from" and not _is_span(question, adjunct, answer)
    if is_agent or is_start or _repeats_question(question, adjunct):
        return None
    if not adjunct.is_time:
        return grammar.append_phrase(question, adjunct.text)
    if not _fits_time(question, adjunct, clause, answer):
        return None
    changed = with_tense(question, adjunct.text)
    return changed and grammar.append_phrase(changed, adjunct.text)


def _is_manner(phrase: str) -> bool:
    """Whether "by" leads a manner and no agent: "by day", "by road"."""
    parts = phrase.split()
    return len(parts) == 2 and parts[1].islower() and not parts[1].endswith("s")


def _is_span(question: str, adjunct: Adjunct, answer: str) -> bool:
    """Whether "from" opens a span, or a date from which a rule holds."""
    has_end = re.search(r" (?:to|until) ", adjunct.text) is not None
    return has_end or (adjunct.is_time and _asks_value(question, answer))


def _fits_time(question: str, adjunct: Adjunct, clause: Clause, answer: str) -> bool:
    """Whether a clause's time is the time of what is asked.

    A state that is asked for ("Who is …?") has the time of a clause with "was", not that of an event; an event
    has a span only from its own verb.
    """
    is_preposition = adjunct.opening in vocabulary.TIME_PREPOSITIONS
    if is_time(question) or is_time(question.title()):
        return False
    if not is_preposition or is_time(answer) or is_edge(adjunct.text, clause.text):
        return False
    if _asks_value(question, answer):
        return True
    is_span = adjunct.opening in ("from", "since", "until", "between", "during")
    asked = words(question)
    asks_state = not vocabulary.BE.isdisjoint(asked[1:3])
    if asks_state:
        return is_span or has_copula(clause)
    if not is_span:
        return True
    said = {word[:4] for word in words(clause.text)}
    return any(word[:4] in said for word in asked[1:3] if len(word) > 3)
