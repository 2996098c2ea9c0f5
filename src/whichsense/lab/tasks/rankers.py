"""Tasks that rank passages: dual encoder, reranker."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from whichsense.errors import BadInput
from whichsense.lab.datasets import Question
from whichsense.lab.metrics.exact_match import (
    answer_ranks,
    answer_recall,
    any_answer_recall,
    reciprocal_rank,
)
from whichsense.lab.tasks.training_data import EvidenceSearch, TrainingData, gold_ids, holders
from whichsense.lab.train.processes import current_processes
from whichsense.lab.train.task import Lazy, Task, TaskSpec, shuffle_batches
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import encoders, inputs
from whichsense.models.bert.encoders import (
    CrossEncoder,
    DualEncoder,
    encode,
    relevances,
    similarity,
)
from whichsense.models.bert.inputs import InputRow, Inputs, padded
from whichsense.types import Passage, frozen

# What the tasks over BERT-like encoders share: the `[model]` table, and the weights that training
# starts from.

Network = TypeVar("Network", bound=nn.Module)


@frozen
class EncoderModel:
    """A recipe's `[model]`: which encoder, and how much of a text it reads."""

    base: str = "bert-base-uncased"
    """A name on the hub, a folder that transformers saved, or `tiny-bert`."""
    longest: int = 256
    """Tokens."""
    start: str = ""
    """The folder of a model of the same task to start from: trained on one dataset, fine-tuned on another."""

    def inputs(self) -> Inputs:
        return Inputs(load_tokenizer(located(self.base)), self.longest)


class ItemTask(Task[Network, dict[str, Any]], Generic[Network]):
    """A task whose batches are collated from items: questions with their passages, mostly."""

    options: Any
    items: Sequence[Any]
    size: int
    """Items of a batch."""

    def collate(self, items: Sequence[Any], seed: str) -> dict[str, Any]:
        """Make a batch; what is drawn depends on `seed` alone."""
        raise NotImplementedError

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        return Lazy(
            shuffle_batches(len(self.items), self.size, epoch, seed),
            lambda places: self.collate([self.items[place] for place in places], f"{seed}/{epoch}"),
        )


class EncoderTask(ItemTask[Network]):
    """A task over BERT-like encoders."""

    task: str
    """What a saved model was trained as."""
    higher_is_better = True

    def __init__(self, options: Any) -> None:
        self.options = options
        self.inputs: Inputs = options.model.inputs()
        self.pad: int = self.inputs.tokenizer.pad_token_id

    def network(self, encoder: nn.Module) -> Network:
        raise NotImplementedError

    def build(self) -> Network:
        """Build the network over the base, with the weights of `model.start`, if it is given."""
        model: EncoderModel = self.options.model
        network = self.network(inputs.encoder(located(model.base)))
        if model.start:
            inputs.fill(network, inputs.described(model.start, self.task).folder)
        return network

    @property
    def saved(self) -> dict[str, Any]:
        """What a stage must know to use the model."""
        return {}

    def save(self, model: Network, folder: Path) -> None:
        inputs.save(
            folder, model, self.inputs, task=self.task, config=model.config, options=self.saved
        )


# Questions with passages that answer them and passages that do not: what rerankers and retrievers
# learn from.


@frozen
class PassageList:
    """A question with passages that answer it and passages that do not."""

    question: Question
    good: tuple[Passage, ...]
    bad: tuple[Passage, ...]

    def rng(self, seed: str) -> random.Random:
        """Return a generator for this list alone, so that a batch does not depend on the others."""
        return random.Random(f"{seed}/{self.question.id}")


def build_lists(questions: Sequence[Question], evidence: EvidenceSearch) -> list[PassageList]:
    """Lists of questions whose hits, or annotated evidence, hold both kinds of passages; the others teach nothing."""
    evidence.search([question.text for question in questions])
    lists = []
    for question in questions:
        passages = [hit.passage for hit in evidence.hits(question.text)]
        sides: dict[bool, dict[str, Passage]] = {True: {}, False: {}}
        for passage, holds in zip(passages, holders(question, passages), strict=True):
            sides[holds][passage.id] = passage
        good, bad = sides[True], sides[False]
        # Annotated passages that the search did not bring.
        for key in sorted(gold_ids(question) - good.keys()):
            good[key] = evidence.passage(key)
        if good and bad:
            lists.append(PassageList(question, tuple(good.values()), tuple(bad.values())))
    if not lists:
        raise BadInput(
            "For no training question the index found a passage that answers it beside others that do not."
        )
    return lists


def draw_pairs(
    lists: Sequence[PassageList], hard: int, seed: str
) -> tuple[list[Passage], list[Passage]]:
    """Return for each question one passage that answers it, and `hard` that do not, with repetition."""
    positives = []
    negatives: list[Passage] = []
    for one in lists:
        rng = one.rng(seed)
        positives.append(rng.choice(one.good))
        # All questions bring equally many, so that processes can share them.
        negatives.extend(rng.choice(one.bad) for _ in range(hard))
    return positives, negatives


