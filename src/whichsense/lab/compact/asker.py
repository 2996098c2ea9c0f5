"""Task compact-asker: the writer learns to ask, and writes synthetic questions that are filtered."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.errors import BadConfig, BadInput
from whichsense.jobs.limits import show_progress
from whichsense.lab.compact.batches_of_lists import (
    SYNTHETIC_FILE,
    ListBatch,
    SyntheticQuestions,
    build_list_batch,
    build_synthetic_lists,
    own_slots,
)
from whichsense.lab.compact.lists import Ints, Pack, load_lists
from whichsense.lab.compact.losses import start_end
from whichsense.lab.compact.questions import REWRITES, DataConfig, ListConfig, find_copies
from whichsense.lab.compact.teacher import TeacherNet, infer, load_teacher
from whichsense.lab.compact.writer_task import WRITER, BaseWriterTask, Example, WriterModel, collate
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.task import Lazy, TaskSpec, group_batches, prefetch
from whichsense.models.bert.inputs import best_device
from whichsense.models.compact.encoder import END, PAD
from whichsense.models.compact.nets import WriterBatch, WriterNet
from whichsense.models.compact.writer import BAR, LONGEST_ASKED, WAYS, Prompt, Window, asking
from whichsense.types import frozen

# What asking is learnt from: questions of the lists with an answer, each beside the passage that
# supports it best.

_LONGEST_ANSWER = 14  # tokens
_RARITY_PASSAGES = 20_000  # by which the rarity of word pieces is counted
_OPEN, _READING = "nq_open", "squad/1"  # prefixes of datasets


@frozen
class _AskedSpan:
    """A list's question, and an answer to it in one of the list's slots; tokens are counted as in spans."""

    way: str
    number: int
    slot: int
    first: int
    last: int


@dataclass(frozen=True)
class AskerExamples:
    """Builds examples of lists. `vocabulary`: the number of word pieces. `support`: by way of asking, how much of a
    question its passage must contain."""

    pack: Pack
    data: DataConfig
    vocabulary: int
    support: Mapping[str, float]

    @cached_property
    def spans(self) -> list[_AskedSpan]:
        spans: list[_AskedSpan] = []
        for number in range(len(self.pack)):
            spans += self._spans_of(number)
        return spans

    @cached_property
    def by_way(self) -> dict[str, list[_AskedSpan]]:
        """Without the ways in which no question is asked."""
        groups: dict[str, list[_AskedSpan]] = {way: [] for way in WAYS}
        for span in self.spans:
            groups[span.way].append(span)
        return {way: spans for way, spans in groups.items() if spans}

    def example(self, span: _AskedSpan) -> Example:
        """The passage is in the prompt; answer and question are to be written."""
        title, text = self.pack.passage(self.pack.passage_of(span.slot))
        first = span.first - len(title)
        end = span.last + 1 - len(title)
        window = Window(title, text, first, end) if first >= 0 else Window(title, text)
        answer = [*title, *text][span.first : span.last + 1]
        question = self.pack.questions[span.number].tolist()
        output = [*answer, BAR, *question, END]
        return Example(asking(WAYS[span.way], window), output, [1.0] * len(output))

    def _spans_of(self, number: int) -> list[_AskedSpan]:
        """One span for each answer in the passage with most support, if that is enough."""
        way = _way_of(self.pack.asked[number].source, self.data)
        support = {
            slot: self._support(number, slot)
            for slot in self.pack.slot_range(number)
            if len(self.pack.spans[slot])
        }
        if way is None or not support:
            return []
        best = max(support, key=support.__getitem__)
        # The answer is there by accident, if the passage is about something else.
        if support[best] < self.support.get(way, 0.0):
            return []
        spans = []
        answers = np.unique(self.pack.spans[best][:, 0])
        for answer in answers.tolist():
            first, last = self._best_place(best, answer)
            if last - first < _LONGEST_ANSWER:
                spans.append(_AskedSpan(way, number, best, first, last))
        return spans

    def _support(self, number: int, slot: int) -> float:
        """The share of a question's word pieces, weighted by rarity, that the passage contains."""
        row = self.pack.passage_of(slot)
        passage = np.concatenate([self.pack.titles[row], self.pack.texts[row]])
        pieces = np.unique(self.pack.questions[number])
        contained = pieces[np.isin(pieces, passage)]
        total = max(self._rarity[pieces].sum(), 1e-6)
        return float(self._rarity[contained].sum() / total)

    def _best_place(self, slot: int, answer: int) -> tuple[int, int]:
        """First and last token of an answer: in the text rather than the title, and the longest alias."""
        title = len(self.pack.titles[self.pack.passage_of(slot)])
        places = [
            (first, last)
            for number, first, last in self.pack.spans[slot].tolist()
            if number == answer
        ]

        def preference(place: tuple[int, int]) -> tuple[bool, int]:
            first, last = place
            return first >= title, last - first

        return max(places, key=preference)

    @cached_property
    def _rarity(self) -> NDArray[np.float64]:
        """The inverse document frequency of each word piece."""
        texts = self.pack.texts
        step = max(1, len(texts) // _RARITY_PASSAGES)
        rows = range(0, len(texts), step)
        pieces = np.concatenate([np.unique(texts[row]) for row in rows])
        counts = np.bincount(pieces.astype(np.int64), minlength=self.vocabulary)
        # One more than counted, so that an unseen piece is finite.
        return np.asarray(np.log(len(rows) / (1 + counts)).clip(0))


def _way_of(source: str, data: DataConfig) -> str | None:
    """How the questions of a dataset are asked; None if it is not to be learnt.

    >>> data = DataConfig()
    >>> [_way_of(name, data) for name in ("squad/1.1", "ambignq/train", "rewrites of ambignq/train", "popqa/test")]
    ['reading', 'open', 'exact', None]
    """
    if source == REWRITES + data.train:
        return "exact"
    if source in (data.train, data.dev) or source.startswith(_OPEN):
        return "open"
    return "reading" if source.startswith(_READING) else None


# Synthetic questions: the trained asker writes answers and questions for passages of the lists, drawn
# at random.

_TOP_TOKENS = 40  # that a token is drawn from, at most
_QUESTION_SIZES = range(4, 33)  # word pieces
_RANK_POWER = 1.3  # above 1: passages that the search ranked high are drawn more often
_TRIES = 20  # for each passage: it may have been drawn before


@frozen
class QuestionGeneration:
    """A recipe's `[made]`: how many questions are generated, and how."""

    count: int = 320_000
    """Before any are dropped; fewer if there are fewer passages."""
    temperature: float = 0.9
    nucleus: float = 0.95
    """Tokens are drawn from the fewest that hold this much of the probability."""
    ways: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.2, "open": 0.45, "exact": 0.35}
    )
    """Shares of the ways of asking; one that was not learnt is left out."""
    at_once: int = 2048
    """Passages of a batch."""


