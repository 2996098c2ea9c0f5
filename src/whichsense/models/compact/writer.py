"""The writer on ONNX Runtime, without torch: prompts, edits of a question, likelihoods, samples."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.jobs.limits import check_limits
from whichsense.models.compact.encoder import BEGIN, END, CompactModel, Floats, Pieces, joined, once
from whichsense.text.words import SMALL_WORDS

# The writer's prompts as token numbers: what to write, a question, its answer, and windows of the
# evidence.

# BERT's unused tokens serve as signs: what to write, and a separator of answers and titles.
REWRITE = 61
ANSWER = 62
RESTORE = 63
SITUATE = 64
BETWEEN = 65
SIGNS = 72  # tokens below this number have vectors of the writer's own
# Tokens of prompts, and of what is written.
LONGEST = 144
LONGEST_OUTPUT = 28
# Kinds of tokens: the question, the rest of the prompt, what is written.
_ASKED = 0
_TOLD = 1
WRITTEN = 2
_STOP = 1012  # the full stop
_LONGEST_ANSWER = 24
_LONGEST_TITLE = 16
_LONGEST_OTHERS = 36
_WIDTHS = (56, 40)  # tokens of the windows in the prompt of a rewrite
# Tokens of the windows in the prompt of an answer: of a title, and of a text at least and at most.
_NARROW_TITLE = 10
_NARROWEST = 8
_WIDEST = 18


@dataclass(frozen=True, slots=True)
class Window:
    """A passage as tokens, and the answer's span in its text (first, last + 1); (0, 0) if it is elsewhere."""

    title: Sequence[int]
    text: Sequence[int]
    first: int = 0
    end: int = 0

    def cut(self, title: int, width: int) -> list[int]:
        """Truncate the title to `title` tokens and the text to `width`."""
        begin = self._begin(width)
        return [*self.title[:title], BETWEEN, *self.text[begin : begin + width], END]

    def _begin(self, width: int) -> int:
        """Return the first token of the text: the beginning of a sentence from which the answer still fits, else the
        place that has the answer in the middle."""
        earliest = max(0, self.end - width)
        starts = [0] if earliest == 0 else []
        for place in range(earliest, self.first):
            if self.text[place] == _STOP:
                starts.append(place + 1)
        if not starts:
            centred = (self.first + self.end - width) // 2
            return max(0, min(centred, len(self.text) - width))
        # The answer's own sentence, unless it begins so late that more fits before it.
        if self.end - max(starts) > width // 3:
            return max(starts)
        return min(starts)


@dataclass(frozen=True, slots=True)
class Prompt:
    """`[CLS] sign question [SEP] …`: the tokens, and how many of them are the question's part."""

    ids: list[int]
    asked: int

    @property
    def kinds(self) -> list[int]:
        return [_ASKED] * self.asked + [_TOLD] * (len(self.ids) - self.asked)


def rewriting(
    question: Sequence[int],
    answer: Sequence[int],
    others: Sequence[Sequence[int]],
    windows: Sequence[Window],
    sign: int = REWRITE,
) -> Prompt:
    """`… [SEP] answer [SEP] other | other [SEP] title | text [SEP]`, which the rewritten question continues."""
    ids = [BEGIN, sign, *question, END]
    asked = len(ids)
    ids += [*answer[:_LONGEST_ANSWER], END]
    room = _LONGEST_OTHERS
    for place, other in enumerate(others):
        if len(other) + 1 > room:
            break
        if place:
            ids.append(BETWEEN)
        ids += other
        room -= len(other) + 1
    ids.append(END)
    for window, width in zip(windows, _WIDTHS, strict=False):
        left = LONGEST - len(ids) - min(len(window.title), _LONGEST_TITLE) - 2
        if left >= _NARROWEST:
            ids += window.cut(_LONGEST_TITLE, min(left, width))
    return Prompt(ids[:LONGEST], min(asked, LONGEST))


def answering(question: Sequence[int], windows: Sequence[Window]) -> Prompt:
    """`… [SEP] title | text [SEP] title | text [SEP]`, which an answer continues. All windows have equal room."""
    ids = [BEGIN, ANSWER, *question, END]
    asked = len(ids)
    room = (LONGEST - asked) // max(1, len(windows)) - 2
    for window in windows:
        width = min(_WIDEST, room - min(len(window.title), _NARROW_TITLE))
        if width >= _NARROWEST:
            ids += window.cut(_NARROW_TITLE, width)
    return Prompt(ids[:LONGEST], min(asked, LONGEST))