# How well passages are ranked: in the list of each question, or in the pool of the passages of all
# questions.

_HARD = 10  # passages without an answer that each question brings into the pool


def ranking_metrics(
    questions: Sequence[Question], orders: Sequence[Sequence[Passage]], keep: int
) -> dict[str, float]:
    """Gold answers among the first `keep` passages, any gold answer in the first, and the mean reciprocal rank."""
    all_ranks = []
    any_at_1 = []
    reciprocal = []
    for question, passages in zip(questions, orders, strict=True):
        ranks = answer_ranks(question.answers, passage_texts(passages))
        all_ranks += ranks
        any_at_1.append(any_answer_recall(ranks, 1))
        reciprocal.append(reciprocal_rank(ranks))
    return {
        f"answers_at_{keep}": answer_recall(all_ranks, keep),
        "any_at_1": sum(any_at_1) / len(questions),
        "mrr": sum(reciprocal) / len(questions),
    }


def passage_texts(passages: Sequence[Passage]) -> list[str]:
    """Return titles and texts, as answers are looked for in them."""
    return [f"{passage.title} {passage.text}" for passage in passages]


def passage_pool(lists: Sequence[PassageList]) -> dict[str, Passage]:
    """Return the passages of all questions, by id."""
    return {passage.id: passage for one in lists for passage in (*one.good, *one.bad[:_HARD])}


def pool_metrics(
    lists: Sequence[PassageList], pool: Mapping[str, Passage], scores: Any
) -> dict[str, float]:
    """`scores`: [questions, passages of the pool, in its order]. The best passage with an answer counts."""
    columns = {key: column for column, key in enumerate(pool)}
    reciprocal = []
    at_1 = []
    at_20 = []
    for one, row in zip(lists, scores, strict=True):
        good = [columns[passage.id] for passage in one.good]
        rank = 1 + int((row > row[good].max()).sum())
        reciprocal.append(1 / rank)
        at_1.append(rank == 1)
        at_20.append(rank <= 20)
    count = len(reciprocal)
    return {
        "pool_mrr": sum(reciprocal) / count,
        "pool_at_1": sum(at_1) / count,
        "pool_at_20": sum(at_20) / count,
    }


# DPR's dual encoder: a question is brought near its passage and away from all other passages of the
# batch.

_MEASURED = 1000  # passages by which the length of vectors is measured


@frozen
class _DualEncoderPairs:
    """A recipe's `[pairs]`: what a batch is made of."""

    batch: int = 128
    hard: int = 1
    """Passages for each question that the index ranks high and that do not answer it."""
    depth: int = 100


@frozen
class _DualEncoderOptions:
    model: EncoderModel = EncoderModel()
    data: TrainingData = TrainingData()
    pairs: _DualEncoderPairs = _DualEncoderPairs()


class _DualEncoderTask(EncoderTask[DualEncoder]):
    """In-batch and hard negatives. Selected by the rank of dev questions' passages in the pool of all of them."""

    task, metric = encoders.TASK, "pool_mrr"

    def __init__(self, options: _DualEncoderOptions) -> None:
        super().__init__(options)
        self.size = options.pairs.batch
        evidence = options.data.evidence(options.pairs.depth)
        self.items = build_lists(options.data.training(), evidence)
        self.dev = build_lists(options.data.development(), evidence)

    def network(self, encoder: nn.Module) -> DualEncoder:
        return DualEncoder(encoder, inputs.encoder(located(self.options.model.base)))

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        every = super().batches(epoch, seed)
        if len(every) < 2:
            return every
        # Processes share their passages, so that all batches must be of one size.
        return Lazy([one for one in every.items if len(one) == self.size], every.make)

    def collate(self, lists: Sequence[PassageList], seed: str) -> dict[str, Any]:
        """`passages`: one for each question, then the hard negatives; `numbers`: their ids; `good`: those of all
        passages that answer each question, [questions, most], -1 where there are fewer."""
        positives, negatives = draw_pairs(lists, self.options.pairs.hard, seed)
        passages = [*positives, *negatives]
        most = max([len(one.good) for one in lists])
        good = torch.full((len(lists), most), -1)
        for row, one in enumerate(lists):
            good[row, : len(one.good)] = _passage_numbers(one.good)
        questions = self.inputs.single([one.question.text for one in lists])
        texts = self.inputs.passages(_title_and_text(passages))
        return {
            "questions": padded(questions, self.pad),
            "passages": padded(texts, self.pad),
            "numbers": _passage_numbers(passages),
            "good": good,
        }

    def loss(self, model: DualEncoder, batch: dict[str, Any]) -> Tensor:
        """Compute the loss; passages of all processes are negatives, except those that also answer the question."""
        processes = current_processes()
        questions, passages = model(batch)
        all_passages = processes.gather(passages)
        numbers = processes.gather_constants(batch["numbers"])
        scores = similarity(questions, all_passages)
        rows = torch.arange(len(questions), device=scores.device)
        own = rows + processes.rank * len(passages)  # columns of each question's own
        # [questions, passages]: other passages that answer the question, too.
        also_good = (numbers[None, :, None] == batch["good"][:, None, :]).any(-1)
        also_good[rows, own] = False
        return functional.cross_entropy(scores.masked_fill(also_good, -torch.inf), own)

    def evaluate(self, model: DualEncoder) -> dict[str, float]:
        pool = passage_pool(self.dev)
        texts = self.inputs.passages(_title_and_text(list(pool.values())))
        passages = encode(model, "passage", texts, self.pad)
        asked = self.inputs.single([one.question.text for one in self.dev])
        questions = encode(model, "question", asked, self.pad)
        return pool_metrics(self.dev, pool, questions @ passages.T)

    def save(self, model: DualEncoder, folder: Path) -> None:
        texts: dict[tuple[str, str], None] = {}
        for one in self.items:
            texts |= dict.fromkeys(_title_and_text((*one.good, *one.bad)))
        encoders.save(folder, model, self.inputs, list(texts)[:_MEASURED])


