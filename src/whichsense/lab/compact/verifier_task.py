"""Task compact-verifier: a second late half of the encoder learns to ask rewrites again, and what is fluent."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from whichsense.errors import BadConfig, require
from whichsense.lab.compact import losses
from whichsense.lab.compact.batches_of_lists import ListBatch
from whichsense.lab.compact.encoder_task import EncoderOptions, EncoderTask, ListGroup, build_groups
from whichsense.lab.compact.lists import ListBuilder, Pack, stack_pairs
from whichsense.lab.compact.questions import CorpusQuestions, TrainingQuestion, build_corpus
from whichsense.lab.compact.topics import TopicRewrite, Topics, split_topics
from whichsense.lab.datasets import Question
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.task import Lazy, TaskSpec
from whichsense.models.compact.encoder import LONGEST_QUESTION, LONGEST_TITLE, pair
from whichsense.models.compact.nets import CompactNet
from whichsense.text.words import words
from whichsense.types import Passage, frozen

# Texts that a person could have written, and the same texts broken in the ways in which rewrites
# break.

_PREPOSITIONS = ("in", "of", "at", "for", "by", "on", "with", "from", "as", "in the")
_FEWEST_WORDS = 4


@frozen
class FluentText:
    """A question as a person wrote it, and the question that it was rewritten from; that is empty if there is none."""

    text: str
    prompt: str = ""


def break_text(one: FluentText, others: Sequence[FluentText], rng: random.Random) -> str | None:
    """Return the text broken in one way, at random; None if that way does not apply. Parts of `others` may be spliced
    in."""
    row = one.text.split()
    if len(row) < _FEWEST_WORDS:
        return None
    broken = rng.choice(_WAYS)(row, one, rng.choice(others), rng)
    if broken is None or _key(broken) == _key(row):
        return None
    return " ".join(broken)


def _key(row: Sequence[str]) -> list[str]:
    return [word.lower().rstrip("?") for word in row]


def inserted_words(prompt: Sequence[str], row: Sequence[str]) -> tuple[int, int]:
    """Return the longest insertion of a rewrite: the places of its first word and behind its last; (0, 0) if none."""
    matcher = SequenceMatcher(None, _key(prompt), _key(row), autojunk=False)
    best = (0, 0)
    for kind, _, _, first, end in matcher.get_opcodes():
        if kind in ("insert", "replace") and end - first > best[1] - best[0]:
            best = (first, end)
    return best


_Words = list[str]


def _misplace(row: _Words, one: FluentText, other: FluentText, rng: random.Random) -> _Words | None:
    """Put the addition at a place where it does not belong."""
    first, end = inserted_words(one.prompt.split(), row)
    if not one.prompt or first == end:
        return None
    rest = row[:first] + row[end:]
    place = rng.randrange(1, max(2, len(rest)))
    if abs(place - first) < 2:
        return None
    return rest[:place] + row[first:end] + rest[place:]


def _cut(row: _Words, one: FluentText, other: FluentText, rng: random.Random) -> _Words | None:
    """Cut the end of the addition, or of the text: a preposition or half a name is left."""
    first, end = inserted_words(one.prompt.split(), row)
    if one.prompt and end - first > 1:
        return row[: end - rng.randint(1, end - first - 1)] + row[end:]
    return [*row, rng.choice(_PREPOSITIONS)]


def _splice(row: _Words, one: FluentText, other: FluentText, rng: random.Random) -> _Words | None:
    """Put a part of another text within this one."""
    foreign = other.text.rstrip("?").split()
    length = rng.randint(1, min(4, len(foreign)))
    first = rng.randrange(0, len(foreign) - length + 1)
    place = rng.randrange(1, len(row))
    return row[:place] + foreign[first : first + length] + row[place:]


def _swap(row: _Words, one: FluentText, other: FluentText, rng: random.Random) -> _Words | None:
    """Two neighbouring words, or a word and one further on, change places."""
    first = rng.randrange(0, len(row) - 2)
    second = first + rng.choice([1, 1, 2])
    swapped = list(row)
    swapped[first], swapped[second] = row[second], row[first]
    return swapped


def _drop(row: _Words, one: FluentText, other: FluentText, rng: random.Random) -> _Words | None:
    """Leave out a word within the text."""
    place = rng.randrange(1, len(row) - 1)
    return row[:place] + row[place + 1 :]


_WAYS: tuple[Callable[[_Words, FluentText, FluentText, random.Random], _Words | None], ...] = (
    _misplace,
    _misplace,
    _cut,
    _cut,
    _splice,
    _splice,
    _swap,
    _drop,
)


# Lists of rewrites: a topic's rewrite as the question, over the passages of its topic and others
# beside them.
#
# A true rewrite has its own answer alone. A false one has its answer refuted: what it adds is
# another's. What else it asks for is not known, and not counted.

SOURCE = "rewrites of topics"
# Kinds of false rewrites that are no lie: one tells nothing apart, the other is bad English.
EMPTY = "empty"
BROKEN = "broken"
_SLOTS = 12  # of a list


def build_rewrite_lists(topics: Topics, vocabulary: Sequence[str]) -> Pack:
    """Return a list for each rewrite. All passages of its topic are in it: the evidence of all answers."""
    builder = ListBuilder(vocabulary)
    for corpus in topics.corpora():
        for question in corpus.questions:
            rewrites = topics.rewrites.get(question.id, ())
            own = topics.passages_of(question.id)
            for asked in convert_topic_rewrites(question, rewrites):
                _add_list(builder, asked, own, corpus)
    return builder.build()


def build_judged_lists(topics: Topics, vocabulary: Sequence[str]) -> Pack:
    """Return a list for each rewrite that a reader judged."""
    builder = ListBuilder(vocabulary)
    if topics.judged:
        corpus = CorpusQuestions(build_corpus(topics.passages), ())
        for rewrite in topics.judged:
            asked = TrainingQuestion(
                rewrite.rewrite,
                SOURCE,
                ((rewrite.answer,),),
                complete=True,
                refuted=not rewrite.true,
            )
            _add_list(builder, asked, topics.passages_of(rewrite.id), corpus)
    return builder.build()


def convert_topic_rewrites(
    question: Question, rewrites: Sequence[TopicRewrite]
) -> Iterator[TrainingQuestion]:
    """Yield each rewrite of a question as a question of its own, with the answer that it has or refutes."""
    if not question.annotations:
        return
    answers = question.annotations[0].answers
    true = set()
    for rewrite in rewrites:
        if not rewrite.kind:
            true.add((rewrite.answer, *words(rewrite.question)))
    for rewrite in rewrites:
        own = answers[rewrite.answer]
        is_lie = rewrite.kind not in ("", EMPTY, BROKEN)
        # A line that is called false by mistake.
        if is_lie and (rewrite.answer, *words(rewrite.question)) in true:
            continue
        yield TrainingQuestion(
            rewrite.question,
            SOURCE,
            question.answers if rewrite.kind == EMPTY else (own,),
            complete=True,
            refuted=is_lie,
        )


def _add_list(
    builder: ListBuilder, asked: TrainingQuestion, own: Sequence[Passage], corpus: CorpusQuestions
) -> None:
    """Add a list of a topic's passages, filled up with those of other topics."""
    ids = {passage.id for passage in own}
    others = [one for one in corpus.search(asked.text, _SLOTS) if one.id not in ids]
    passages = [*own, *others[: max(0, _SLOTS - len(own))]]
    builder.add_marked(asked, passages, ids)