# Rewrites as edits of the question: find the edits, and apply them with the evidence's spelling.

_LOOSE = re.compile(r" ([,;:])(?= )")
_QUOTED = re.compile(r'"\s*([^"]*?)\s*"')
_QUESTION_WORD = re.compile(r"(?<=[\w,] )(?:Who|What|When|Where|Which|How|Whose|Whom|Why)\b")
_NO_SPACE_BEFORE = frozenset(",.;:!?)]'’%")
_NO_SPACE_AFTER = frozenset("([$£€'’")
KINDS_OF_WORKS = tuple(
    frozenset(kind.split())
    for kind in (
        "film movie",
        "book novel",
        "series show tv season episode television miniseries",
        "song single album",
        "game",
        "musical",
    )
)
"""Neutral words that exclude each other, unless they are of one kind: a novel is not a film."""


@dataclass(frozen=True, slots=True)
class Edit:
    """At a gap between words: how many of the next words are deleted, and the word pieces that are inserted."""

    gap: int
    deleted: int
    inserted: tuple[int, ...]


def changes(
    question: Sequence[Sequence[int]], written: Sequence[int], vocabulary: Sequence[str]
) -> list[Edit]:
    """Return the edits from a question, given as the pieces of each word, to what was written.

    >>> tokens = ["who", "made", "dune", "##s", "in", "1984"]
    >>> changes([[0], [1], [2]], [0, 1, 2, 4, 5], tokens)
    [Edit(gap=3, deleted=0, inserted=(4, 5))]
    >>> changes([[0], [1], [2]], [0, 2, 3], tokens)
    [Edit(gap=1, deleted=2, inserted=(2, 3))]
    """
    edits = []
    word, at = 0, 0  # the next word of the question, the next piece that was written
    end_of_all = (len(question), len(written), len(written))
    for number, first, end in [*_kept_words(question, written, vocabulary), end_of_all]:
        if number > word or first > at:
            edits.append(Edit(word, number - word, tuple(written[at:first])))
        word = number + 1
        at = end
    return edits


def _kept_words(
    question: Sequence[Sequence[int]], written: Sequence[int], vocabulary: Sequence[str]
) -> Iterator[tuple[int, int, int]]:
    """Yield the question's words that stay: number, and (first, last + 1) of the pieces among what was written."""
    target_of = _align(question, written)
    begin = 0
    for number, pieces in enumerate(question):
        targets = [target_of.get(begin + ahead) for ahead in range(len(pieces))]
        begin += len(pieces)
        if not targets or targets[0] is None:
            continue
        first = targets[0]
        end = first + len(pieces)
        in_a_row = targets == list(range(first, end))
        # The word must also end here: "dune" does not stay in "dune ##s".
        if in_a_row and not _continues(written, end, vocabulary):
            yield number, first, end


def _align(question: Sequence[Sequence[int]], written: Sequence[int]) -> dict[int, int]:
    """Place of a piece in the question → its place in what was written, for pieces that match."""
    flat = list(itertools.chain.from_iterable(question))
    matcher = SequenceMatcher(None, flat, written, autojunk=False)
    target_of: dict[int, int] = {}
    for source, target, size in matcher.get_matching_blocks():
        for ahead in range(size):
            target_of[source + ahead] = target + ahead
    return target_of


def _continues(pieces: Sequence[int], place: int, vocabulary: Sequence[str]) -> bool:
    """Return whether the piece at a place continues a word."""
    return place < len(pieces) and vocabulary[pieces[place]].startswith("##")


def applied(words: Sequence[str], edits: Sequence[tuple[Edit, str]]) -> str:
    """Return the question after its edits, each given with the text that it inserts.

    >>> applied(["Who", "made", "Dune"], [(Edit(3, 0, ()), "in 1984"), (Edit(1, 1, ()), "directed")])
    'Who directed Dune in 1984?'
    """
    parts: list[str] = []
    at = 0
    for edit, text in sorted(edits, key=lambda pair: pair[0].gap):
        parts += words[at : edit.gap]
        parts.append(text)
        at = max(at, edit.gap + edit.deleted)
    parts += words[at:]
    return _tidy(" ".join(parts)) + "?"


