"""BLEU in the two forms that the official scripts use: per pair as in captioning, and over a corpus."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set
from functools import lru_cache

# Captioning BLEU's guards against division by zero. They are part of the score: a right question of three words has
# no 4-gram, and its BLEU-4 is 0.0316.
_MATCH_GUARD = 1e-15
_GUESS_GUARD = 1e-9

_Counts = dict[tuple[str, ...], int]  # how often each n-gram occurs


@lru_cache(maxsize=2**15)
def _count_ngrams(words: tuple[str, ...], order: int = 4) -> tuple[_Counts, ...]:
    """How often each n-gram occurs, one table for each n from 1 to `order`.

    >>> _count_ngrams(("a", "b", "a"), 1)
    ({('a',): 2, ('b',): 1},)
    """
    tables: list[_Counts] = []
    for n in range(1, order + 1):
        shifted = [words[start:] for start in range(n)]
        ngrams = list(zip(*shifted, strict=False))
        counts = dict.fromkeys(ngrams, 1)
        if len(counts) < len(ngrams):  # rare: questions hardly repeat n-grams
            counts = {ngram: ngrams.count(ngram) for ngram in counts}
        tables.append(counts)
    return tuple(tables)


def _count_matches(counts: _Counts, references: Sequence[_Counts], guesses: int) -> int:
    """How many n-grams of a prediction occur in a reference, each at most as often as in one of them."""
    known: Set[tuple[str, ...]] = references[0].keys()
    for reference in references[1:]:
        known = known | reference.keys()
    shared = counts.keys() & known
    if len(counts) == guesses:  # no n-gram repeats, as in most questions
        return len(shared)
    matches = 0
    for ngram in shared:
        most = max(reference.get(ngram, 0) for reference in references)
        matches += min(counts[ngram], most)
    return matches


def sentence_bleu(
    references: Sequence[tuple[str, ...]], prediction: tuple[str, ...]
) -> tuple[float, ...]:
    """BLEU-1 to BLEU-4 of one question, captioning-style: closest reference length, no smoothing but the guards.

    >>> gold = [("who", "wrote", "play", "crucible")]
    >>> [round(score, 6) for score in sentence_bleu(gold, ("who", "made", "play", "crucible", "in", "2012"))[:2]]
    [0.5, 0.316228]
    """
    length = len(prediction)
    # The reference of the closest length; of two, the shorter.
    lengths = list(map(len, references))
    closest = min(lengths, key=lambda own: (abs(own - length), own))
    ratio = (length + _MATCH_GUARD) / (closest + _GUESS_GUARD)
    penalty = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    tables = list(map(_count_ngrams, references))
    product = 1.0
    scores = []
    for n, counts in enumerate(_count_ngrams(prediction)):
        guesses = max(0, length - n)
        matches = _count_matches(counts, [table[n] for table in tables], guesses)
        product *= (matches + _MATCH_GUARD) / (guesses + _GUESS_GUARD)
        scores.append(product ** (1 / (n + 1)) * penalty)
    return tuple(scores)


_TOKEN_RULES = (
    # Punctuation is a token of its own,
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    # but not a dot or comma inside a number.
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}


def tokens_13a(text: str) -> tuple[str, ...]:
    """The tokens of WMT's mteval-v13a, which `sacrebleu` and `evaluate` use.

    >>> tokens_13a("Which one: party, or 3.5-inch?")
    ('Which', 'one', ':', 'party', ',', 'or', '3.5', '-', 'inch', '?')
    """
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in _ENTITIES.items():
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
    rows = []
    for reference, prediction in zip(references, predictions, strict=True):
        rows.append(bleu_counts(reference, prediction, order))
    sums = list(map(sum, zip(*rows, strict=True)))
    matches = sums[:order]
    guesses = sums[order : 2 * order]
    predicted_length, reference_length = sums[2 * order :]
    if not all(matches):
        return 0.0
    logs = [math.log(m / g) for m, g in zip(matches, guesses, strict=True)]
    precision = math.exp(sum(logs) / order)
    if predicted_length > reference_length:
        return precision
    return precision * math.exp(1 - reference_length / predicted_length)


def bleu_counts(reference: str, prediction: str, order: int = 4) -> list[int]:
    """What one pair adds to a corpus BLEU: matches and guesses for each n, then both lengths.

    >>> bleu_counts("a b c", "a b d", order=2)
    [2, 1, 3, 2, 3, 3]
    """
    gold = tokens_13a(reference)
    predicted = tokens_13a(prediction)
    gold_counts = _count_ngrams(gold, order)
    predicted_counts = _count_ngrams(predicted, order)
    matches = []
    guesses = []
    for n in range(order):
        guesses.append(max(0, len(predicted) - n))
        counts = predicted_counts[n]
        matches.append(_count_matches(counts, [gold_counts[n]], guesses[n]))
    return [*matches, *guesses, len(predicted), len(gold)]
