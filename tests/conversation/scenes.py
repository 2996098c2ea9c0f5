"""Small pipelines and clarifications to talk over, without weights."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from whichsense.jobs.limits import check_limits
from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import offered
from whichsense.testing import (
    FakeDisambiguator,
    FakeReader,
    FakeReranker,
    FakeRetriever,
    FakeSummarizer,
    FakeVerifier,
    passage_hit,
)
from whichsense.types import Case, Clarification, Option

HITS = (
    passage_hit("In 1956 Ann Lee wrote Harbour as a novel.", "Harbour (1956 novel)"),
    passage_hit("Bob Ray wrote the 1988 film Harbour.", "Harbour (1988 film)"),
    passage_hit("The 2008 film Harbour was written by Cy Day.", "Harbour (2008 film)"),
)
ANSWERS = {"Ann": "Ann Lee", "Bob": "Bob Ray", "Cy": "Cy Day"}
QUESTION = "Who wrote Harbour?"


@dataclass(frozen=True)
class TitleClarifier:
    """Offers the titles' brackets: "1956 novel"."""

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, clarification=self._offer(case)) for case in cases]

    @staticmethod
    def _offer(case: Case) -> Clarification:
        labels = []
        for reading in case.readings:
            title = reading.evidence[0].passage.title
            labels.append(f"the {title.partition('(')[2].rstrip(')')}")
        return offered("Which version", "version", labels, case.readings)


@dataclass(frozen=True)
class GroupClarifier:
    """Offers the novel, and the two films as a group."""

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        clarified = []
        for case in TitleClarifier().clarify(cases):
            assert case.clarification is not None
            novel, *films = case.clarification.options
            inner = []
            for number, film in enumerate(films, 1):
                inner.append(replace(film, id=f"2.{number}"))
            readings = tuple(film.readings[0] for film in films)
            group = Option("2", "a film", readings=readings, options=tuple(inner))
            clarification = replace(case.clarification, options=(novel, group))
            clarified.append(replace(case, clarification=clarification))
        return clarified


def harbour(**stages: object) -> Pipeline:
    """Three versions of one story, each by another author."""
    pipeline = Pipeline(
        FakeRetriever(HITS),
        reranker=FakeReranker(),
        reader=FakeReader(ANSWERS),
        disambiguator=FakeDisambiguator(),
        clarifier=TitleClarifier(),
        summarizer=FakeSummarizer(),
    )
    return replace(pipeline, **stages)  # type: ignore[arg-type]


# The novel and the older film have more passages than the newer film, which is merely possible.
MOSTLY_BOOKS = {
    "retriever": FakeRetriever(
        [
            *HITS,
            passage_hit("Ann Lee wrote the novel.", "Harbour (1956 novel)"),
            passage_hit("Bob Ray wrote that film.", "Harbour (1988 film)"),
        ]
    ),
    "verifier": FakeVerifier(0.3),
}


@dataclass(frozen=True)
class SlowReader:
    """Reads for an hour unless it is stopped, and says when it begins."""

    reader: FakeReader = field(default_factory=lambda: FakeReader(ANSWERS))

    def read(self, cases: Sequence[Case]) -> list[Case]:
        if "slow" in cases[0].question:
            sys.stdout.write("reading\n")
            sys.stdout.flush()
            for _ in range(360_000):
                check_limits()
                time.sleep(0.01)
        return self.reader.read(cases)
