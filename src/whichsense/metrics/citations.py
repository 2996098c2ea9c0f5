"""Do a long answer's citations support it? Recall and precision as in ALCE, by an entailment function of yours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Entails = Callable[[str, str], bool]
"""Whether a text (the first argument) supports a sentence (the second)."""


@dataclass(frozen=True, slots=True)
class CitationScores:
    """Recall: the share of sentences that their citations support. Precision: the share of citations that help."""

    recall: float
    precision: float


def citation_scores(
    sentences: Sequence[tuple[str, Sequence[str]]], entails: Entails
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
        precise += sum(_needed(i, texts, sentence, entails) for i in range(len(texts)))
    return CitationScores(
        supported / len(sentences) if sentences else 0.0,
        precise / cited if cited else 0.0,
    )


def _needed(index: int, texts: Sequence[str], sentence: str, entails: Entails) -> bool:
    if len(texts) == 1 or entails(texts[index], sentence):
        return True
    rest = [text for i, text in enumerate(texts) if i != index]
    return not entails("\n".join(rest), sentence)
