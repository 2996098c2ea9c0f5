"""DPR's extractive reader: spans of passages, trained on the likelihood of gold ones; γ decides how many answers.

AmbigQA's baseline "Thresholding" raises the likelihood of any gold span (`any`). Its answers compete: one may take all.
With `each`, the likelihood of every gold answer is raised, so that γ finds all of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from whichsense.datasets import Question, rewrites_as_questions
from whichsense.errors import BadInput
from whichsense.metrics import ambignq
from whichsense.metrics.answers import normal_form
from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import CrossEncoder
from whichsense.models.bert.inputs import InputRow, padded, text_mask
from whichsense.models.bert.span_reader import (
    find_answers,
    log_likelihoods,
    over_threshold,
)
from whichsense.text.words import words
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.encoders.bert import Model
from whichsense.train.tasks.evidence import Data, Evidence
from whichsense.types import Candidate, Passage

TASK = "extractive-reader"
_GRID = tuple(step / 100 for step in (0.1, 0.2, 0.5, 1, 1.5, *range(2, 100)))


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, and what counts."""

    batch: int = 16
    passages: int = 24
    """Of a question, in training: one for each gold answer at least, the others as they were found."""
    depth: int = 100
    read: int = 100
    """Passages that are read when the model is measured."""
    longest_answer: int = 10
    """Tokens."""
    objective: Literal["any", "each"] = "any"
    rewrites: bool = False
    """Whether annotators' rewrites are learnt from, too: with one answer each, over the passages of their question, as
    round-trip prediction asks them."""


@dataclass(frozen=True, slots=True)
class ExtractiveReaderOptions:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    reading: Reading = field(default_factory=Reading)


@dataclass(frozen=True, slots=True)
class Item:
    """A question, for each gold answer the passages that it stands in, and the other passages."""

    question: Question
    homes: tuple[tuple[Passage, ...], ...]
    others: tuple[Passage, ...]


