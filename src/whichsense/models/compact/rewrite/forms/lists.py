"""Rewrites by the label of a value that stands in a list: "Adults £12, children £6" gives "for children"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.models.compact.rewrite.forms import grammar
from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.holders import holder_phrases
from whichsense.models.compact.rewrite.forms.clauses.times import with_tense
from whichsense.models.compact.rewrite.forms.snippets import (
    AnswerEvidence,
    FormRewrite,
    Snippet,
)
from whichsense.models.compact.rewrite.forms.value_lists import (
    ListedValue,
    is_condition,
    names_one,
    telling_words,
    values_beside,
)

_FORM = "list"
_DEFAULT = "normally"


def list_rewrites(
    question: str, own: AnswerEvidence, others: Sequence[AnswerEvidence]
) -> list[FormRewrite]:
    """Rewrites of a question by the label of its answer, where another answer stands in the same list.

    >>> text = "Adults pay £12 and children £6; in winter £5."
    >>> one, two = [AnswerEvidence(text[a:b], (Snippet("", text, a, b),)) for a, b in ((11, 14), (28, 30))]
    >>> [rewrite.question for rewrite in list_rewrites("What is the fare?", two, [one])]
    ['What is the fare for children?']
    """
    rivals = [snippet for other in others for snippet in other.snippets]
    label = label_of(question, own, others)
    if label is None:
        return []
    if _repeats(question, label):
        widened = _widen(question, label)
        return [FormRewrite(widened, _FORM, label)] if widened else []
    texts = [snippet.text for snippet in (*own.snippets, *rivals)]
    rewrites = []
    for phrase in _phrases(question, label, texts):
        changed = with_tense(question, phrase) or question
        rewrite = grammar.append_phrase(changed, phrase)
        if not grammar.has_doubled_word(rewrite):
            rewrites.append(FormRewrite(rewrite, _FORM, label))
    return rewrites


def label_of(
    question: str, own: AnswerEvidence, others: Sequence[AnswerEvidence]
) -> str | None:
    """The label of an answer in the first list that holds another answer, too; None where there is no such list."""
    rivals = [snippet for other in others for snippet in other.snippets]
    for snippet in own.snippets:
        if snippet.in_title:
            continue
        values = values_beside(snippet.text, snippet.start, snippet.end)
        if not values or names_one(question, values):
            continue
        held = [value for value in values if _is_at(value, snippet)]
        rest = [value for value in values if value not in held]
        beside = [rival for rival in rivals if rival.text == snippet.text]
        if any(_is_at(value, rival) for value in rest for rival in beside):
            return held[0].label
    return None


def _repeats(question: str, label: str) -> bool:
    """Whether a question has a word of a label already: "for a ticket for the day ticket" is no English."""
    return not set(telling_words(label)).isdisjoint(telling_words(question))


def _widen(question: str, label: str) -> str:
    """The question with a label in place of its first word, which the question has; empty where it has not.

    >>> _widen("How long is a ticket for the Otter valid?", "Otter 24")
    'How long is a ticket for the Otter 24 valid?'
    """
    first, _, rest = label.partition(" ")
    found = re.findall(rf"\b{re.escape(first)}\b(?! \d)", question, re.IGNORECASE)
    if not rest or not first[0].isupper() or len(found) != 1:
        return ""
    whole = grammar.in_register(f"{first} {rest}", question)
    return re.sub(rf"\b{re.escape(found[0])}\b", lambda _: whole, question)


def adds_label(rewrite: str, question: str, label: str) -> bool:
    """Whether a rewrite adds all the words of a label that the question lacks, and there are such.

    >>> adds_label("What is the fare for children?", "What is the fare?", "children")
    True
    """
    missing = set(telling_words(label)) - set(telling_words(question))
    return bool(missing) and missing.issubset(telling_words(rewrite))


def _is_at(value: ListedValue, snippet: Snippet) -> bool:
    return value.start < snippet.end and snippet.start < value.end


def _phrases(question: str, label: str, texts: Sequence[str]) -> list[str]:
    """A label as a phrase that ends a question. What holds by default holds normally."""
    if not label:
        return [_DEFAULT]
    if is_condition(label):
        return [_without_verb_before(label)]
    noun = label.removeprefix("of ")
    if noun.split()[0].lower() in vocabulary.PREPOSITIONS:
        return [noun]
    return list(holder_phrases(question, noun, texts))


def _without_verb_before(label: str) -> str:
    """A condition without the preposition that leads to the value: "in winter at", "for cars the fee is"."""
    parts = label.split()
    while len(parts) > 1 and parts[-1].lower() in vocabulary.PREPOSITIONS:
        parts.pop()
    plain = " ".join(parts).rstrip(",")
    return plain[0].lower() + plain[1:]
