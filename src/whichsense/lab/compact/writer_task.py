"""Task compact-writer: the writer learns to restore questions and sentences, and rewrites."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from whichsense.errors import BadConfig, BadInput
from whichsense.lab.compact.list_task import (
    SHIPPED,
    load_start,
    longest_prefix,
    round_words,
    untrained,
)
from whichsense.lab.compact.lists import MAX_ANSWERS, CachedTokenizer, Pack, load_lists
from whichsense.lab.compact.questions import DataConfig, GoldRewrite, ListConfig, TrainingQuestion
from whichsense.lab.metrics.ambignq import question_scores
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.task import Lazy, Task, TaskSpec, group_batches
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_base
from whichsense.models.compact.encoder import END, Tokenizer, answer_ids, joined, question_words
from whichsense.models.compact.nets import CompactConfig, WriterBatch, WriterNet, net_from_bert
from whichsense.models.compact.writer import (
    LONGEST,
    LONGEST_OUTPUT,
    RESTORE,
    REWRITE,
    SITUATE,
    Prompt,
    Window,
    answering,
    rewriting,
)
from whichsense.text.words import normalize
from whichsense.types import frozen

# Corrupted texts: words are taken out, and the writer learns to restore them.

_SHORTEST = 4  # tokens of a text that is corrupted
_GAP_COUNTS = (1, 1, 1, 2, 2, 3)  # one of them is drawn
_LONGEST_GAP = 5  # tokens
_LONGEST_BEGINNING = 3  # tokens that remain of a text that is nearly all taken out
_REPEATED_WORD = 0.25  # how often a word too many is left, which has to go
_RESTORED_WEIGHT = 1.5  # of a token that was taken out, beyond the others


@frozen
class _CutText:
    """The remaining tokens of a text, and the weights of the whole with its end: tokens that were taken out count
    more."""

    remaining: list[int]
    weights: list[float]


def cut_words(text: Sequence[int], rng: random.Random, *, nearly_all: float) -> _CutText | None:
    """Take tokens out of a text; with probability `nearly_all`, all but the first few.

    None if the text is too short, or if nothing or everything would be taken out.
    """
    if len(text) < _SHORTEST:
        return None
    if rng.random() < nearly_all:
        beginning = rng.randint(1, _LONGEST_BEGINNING)
        stays = [place < beginning for place in range(len(text))]
    else:
        stays = _draw_gaps(len(text), rng)
    remaining = []
    weights = []
    for piece, stayed in zip(text, stays, strict=True):
        if stayed:
            remaining.append(piece)
            weights.append(1.0)
        else:
            weights.append(1.0 + _RESTORED_WEIGHT)
    if not remaining or len(remaining) == len(text):
        return None
    if rng.random() < _REPEATED_WORD:
        place = rng.randrange(len(remaining) + 1)
        remaining.insert(place, rng.choice(remaining))
    weights.append(1.0)  # of the end
    return _CutText(remaining, weights)


def _draw_gaps(size: int, rng: random.Random) -> list[bool]:
    """Return which tokens stay, where a few short gaps are taken out. The first token always stays."""
    stays = [True] * size
    for _ in range(rng.choice(_GAP_COUNTS)):
        length = rng.randint(1, _LONGEST_GAP)
        first = rng.randrange(1, max(2, size - length + 1))
        for place in range(first, min(first + length, size)):
            stays[place] = False
    return stays


# What the writer learns from: prompts with the text to be written after each.
#
# There are four kinds: questions to be rewritten for an answer, questions and sentences to be
# restored after words were taken out, and answers to be found in windows of the evidence.

_CACHE_SIZE = 2**18
_ALIASES = 3  # of an answer, the first ones
_ANSWER_WINDOWS = 3  # of passages that hold an answer
_MAX_WINDOWS = 5  # that an answer is searched in
_SITUATED = "situatedqa"  # adds a date or a place to every question, so its prompts have a sign of their own
_SENTENCE_SIZES = range(6, 27)  # tokens, with the stop
_CONTEXT = 30  # tokens on either side of a sentence
_normal = lru_cache(_CACHE_SIZE)(normalize)


@frozen
class Example:
    """A prompt, what is written after it up to its end, and the weight of each of these tokens."""

    prompt: Prompt
    output: list[int]
    weights: list[float]


@frozen
class ListReading:
    """One reading of a list's question, and the number of its answer in the list."""

    number: int
    rewriting: GoldRewrite
    answer: int


