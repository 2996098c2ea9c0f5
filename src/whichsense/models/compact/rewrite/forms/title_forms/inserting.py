"""Put words into a question at a mention."""

from __future__ import annotations

import re
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.grammar import in_register
from whichsense.models.compact.rewrite.forms.title_forms.mentions import Mention
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    POSSESSIVE_PRONOUNS,
)

_ARTICLE_BEFORE = re.compile(r"\b(?:the|The)\s+$")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite and the name of its form."""

    question: str
    form: str


def replace_mention(mention: Mention, text: str) -> str:
    """The question with other words in the mention's place; opening quotation marks stay beside the name.

    >>> question = 'Who sings "Gull"?'
    >>> replace_mention(Mention(question, 11, 15), "the song Gull")
    'Who sings the song "Gull"?'
    """
    question = mention.question
    added = in_register(text, question)
    start = mention.start
    if mention.is_quoted and mention.text in added:
        quote = question[: mention.start].rstrip()[-1]
        start = question.rindex(quote, 0, mention.start)
        added = added.replace(mention.text, f"{quote}{mention.text}", 1)
    return f"{question[:start]}{added}{question[mention.end :]}"


def with_article(mention: Mention) -> Mention:
    """The mention with the question's "the" before it, so that both are replaced."""
    article = _ARTICLE_BEFORE.search(mention.question, 0, mention.start)
    return mention.widen(article.start()) if article else mention


def is_owned(mention: Mention) -> bool:
    """Whether a possessive stands before the mention: Barrie's Peter Pan, its first film."""
    previous = mention.previous
    is_name = previous.endswith(("'s", "’s", "s'", "s’"))
    return is_name or previous in POSSESSIVE_PRONOUNS


def has_words(question: str, phrase: str) -> bool:
    """Whether a question has all words of a phrase."""
    known = set(re.findall(r"\w+", question.lower()))
    return set(re.findall(r"\w+", phrase.lower())) <= known