class ExtractiveReaderTask(Task[CrossEncoder, dict[str, Any]]):
    """Marginal likelihood over all places where a gold answer stands."""

    metric, higher_is_better = "f1_ans", True

    def __init__(self, options: ExtractiveReaderOptions) -> None:
        self.options, self.inputs = options, options.model.inputs()
        evidence = options.data.evidence(options.reading.depth)
        self.items = _items(
            options.data.training(), evidence, rewrites=options.reading.rewrites
        )
        self.dev = options.data.development()
        self.dev_evidence = options.data.searched(self.dev, options.reading.read)
        self._gamma = 0.5

    def build(self) -> CrossEncoder:
        return self.options.model.begun(
            CrossEncoder(self.options.model.encoder(), reads=True), TASK
        )

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        places = shuffle_batches(
            len(self.items), self.options.reading.batch, epoch, seed
        )
        return Lazy(
            places,
            lambda batch: self._collated(
                [self.items[place] for place in batch], f"{seed}/{epoch}"
            ),
        )

    def _collated(self, items: Sequence[Item], luck: str) -> dict[str, Any]:
        rows: list[InputRow] = []
        spans: list[tuple[int, int, int, int]] = []
        sizes = []
        for number, item in enumerate(items):
            passages = _chosen(
                item,
                self.options.reading.passages,
                random.Random(f"{luck}/{item.question.id}"),
            )
            for passage, row in zip(
                passages, self.inputs.pairs(item.question.text, passages), strict=True
            ):
                found = gold_spans(
                    item, passage, row, self.options.reading.longest_answer
                )
                # A number for each answer of each question, so that `each` can tell them apart.
                spans += [
                    (len(rows), start, end, number * 1000 + answer)
                    for start, end, answer in found
                ]
                rows.append(row)
            sizes.append(len(passages))
        batch = {
            "rows": padded(rows, self.inputs.tokenizer.pad_token_id),
            "mask": text_mask(rows),
            "sizes": sizes,
        }
        return batch | {"spans": torch.tensor(spans, dtype=torch.int64).reshape(-1, 4)}

    def loss(self, model: CrossEncoder, batch: dict[str, Any]) -> Tensor:
        read, spans = model(batch["rows"]), batch["spans"]
        _, starts, ends = log_likelihoods(read, batch["mask"])
        lists = torch.split(read.relevance, batch["sizes"])
        passage = torch.cat([one.log_softmax(-1) for one in lists])
        row, start, end, answer = spans.unbind(-1)
        likely = passage[row] + starts[row, start] + ends[row, end]
        group = answer if self.options.reading.objective == "each" else answer // 1000
        kinds, where = group.unique(return_inverse=True)
        if not len(kinds):  # every gold span of the batch was cut off
            nothing: Tensor = read.relevance.sum() * 0.0
            return nothing
        # logsumexp of each group: the maximum is taken out first, as exp would vanish.
        top = likely.new_full((len(kinds),), -torch.inf).scatter_reduce(
            0, where, likely.detach(), "amax"
        )
        total = (
            likely.new_zeros(len(kinds))
            .index_add(0, where, (likely - top[where]).exp())
            .log()
            + top
        )
        return -total.mean()

    def evaluate(self, model: CrossEncoder) -> dict[str, float]:
        found = []
        for question in self.dev:
            passages = [hit.passage for hit in self.dev_evidence.hits(question.text)]
            longest = self.options.reading.longest_answer
            found.append(
                find_answers(model, self.inputs, question.text, passages, longest)[:20]
            )
        scores = {
            gamma: mean_f1(self.dev, [over_threshold(one, gamma) for one in found])
            for gamma in _GRID
        }
        self._gamma = max(scores, key=lambda gamma: (scores[gamma], gamma))
        metrics = {
            "f1_ans": scores[self._gamma],
            "gamma": self._gamma,
            "f1_ans_one": mean_f1(self.dev, [one[:1] for one in found]),
        }
        several = [
            place for place, question in enumerate(self.dev) if question.is_ambiguous
        ]
        if several:
            kept = [over_threshold(found[place], self._gamma) for place in several]
            metrics["f1_ans_multi"] = mean_f1(
                [self.dev[place] for place in several], kept
            )
        return metrics

    def save(self, model: CrossEncoder, folder: Path) -> None:
        """With the γ that was best on dev."""
        about = {
            "gamma": self._gamma,
            "longest_answer": self.options.reading.longest_answer,
        }
        saved.save(
            folder, model, self.inputs, task=TASK, config=model.config, options=about
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _items(
    questions: Sequence[Question], evidence: Evidence, *, rewrites: bool = False
) -> list[Item]:
    evidence.search([question.text for question in questions])
    items = []
    for question in questions:
        passages = {hit.passage.id: hit.passage for hit in evidence.hits(question.text)}
        small = {key: passage.text.lower() for key, passage in passages.items()}
        for asked in (question, *(rewrites_as_questions(question) if rewrites else ())):
            named = _named(asked)
            for keys in named:
                passages |= {
                    key: evidence.passage(key)
                    for key in sorted(keys)
                    if key not in passages
                }
            small |= {
                key: passage.text.lower()
                for key, passage in passages.items()
                if key not in small
            }
            homes = tuple(
                tuple(
                    p
                    for p in _perhaps(aliases, passages, small, keys)
                    if places_of(aliases, p.text)
                )
                for aliases, keys in zip(asked.answers, named, strict=True)
            )
            at_home = {passage.id for home in homes for passage in home}
            if at_home:
                items.append(
                    Item(
                        asked,
                        homes,
                        tuple(p for p in passages.values() if p.id not in at_home),
                    )
                )
    if not items:
        raise BadInput(
            "No gold answer stands in a passage that the index finds: there is nothing to learn."
        )
    return items


def _perhaps(
    aliases: Sequence[str],
    passages: Mapping[str, Passage],
    small: Mapping[str, str],
    named: Set[str],
) -> Iterator[Passage]:
    """Where to look closely: passages with all words of some alias, of those that annotators named, if they did."""
    wanted = [words(alias) for alias in aliases]
    for key, text in small.items():
        if (key in named or not named) and any(
            all(word in text for word in own) for own in wanted
        ):
            yield passages[key]


def _named(question: Question) -> list[set[str]]:
    """For each distinct answer the passages that annotators named for it."""
    found = []
    for aliases in question.answers:
        forms = {normal_form(alias) for alias in aliases}
        pairs = [
            pair for annotation in question.annotations for pair in annotation.pairs
        ]
        found.append(
            {
                key
                for p in pairs
                if forms & {normal_form(a) for a in p.answers}
                for key in p.evidence
            }
        )
    return found


def _chosen(item: Item, count: int, dice: random.Random) -> list[Passage]:
    """One home of each answer, then the others as they were found, in any order."""
    homes = {
        home.id: home for home in (dice.choice(home) for home in item.homes if home)
    }
    rest = [
        p
        for p in (*(p for home in item.homes for p in home), *item.others)
        if p.id not in homes
    ]
    unique = list({passage.id: passage for passage in rest}.values())
    kept = [
        *homes.values(),
        *dice.sample(unique, max(0, min(len(unique), count - len(homes)))),
    ]
    dice.shuffle(kept)
    return kept


def places_of(aliases: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Where an answer stands in a text as whole words, under any of its names.

    >>> places_of(["Lon Chaney Sr.", "Lon Chaney"], "In it Lon  Chaney (Lon Chaney, Sr.) plays.")
    [(6, 17), (19, 33)]
    """
    names = [
        r"\W+".join(map(re.escape, re.findall(r"\w+", alias))) for alias in aliases
    ]
    ordered = sorted(
        filter(None, names), key=len, reverse=True
    )  # the longest name first, so that it is found whole
    if not ordered:
        return []
    pattern = re.compile(rf"\b(?:{'|'.join(ordered)})\b", re.IGNORECASE)
    return [found.span() for found in pattern.finditer(text)]


def gold_spans(
    item: Item, passage: Passage, row: InputRow, longest: int
) -> list[tuple[int, int, int]]:
    """The token spans of a row at which gold answers stand: first token, last token, number of the answer."""
    found = []
    firsts = {
        start: place for place, (start, _) in reversed(list(enumerate(row.places)))
    }
    lasts = {end: place for place, (_, end) in enumerate(row.places)}
    for number, (aliases, home) in enumerate(
        zip(item.question.answers, item.homes, strict=True)
    ):
        if all(passage.id != one.id for one in home):
            continue
        for start, end in places_of(aliases, passage.text):
            first, last = firsts.get(start), lasts.get(end)
            if first is not None and last is not None and last - first < longest:
                found.append((row.text_start + first, row.text_start + last, number))
    return found


def mean_f1(
    questions: Sequence[Question], answers: Sequence[Sequence[Candidate]]
) -> float:
    """F1ans as the official script computes it; a question without an answer scores zero."""
    total = 0.0
    for question, found in zip(questions, answers, strict=True):
        if found:
            said = [candidate.answer for candidate in found]
            total += max(
                ambignq.f1_answers(gold, said) for gold in question.answer_sets
            )
    return total / len(questions)


SPEC = TaskSpec(ExtractiveReaderOptions, ExtractiveReaderTask)