@frozen
class _Place:
    """A passage to be asked about, and in which way."""

    number: int
    slot: int
    row: int
    way: str


def generate_questions(
    net: WriterNet, pack: Pack, generation: QuestionGeneration, ways: Sequence[str]
) -> SyntheticQuestions:
    """Questions for passages drawn at random, each once in a list. The same network writes the same questions again."""
    shares = {way: share for way, share in generation.ways.items() if way in ways}
    places = list(_draw_places(pack, generation.count, shares))
    rng = torch.Generator(net.out_bias.device).manual_seed(0)
    done = 0
    # Keyed by list and question: (list, slot, answer, question)
    rows: dict[object, tuple[int, int, list[int], list[int]]] = {}
    with show_progress("writing questions", "passages") as progress:
        for part in group_batches(places, generation.at_once):
            prompts = [_prompt(pack, place) for place in part]
            outputs = sample_outputs(net, prompts, generation, rng)
            for place, tokens in zip(part, outputs, strict=True):
                parts = split_output(tokens)
                if parts is not None:
                    answer, question = parts
                    row = (place.number, place.slot, answer, question)
                    # The first passage that a question was written for keeps it.
                    rows.setdefault((place.number, tuple(question)), row)
            done += len(part)
            progress(done / len(places), done)
    dtype = pack.questions.values.dtype
    return SyntheticQuestions.from_rows(list(rows.values()), dtype)


