"""Rewrites from the clause that holds the answer: its time, its place, whom or what it is for, the part it is about.

Each form has its grammar and adds only words of the answer's own clause which no other answer's clause has.
"""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.rewrite.forms import grammar
from whichsense.models.compact.rewrite.forms.clauses.drafts import Draft, make_drafts
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.models.compact.rewrite.forms.clauses.segmentation import find_clause
from whichsense.models.compact.rewrite.forms.snippets import (
    AnswerEvidence,
    FormRewrite,
    Snippet,
)
from whichsense.text.words import words

_MOST = 8  # rewrites for each answer
_MOST_SNIPPETS = 2  # passages of an answer whose clauses are read


def condition_rewrites(
    question: str, own: AnswerEvidence, others: Sequence[AnswerEvidence]
) -> list[FormRewrite]:
    """Rewrites of a question by what the clause of its answer says of this answer alone, best first."""
    other_clauses = _clauses_of(others, own)
    elsewhere = [_spaced(clause.text) for clause in other_clauses]
    texts = [snippet.text for answer in (own, *others) for snippet in answer.snippets]
    drafts: dict[str, Draft] = {}
    for snippet in own.snippets[:_MOST_SNIPPETS]:
        clause = find_clause(snippet, _rival_spans(snippet, others))
        if clause is None:
            continue
        for draft in make_drafts(question, clause, other_clauses, texts, own.answer):
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