@dataclass(frozen=True)
class RewriteExamples:
    """Builds examples of lists. `inserted`: the weight of an inserted token of a rewrite beyond the others."""

    pack: Pack
    tokenizer: Tokenizer
    inserted: float = 1.5

    @cached_property
    def readings(self) -> list[ListReading]:
        readings: list[ListReading] = []
        for number in range(len(self.pack)):
            readings += self._readings_of(number)
        return readings

    def _readings_of(self, number: int) -> Iterator[ListReading]:
        question = self.pack.asked[number]
        for reading in question.rewritings:
            answer = _answer_number(question, reading)
            if answer is not None:
                yield ListReading(number, reading, answer)

    def rewrite(self, reading: ListReading, rng: random.Random | None) -> Example | None:
        """Return a rewrite. Without `rng`: the first, for the first alias of the answer."""
        asked = self.pack.asked[reading.number]
        gold = reading.rewriting
        answer = gold.answers[0]
        text = gold.rewrites[0]
        others = list(gold.others)
        windows = self.windows(reading.number, reading.answer)
        if rng is not None:
            answer = rng.choice(gold.answers[:_ALIASES])
            text = rng.choice(gold.rewrites)
            rng.shuffle(others)
            # The writer must manage with fewer of the other answers.
            if rng.random() < 0.2:
                others = others[: rng.randrange(len(others) + 1)]
            windows = _vary_windows(windows, rng)
        question = self.question(asked.text)
        output = self.question(text)
        if not output:
            return None
        prompt = rewriting(
            question,
            answer_ids(self.tokenizer, answer),
            [answer_ids(self.tokenizer, other) for other in others],
            windows,
            SITUATE if asked.source.startswith(_SITUATED) else REWRITE,
        )
        weights = [
            1.0 + self.inserted * inserted
            for inserted in _inserted_tokens(tuple(question), tuple(output))
        ]
        return Example(prompt, [*output, END], [*weights, 1.0])

    def restored_question(self, number: int, rng: random.Random) -> Example | None:
        """Return a question of which some words were taken out, or nearly all."""
        asked = self.pack.asked[number]
        question = self.question(asked.text)
        cut = cut_words(question, rng, nearly_all=0.2)
        if cut is None:
            return None
        answer: list[int] = []
        if asked.answers:
            answer = answer_ids(self.tokenizer, min(asked.answers[0], key=len))
        # The writer must manage without an answer, too.
        if rng.random() >= 0.85:
            answer = []
        windows = self.windows(number, 0)[:2]
        prompt = rewriting(cut.remaining, answer, [], windows, RESTORE)
        return Example(prompt, [*question, END], cut.weights)

    def restored_sentence(self, row: int, rng: random.Random) -> Example | None:
        """Return a sentence of a passage, to be restored beside its context."""
        title, text = self.pack.passage(row)
        stop = self.tokenizer.vocabulary["."]
        stops = [-1]  # the first sentence begins after it
        for place, piece in enumerate(text):
            if piece == stop:
                stops.append(place)
        sentences = [
            (before + 1, end) for before, end in pairwise(stops) if end - before in _SENTENCE_SIZES
        ]
        if not sentences:
            return None
        first, end = rng.choice(sentences)
        sentence = text[first:end]
        cut = cut_words(sentence, rng, nearly_all=0.05)
        if cut is None:
            return None
        left = text[max(0, first - _CONTEXT) : first]
        right = text[end + 1 : end + _CONTEXT]
        context = Window(title, [*left, *right])
        prompt = rewriting(cut.remaining, [], [], [context], RESTORE)
        return Example(prompt, [*sentence, END], cut.weights)

    def answer(self, number: int, rng: random.Random) -> Example | None:
        """Return the answer to one of a question's rewrites, or to a question that has no rewrites."""
        asked = self.pack.asked[number]
        readings = list(self._readings_of(number))
        if readings:
            reading = rng.choice(readings)
            text = asked.text
            # Else the ambiguous question itself.
            if rng.random() < 0.8:
                text = rng.choice(reading.rewriting.rewrites)
            answer = rng.choice(reading.rewriting.answers[:_ALIASES])
            windows = self._contrasting_windows(reading, readings, rng)
        elif asked.answers:
            text = asked.text
            answer = min(asked.answers[0], key=len)
            windows = self.windows(number, 0)
        else:
            return None
        windows = windows[:_MAX_WINDOWS]
        rng.shuffle(windows)
        output = answer_ids(self.tokenizer, answer)
        if not windows or not output:
            return None
        prompt = answering(self.question(text), windows)
        output = [*output, END]
        return Example(prompt, output, [1.0] * len(output))

    def _contrasting_windows(
        self, reading: ListReading, readings: Sequence[ListReading], rng: random.Random
    ) -> list[Window]:
        """Return a window of the reading's answer, one of each of some other readings, then the rest of its own."""
        others = [other for other in readings if other is not reading]
        own = self.windows(reading.number, reading.answer)
        contrasting = []
        for other in rng.sample(others, min(4, len(others))):
            contrasting += self.windows(other.number, other.answer)[:1]
        rest = own[1:] if len(contrasting) < 2 else []
        return [*own[:1], *contrasting, *rest]

    def question(self, text: str) -> list[int]:
        return self.tokenizer.ids(" ".join(question_words(text)))

    def windows(self, number: int, answer: int) -> list[Window]:
        """Windows of passages that hold the answer, then of the list's first passages."""
        own: list[Window] = []
        others: list[Window] = []
        for slot in self.pack.slot_range(number):
            title, text = self.pack.passage(self.pack.passage_of(slot))
            spans = self.pack.spans[slot].tolist()
            spans = [span for span in spans if span[0] == answer]
            # The first occurrence in the text, counted from the text's first token.
            begin = 0
            end = 0
            for _, first, last in spans:
                if first >= len(title):
                    begin = first - len(title)
                    end = last + 1 - len(title)
                    break
            (own if spans else others).append(Window(title, text, begin, end))
            # Slots are in the order of the search: the best passages come first.
            if len(own) == _ANSWER_WINDOWS:
                break
        return [*own, *others[: max(0, 2 - len(own))]]