def _draw_places(pack: Pack, count: int, shares: Mapping[str, float]) -> Iterator[_Place]:
    """Each passage at most once in a way of asking."""
    rng = random.Random(0)
    ways = list(shares)
    weights = list(shares.values())
    lists = [number for number in range(len(pack)) if len(pack.slots[number])]
    if not lists or not sum(weights) > 0:
        return
    seen = set()
    for _ in range(_TRIES * count):
        number = rng.choice(lists)
        rows = pack.slots[number]
        slot = int(len(rows) * rng.random() ** _RANK_POWER)
        way = rng.choices(ways, weights)[0]
        place = _Place(number, slot, int(rows[slot]), way)
        # A passage may be in many lists.
        if (place.row, way) not in seen:
            seen.add((place.row, way))
            yield place
        if len(seen) == count:
            return


def _prompt(pack: Pack, place: _Place) -> Prompt:
    title, text = pack.passage(place.row)
    return asking(WAYS[place.way], Window(title, text))


def split_output(tokens: list[int]) -> tuple[list[int], list[int]] | None:
    """Answer and question, if both were written.

    >>> split_output([7, 1064, 1, 2, 3, 4]), split_output([7, 8, 9])
    (([7], [1, 2, 3, 4]), None)
    """
    if tokens.count(BAR) != 1:
        return None
    bar = tokens.index(BAR)
    answer = tokens[:bar]
    question = tokens[bar + 1 :]
    if not answer or len(question) not in _QUESTION_SIZES:
        return None
    return answer, question


@torch.inference_mode()
def sample_outputs(
    net: WriterNet, prompts: Sequence[Prompt], generation: QuestionGeneration, rng: torch.Generator
) -> list[list[int]]:
    """What is written after each prompt, without its end; empty if it does not end."""
    device = net.out_bias.device
    examples = [Example(prompt, [], []) for prompt in prompts]
    batch = to_device(collate(examples, 1), device)
    token = batch.written[:, 0]
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    outputs: list[Tensor] = []
    on_gpu = device.type == "cuda"
    with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        memory = net.begin(batch.ids, batch.kinds, batch.mask)
        for place in range(LONGEST_ASKED):
            states, memory = net.extend(memory, token, place)
            token = _sample_tokens(net.scores(states).float(), generation, rng)
            token = token.masked_fill(ended, PAD)
            outputs.append(token)
            ended = ended | (token == END)
            if bool(ended.all()):
                break
    texts: list[list[int]] = [
        row[: row.index(END)] if END in row else [] for row in torch.stack(outputs, 1).tolist()
    ]
    return texts


def _sample_tokens(scores: Tensor, generation: QuestionGeneration, rng: torch.Generator) -> Tensor:
    """A token for each row (rows × vocabulary), by nucleus sampling."""
    scores[:, :END] = float("-inf")  # special tokens
    logs = (scores / generation.temperature).log_softmax(1)
    best = logs.topk(min(_TOP_TOKENS, scores.shape[1]), dim=1)
    probabilities = best.values.softmax(1)
    before = probabilities.cumsum(1) - probabilities
    probabilities = probabilities.masked_fill(before > generation.nucleus, 0)
    chosen = torch.multinomial(probabilities, 1, generator=rng)
    return best.indices.gather(1, chosen)[:, 0]


# The round trip of synthetic questions: the teacher must answer each of them as it was meant.

_BATCH = 512  # pairs
_BEST_TOKENS = 8  # likeliest first and last tokens of a span
_LONGEST_SPAN = 15  # tokens


