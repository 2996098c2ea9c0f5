"""The sentences of a passage that can be told: whole, plain and standing alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from whichsense.models.compact.rewrite.forms.title_forms.parts import split_title
from whichsense.models.compact.story.cleaning import clean
from whichsense.models.compact.story.grammar.verbs import has_verb
from whichsense.models.compact.story.mentions import stand_alone
from whichsense.text.sentences import sentence_spans
from whichsense.types import Passage

_ENDS = re.compile(r"[.!?][\"'”’)\]]*$")
# A dot that ends no sentence.
_ABBREVIATION = re.compile(
    r"\b(?:Art|Sec|Fig|Op|Ch|pp?|feat|vs|al|Nos?|Vol|St|Mr|Mrs|Dr|[A-Z])\.$"
)
_ODD = re.compile(r"https?:|www\.|[|{}<>\\=_~^*]|\.\.\.|…|\b\w{40,}")
_BEGINS = re.compile(r"(?:The|An?|In|On|At|It|He|She|They|This|These|There) [a-z]")
_SHORTEST, _LONGEST = 4, 70  # words
_MOST_SENTENCES = 40


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence of a passage that stands alone."""

    text: str
    passage: Passage
    start: int
    end: int

    def holds(self, place: int) -> bool:
        """Whether the character at a place of the passage is in the sentence."""
        return self.start <= place < self.end


@lru_cache(maxsize=256)
def facts(passage: Passage) -> tuple[Fact, ...]:
    """Every sentence of a passage that can be told, in order."""
    spans = list(_spans(passage))
    texts = [clean(passage.text[start:end]) for start, end in spans]
    texts[:1] = [_without_heading(text, passage.title) for text in texts[:1]]
    told = []
    for place, (start, end) in enumerate(spans):
        if not is_whole(texts[place]):
            continue
        text = stand_alone(passage, texts, place)
        if text:
            told.append(Fact(text, passage, start, end))
    return tuple(told)


def _without_heading(text: str, title: str) -> str:
    """The first sentence without the title that some corpora put before it.

    >>> _without_heading("Al Lee Albert Lee was a singer.", "Al Lee (singer)")
    'Albert Lee was a singer.'
    >>> _without_heading("Farm policy The aim of farms is food.", "Farm policy")
    'The aim of farms is food.'
    """
    name, _ = split_title(clean(title))
    for heading in (clean(title), name):
        if not heading or not text.lower().startswith(heading.lower() + " "):
            continue
        rest = text[len(heading) :].lstrip()
        opening = rest.lower().split()[: len(heading.split()) + 3]
        repeats_name = heading.lower().split()[-1] in opening
        if rest[0].isupper() and (repeats_name or _BEGINS.match(rest)):
            return rest
    return text


def _spans(passage: Passage) -> Iterator[tuple[int, int]]:
    for number, span in enumerate(sentence_spans(passage.text)):
        if number == _MOST_SENTENCES:
            return
        yield span


def is_whole(text: str) -> bool:
    """Whether a text is one whole sentence, and no heading, row of a table or fragment.

    >>> is_whole("It was released in 1989."), is_whole("released in 1989."), is_whole("Cast and crew.")
    (True, False, False)
    """
    count = len(text.split())
    if not _SHORTEST <= count <= _LONGEST or not _ENDS.search(text):
        return False
    if _ABBREVIATION.search(text):
        return False
    if not (text[0].isupper() or text[0].isdigit() or text[0] in "\"“'‘"):
        return False
    if _ODD.search(text) or text.count('"') % 2 or text.count("(") != text.count(")"):
        return False
    label, colon, rest = text.partition(": ")
    is_row = bool(colon) and not (has_verb(label) and has_verb(rest))
    return not is_row and not text.endswith("?") and has_verb(text)