def _title_and_text(passages: Sequence[Passage]) -> list[tuple[str, str]]:
    return [(passage.title, passage.text) for passage in passages]


def _passage_numbers(passages: Sequence[Passage]) -> Tensor:
    """Return the ids of passages as numbers that are the same in every process."""
    numbers = [
        int.from_bytes(hashlib.blake2b(passage.id.encode(), digest_size=7).digest(), "big")
        for passage in passages
    ]
    return torch.tensor(numbers)


DUAL_ENCODER = TaskSpec(_DualEncoderOptions, _DualEncoderTask)


# The reranker: a cross encoder that tells the one good passage of a list from the others (REFUEL,
# appendix A).


@frozen
class _RerankerLists:
    """A recipe's `[lists]`: what a list of passages is made of."""

    batch: int = 16
    negatives: int = 31
    depth: int = 100
    """Hits that passages to learn from are drawn from."""
    candidates: int = 1000
    """Hits that are reranked in evaluation: the paper's N."""
    keep: int = 100
    """The first `keep` passages must hold the answers: the paper's K."""


@frozen
class _RerankerOptions:
    model: EncoderModel = EncoderModel()
    data: TrainingData = TrainingData()
    lists: _RerankerLists = _RerankerLists()


class _RerankerTask(EncoderTask[CrossEncoder]):
    """Listwise: the likelihood of one good passage is raised beside `negatives` others."""

    task = "reranker"

    def __init__(self, options: _RerankerOptions) -> None:
        super().__init__(options)
        data, lists = options.data, options.lists
        self.size = lists.batch
        self.metric = f"answers_at_{lists.keep}"
        self.items = build_lists(data.training(), data.evidence(lists.depth))
        self.dev = data.development()
        self.dev_evidence = data.searched(self.dev, lists.candidates)

    def network(self, encoder: nn.Module) -> CrossEncoder:
        return CrossEncoder(encoder, reads=False)

    def collate(self, lists: Sequence[PassageList], seed: str) -> dict[str, Any]:
        """`rows`: one for each passage; `sizes`: the length of each list, the good passage first."""
        rows: list[InputRow] = []
        sizes = []
        for one in lists:
            rng = one.rng(seed)
            count = min(len(one.bad), self.options.lists.negatives)
            negatives = rng.sample(one.bad, count)
            passages = [rng.choice(one.good), *negatives]
            rows += self.inputs.pairs(one.question.text, passages, places=False)
            sizes.append(len(passages))
        return {"rows": padded(rows, self.pad), "sizes": sizes}

    def loss(self, model: CrossEncoder, batch: dict[str, Any]) -> Tensor:
        """Return the mean over lists of minus the log likelihood of the first passage."""
        losses = [
            scores.logsumexp(0) - scores[0]
            for scores in torch.split(model(batch["rows"]).relevance, batch["sizes"])
        ]
        return torch.stack(losses).mean()

    def evaluate(self, model: CrossEncoder) -> dict[str, float]:
        orders = []
        for question in self.dev:
            passages = [hit.passage for hit in self.dev_evidence.hits(question.text)]
            scores = relevances(model, self.inputs, question.text, passages)
            orders.append(_sort_by_score(passages, scores))
        return ranking_metrics(self.dev, orders, self.options.lists.keep)


def _sort_by_score(passages: Sequence[Passage], scores: Sequence[float]) -> list[Passage]:
    """Order by score, the highest first; equal ones keep their order."""
    places = sorted(range(len(passages)), key=lambda place: -scores[place])
    return [passages[place] for place in places]


RERANKER = TaskSpec(_RerankerOptions, _RerankerTask)
