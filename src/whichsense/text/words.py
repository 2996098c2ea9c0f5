"""Normal forms of answers, words, and edits of words."""

from __future__ import annotations

import re
import string
from collections import Counter

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WORD = re.compile(r"\w+")


def normalize(answer: str) -> str:
    """The normal form in which the official scripts compare answers.

    >>> [normalize(answer) for answer in ("A.B. & C-D", "St. John's", "the")]
    ['ab cd', 'st johns', '']
    """
    bare = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def whole_characters(text: str) -> str:
    """Replace halves of surrogate pairs, which badly encoded names and arguments contain, by question marks.

    >>> whole_characters("caf\\udce9")
    'caf?'
    """
    return text.encode("utf-8", "replace").decode()


def words(text: str) -> list[str]:
    """Lower-cased runs of letters and digits.

    >>> words("Who's on first?")
    ['who', 's', 'on', 'first']
    """
    return _WORD.findall(text.lower())


def word_edits(
    before: list[str], after: list[str]
) -> tuple[Counter[str], Counter[str]]:
    """The multisets of words deleted from and added to a question.

    >>> deleted, added = word_edits("who made the play".split(), "who wrote the play".split())
    >>> dict(deleted), dict(added)
    ({'made': 1}, {'wrote': 1})
    """
    old = Counter(before)
    new = Counter(after)
    return old - new, new - old
