"""Annotated clarification questions as lists of candidates with how good each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.datasets import ClarifiedQuestion, Question
from whichsense.models.compact.clarification.alignment import (
    AlignedRewrite,
    align,
    split_words,
)
from whichsense.models.compact.clarification.leads import Choice, lead_candidates
from whichsense.models.compact.clarification.options import choose_phrases
from whichsense.models.compact.clarification.phrase_features import (
    Features,
    phrase_features,
)
from whichsense.models.compact.clarification.phrases import (
    Phrase,
    list_phrases,
    phrase_text,
    without_commas,
)
from whichsense.models.compact.clarification.ranking import Ranker, overlap


@dataclass(frozen=True)
class RankedList:
    """Candidates of one decision: their features and how good each is, from 0 to 1."""

    features: list[Features]
    values: list[float]


@dataclass(frozen=True)
class OptionLists:
    """A question whose options annotators wrote: for each rewrite its phrases, and the list to learn from."""

    question: ClarifiedQuestion
    rewrites: list[AlignedRewrite]
    phrases: list[list[Phrase]]
    lists: list[RankedList]

    def choice(self, ranker: Ranker) -> Choice:
        """The phrases that a ranker chooses."""
        phrases = choose_phrases(self.rewrites, ranker)
        return Choice(split_words(self.question.text), self.rewrites, phrases)


def option_lists(questions: Sequence[Question]) -> list[OptionLists]:
    """Questions whose options belong to rewrites, one by one."""
    every = []
    for question in questions:
        if not isinstance(question, ClarifiedQuestion) or not question.annotations:
            continue
        pairs = question.annotations[0].pairs
        if len(pairs) != len(question.options):
            continue
        rewrites = align(question.text, [pair.question for pair in pairs])
        phrases = [list_phrases(rewrite) for rewrite in rewrites]
        if all(phrases):
            every.append(_with_values(question, rewrites, phrases))
    return every


def _with_values(
    question: ClarifiedQuestion,
    rewrites: list[AlignedRewrite],
    phrases: list[list[Phrase]],
) -> OptionLists:
    lists = []
    for rewrite, own, option in zip(rewrites, phrases, question.options, strict=True):
        gold = without_commas(option)
        features = [phrase_features(rewrite, phrase) for phrase in own]
        values = []
        for phrase in own:
            said = without_commas(phrase_text(rewrite, phrase))
            values.append(overlap(said, gold))
        lists.append(RankedList(features, values))
    return OptionLists(question, rewrites, phrases, lists)


def lead_list(choice: Choice, question: ClarifiedQuestion) -> RankedList | None:
    """The leads of a question, the annotators' own with the value 1; None where it is not among them."""
    annotated = question.clarification.partition(":")[0].strip()
    candidates = lead_candidates(choice)
    values = []
    for lead in candidates:
        values.append(float(lead.text.lower() == annotated.lower()))
    if not any(values):
        return None
    return RankedList(list(candidates.values()), values)
