"""Questions with passages that answer them and passages that do not: what rerankers and retrievers learn from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.train.tasks.evidence import EvidenceSearch, gold_ids, holders
from whichsense.types import Passage


@dataclass(frozen=True, slots=True)
class PassageList:
    """A question with passages that answer it and passages that do not."""

    question: Question
    good: tuple[Passage, ...]
    bad: tuple[Passage, ...]

    def rng(self, seed: str) -> random.Random:
        """A generator for this list alone, so that a batch does not depend on the others."""
        return random.Random(f"{seed}/{self.question.id}")


def build_lists(
    questions: Sequence[Question], evidence: EvidenceSearch
) -> list[PassageList]:
    """Lists of questions whose hits, or annotated evidence, hold both kinds of passages; the others teach nothing."""
    evidence.search([question.text for question in questions])
    lists = []
    for question in questions:
        good: dict[str, Passage] = {}
        bad = []
        passages = [hit.passage for hit in evidence.hits(question.text)]
        flags = holders(question, passages)
        for passage, is_good in zip(passages, flags, strict=True):
            if is_good:
                good[passage.id] = passage
            else:
                bad.append(passage)
        # Annotated passages that the search did not bring.
        for key in sorted(gold_ids(question)):
            if key not in good:
                good[key] = evidence.passage(key)
        if good and bad:
            lists.append(PassageList(question, tuple(good.values()), tuple(bad)))
    if not lists:
        raise BadInput(
            "For no training question the index found a passage that answers it beside others that do not."
        )
    return lists


def draw_pairs(
    lists: Sequence[PassageList], hard: int, seed: str
) -> tuple[list[Passage], list[Passage]]:
    """For each question one passage that answers it, and `hard` that do not, with repetition."""
    positives = []
    negatives = []
    for one in lists:
        rng = one.rng(seed)
        positives.append(rng.choice(one.good))
        # All questions bring equally many, so that processes can share them.
        for _ in range(hard):
            negatives.append(rng.choice(one.bad))
    return positives, negatives