def teacher_agrees(
    net: TeacherNet, lists: Pack, slots: Ints, longest: int, *, agreed: float, relevance: float
) -> NDArray[np.bool_]:
    """Which questions the teacher answers as they were meant, from the passage that they were written for.

    `slots` are those passages. The teacher's best span must share `agreed` (F1 of tokens) with a gold span, and its
    score of the passage must be higher than `relevance`.
    """
    parts = [
        range(start, min(start + _BATCH, len(lists))) for start in range(0, len(lists), _BATCH)
    ]

    def build_batch(part: range) -> ListBatch:
        single = [[slot] for slot in slots[list(part)]]
        return build_list_batch(lists, part, single, longest)

    device = next(net.parameters()).device
    agrees = np.zeros(len(lists), bool)
    with show_progress("asking the teacher", "questions") as progress:
        batches = prefetch(Lazy(parts, build_batch))
        for part, cpu_batch in zip(parts, batches, strict=True):
            batch = to_device(cpu_batch, device)
            output = infer(net, batch.pairs)
            same_span = _span_f1(output["span"], batch) >= agreed
            relevant = output["relevance"].flatten() > relevance
            agrees[part.start : part.stop] = (same_span & relevant).cpu().numpy()
            progress(part.stop / len(lists), part.stop)
    return agrees


def _span_f1(span: Tensor, batch: ListBatch) -> Tensor:
    """The token F1 of each pair's likeliest span and the gold span that is most like it (pairs)."""
    first, last = best_spans(span, batch)
    gold_first = batch.first[:, 0]
    gold_last = batch.last[:, 0]
    # One slot a list: lists × spans.
    is_gold = batch.answer[:, 0] >= 0
    common_first = torch.maximum(first, gold_first)
    common_last = torch.minimum(last, gold_last)
    common = common_last - common_first + 1  # tokens; below 1 if they do not overlap
    sizes = (last - first + 1) + (gold_last - gold_first + 1)
    return (2 * common.clamp(min=0) / sizes).masked_fill(~is_gold, 0).amax(1)


def best_spans(span: Tensor, batch: ListBatch) -> tuple[Tensor, Tensor]:
    """The first and the last token of each pair's likeliest span (pairs × 1)."""
    first_logs, last_logs = start_end(span.float(), batch.pairs.region)
    starts = first_logs.topk(_BEST_TOKENS, dim=1)
    ends = last_logs.topk(_BEST_TOKENS, dim=1)
    # Pairs × first tokens × last tokens
    gap = ends.indices[:, None, :] - starts.indices[:, :, None]
    scores = starts.values[:, :, None] + ends.values[:, None, :]
    impossible = (gap < 0) | (gap >= _LONGEST_SPAN)
    scores = scores.masked_fill(impossible, float("-inf")).flatten(1)
    best = scores.argmax(1, keepdim=True)
    first = starts.indices.gather(1, best // _BEST_TOKENS)
    return first, ends.indices.gather(1, best % _BEST_TOKENS)


# Task compact-asker: for a passage a writer learns to write an answer that the passage holds, and its
# question.
#
# When training is over it writes synthetic questions for passages of the lists. Questions that the
# teacher answers otherwise than they were meant, and copies of questions that are reserved for
# measuring, are dropped; compact-asked trains the encoder on the rest.

_EVALUATION_BATCH = 256


@frozen
class _AskerDraw:
    """A recipe's `[draw]`: what a batch holds."""

    batch: int = 512
    ways: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.35, "open": 0.4, "exact": 0.25}
    )
    """Shares of the ways of asking: SQuAD's, open questions, rewrites; one that the lists lack is left out."""
    said: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.4, "open": 0.55, "exact": 0.55}
    )
    """How much of a question its passage must contain, by the rarity of word pieces. If a question was asked without a
    passage, its answer may be in another one by accident."""


@frozen
class _AskerTeacher:
    """A recipe's `[teacher]`: which questions pass the round trip."""

    model: str = ""
    """The model folder of compact-teacher; empty: all questions whose answers are in their passages are kept."""
    longest: int = 160
    """Tokens of a pair."""
    agreed: float = 0.6
    """How much the teacher's answer must share with the intended one: F1 of tokens."""
    relevance: float = -1.0
    """The teacher's score of the passage must be higher."""


@frozen
class _AskerOptions:
    model: WriterModel = WriterModel()
    data: DataConfig = DataConfig()
    lists: ListConfig = ListConfig()
    teacher: _AskerTeacher = _AskerTeacher()
    draw: _AskerDraw = _AskerDraw()
    made: QuestionGeneration = QuestionGeneration()