def _vary_windows(windows: list[Window], rng: random.Random) -> list[Window]:
    """Sometimes none, sometimes in another order: the writer must not rely on the first."""
    number = rng.random()
    if number < 0.15:
        return []
    return rng.sample(windows, len(windows)) if number < 0.4 else windows


@lru_cache(_CACHE_SIZE)
def _inserted_tokens(question: tuple[int, ...], rewrite: tuple[int, ...]) -> tuple[bool, ...]:
    """Return which tokens of a rewrite are not in the question, in the question's order."""
    inserted = [True] * len(rewrite)
    matcher = SequenceMatcher(None, question, rewrite, autojunk=False)
    for _, first, size in matcher.get_matching_blocks():
        inserted[first : first + size] = [False] * size
    return tuple(inserted)


def _answer_number(question: TrainingQuestion, reading: GoldRewrite) -> int | None:
    """Return which of the question's distinct answers a reading has."""
    names = {_normal(name) for name in reading.answers}
    for number, aliases in enumerate(question.answers[:MAX_ANSWERS]):
        if any(_normal(alias) in names for alias in aliases):
            return number
    return None


# The options of the writer's tasks, the weights that training starts from, and batches.

WRITER = "writer.pt"


@frozen
class WriterModel:
    """A recipe's `[model]`."""

    start: str = SHIPPED
    """The model whose word vectors the writer shares: the folder of compact-encoder, a weights folder, or `shipped`.
    Empty: the base itself, which cannot read yet: for experiments."""
    writer: str = ""
    """The writer that training starts from: the model folder of compact-writer. Empty: the writer of `start`, or, if
    that has none, some layers of the base."""
    verifier: str = ""
    """The model folder of compact-verifier, which is exported beside the writer. Empty: the verifier of `start`, if
    that has one."""
    base: str = "thenlper/gte-small"
    layers: tuple[int, ...] = ()
    """Which layers of the base."""
    dropout: float = 0.1


def _layer_count(weights: dict[str, Tensor]) -> int:
    """Return the number of layers that these weights belong to."""
    count = 0
    for name in weights:
        if name.startswith("layers."):
            count = max(count, 1 + int(name.split(".")[1]))
    return count


def load_writer(folder: Path) -> dict[str, Tensor]:
    try:
        weights: dict[str, Tensor] = torch.load(
            folder / WRITER, map_location="cpu", weights_only=True
        )
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise BadInput(f"'{folder}' holds no writer that can be read: {error}") from None
    return weights


