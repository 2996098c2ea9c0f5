"""Rewrites from the clause that holds the answer: its time, its place, whom or what it is for, the part it is about.

Each form has its grammar and adds only words of the answer's own clause which no other answer's clause has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms import grammar, vocabulary
from whichsense.models.compact.rewrite.forms.adjuncts import Adjunct, find_adjuncts
from whichsense.models.compact.rewrite.forms.clauses import (
    Clause,
    find_clause,
    has_copula,
)
from whichsense.models.compact.rewrite.forms.events import event_questions
from whichsense.models.compact.rewrite.forms.holders import holder_phrases, holders
from whichsense.models.compact.rewrite.forms.parts import kind_questions, part_questions
from whichsense.models.compact.rewrite.forms.roles import role_questions
from whichsense.models.compact.rewrite.forms.snippets import (
    AnswerEvidence,
    FormRewrite,
    Snippet,
)
from whichsense.models.compact.rewrite.forms.subjects import narrowings, stem
from whichsense.models.compact.rewrite.forms.times import is_edge, is_time, with_tense
from whichsense.text.words import words

_MOST = 8  # rewrites for each answer
_MOST_SNIPPETS = 2  # passages of an answer whose clauses are read


@dataclass(frozen=True, slots=True)
class Draft:
    """A rewrite on trial: what it adds, where that comes from, and how good such additions are."""

    question: str
    form: str
    addition: str
    support: str
    worth: float


def condition_rewrites(
    question: str, own: AnswerEvidence, others: Sequence[AnswerEvidence]
) -> list[FormRewrite]:
    """Rewrites of a question by what the clause of its answer says of this answer alone, best first."""
    other_clauses = _clauses_of(others, own)
    elsewhere = [_spaced(clause.text) for clause in other_clauses]
    texts = [snippet.text for answer in (own, *others) for snippet in answer.snippets]
    drafts: dict[str, Draft] = {}
    for _rank, snippet in enumerate(own.snippets[:_MOST_SNIPPETS]):
        clause = find_clause(snippet, _rival_spans(snippet, others))
        if clause is None:
            continue
        for draft in _drafts(question, clause, other_clauses, texts, own.answer):
            if not _stands(question, draft, own, elsewhere):
                continue
            key = " ".join(words(draft.question))
            if key not in drafts:
                drafts[key] = draft
    ranked = sorted(drafts.values(), key=lambda draft: -draft.worth)
    return [
        FormRewrite(draft.question, draft.form, draft.support)
        for draft in ranked[:_MOST]
    ]


def _clauses_of(answers: Sequence[AnswerEvidence], own: AnswerEvidence) -> list[Clause]:
    """The clauses that hold the given answers, cut off from those of all the rest."""
    clauses = []
    for answer in answers:
        rest = [own, *(other for other in answers if other is not answer)]
        for snippet in answer.snippets[:_MOST_SNIPPETS]:
            clause = find_clause(snippet, _rival_spans(snippet, rest))
            if clause is not None:
                clauses.append(clause)
    return clauses


def _rival_spans(
    snippet: Snippet, others: Sequence[AnswerEvidence]
) -> list[tuple[int, int]]:
    """Where the other answers stand in a snippet's text."""
    spans = []
    for other in others:
        for rival in other.snippets:
            is_apart = rival.end <= snippet.start or snippet.end <= rival.start
            if rival.text == snippet.text and not rival.in_title and is_apart:
                spans.append((rival.start, rival.end))
    return spans


def _drafts(
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
    for adjunct in find_adjuncts(clause):
        is_parallel = (adjunct.opening, adjunct.is_time) in openings
        if not asks_value and not _is_setting(adjunct):
            continue
        rewrite = _append(question, adjunct, clause, answer)
        if rewrite is None:
            continue
        worth = 1.0 + 2.0 * is_parallel + 0.5 * adjunct.is_near
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
    has_name = any(part[0].isupper() or part[:4].isdigit() for part in parts)
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
    if not _asks_value(question, answer):
        return
    worth = 2.5
    for noun in holders(clause):
        for rewrite in part_questions(question, noun):
            yield Draft(rewrite, "part", noun, noun, 3.2)
        for rewrite in kind_questions(question, noun):
            yield Draft(rewrite, "kind", noun, noun, 2.7)
        for phrase in holder_phrases(question, noun, texts):
            rewrite = grammar.append_phrase(question, phrase)
            yield Draft(rewrite, "holder", noun, noun, worth)
            worth -= 0.2


def _append(question: str, adjunct: Adjunct, clause: Clause, answer: str) -> str | None:
    """The question with the phrase at its end and in its tense; None where they do not go together."""
    if _repeats_question(question, adjunct):
        return None
    if adjunct.opening == "by" and len(adjunct.text.split()) > 2:
        return None
    if not adjunct.is_time:
        return grammar.append_phrase(question, adjunct.text)
    if is_time(answer) or is_edge(adjunct.text, clause.text):
        return None
    if not _asks_value(question, answer) and not _fits_time(question, adjunct, clause):
        return None
    changed = with_tense(question, adjunct.text)
    return changed and grammar.append_phrase(changed, adjunct.text)


def _fits_time(question: str, adjunct: Adjunct, clause: Clause) -> bool:
    """Whether a clause's time is the time of what is asked.

    A state that is asked for ("Who is …?") has the time of a clause with "was", not that of an event; an event
    has a span only from its own verb.
    """
    is_span = adjunct.opening in ("from", "since", "until", "between", "during")
    asked = words(question)
    asks_state = not vocabulary.BE.isdisjoint(asked[1:3])
    if asks_state:
        return is_span or has_copula(clause)
    if not is_span:
        return True
    said = {word[:4] for word in words(clause.text)}
    return any(word[:4] in said for word in asked[1:3] if len(word) > 3)


def _stands(
    question: str, draft: Draft, own: AnswerEvidence, elsewhere: Sequence[str]
) -> bool:
    """Whether a rewrite differs, holds no answer, doubles no word and tells its answer from the others."""
    rewrite = _spaced(draft.question)
    addition = _spaced(draft.addition)
    answer = _spaced(own.answer)
    is_new = words(draft.question) != words(question)
    holds_answer = answer in rewrite and answer not in _spaced(question)
    return (
        is_new
        and not holds_answer
        and not grammar.has_doubled_word(draft.question)
        and not any(addition in text for text in elsewhere)
    )


def _spaced(text: str) -> str:
    """The words of a text with a space around each, to search for whole words."""
    return f" {' '.join(words(text))} "