# Task compact-verifier: a second late half of the encoder learns to ask rewrites again.
#
# It starts from the encoder, shares its first layers and its word vectors, and learns from ordinary
# lists, from topics, from true and false rewrites of topics' questions, and what is fluent English.
# The head that gives the encoder's ambiguity gives the verifier's fluency: it reads a rewrite beside
# its question, which takes the place of a title.

_FLUENCY_WEIGHT = 0.5
_LONGEST_TEXT = LONGEST_QUESTION + LONGEST_TITLE + 4  # tokens, with four special ones
_JUDGED_TEXTS = 0.5  # of the texts of a batch: rewrites whose fluency a reader judged
_EVALUATED_TEXTS = 512


@frozen
class _RewriteLists:
    """A recipe's `[rewrites]`: lists of the topics' rewrites."""

    share: float = 0.4
    """Of the lists that are drawn."""
    emptied: float = 0.15
    """How often the passages that answer are left out, so that the rewrite has no answer."""
    judged: float = 0.25
    """The share of the rewrites that readers judged, if there are any."""
    texts: int = 96
    """Texts of a batch whose fluency is learnt; half of them are broken."""


@frozen
class VerifierOptions(EncoderOptions):
    rewrites: _RewriteLists = _RewriteLists()


class FluencyBatch(NamedTuple):
    """Texts as pairs without a passage (texts × tokens), and whether each is fluent."""

    ids: Tensor
    types: Tensor
    mask: Tensor
    fluent: Tensor


class VerifierBatch(NamedTuple):
    """Lists as the encoder learns them, and texts."""

    lists: ListBatch
    texts: FluencyBatch