def _tidy(text: str) -> str:
    """Single spaces, none inside quotes and before commas; a capital at the beginning, and none at a question word that
    stands later.

    >>> _tidy('in 1969 , Who sang " It "')
    'In 1969, who sang "It"'
    """
    text = " ".join(text.split())
    text = _QUOTED.sub(r'"\1"', text)
    text = _LOOSE.sub(r"\1", text)
    text = _QUESTION_WORD.sub(lambda match: match[0].lower(), text)
    return text[:1].upper() + text[1:]


class Surfaces:
    """The spelling of word pieces in the evidence: case, accents, punctuation."""

    def __init__(self, texts: Sequence[tuple[str, Pieces]], tokens: Sequence[str]) -> None:
        self._texts = texts
        self._tokens = tokens
        # Token → (text, place among its pieces).
        self._places: dict[int, list[tuple[int, int]]] = {}
        for number, (_, pieces) in enumerate(texts):
            for place, token in enumerate(pieces.ids):
                self._places.setdefault(token, []).append((number, place))

    def written(self, inserted: Sequence[int]) -> str:
        """Word pieces as text, copied from the evidence in runs as long as possible."""
        parts: list[str] = []
        at = 0
        while at < len(inserted):
            length, surface = self._longest(inserted, at)
            parts.append(surface)
            at += length
        return _spaced(parts)

    def _longest(self, inserted: Sequence[int], at: int) -> tuple[int, str]:
        """Return the longest run from a place on that the evidence holds, in its most common spelling there."""
        places = self._places.get(inserted[at], [])
        length = 0
        longer = places
        while longer:
            places, length = longer, length + 1
            wanted = inserted[at + length] if at + length < len(inserted) else END
            longer = [place for place in places if self._token(place, length) == wanted != END]
        # A run ends where a word ends.
        while length and _continues(inserted, at + length, self._tokens):
            length -= 1
        if not length:
            return self._plain(inserted, at)
        counts = Counter(self._surface(place, length) for place in places)
        surface = counts.most_common(1)[0][0]
        if surface.split()[0].lower() in SMALL_WORDS:
            surface = surface[0].lower() + surface[1:]
        return length, surface

    def _plain(self, inserted: Sequence[int], at: int) -> tuple[int, str]:
        """Return the word from a place on, in lower case: the evidence does not hold it."""
        end = at + 1
        while _continues(inserted, end, self._tokens):
            end += 1
        pieces = [self._tokens[token] for token in inserted[at:end]]
        return end - at, joined(pieces).removeprefix("##")

    def _token(self, place: tuple[int, int], ahead: int) -> int:
        number, first = place
        ids = self._texts[number][1].ids
        return ids[first + ahead] if first + ahead < len(ids) else END

    def _surface(self, place: tuple[int, int], length: int) -> str:
        number, first = place
        text, pieces = self._texts[number]
        return text[pieces.starts[first] : pieces.ends[first + length - 1]]


def _spaced(parts: Sequence[str]) -> str:
    """Join parts with the spaces that English has between them."""
    text = ""
    for part in parts:
        tight = not text or part[0] in _NO_SPACE_BEFORE or text[-1] in _NO_SPACE_AFTER
        text += part if tight else f" {part}"
    return text


# The writer on ONNX Runtime: reads prompts, then a few tokens at a time for many sequences that share
# them.

Ints = NDArray[np.int64]
HIDDEN = -1e9  # added to a score that must not count
_KINDS = ("keys", "values")
# New tokens × tokens that they attend to, in one call: bounds the memory of a call.
_MOST_CELLS = 2**18


@dataclass(frozen=True)
class Writable:
    """The tokens that may be written, ascending, with their vectors and biases."""

    ids: Ints
    vectors: Floats
    bias: Floats

    def columns(self, tokens: Sequence[int]) -> list[int | None]:
        """Return the place of each token among them; None for one that may not be written."""
        known = self.ids.tolist()
        columns: list[int | None] = []
        for place, token in zip(np.searchsorted(self.ids, tokens).tolist(), tokens, strict=True):
            is_known = place < len(known) and known[place] == token
            columns.append(place if is_known else None)
        return columns