class AskerTask(BaseWriterTask):
    """The best model has the lowest loss of a token of answers and questions of `data.dev`."""

    metric = "asked"
    higher_is_better = False

    def __init__(self, options: _AskerOptions) -> None:
        self.options = options
        for name, ways in (("draw", options.draw.ways), ("made", options.made.ways)):
            if set(ways) - set(WAYS) or not sum(ways.values()) > 0:
                raise BadConfig(f"{name}.ways are shares of {', '.join(WAYS)}, and not all are 0.")
        super().__init__(options.model)
        vocabulary = self.start.vocabulary
        train, dev = load_lists(options.data, options.lists, vocabulary)
        # Both need the same thresholds, or the metric would measure other questions.
        settings = options.data, len(vocabulary), options.draw.said
        self.examples = AskerExamples(train, *settings)
        self.dev_examples = AskerExamples(dev, *settings)
        if not self.ways or not self.dev_examples.spans:
            raise BadInput(
                "No question to learn from, or none of data.dev, has a passage that says most of it."
            )

    @property
    def ways(self) -> list[str]:
        """The ways of asking that are learnt."""
        shares = self.options.draw.ways
        return [way for way in self.examples.by_way if shares.get(way, 0.0) > 0]

    def batches(self, epoch: int, seed: int) -> Any:
        # As many batches as would hold every span once.
        count = max(1, len(self.examples.spans) // self.options.draw.batch)

        def build_batch(number: int) -> WriterBatch:
            rng = random.Random(f"{seed}/{epoch}/{number}")
            return collate(self.draw_examples(rng), LONGEST_ASKED)

        return Lazy(range(count), build_batch)

    def draw_examples(self, rng: random.Random) -> list[Example]:
        """The examples of a batch."""
        draw = self.options.draw
        by_way = self.examples.by_way
        shares = [draw.ways[way] for way in self.ways]
        return [
            self.examples.example(rng.choice(by_way[way]))
            for way in rng.choices(self.ways, shares, k=draw.batch)
        ]

    def evaluate(self, model: WriterNet) -> dict[str, float]:
        spans = self.dev_examples.spans
        sums = np.zeros(2)  # loss, tokens
        for part in group_batches(spans, _EVALUATION_BATCH):
            examples = [self.dev_examples.example(span) for span in part]
            batch = to_device(collate(examples, LONGEST_ASKED), model.out_bias.device)
            _, loss, count = model.loss(batch)
            sums += [float(loss), float(count)]
        return {"asked": float(sums[0] / sums[1])}

    def finish(self, folder: Path) -> None:
        """Write synthetic questions beside the model, unless they are there."""
        if (folder / SYNTHETIC_FILE).exists():
            return
        net = self.build()
        # The best checkpoint, not the last.
        weights = torch.load(folder / WRITER, map_location="cpu", weights_only=True)
        net.load_state_dict(weights)
        net = net.to(best_device()).eval()
        pack = self.examples.pack
        synthetic = generate_questions(net, pack, self.options.made, self.ways)
        self.filter(synthetic).save(folder, pack)

    def filter(self, synthetic: SyntheticQuestions) -> SyntheticQuestions:
        """Drop copies of questions that are reserved for measuring, and questions that fail the round trip."""
        vocabulary = self.start.vocabulary
        teacher = self.options.teacher
        copies = find_copies(synthetic.texts(vocabulary), self.options.data)
        rows = [row for row in range(len(synthetic)) if row not in copies]
        synthetic = synthetic.take(np.array(rows, np.int64))
        lists = build_synthetic_lists(self.examples.pack, synthetic, vocabulary)
        slots = own_slots(lists, synthetic)
        # An answer that its passage lacks was made up.
        passes = lists.slot_has_answer[slots]
        if teacher.model:
            net = load_teacher(Path(teacher.model)).to(best_device())
            passes = passes & teacher_agrees(
                net,
                lists,
                slots,
                teacher.longest,
                agreed=teacher.agreed,
                relevance=teacher.relevance,
            )
        return synthetic.take(np.flatnonzero(passes))


SPEC = TaskSpec(_AskerOptions, AskerTask)
