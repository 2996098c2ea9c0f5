"""BERTScore F1: each token's best partner by cosine, in both directions, over the vectors of a given function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float32]]

# For each text a matrix of shape (tokens, dimensions) with rows of unit length; `models.token_vectors` has one.
_Embed = Callable[[Sequence[str]], Sequence["Array"]]


def bert_score(
    references: Sequence[str],
    predictions: Sequence[str],
    embed: _Embed,
    batch: int = 32,
) -> list[float]:
    """F1 for each pair. CAmbigNQ's figure is the mean, with roberta-large and its 17th layer, not rescaled.

    >>> import numpy as np
    >>> def embed(texts):  # a direction for each letter
    ...     return [np.eye(26)[[ord(letter) - 97 for letter in text]] for text in texts]
    >>> bert_score(["abc", "abc"], ["cab", "ax"], embed)
    [1.0, 0.4]
    """
    if len(references) != len(predictions):
        raise BadInput(
            f"BERTScore needs pairs: {len(references)} references, {len(predictions)} predictions."
        )
    scores: list[float] = []
    for start in range(0, len(references), batch):
        end = start + batch
        gold = embed(references[start:end])
        predicted = embed(predictions[start:end])
        scores += map(_f1, gold, predicted)
    return scores


def _f1(gold: Array, predicted: Array) -> float:
    if not len(gold) or not len(predicted):
        return 0.0
    similarity = predicted @ gold.T  # (predicted tokens, gold tokens)
    precision = float(similarity.max(axis=1).mean())
    recall = float(similarity.max(axis=0).mean())
    if not precision + recall:
        return 0.0
    return 2 * precision * recall / (precision + recall)