def collate(examples: Sequence[Example]) -> WriterBatch:
    """Make a batch of one size, for which layers are compiled."""
    rows = len(examples)
    # Prompts: rows × LONGEST
    ids = np.zeros((rows, LONGEST), np.int64)
    kinds = np.zeros((rows, LONGEST), np.int64)
    mask = np.zeros((rows, LONGEST), bool)
    # Outputs: rows × LONGEST_OUTPUT. `written` is `wanted` one place further on, behind a sign.
    written = np.zeros((rows, LONGEST_OUTPUT), np.int64)
    wanted = np.zeros((rows, LONGEST_OUTPUT), np.int64)
    weights = np.zeros((rows, LONGEST_OUTPUT), np.float32)
    for row, example in enumerate(examples):
        size = len(example.prompt.ids)
        ids[row, :size] = example.prompt.ids
        kinds[row, :size] = example.prompt.kinds
        mask[row, :size] = True
        output = example.output[:LONGEST_OUTPUT]
        size = len(output)
        written[row, 0] = REWRITE
        written[row, 1:size] = output[:-1]
        wanted[row, :size] = output
        weights[row, :size] = example.weights[:size]
    arrays = (ids, kinds, mask, written, wanted, weights)
    return WriterBatch(*map(torch.from_numpy, arrays))


# Task compact-writer: the writer learns to rewrite, to restore and to answer; the encoder, whose
# words it shares, is not changed.
#
# Two recipes: compact-writer, mostly restoring, of which there is no end; then compact, mostly
# rewrites, of which there are few.

_KINDS = ("rewrites", "questions", "sentences", "answers")
_TRIES = 50  # for each example of a batch: not every list gives one
_EVALUATION_BATCH = 256


@frozen
class _WriterDraw:
    """A recipe's `[draw]`: what a batch holds."""

    batch: int = 512
    kinds: dict[str, float] = field(
        default_factory=lambda: {"rewrites": 0.75, "answers": 0.15, "questions": 0.1}
    )
    """Shares of rewrites, of questions and sentences to be restored, and of answers."""
    shares: dict[str, float] = field(default_factory=dict)
    """Shares of the rewrites by a prefix of a dataset's or a file's name; 1 for all others."""
    inserted: float = 1.5
    """The weight of an inserted token beyond the others."""


@frozen
class WriterOptions:
    model: WriterModel = WriterModel()
    data: DataConfig = DataConfig()
    lists: ListConfig = ListConfig()
    draw: _WriterDraw = _WriterDraw()


