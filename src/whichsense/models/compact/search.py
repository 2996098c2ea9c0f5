"""Edits for many prompts at once, the likeliest (beam search) or drawn by chance; and how likely given answers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whichsense.models.compact.decoding import HIDDEN, Decoder, Ints, Memory, Sequences, View
from whichsense.models.compact.edits import following
from whichsense.models.compact.inputs import DELETE, GAP, LAST_SIGN, MOST_DELETED
from whichsense.models.compact.runtime import Floats
from whichsense.models.compact.tokens import BEGIN, END, UNKNOWN

LONGEST_EDIT = 24
TEMPERATURE = 0.8
_BEHIND = 5.0
_CHOICES, _NUCLEUS = 40, 0.95  # tokens that are drawn from: so many, and as many as hold this much of the probability
UNWRITABLE = -20.0  # log probability of a token that cannot be written


@dataclass(frozen=True, slots=True)
class Written:
    """An output: its tokens (with the end), and the sum of their log probabilities."""

    tokens: tuple[int, ...]
    score: float

    @property
    def each(self) -> float:
        """By length: long outputs must not lose by being long."""
        return self.score / max(len(self.tokens), 1)


@dataclass(frozen=True)
class Prompt:
    """What the decoder is to continue, and what of the memory it may see."""

    prefix: Sequence[int]
    view: View
    words: int = 0
    """For edits: how many words the question has."""
    pieces: Ints | None = None
    """For edits: the word pieces that may be inserted; all that may be written without it."""


def begun_with(decoder: Decoder, memory: Memory, prompts: Sequence[Prompt]) -> Sequences:
    """Sequences after their prompts."""
    return decoder.begin(memory, [prompt.prefix for prompt in prompts], [prompt.view for prompt in prompts])


def edits(
    decoder: Decoder,
    memory: Memory,
    prompts: Sequence[Prompt],
    beams: int = 4,
    *,
    longest: int = LONGEST_EDIT,
    begun: Sequences | None = None,
) -> list[list[Written]]:
    """The best edits for each prompt, best first. `begun`: the prompts, if they were read already."""
    begun = begun or begun_with(decoder, memory, prompts)
    search = _Search(memory, prompts, beams)
    for _ in range(longest):
        rows = search.advance(begun)
        if not search.live:
            break
        tokens = np.array([[written.tokens[-1]] for _, written in search.live], dtype=np.int64)
        begun, _ = decoder.extend(memory, begun.chosen(rows), tokens)
    return [sorted(found, key=lambda written: -written.each)[:beams] for found in search.done]


class _Search:
    """The state of a beam search: what is still being written, for which prompt, and what is finished."""

    def __init__(self, memory: Memory, prompts: Sequence[Prompt], beams: int) -> None:
        self.memory, self.prompts, self.beams = memory, prompts, beams
        self.live = [(place, Written((), 0.0)) for place in range(len(prompts))]
        self.done: list[list[Written]] = [[] for _ in prompts]
        self._writable = [_writable(memory, prompt) for prompt in prompts]

    def advance(self, begun: Sequences) -> Ints:
        """One token further: the best live on. Returns the rows that they come from."""
        options: list[list[tuple[Written, int]]] = [[] for _ in self.prompts]
        for row, (place, written) in enumerate(self.live):
            allowed = _allowed(self.memory, written.tokens, self.prompts[place].words, self._writable[place])
            scores = begun.following[row] + allowed
            for column in np.argsort(-scores)[: self.beams + 1].tolist():
                if scores[column] > HIDDEN / 2:
                    token = int(self.memory.words[column])
                    made = Written((*written.tokens, token), written.score + float(scores[column]))
                    options[place].append((made, row))
        self.live = []
        rows: list[int] = []
        for place, found in enumerate(options):
            for made, row in sorted(found, key=lambda option: -option[0].score)[: self.beams]:
                if made.tokens[-1] == END:
                    self.done[place].append(made)
                elif len(self.done[place]) < self.beams and made.score > self._hopeless(place):
                    self.live.append((place, made))
                    rows.append(row)
        return np.array(rows, dtype=np.int64)

    def _hopeless(self, place: int) -> float:
        """What is this much less probable than the best finished output is not written further."""
        return max((written.score for written in self.done[place]), default=-np.inf) - _BEHIND


def drawn(
    decoder: Decoder,
    memory: Memory,
    prompts: Sequence[Prompt],
    count: int,
    *,
    temperature: float = TEMPERATURE,
    longest: int = LONGEST_EDIT,
    begun: Sequences | None = None,
) -> list[list[Written]]:
    """`count` edits for each prompt, drawn as probable as the decoder holds them; those that did not end are left out.

    The same prompts get the same draws.
    """
    chance = np.random.default_rng(0)
    rows = np.repeat(np.arange(len(prompts)), count)
    begun = (begun or begun_with(decoder, memory, prompts)).chosen(rows)
    writable = [_writable(memory, prompt) for prompt in prompts]
    live = [(place, Written((), 0.0)) for place in rows.tolist()]
    done: list[list[Written]] = [[] for _ in prompts]
    for _ in range(longest):
        kept: list[tuple[int, tuple[int, Written]]] = []
        for row, (place, written) in enumerate(live):
            allowed = _allowed(memory, written.tokens, prompts[place].words, writable[place])
            column = _one_of(begun.following[row] + allowed, temperature, chance)
            score = written.score + float(begun.following[row, column])
            made = Written((*written.tokens, int(memory.words[column])), score)
            if made.tokens[-1] == END:
                done[place].append(made)
            else:
                kept.append((row, (place, made)))
        live = [one for _, one in kept]
        if not live:
            break
        tokens = np.array([[written.tokens[-1]] for _, written in live], dtype=np.int64)
        begun, _ = decoder.extend(memory, begun.chosen(np.array([row for row, _ in kept])), tokens)
    return done


def _one_of(scores: Floats, temperature: float, chance: np.random.Generator) -> int:
    """A column by its probability, among those that hold nearly all of it together."""
    best = np.argpartition(-scores, min(_CHOICES, len(scores) - 1))[:_CHOICES]
    best = best[np.argsort(-scores[best])]
    weights = np.exp((scores[best] - scores[best[0]]) / temperature)
    weights /= weights.sum()
    weights[np.cumsum(weights) - weights > _NUCLEUS] = 0
    return int(best[np.searchsorted(np.cumsum(weights), chance.random() * weights.sum())])


def _writable(memory: Memory, prompt: Prompt) -> Floats:
    """0 for the word pieces that may be inserted, very low for all else."""
    fits = (memory.words > LAST_SIGN) & ~np.isin(memory.words, (UNKNOWN, BEGIN, END))
    if prompt.pieces is not None:
        fits &= np.isin(memory.words, prompt.pieces)
    return np.where(fits, 0, HIDDEN).astype(np.float32)


def _allowed(memory: Memory, tokens: Sequence[int], words: int, writable: Floats) -> Floats:
    """0 for what may come next in an edit, very low for all else."""
    may = following(tokens, words)
    found = writable.copy() if may.pieces else np.full(len(memory.words), HIDDEN, dtype=np.float32)
    ids = memory.words
    if may.gap is not None:
        found[(ids >= GAP + may.gap) & (ids <= GAP + words) & (ids <= DELETE)] = 0
    if may.deletable > 0:
        found[(ids > DELETE) & (ids <= DELETE + min(may.deletable, MOST_DELETED))] = 0
    if may.end:
        found[ids == END] = 0
    return found


def likelihoods(
    decoder: Decoder, memory: Memory, prompts: Sequence[Prompt], outputs: Sequence[Sequence[int]]
) -> list[list[float]]:
    """The log probability of each output (without its end; that is added) after each prompt: prompts × outputs."""
    begun = begun_with(decoder, memory, prompts)
    places = [_columns(memory, [*output, END]) for output in outputs]
    found = np.stack([_taken(begun.following, ids[0]) for ids in places], axis=1)
    longest = max(map(len, outputs))
    if not longest:
        return found.tolist()  # type: ignore[no-any-return]
    tokens = np.zeros((len(outputs), longest), dtype=np.int64)
    for row, output in enumerate(outputs):
        tokens[row, : len(output)] = output
    rows = np.repeat(np.arange(len(prompts)), len(outputs))
    _, after = decoder.extend(memory, begun.chosen(rows), np.tile(tokens, (len(prompts), 1)), every=True)
    assert after is not None
    after = after.reshape(len(prompts), len(outputs), longest, -1)
    for number, ids in enumerate(places):
        for place, column in enumerate(ids[1:]):
            found[:, number] += _taken(after[:, number, place], column)
    return found.tolist()  # type: ignore[no-any-return]


def _columns(memory: Memory, tokens: Sequence[int]) -> list[int | None]:
    """Where tokens stand among the words that may be written; None for one that may not."""
    columns = np.searchsorted(memory.words, tokens).tolist()
    known = memory.words.tolist()
    return [at if at < len(known) and known[at] == token else None for at, token in zip(columns, tokens, strict=True)]


def _taken(scores: Floats, column: int | None) -> Floats:
    return np.full(scores.shape[0], UNWRITABLE, dtype=np.float32) if column is None else scores[:, column]
