"""Rewrites of a question from the titles of the passages that hold its answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whichsense.models.compact.rewrite.forms.grammar import has_doubled_word
from whichsense.models.compact.rewrite.forms.snippets import (
    AnswerEvidence,
    FormRewrite,
    Snippet,
)
from whichsense.models.compact.rewrite.forms.title_forms.brackets import (
    bracket_rewrites,
)
from whichsense.models.compact.rewrite.forms.title_forms.documents import (
    document_rewrites,
    is_document,
)
from whichsense.models.compact.rewrite.forms.title_forms.inserting import Proposal
from whichsense.models.compact.rewrite.forms.title_forms.mentions import find_mention
from whichsense.models.compact.rewrite.forms.title_forms.parts import (
    read_qualifier,
    split_title,
)
from whichsense.models.compact.rewrite.forms.title_forms.phrases import phrase_rewrites
from whichsense.models.compact.rewrite.forms.title_forms.runs import find_part
from whichsense.models.compact.rewrite.forms.title_forms.unnamed import unnamed_rewrites
from whichsense.models.compact.rewrite.forms.title_forms.widening import (
    widened_rewrites,
)
from whichsense.text.function_words import QUESTION_WORDS
from whichsense.text.words import words

_MOST_TITLES = 3  # of an answer's passages, best first
_MOST = 6  # rewrites of an answer
_EMPTY_WORDS = QUESTION_WORDS - {"one"}  # One World Trade Center


def title_rewrites(
    question: str, own: AnswerEvidence, others: Sequence[AnswerEvidence]
) -> list[FormRewrite]:
    """Rewrites of a question for one answer by the titles that hold it, best first.

    The best title of another answer cannot tell the two apart and gives no rewrite; a title that is among another
    answer's lesser ones comes last.

    >>> snippet = Snippet("Gull (1961 film)", "Ann Ray plays the keeper.", 0, 7)
    >>> other = Snippet("Gull (1999 film)", "Bo Finch plays the keeper.", 0, 8)
    >>> rest = [AnswerEvidence("Bo Finch", (other,))]
    >>> title_rewrites("who plays the keeper in gull", AnswerEvidence("Ann Ray", (snippet,)), rest)[0].question
    'who plays the keeper in the 1961 film gull'
    """
    rivals = _titles(others, 1)
    shared = set(_titles(others, _MOST_TITLES))
    rewrites: dict[str, FormRewrite] = {}
    snippets = own.snippets[:_MOST_TITLES]
    for snippet in sorted(snippets, key=lambda snippet: snippet.title in shared):
        if snippet.title in rivals:
            continue
        for proposal in _proposals(question, snippet, rivals):
            if _is_allowed(question, proposal.question, own.answer, rivals):
                key = " ".join(words(proposal.question))
                rewrite = FormRewrite(proposal.question, proposal.form, snippet.title)
                rewrites.setdefault(key, rewrite)
    return list(rewrites.values())[:_MOST]


def _titles(evidence: Sequence[AnswerEvidence], most: int) -> list[str]:
    """The best titles of each of some answers, so many of each."""
    titles = []
    for answer in evidence:
        titles += [snippet.title for snippet in answer.snippets[:most]]
    return titles


def _proposals(
    question: str, snippet: Snippet, rivals: Sequence[str]
) -> Iterator[Proposal]:
    """What the forms make of one title."""
    name, _ = split_title(snippet.title)
    qualifier = read_qualifier(snippet.title, snippet.text)
    mention = find_mention(name, question)
    if mention is None and qualifier is not None:
        mention = find_part(name, question)
    if mention is not None and qualifier is not None:
        yield from bracket_rewrites(mention, name, qualifier)
    elif mention is None and is_document(name):
        yield from document_rewrites(question, name, snippet.text, rivals)
    elif mention is None:
        unnamed = list(unnamed_rewrites(question, name, qualifier, snippet.text))
        yield from unnamed or widened_rewrites(question, name, snippet.text)
        yield from phrase_rewrites(question, snippet.title)


def _is_allowed(
    question: str, rewrite: str, answer: str, rivals: Sequence[str]
) -> bool:
    """Whether a rewrite adds a word that no rival's title has, does not give the answer away and is well formed."""
    before = words(question)
    added = [word for word in words(rewrite) if word not in before]
    content = [word for word in added if word not in _EMPTY_WORDS]
    if not content or (has_doubled_word(rewrite) and not has_doubled_word(question)):
        return False
    if any(mark in rewrite and mark not in question for mark in "()[]"):
        return False
    if _gives_away(set(added), answer):
        return False
    return not any(set(content) <= set(words(rival)) for rival in rivals)


def _gives_away(added: set[str], answer: str) -> bool:
    """Whether added words have the answer, one of its names or one of its numbers.

    >>> _gives_away({"1984", "film"}, "14 December 1984"), _gives_away({"days"}, "ten days")
    (True, False)
    """
    tokens = re.findall(r"\w+", answer)
    content = {word.lower() for word in tokens if word.lower() not in QUESTION_WORDS}
    if content and content <= added:
        return True
    for token in tokens:
        is_name = token[0].isupper() or (len(token) > 1 and token.isdigit())
        if is_name and token.lower() in added - QUESTION_WORDS:
            return True
    return False
