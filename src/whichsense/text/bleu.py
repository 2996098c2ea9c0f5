"""BLEU in the two forms that the official scripts use: per pair as in captioning, and over a corpus."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

# Captioning BLEU's guards against division by zero. They are part of the score: a right question of three words has
# no 4-gram, and its BLEU-4 is 0.0316.
_MATCH_GUARD, _GUESS_GUARD = 1e-15, 1e-9

Counts = dict[tuple[str, ...], int]


@lru_cache(maxsize=2**15)
def ngrams(words: tuple[str, ...], order: int = 4) -> tuple[Counts, ...]:
    """How often each n-gram occurs, one table for each n from 1 to `order`.

    >>> ngrams(("a", "b", "a"), 1)
    ({('a',): 2, ('b',): 1},)
    """
    tables: list[Counts] = []
    for n in range(1, order + 1):
        grams = list(zip(*(words[i:] for i in range(n)), strict=False))
        counts = dict.fromkeys(grams, 1)
        if len(counts) < len(grams):  # rare: questions hardly repeat themselves
            counts = {gram: grams.count(gram) for gram in counts}
        tables.append(counts)
    return tuple(tables)


def _common(counts: Counts, tables: Sequence[Counts], guesses: int) -> int:
    """How many n-grams of a prediction stand in a reference, each at most as often as in one of them."""
    shared = (
        counts.keys() & tables[0].keys()
        if len(tables) == 1
        else counts.keys() & set().union(*tables)
    )
    if len(counts) == guesses:  # none repeats, as in most questions
        return len(shared)
    return sum(
        min(counts[gram], max(table.get(gram, 0) for table in tables))
        for gram in shared
    )


def sentence_bleu(
    references: Sequence[tuple[str, ...]], prediction: tuple[str, ...]
) -> tuple[float, ...]:
    """BLEU-1 to BLEU-4 of one question, captioning-style: closest reference length, no smoothing but the guards.

    >>> gold = [("who", "wrote", "play", "crucible")]
    >>> [round(score, 6) for score in sentence_bleu(gold, ("who", "made", "play", "crucible", "in", "2012"))[:2]]
    [0.5, 0.316228]
    """
    length = len(prediction)
    closest = min(
        (abs(len(reference) - length), len(reference)) for reference in references
    )[1]
    tables = [ngrams(reference) for reference in references]
    product, scores = 1.0, []
    for n, counts in enumerate(ngrams(prediction)):
        guesses = max(0, length - n)
        correct = _common(counts, [table[n] for table in tables], guesses)
        product *= (correct + _MATCH_GUARD) / (guesses + _GUESS_GUARD)
        scores.append(product ** (1 / (n + 1)))
    ratio = (length + _MATCH_GUARD) / (closest + _GUESS_GUARD)
    penalty = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    return tuple(score * penalty for score in scores)


_TOKEN_RULES = (
    (
        re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"),
        r" \1 ",
    ),  # punctuation stands alone
    (
        re.compile(r"([^0-9])([\.,])"),
        r"\1 \2 ",
    ),  # but not a dot or comma inside a number
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def tokens_13a(text: str) -> tuple[str, ...]:
    """The tokens of WMT's mteval-v13a, which `sacrebleu` and `evaluate` use.

    >>> tokens_13a("Which one: party, or 3.5-inch?")
    ('Which', 'one', ':', 'party', ',', 'or', '3.5', '-', 'inch', '?')
    """
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
        text = text.replace(entity, sign)
    text = f" {text} "
    for pattern, replacement in _TOKEN_RULES:
        text = pattern.sub(replacement, text)
    return tuple(text.split())


def corpus_bleu(
    references: Sequence[str], predictions: Sequence[str], order: int = 4
) -> float:
    """BLEU over a whole set, one reference each, 13a tokens, unsmoothed: between 0 and 1.

    >>> corpus_bleu(["Which one: party, leader, or faction?"], ["Which one: party, leader, or faction?"])
    1.0
    """
    rows = [
        bleu_counts(*pair, order=order)
        for pair in zip(references, predictions, strict=True)
    ]
    sums = [sum(column) for column in zip(*rows, strict=True)]
    correct, guesses, (ours, theirs) = (
        sums[:order],
        sums[order : 2 * order],
        sums[2 * order :],
    )
    if not all(correct):
        return 0.0
    precision = math.exp(
        sum(math.log(c / g) for c, g in zip(correct, guesses, strict=True)) / order
    )
    return precision * (1.0 if ours > theirs else math.exp(1 - theirs / ours))


def bleu_counts(reference: str, prediction: str, order: int = 4) -> list[int]:
    """What one pair adds to a corpus BLEU: matches and guesses for each n, then both lengths.

    >>> bleu_counts("a b c", "a b d", order=2)
    [2, 1, 3, 2, 3, 3]
    """
    gold, guess = tokens_13a(reference), tokens_13a(prediction)
    guesses = [max(0, len(guess) - n) for n in range(order)]
    tables = zip(ngrams(guess, order), ngrams(gold, order), guesses, strict=True)
    correct = [_common(counts, [table], n) for counts, table, n in tables]
    return [*correct, *guesses, len(guess), len(gold)]
