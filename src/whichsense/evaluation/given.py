"""What a dataset gives a system beside the question: gold readings, a gold clarification, documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from whichsense.datasets import (
    ClarifiedQuestion,
    ConflictQuestion,
    GroundedQuestion,
    LongQuestion,
    QAPair,
    Question,
)
from whichsense.errors import BadInput
from whichsense.stages.clarify import offered
from whichsense.types import Case, Hit, Method, Passage, Reading, Span


def with_gold_readings(question: Question, case: Case) -> Case:
    """The case with the readings that annotators wrote. The evidence of each is the gold context where there is one;
    otherwise the hits that hold its answer."""
    annotation = question.several
    if annotation is None:
        return case
    readings = []
    for number, pair in enumerate(annotation.pairs):
        evidence = _gold_context(question, number, pair) or _spans(pair, case.hits)
        rewrite = pair.question or question.text
        readings.append(Reading(rewrite, pair.answers[0], evidence, confidence=1.0))
    return replace(case, readings=tuple(readings), is_ambiguous=True)


def _gold_context(question: Question, number: int, pair: QAPair) -> tuple[Span, ...]:
    if not isinstance(question, LongQuestion) or number >= len(question.contexts):
        return ()
    text = question.contexts[number]
    if not text:
        return ()
    title = question.context_pages[number]
    passage = Passage(f"{question.id}/{number}", title, text)
    return _spans(pair, [Hit(passage, 1.0)]) or (Span(passage, 0, len(text)),)


def _spans(pair: QAPair, hits: Sequence[Hit]) -> tuple[Span, ...]:
    """The first place of the answer in every hit that holds it."""
    aliases = "|".join(re.escape(alias) for alias in pair.answers if alias.strip())
    if not aliases:
        return ()
    pattern = re.compile(rf"(?<!\w)(?:{aliases})(?!\w)", re.IGNORECASE)
    spans = []
    for hit in hits:
        place = pattern.search(hit.passage.text)
        if place:
            spans.append(Span(hit.passage, place.start(), place.end(), hit.score))
    return tuple(spans)


def with_clarification(question: Question, case: Case) -> Case:
    """The case with the gold clarification question; its options are bound to no reading."""
    if not isinstance(question, ClarifiedQuestion):
        raise BadInput(
            f"Question '{question.id}' has no gold clarification. Use one of CAmbigNQ's datasets."
        )
    lead = question.clarification.partition(":")[0]
    clarification = offered(lead, question.category, question.options, ())
    clarification = replace(clarification, question=question.clarification)
    return replace(case, clarification=clarification, is_ambiguous=True)


class GivenDocuments:
    """The documents that come with each question, in the place of an index: a search for a question gives its own."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._hits: dict[str, list[Hit]] = {}
        for question in questions:
            hits = []
            for number, (title, text) in enumerate(_documents(question)):
                # All score the same: nobody has searched.
                hits.append(Hit(Passage(f"{question.id}/{number}", title, text), 1.0))
            self._hits[question.text] = hits

    def search_many(
        self, questions: Sequence[str], k: int = 100, method: Method | None = None
    ) -> list[list[Hit]]:
        """All documents of each question, whatever k and method are."""
        return [self._hits[question] for question in questions]

    def passage(self, identifier: str) -> Passage:
        for hits in self._hits.values():
            for hit in hits:
                if hit.passage.id == identifier:
                    return hit.passage
        raise BadInput(f"No document has the id '{identifier}'.")

    def describe(self) -> dict[str, Any]:
        most = max(map(len, self._hits.values()), default=0)
        return {"index": "documents of the questions", "passages": most}


def _documents(question: Question) -> list[tuple[str, str]]:
    """Title and text of each document of a question."""
    if isinstance(question, ConflictQuestion):
        return [("", document.text) for document in question.documents]
    if isinstance(question, GroundedQuestion | LongQuestion) and question.passages:
        return [(context.title, context.text) for context in question.passages]
    raise BadInput(
        f"Question '{question.id}' comes without documents. Use a dataset that has them, or give an index."
    )
