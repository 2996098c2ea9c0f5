"""BERTScore F1: every token's best partner by cosine, both ways. The vectors come from the caller's function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float32]]

Embed = Callable[[Sequence[str]], Sequence["Array"]]
"""For each text a matrix with a unit vector for each of its tokens; `models.token_vectors` has one."""


def bert_score(
    references: Sequence[str], predictions: Sequence[str], embed: Embed, batch: int = 32
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
        part = slice(start, start + batch)
        scores += [
            _f1(*pair)
            for pair in zip(
                embed(references[part]), embed(predictions[part]), strict=True
            )
        ]
    return scores


def _f1(gold: Array, ours: Array) -> float:
    if not len(gold) or not len(ours):
        return 0.0
    similarity = ours @ gold.T
    precision, recall = (
        float(similarity.max(axis=1).mean()),
        float(similarity.max(axis=0).mean()),
    )
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