class VerifierTask(EncoderTask):
    """The best model tells true rewrites of held-out topics from false ones best (area under the curve)."""

    metric = "asked_again"

    options: VerifierOptions

    def __init__(self, options: VerifierOptions) -> None:
        if not options.data.topics:
            raise BadConfig(
                "compact-verifier learns from the rewrites of topics: give data.topics."
            )
        self.topics, self.held_out = split_topics(options.data)
        super().__init__(options)
        self.true_or_false = build_rewrite_lists(self.held_out, self.vocabulary)
        self.fluent, self.judged_texts = _collect_texts(self.topics)
        self.fluent += _gold_rewrites(self.groups[0].lists)

    def build_groups(self, lists: Pack) -> list[ListGroup]:
        """Return the encoder's groups, and the rewrites of the topics that are learnt from."""
        settings = self.options.rewrites
        groups = []
        for group in build_groups(self.options, lists, self.vocabulary):
            share = group.share * (1 - settings.share)
            groups.append(replace(group, share=share))
        rewrites = ListGroup(
            build_rewrite_lists(self.topics, self.vocabulary),
            share=settings.share,
            thinning=settings.emptied,
        )
        judged = build_judged_lists(self.topics, self.vocabulary)
        if not len(judged):
            return [*groups, rewrites]
        share = settings.judged * settings.share
        return [*groups, replace(rewrites, share=settings.share - share), ListGroup(judged, share)]

    def build(self) -> CompactNet:
        """Return the encoder, whose tables and first layers stay as they are."""
        net = super().build()
        for part in net.first_half:
            part.requires_grad_(False)
        return net

    def batches(self, epoch: int, seed: int) -> Any:
        lists = super().batches(epoch, seed)

        def build_batch(number: int) -> VerifierBatch:
            rng = random.Random(f"{seed}/{epoch}/{number}/texts")
            texts = self._draw_texts(self.options.rewrites.texts, rng)
            return VerifierBatch(lists[number], texts)

        return Lazy(range(len(lists)), build_batch)

    def _draw_texts(self, count: int, rng: random.Random) -> FluencyBatch:
        """Texts that readers judged, and written ones, every other of which is broken."""
        texts: list[tuple[FluentText, bool]] = []
        while len(texts) < count:
            if self.judged_texts and rng.random() < _JUDGED_TEXTS:
                texts.append(rng.choice(self.judged_texts))
                continue
            one = rng.choice(self.fluent)
            if len(texts) % 2:
                texts.append((one, True))
                continue
            broken = break_text(one, self.fluent, rng)
            if broken is not None:
                texts.append((replace(one, text=broken), False))
        return self._fluency_batch(texts)

    def _fluency_batch(self, texts: Sequence[tuple[FluentText, bool]]) -> FluencyBatch:
        pairs = []
        for one, _ in texts:
            pieces = self.tokenizer.ids(one.text, LONGEST_QUESTION)
            pairs.append(pair(self.tokenizer, pieces, one.prompt, ""))
        fluent = torch.tensor([float(label) for _, label in texts])
        return FluencyBatch(*stack_pairs(pairs, _LONGEST_TEXT), fluent)

    # `batches` gives batches of this task's own type, which hold the encoder's.
    def loss(  # type: ignore[override]
        self, model: CompactNet, batch: VerifierBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        total, logged = super().loss(model, batch.lists)
        texts = batch.texts
        logits = model.read(texts.ids, texts.types, texts.mask)["ambiguity"]
        fluency = F.binary_cross_entropy_with_logits(logits, texts.fluent)
        return total + _FLUENCY_WEIGHT * fluency, logged | {"fluent": fluency.detach()}

    @torch.no_grad()
    def evaluate(self, model: CompactNet) -> dict[str, float]:
        """Areas under the curve: of asking held-out rewrites again, and of fluency; and the encoder's own measures."""
        device = model.span.weight.device
        # Few topics may leave none that is held out.
        mass = [np.zeros(0, np.float32)]
        longest = self.options.model.longest
        for _, prepared in losses.all_batches(self.true_or_false, longest):
            batch = to_device(prepared, device)
            output = model.read(*batch.pairs[:3])
            logs = losses.passage_shares(output["relevance"], batch.valid)
            first, last = losses.start_end(output["span"], batch.pairs.region)
            mass.append(losses.answer_mass(batch, logs, first, last).cpu().numpy())
        refuted = np.array([one.refuted for one in self.true_or_false.asked], bool)
        texts = self._draw_texts(_EVALUATED_TEXTS, random.Random(0))
        texts = to_device(texts, device)
        logits = model.read(texts.ids, texts.types, texts.mask)["ambiguity"]
        fluent = texts.fluent.cpu().numpy() > 0
        measures = super().evaluate(model)
        measures["asked_again"] = area_under_curve(np.concatenate(mass), ~refuted)
        measures["fluency"] = area_under_curve(logits.cpu().numpy(), fluent)
        return measures

    def data(self) -> list[Path]:
        return [*self.options.data.paths(), *self.options.data.topic_files]


def _collect_texts(topics: Topics) -> tuple[list[FluentText], list[tuple[FluentText, bool]]]:
    """Return the rewrites of topics, and those that were judged, with their marks; the ones called broken are among
    these."""
    fluent = []
    judged = []
    for question in topics.questions:
        for rewrite in topics.rewrites.get(question.id, ()):
            text = FluentText(rewrite.question, question.text)
            if rewrite.kind == BROKEN:
                judged.append((text, False))
            else:
                fluent.append(text)
    for line in topics.judged:
        judged.append((FluentText(line.rewrite, line.question), line.fluent))
    return fluent, judged


def _gold_rewrites(lists: Pack) -> Iterator[FluentText]:
    """Yield the rewrites that annotators wrote for the questions of lists."""
    for question in lists.asked:
        for reading in question.rewritings:
            for rewrite in reading.rewrites:
                yield FluentText(rewrite, question.text)


def area_under_curve(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the probability that a positive has a higher score than a negative; a half if there are not both."""
    if labels.all() or not labels.any():
        return 0.5
    return float(require("sklearn.metrics", "train").roc_auc_score(labels, scores))


SPEC = TaskSpec(VerifierOptions, VerifierTask)