class WriterTask(Task[WriterNet, WriterBatch]):
    """The best model has the best EDIT-F1 of the likeliest rewrites of `data.dev`.

    Their loss is lowest long before they are best.
    """

    metric = "edit_f1"
    higher_is_better = True

    def __init__(self, options: WriterOptions) -> None:
        self.options = options
        unknown = set(options.draw.kinds) - set(_KINDS)
        if unknown or not sum(options.draw.kinds.values()) > 0:
            raise BadConfig(f"draw.kinds are shares of {', '.join(_KINDS)}, and not all are 0.")
        start = options.model.start
        self.start = load_start(start) if start else untrained(options.model.base)
        self.tokenizer = CachedTokenizer.of(self.start.vocabulary)
        train, dev = load_lists(options.data, options.lists, self.start.vocabulary)
        self.examples = RewriteExamples(train, self.tokenizer, options.draw.inserted)
        self.dev_examples = RewriteExamples(dev, self.tokenizer)
        if not self.examples.readings or not self.dev_examples.readings:
            raise BadInput(
                "No question to learn from, or none of data.dev, has a rewrite with an answer."
            )

    @cached_property
    def shape(self) -> CompactConfig:
        model = self.options.model
        layers = _layer_count(self._start_weights) or len(model.layers)
        return replace(self.start.shape, layers=layers, dropout=model.dropout)

    @cached_property
    def _start_weights(self) -> dict[str, Tensor]:
        """The weights that training starts from; empty if there is no writer yet."""
        if self.options.model.writer:
            return load_writer(Path(self.options.model.writer))
        return self.start.writer

    def build(self) -> WriterNet:
        model = self.options.model
        # The exported writer will look them up in int8.
        words = round_words(self.start.state["encoder.words.weight"])
        # A writer that was trained before brings its own number of layers.
        if self._start_weights:
            net = WriterNet(self.shape, words)
            net.load_state_dict(self._start_weights)
            return net
        if not model.layers:
            raise BadConfig(
                "There is no writer to start from: give model.layers, those of the base to begin with."
            )
        base = load_base(located(model.base)).state_dict()
        return net_from_bert(base, model.layers, self.shape, words)

    def loss(
        self, model: WriterNet, batch: WriterBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        loss, total, count = model.loss(batch)
        return loss, {"each": total / count.clamp(min=1)}

    def save(self, model: WriterNet, folder: Path) -> None:
        state = model.state_dict()
        weights = {name: value.detach().cpu() for name, value in state.items()}
        torch.save(weights, folder / WRITER)

    @cached_property
    def cumulative_shares(self) -> list[float]:
        """For each reading, the share of rewrites that it and the readings before it have."""
        shares = self.options.draw.shares
        asked = self.examples.pack.asked
        keys = [
            longest_prefix(asked[reading.number].source, shares)
            for reading in self.examples.readings
        ]
        counts = Counter(keys)
        # The share of a key is divided among its readings.
        return list(accumulate([shares.get(key, 1.0) / counts[key] for key in keys]))

    def batches(self, epoch: int, seed: int) -> Any:
        # As many batches as would hold an example of every list.
        count = max(1, len(self.examples.pack) // self.options.draw.batch)

        def build_batch(number: int) -> WriterBatch:
            rng = random.Random(f"{seed}/{epoch}/{number}")
            return collate(self.draw_examples(rng))

        return Lazy(range(count), build_batch)

    def draw_examples(self, rng: random.Random) -> list[Example]:
        """Return the examples of a batch."""
        shares = self.options.draw.kinds
        size = self.options.draw.batch
        kinds = list(shares)
        weights = list(shares.values())
        examples: list[Example] = []
        for _ in range(_TRIES * size):
            example = self._draw_example(rng.choices(kinds, weights)[0], rng)
            if example is not None:
                examples.append(example)
            if len(examples) == size:
                return examples
        raise BadInput("The lists hold too little that the writer could learn from.")

    def _draw_example(self, kind: str, rng: random.Random) -> Example | None:
        examples = self.examples
        if kind == "rewrites":
            weights = self.cumulative_shares
            reading = rng.choices(examples.readings, cum_weights=weights)[0]
            return examples.rewrite(reading, rng)
        if kind == "sentences":
            row = rng.randrange(len(examples.pack.texts))
            return examples.restored_sentence(row, rng)
        number = rng.randrange(len(examples.pack))
        if kind == "questions":
            return examples.restored_question(number, rng)
        return examples.answer(number, rng)

    def evaluate(self, model: WriterNet) -> dict[str, float]:
        """EDIT-F1 and BLEU-4 of greedily decoded rewrites, and the loss of a token of the gold ones."""
        pairs = []
        for reading in self.dev_examples.readings:
            example = self.dev_examples.rewrite(reading, None)
            # A rewrite without any word gives no example.
            if example is not None:
                pairs.append((reading, example))
        scores: list[tuple[float, ...]] = []
        sums = np.zeros(2)  # loss, tokens
        for part in group_batches(pairs, _EVALUATION_BATCH):
            examples = [example for _, example in part]
            batch = to_device(collate(examples), model.out_bias.device)
            _, loss, count = model.loss(batch)
            sums += [float(loss), float(count)]
            outputs = _greedy(model, batch)
            for (reading, _), tokens in zip(part, outputs, strict=True):
                scores.append(self._score_rewrite(reading, tokens))
        *_, bleu4, edit_f1 = np.mean(scores, axis=0).tolist()
        loss_of_token = float(sums[0] / max(sums[1], 1))
        return {"edit_f1": edit_f1, "bleu4": bleu4, "rewrites": loss_of_token}

    def _score_rewrite(self, reading: ListReading, tokens: list[int]) -> tuple[float, ...]:
        rewrite = joined([self.start.vocabulary[token] for token in tokens])
        question = self.dev_examples.pack.asked[reading.number].text
        return question_scores(question, "|".join(reading.rewriting.rewrites), rewrite)


@torch.inference_mode()
def _greedy(model: WriterNet, batch: WriterBatch) -> list[list[int]]:
    """Return the likeliest tokens one by one, without the end."""
    written = torch.zeros_like(batch.written)
    written[:, 0] = REWRITE
    for place in range(LONGEST_OUTPUT):
        scores = model.scores(model(batch._replace(written=written))[:, place])
        # Padding, unused and unknown pieces and [CLS] are never written.
        scores[:, :END] = float("-inf")
        best = scores.argmax(-1)
        if place + 1 < LONGEST_OUTPUT:
            written[:, place + 1] = best
    return [_until_end(row) for row in written[:, 1:].tolist()]


def _until_end(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(END)] if END in tokens else tokens


SPEC = TaskSpec(WriterOptions, WriterTask)