@dataclass(frozen=True)
class WriterState:
    """Sequences as far as they are written, and the distribution of the next token."""

    memory: dict[str, Floats]
    """Keys and values of all prompts' tokens, side by side, for each layer (heads × memory × head width)."""
    mask: Floats
    """The part of the memory that each sequence attends to, its prompt's (sequences × 1 × 1 × memory; 0 or HIDDEN)."""
    past: dict[str, Floats]
    """Keys and values of what was written, for each layer (sequences × heads × tokens × head width)."""
    writable: Writable
    following: Floats
    """Log probabilities of the next token (sequences × writable)."""

    @property
    def length(self) -> int:
        """Tokens written so far."""
        return int(next(iter(self.past.values())).shape[2])

    def select(self, rows: Ints | slice) -> WriterState:
        """Return some of the sequences in that order. A sequence may be repeated."""
        past = {name: array[rows] for name, array in self.past.items()}
        return replace(self, mask=self.mask[rows], past=past, following=self.following[rows])


@dataclass(frozen=True)
class Writer:
    """Extends and scores sequences. It loads on first use."""

    model: CompactModel

    @once
    def _session(self) -> Any:
        return self.model.session("writer.onnx", self.model.threads)

    def prepare(self) -> None:
        """Load the graph now, not with the first rewrite."""
        _ = self._session

    @cached_property
    def _names(self) -> list[str]:
        """Keys and values of each layer."""
        layers = self.model.config["shape"]["writer_layers"]
        names = []
        for layer in range(layers):
            for kind in _KINDS:
                names.append(f"{kind}_{layer}")
        return names

    def writable(self, tokens: Sequence[int]) -> Writable:
        ids = np.array(sorted({*tokens, END}), dtype=np.int64)
        return Writable(ids, self.model.words.vectors(ids), self.model.words.bias[ids])

    def begin(self, prompts: Sequence[Prompt], writable: Writable) -> WriterState:
        """Read the prompts: one sequence for each, with nothing written."""
        count = len(prompts)
        sizes = [len(prompt.ids) for prompt in prompts]
        layers = len(self._names) // len(_KINDS)
        self.model.work.add(layers=count * layers, prompts=count)
        # Prompts are padded to the longest; tokens of padding are hidden, and dropped from the memory.
        is_token = np.arange(max(sizes)) < np.array(sizes)[:, None]
        hidden = np.where(is_token, 0, HIDDEN).astype(np.float32)
        reach = np.broadcast_to(hidden[:, None, None, :], (count, 1, max(sizes), max(sizes)))
        empty = self._empty(count, writable)
        outputs = self._run(
            empty,
            self._embed(prompts, max(sizes)),
            np.ascontiguousarray(reach),
            np.zeros(1, np.int64),
        )
        memory = {}
        for name in self._names:
            by_head = outputs[f"new_{name}"].transpose(1, 0, 2, 3)
            memory[name] = np.ascontiguousarray(by_head[:, is_token])
        owner = np.repeat(np.arange(count), sizes)
        is_own = owner == np.arange(count)[:, None]
        mask = np.where(is_own, 0, HIDDEN).astype(np.float32)[:, None, None, :]
        begun = replace(empty, memory=memory, mask=mask)
        return self.extend(begun, np.full((count, 1), REWRITE))[0]

    def _embed(self, prompts: Sequence[Prompt], longest: int) -> Floats:
        """Prompts × longest × width, with zeros for padding."""
        words = self.model.words
        width = words.vectors([0]).shape[1]
        embedded = np.zeros((len(prompts), longest, width), np.float32)
        for row, prompt in enumerate(prompts):
            vectors = words.embed_prompt(np.array(prompt.ids), np.array(prompt.kinds))
            embedded[row, : len(prompt.ids)] = vectors
        return embedded

    def _empty(self, rows: int, writable: Writable) -> WriterState:
        """Sequences without a prompt: their memory is one hidden token."""
        shape = self.model.config["shape"]
        heads = shape["heads"]
        each = shape["width"] // heads
        memory = dict.fromkeys(self._names, np.zeros((heads, 1, each), np.float32))
        past = dict.fromkeys(self._names, np.zeros((rows, heads, 0, each), np.float32))
        mask = np.full((rows, 1, 1, 1), HIDDEN, np.float32)
        return WriterState(memory, mask, past, writable, np.zeros((rows, 0), np.float32))

    def extend(
        self, old: WriterState, tokens: Ints, *, every: bool = False
    ) -> tuple[WriterState, Floats]:
        """Append new tokens (sequences × new). Also return the log probabilities after the last of them, or with
        `every` after each (sequences × new × writable)."""
        rows, new = tokens.shape
        reach = old.mask.shape[-1] + old.length + new
        most = max(1, _MOST_CELLS // (new * reach))
        parts = []
        for at in range(0, rows, most):
            part = slice(at, at + most)
            parts.append(self._extend(old.select(part), tokens[part], every=every))
        past = {}
        for name in self._names:
            past[name] = np.concatenate([part[f"new_{name}"] for part in parts])
        written = np.concatenate([part["written"] for part in parts])
        written = written.reshape(rows, new if every else 1, -1)
        return replace(old, past=past, following=written[:, -1]), written

    def _extend(self, old: WriterState, tokens: Ints, *, every: bool) -> dict[str, Floats]:
        rows, new = tokens.shape
        length = old.length + new
        embedded = self.model.words.embed_prompt(tokens, np.full(new, WRITTEN), old.length)
        # A token attends to itself and to what was written before it.
        is_before = np.arange(length) <= np.arange(old.length, length)[:, None]
        causal = np.where(is_before, 0, HIDDEN).astype(np.float32)
        reach = np.broadcast_to(causal, (rows, 1, new, length))
        # Outputs are taken after every token, or after the last of each row.
        take = np.arange(rows * new) if every else np.arange(new - 1, rows * new, new)
        return self._run(old, embedded, np.ascontiguousarray(reach), take)

    def _run(
        self, old: WriterState, embedded: Floats, reach: Floats, take: Ints
    ) -> dict[str, Floats]:
        check_limits()
        inputs = {
            "embedded": embedded,
            "self_mask": reach,
            "mask": old.mask,
            "take": take,
            "words": old.writable.vectors,
            "words_bias": old.writable.bias,
            **old.memory,
        }
        for name, array in old.past.items():
            inputs[f"past_{name}"] = array
        names = ["written"]
        for name in self._names:
            names.append(f"new_{name}")
        outputs = self._session.run(names, inputs)
        return dict(zip(names, outputs, strict=True))


# Sampling from the writer for many prompts at once, and scoring given outputs.

_Flags = NDArray[np.bool_]
_TEMPERATURE = 0.8
_TOP_K, _TOP_P = (
    40,
    0.95,
)  # tokens to sample from: the most, and the probability that they hold together
_UNWRITABLE = -20.0  # log probability of a token that cannot be written


@dataclass(frozen=True, slots=True)
class Sample:
    """An output of the writer: its tokens without the end, and the mean of their log probabilities, end included."""

    tokens: tuple[int, ...]
    each: float


def drawn(
    writer: Writer,
    prompts: Sequence[Prompt],
    pieces: Sequence[Ints],
    count: int,
    *,
    longest: int = LONGEST_OUTPUT,
) -> list[list[Sample]]:
    """Return for each prompt the greedy output and `count` samples.

    `pieces` are the tokens that may be written for each prompt. Outputs longer than `longest` are dropped. The seed is
    fixed: the same prompts get the same samples.
    """
    rng = np.random.default_rng(0)
    writable = writer.writable([piece for own in pieces for piece in own.tolist()])
    penalties = np.stack([_penalties(writable, own) for own in pieces])
    state = writer.begin(prompts, writable)
    # Of each draw that has not ended: its prompt, the sequence that it continues, whether it takes the likeliest token
    # at every step, its tokens, and their log probability.
    row = owner = np.repeat(np.arange(len(prompts)), count + 1)
    greedy = np.tile(np.arange(count + 1) == 0, len(prompts))
    tokens: list[tuple[int, ...]] = [()] * len(owner)
    score = np.zeros(len(owner))
    done: list[list[Sample]] = [[] for _ in prompts]
    for _ in range(longest):
        columns = _next_columns(state.following[row] + penalties[owner], greedy, rng)
        score = score + state.following[row, columns]
        new = writable.ids[columns]
        for draw in np.flatnonzero(new == END).tolist():
            if tokens[draw]:
                mean = float(score[draw]) / (len(tokens[draw]) + 1)
                done[int(owner[draw])].append(Sample(tokens[draw], mean))
        live = np.flatnonzero(new != END)
        if not len(live):
            break
        owner, greedy, score = owner[live], greedy[live], score[live]
        last = new[live].tolist()
        tokens = [(*tokens[draw], token) for draw, token in zip(live.tolist(), last, strict=True)]
        row, old, read = _shared_sequences(row[live], last)
        state, _ = writer.extend(state.select(old), read[:, None])
    return done


def _shared_sequences(rows: Ints, last: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Let draws for the same prompt with the same tokens so far, as most are at first, share one sequence: return the
    new sequence of each, and the old sequence and the next token of each new one."""
    place_of: dict[tuple[int, int], int] = {}
    steps = zip(rows.tolist(), last, strict=True)
    places = [place_of.setdefault(step, len(place_of)) for step in steps]
    old, read = np.array(list(place_of), dtype=np.int64).T
    return np.array(places), old, read


def _next_columns(scores: Floats, greedy: _Flags, rng: np.random.Generator) -> list[int]:
    """Return the next token of each draw, as a column of its scores (draws × writable)."""
    columns = []
    for row, is_greedy in zip(scores, greedy, strict=True):
        column = int(row.argmax()) if is_greedy else _sample(row, rng)
        columns.append(column)
    return columns


def _sample(scores: Floats, rng: np.random.Generator) -> int:
    """Sample a column by top-k and top-p (nucleus) sampling with a temperature."""
    best = np.argpartition(-scores, min(_TOP_K, len(scores) - 1))[:_TOP_K]
    best = best[np.argsort(-scores[best])]
    weights = np.exp((scores[best] - scores[best[0]]) / _TEMPERATURE)
    weights /= weights.sum()
    weights[np.cumsum(weights) - weights > _TOP_P] = 0
    threshold = rng.random() * weights.sum()
    place = np.searchsorted(np.cumsum(weights), threshold)
    return int(best[place])


def _penalties(writable: Writable, pieces: Ints) -> Floats:
    """0 for each token that may be written for a prompt, very low for all others (writable)."""
    allowed = np.isin(writable.ids, pieces) | (writable.ids == END)
    return np.where(allowed, 0, HIDDEN).astype(np.float32)


def likelihoods(
    writer: Writer,
    prompts: Sequence[Prompt],
    outputs: Sequence[Sequence[int]],
    more: Sequence[int] = (),
) -> list[list[float]]:
    """Return the log probability of each output, end included, after each prompt (prompts × outputs). The distribution
    is over the tokens of the prompts and the outputs, and over `more`."""
    vocabulary = list(more)
    for prompt in prompts:
        vocabulary += prompt.ids
    for output in outputs:
        vocabulary += output
    writable = writer.writable(vocabulary)
    after = _distributions(writer, prompts, outputs, writable)
    totals = np.zeros((len(prompts), len(outputs)), np.float32)
    for number, output in enumerate(outputs):
        for place, column in enumerate(writable.columns([*output, END])):
            if column is None:
                totals[:, number] += _UNWRITABLE
            else:
                totals[:, number] += after[:, number, place, column]
    return totals.tolist()


def _distributions(
    writer: Writer, prompts: Sequence[Prompt], outputs: Sequence[Sequence[int]], writable: Writable
) -> Floats:
    """Return log probabilities at each place of each output after each prompt (prompts × outputs × places ×
    writable)."""
    longest = max(1, *map(len, outputs))
    tokens = np.full((len(outputs), longest), END, dtype=np.int64)
    for row, output in enumerate(outputs):
        tokens[row, : len(output)] = output
    state = writer.begin(prompts, writable)
    # Every prompt is repeated for every output: prompts · outputs rows.
    rows = np.repeat(np.arange(len(prompts)), len(outputs))
    repeated = state.select(rows)
    all_tokens = np.tile(tokens, (len(prompts), 1))
    _, later = writer.extend(repeated, all_tokens, every=True)
    first = np.repeat(state.following, len(outputs), axis=0)[:, None]
    after = np.concatenate([first, later], axis=1)
    return after.reshape(len(prompts), len(outputs), longest + 1, -1)
