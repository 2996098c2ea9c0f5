"""Citations of a long answer: ALCE's recall and precision, as its script computes them.

The script splits the text with its citations, "… in 1977 [1][3].", into Punkt sentences. The first three citations of a
sentence count. Their documents together must entail the sentence, without its citations: that is recall. Where they
do, a citation is precise if it is the only one, entails the sentence alone, or cannot be left out. The judge of
entailment is an argument, and every figure depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from whichsense.metrics.punkt import spans

Judge = Callable[[str, str], bool]
"""Whether a text (the first argument) supports a sentence (the second)."""

_CITATION = re.compile(r"\[(\d+)")
_CITATION_AND_SPACE = re.compile(r" ?\[\d+")
_MOST = 3  # citations of a sentence that count
_END = ".!?\"'”’)"


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document that is cited by its number."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class CitationScores:
    """Recall: the share of sentences that their citations support. Precision: the share of citations that help."""

    recall: float
    precision: float


def citation_scores(
    text: str, documents: Sequence[CitedDocument], entails: Judge
) -> CitationScores | None:
    """Score one answer, in which "[1]" cites the first document; None for an answer without a sentence, which ALCE
    leaves out.

    >>> documents = [CitedDocument("Film", "it opened in 1977"), CitedDocument("Play", "it closed")]
    >>> supports = lambda document, sentence: sentence.rstrip(".").lower() in document
    >>> citation_scores("It opened in 1977 [1][2]. It closed [1]. It won.", documents, supports)
    CitationScores(recall=0.3333333333333333, precision=0.3333333333333333)
    """
    supported = precise = cited = 0
    text = text.strip().partition("\n")[0]  # ALCE reads the first line
    sentences = [text[start:end] for start, end in spans(_lowered(text))]
    if not sentences:
        return None
    for sentence in sentences:
        numbers = [int(number) for number in _CITATION.findall(sentence)]
        # As released, [0] counts backwards: it cites the last document.
        places = [number - 1 for number in numbers]
        if not places or max(places) >= len(documents):
            continue
        places = places[:_MOST]
        cited += len(places)
        passages = [_passage(documents[place]) for place in places]
        claim = remove_citations(sentence).strip()
        if entails("\n".join(passages), claim):
            supported += 1
            precise += _precise(passages, claim, entails)
    precision = precise / cited if cited else 0.0
    return CitationScores(supported / len(sentences), precision)


def _lowered(text: str) -> str:
    """The text in lower case, letter by letter, so that places stay the same."""
    return "".join(map(_lower, text))


def _lower(letter: str) -> str:
    lower = letter.lower()
    return lower if len(lower) == 1 else letter


def _passage(document: CitedDocument) -> str:
    return f"Title: {document.title}\n{document.text}"


def _precise(passages: Sequence[str], claim: str, entails: Judge) -> int:
    """How many of the passages that together entail a claim entail it alone or cannot be left out."""
    if len(passages) == 1:
        return 1
    precise = 0
    for passage in passages:
        others = list(passages)
        others.remove(passage)  # of a passage that is cited twice, one
        precise += entails(passage, claim) or not entails("\n".join(others), claim)
    return precise


def remove_citations(text: str) -> str:
    """The text without its citations, as ALCE's script removes them.

    >>> remove_citations("It opened in 1977 [1][3].")
    'It opened in 1977.'
    """
    return _CITATION_AND_SPACE.sub("", text).replace(" |", "").replace("]", "")


def with_citations(sentence: str, numbers: Sequence[int]) -> str:
    """A sentence with citations before its final mark, as ALCE's answers have them.

    >>> with_citations("It opened in 1977.", [1, 3]), with_citations('He said "no."', [2])
    ('It opened in 1977 [1][3].', 'He said "no [2]."')
    """
    if not numbers:
        return sentence
    body = sentence.rstrip(_END)
    marks = "".join(f"[{number}]" for number in numbers)
    return f"{body} {marks}{sentence[len(body) :] or '.'}"
