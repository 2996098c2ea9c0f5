"""Runs of words that a question and a name share."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.rewrite.forms.title_forms.mentions import (
    Mention,
    Word,
    is_same_word,
    split_words,
)
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    MAKING_VERBS,
    ORDER_WORDS,
    PLAYING_VERBS,
    PREPOSITIONS,
)
from whichsense.text.function_words import QUESTION_WORDS

# A mention neither begins nor ends with one of these.
EDGE_WORDS = PREPOSITIONS | {"the", "a", "an", "and", "or"}
_NO_MENTIONS = QUESTION_WORDS | MAKING_VERBS | PLAYING_VERBS | ORDER_WORDS


def find_gapped_mention(question: str, name: str) -> Mention | None:
    """A run of the question that is the whole name but for words in its middle: William Bragg."""
    asked = split_words(question)
    named = split_words(name)
    for length in range(len(named) - 1, 1, -1):
        for first in range(len(asked) - length + 1):
            run = asked[first : first + length]
            front = _shared_length(run, 0, named, 0)
            back = _shared_length(run[::-1], 0, named[::-1], 0)
            ends = {run[0].form, run[-1].form}
            if front and back and front + back >= length and not ends & _NO_MENTIONS:
                return Mention(question, run[0].start, run[-1].end)
    return None


def find_longest_run(question: str, name: str) -> tuple[Mention, Word, Word] | None:
    """The run with most content words that question and name share: the mention, its first and last word in the name.

    Of equally long runs the last of the name is taken, which is its head.
    """
    asked = split_words(question)
    named = split_words(name)
    best: tuple[int, int, int] = (0, 0, 0)  # length, first in question, first in name
    for i in range(len(asked)):
        for j in range(len(named)):
            length = _shared_length(asked, i, named, j)
            while length and asked[i + length - 1].form in EDGE_WORDS:
                length -= 1
            if length >= max(best[0], 1) and asked[i].form not in EDGE_WORDS:
                best = (length, i, j)
    length, i, j = best
    if length in (0, len(named)):
        return None
    run = asked[i : i + length]
    if not any(_is_content(word.form) for word in run):
        return None
    mention = Mention(question, run[0].start, run[-1].end)
    return mention, named[j], named[j + length - 1]


def _is_content(form: str) -> bool:
    """Whether a word may be the only one of a mention."""
    is_superlative = form.endswith("est") and len(form) > len("west")
    return not (form in _NO_MENTIONS or form.isdigit() or is_superlative)


def _shared_length(asked: Sequence[Word], i: int, named: Sequence[Word], j: int) -> int:
    """How many words are the same from these two places on."""
    length = 0
    while i + length < len(asked) and j + length < len(named):
        if not is_same_word(asked[i + length].form, named[j + length].form):
            break
        length += 1
    return length


def find_part(name: str, question: str) -> Mention | None:
    """A mention of the beginning or the end of a name, by two words or more: Tomb Raider of Lara Croft: Tomb Raider."""
    run = find_longest_run(question, name)
    if run is None:
        return None
    mention, first, last = run
    front = name[: first.start].strip().lower()
    is_end = last.end >= len(name.rstrip("?!."))
    is_long = len(split_words(mention.text)) > 1
    # One word is enough if it is the end of a proper name: the Mauretania of RMS Mauretania.
    is_surname = is_end and name[first.start].isupper()
    is_part = (is_long and (is_end or front in ("", "the", "a", "an"))) or is_surname
    return mention if is_part and not mention.is_inside_name else None
