"""Citations of a long answer: recall and precision as in ALCE, by an entailment function of the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Whether a text (the first argument) supports a sentence (the second).
_Entails = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class CitationScores:
    """Recall: the share of sentences that their citations support. Precision: the share of citations that help."""

    recall: float
    precision: float


def citation_scores(
    sentences: Sequence[tuple[str, Sequence[str]]], entails: _Entails
) -> CitationScores:
    """Score sentences, each with the texts that it cites.

    A sentence is supported if its cited texts together entail it. A citation counts as precise if the sentence is
    supported and the citation either entails it alone or cannot be left out.

    >>> supports = lambda text, sentence: sentence in text
    >>> citation_scores([("a", ["a b", "c"]), ("d", []), ("e", ["f"])], supports)
    CitationScores(recall=0.3333333333333333, precision=0.3333333333333333)
    """
    supported = precise = cited = 0
    for sentence, texts in sentences:
        cited += len(texts)
        if not texts or not entails("\n".join(texts), sentence):
            continue
        supported += 1
        for number in range(len(texts)):
            precise += _is_needed(number, texts, sentence, entails)
    recall = supported / len(sentences) if sentences else 0.0
    precision = precise / cited if cited else 0.0
    return CitationScores(recall, precision)


def _is_needed(
    number: int, texts: Sequence[str], sentence: str, entails: _Entails
) -> bool:
    """Whether a text entails the sentence alone, or the others do not entail it together."""
    if len(texts) == 1 or entails(texts[number], sentence):
        return True
    others = [*texts[:number], *texts[number + 1 :]]
    return not entails("\n".join(others), sentence)
