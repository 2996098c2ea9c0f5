"""How far two texts agree: BLEU, F1 of edits, and the assignment of one set of texts to another."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set
from functools import lru_cache
from math import inf

# BLEU in the two forms that the official scripts use: per pair as in captioning, and over a corpus.

# Captioning BLEU's guards against division by zero. They are part of the score: a right question of three words has
# no 4-gram, and its BLEU-4 is 0.0316.
_MATCH_GUARD = 1e-15
_GUESS_GUARD = 1e-9

_Counts = dict[tuple[str, ...], int]  # how often each n-gram occurs


@lru_cache(maxsize=2**15)
def _count_ngrams(words: tuple[str, ...], order: int = 4) -> tuple[_Counts, ...]:
    """Return how often each n-gram occurs, one table for each n from 1 to `order`.

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
    """Return how many n-grams of a prediction occur in a reference, each at most as often as in one of them."""
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
    """Return BLEU-1 to BLEU-4 of one question, captioning-style: closest reference length, no smoothing but the
    guards.

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
    """Return the tokens of WMT's mteval-v13a, which `sacrebleu` and `evaluate` use.

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


def corpus_bleu(references: Sequence[str], predictions: Sequence[str], order: int = 4) -> float:
    """Return BLEU over a whole set, one reference each, 13a tokens, unsmoothed: between 0 and 1.

    >>> corpus_bleu(["Which one: party, leader, or faction?"], ["Which one: party, leader, or faction?"])
    1.0
    """
    rows = [
        bleu_counts(reference, prediction, order)
        for reference, prediction in zip(references, predictions, strict=True)
    ]
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
    """Return what one pair adds to a corpus BLEU: matches and guesses for each n, then both lengths.

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


# EDIT-F1: do two rewrites of a question change the same words of it?

_Words = tuple[str, ...]


def edit_f1(prompt: _Words, reference: _Words, prediction: _Words) -> float:
    """Return F1 between the words that gold and predicted question delete from and add to the prompt.

    >>> prompt, gold = "who made play crucible".split(), "who wrote play crucible".split()
    >>> round(edit_f1(tuple(prompt), tuple(gold), tuple("who wrote play crucible in 1953".split())), 6)
    0.666667
    """
    gold_edits = _word_edits(prompt, reference)
    predicted_edits = _word_edits(prompt, prediction)
    if not gold_edits or not predicted_edits:
        return float(gold_edits == predicted_edits)
    common = 0
    for word in gold_edits.keys() & predicted_edits.keys():
        gold_count = gold_edits[word]
        predicted_count = predicted_edits[word]
        # An addition never matches a deletion of the same word.
        if (gold_count > 0) == (predicted_count > 0):
            common += min(abs(gold_count), abs(predicted_count))
    gold_size = sum(map(abs, gold_edits.values()))
    predicted_size = sum(map(abs, predicted_edits.values()))
    return 2 * common / (gold_size + predicted_size)


@lru_cache(maxsize=2**14)
def _word_edits(before: _Words, after: _Words) -> dict[str, int]:
    """Count how often each word is added (positive) or deleted (negative)."""
    # The official script splits at blanks: a question without words has one word, the empty string.
    net: dict[str, int] = {}
    for word in after or ("",):
        net[word] = net.get(word, 0) + 1
    for word in before or ("",):
        net[word] = net.get(word, 0) - 1
    return {word: count for word, count in net.items() if count}


# The best one-to-one assignment (Hungarian algorithm), for the small tables of options and answers.


def best_assignment(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return (row, column) pairs whose scores have the largest sum; each row and each column at most once.

    >>> best_assignment([[0.25, 1.0], [1.0, 1.0]])
    [(0, 1), (1, 0)]
    """
    if not scores or not scores[0]:
        return []
    rows, columns = len(scores), len(scores[0])
    if rows > columns:
        transposed = list(zip(*scores, strict=True))
        swapped = best_assignment(transposed)
        return sorted((row, column) for column, row in swapped)
    # Shortest augmenting paths with potentials. Rows and columns count from 1: a path starts at column 0.
    row_potentials = [0.0] * (rows + 1)
    column_potentials = [0.0] * (columns + 1)
    row_at = [0] * (columns + 1)  # the row that a column is assigned to; 0 for none
    for row in range(1, rows + 1):
        row_at[0] = row
        column, previous = _shortest_path(scores, row_potentials, column_potentials, row_at)
        while column:
            row_at[column] = row_at[previous[column]]
            column = previous[column]
    pairs = [(row_at[column] - 1, column - 1) for column in range(1, columns + 1) if row_at[column]]
    return sorted(pairs)


def _shortest_path(
    scores: Sequence[Sequence[float]],
    row_potentials: list[float],
    column_potentials: list[float],
    row_at: list[int],
) -> tuple[int, list[int]]:
    """Return the nearest free column from column 0, and for each column the previous one on the path.

    Updates the potentials.
    """
    columns = len(column_potentials)
    slack = [inf] * columns
    previous = [0] * columns
    free = set(range(1, columns))
    visited = [0]
    column = 0
    while row := row_at[column]:
        for other in free:
            cost = -scores[row - 1][other - 1] - row_potentials[row]
            cost -= column_potentials[other]
            if cost < slack[other]:
                slack[other] = cost
                previous[other] = column
        column = min(free, key=slack.__getitem__)
        step = slack[column]
        for other in visited:
            row_potentials[row_at[other]] += step
            column_potentials[other] -= step
        for other in free:
            slack[other] -= step
        free.discard(column)
        visited.append(column)
    return column, previous


def best_total(scores: Sequence[Sequence[float]]) -> float:
    """Return the sum of the best assignment's scores.

    >>> best_total([[0.5, 0.2, 0.1]])
    0.5
    """
    chosen = [scores[row][column] for row, column in best_assignment(scores)]
    return _pairwise_sum(chosen)


def _pairwise_sum(values: Sequence[float]) -> float:
    """Return the sum in the order in which numpy adds up to 128 numbers, so that the last bit agrees, too.

    >>> _pairwise_sum([0.1] * 3), _pairwise_sum([0.1] * 10), sum([0.1] * 10)
    (0.30000000000000004, 1.0, 0.9999999999999999)
    """
    whole = len(values) // 8 * 8
    if not whole:
        return sum(values)
    # eight running sums, one for each position modulo 8
    a, b, c, d, e, f, g, h = (sum(values[i:whole:8]) for i in range(8))
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    return sum(values[whole:], total)
