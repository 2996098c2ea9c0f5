"""What all floors share about text: normal forms, words, sentences, edits."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WORD = re.compile(r"\w+")
# A sentence ends at . ! or ? (with closing quotes) before white space and a capital, digit or opening quote,
# unless the dot belongs to an initial or to a common abbreviation.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]]*+\s++(?=[\"'“‘(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Capt|Lt|Sgt|St|Mt|Ft|Jr|Sr|Co|Corp|Inc|Ltd|No|Nos|Vol|vs|etc|ca|cf"
    r"|e\.g|i\.e|U\.S|U\.K|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|approx))$"
)


def normalize(answer: str) -> str:
    """The normal form in which answers are compared by the official scripts.

    >>> [normalize(answer) for answer in ("A.B. & C-D", "St. John's", "the")]
    ['ab cd', 'st johns', '']
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def whole_characters(text: str) -> str:
    """Halves of surrogate pairs, as they come from badly encoded names and arguments, made visible.

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


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends. A line break always ends one.

    >>> text = "Dr. No came out in 1962. It was a film."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. No came out in 1962.', 'It was a film.']
    """
    for line in re.finditer(r"[^\n]+", text):
        start = line.start()
        for gap in _SENTENCE_END.finditer(text, line.start(), line.end()):
            mark = gap.start()
            if text[mark] == "." and _ABBREVIATION.search(
                text, max(start, mark - 8), mark
            ):
                continue
            yield from _stripped(text, start, gap.end())
            start = gap.end()
        yield from _stripped(text, start, line.end())


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if body := piece.strip():
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(body)


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [text[start:end] for start, end in sentence_spans(text)]


def edits(before: list[str], after: list[str]) -> tuple[Counter[str], Counter[str]]:
    """The multisets of words deleted from and added to a question.

    >>> deleted, added = edits("who made the play".split(), "who wrote the play".split())
    >>> dict(deleted), dict(added)
    ({'made': 1}, {'wrote': 1})
    """
    old, new = Counter(before), Counter(after)
    return old - new, new - old
