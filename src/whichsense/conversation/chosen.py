"""The answer to a reading that was chosen: its evidence ranked anew, more of it where it is thin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.conversation.replies.profiles import content
from whichsense.conversation.replies.tokens import plain, tokenize
from whichsense.jobs.limits import LimitReached, Limits, within
from whichsense.models.seq2seq.formats import clarified
from whichsense.pipeline import Pipeline
from whichsense.protocols import Retriever
from whichsense.text.answers import same_answer
from whichsense.types import Candidate, Case, Hit, Option, Reading, Span

_ENOUGH = 2  # passages with all the words of the choice
_MOST_SPANS = 5


@dataclass(frozen=True)
class GivenHits:
    """A retriever that gives the hits that are there, and searches for more where they are thin."""

    hits: tuple[Hit, ...]
    more: Retriever | None = None

    def retrieve(self, cases: Sequence[Case], k: int) -> list[Case]:
        retrieved = []
        for case in cases:
            hits = {hit.passage.id: hit for hit in self.hits}
            if self.more is not None:
                for hit in self.more.retrieve([case], k)[0].hits:
                    hits.setdefault(hit.passage.id, hit)
            retrieved.append(replace(case, hits=tuple(hits.values())[:k]))
        return retrieved


@dataclass(frozen=True)
class Excluding:
    """A retriever that leaves out passages."""

    retriever: Retriever
    passages: frozenset[str]

    def retrieve(self, cases: Sequence[Case], k: int) -> list[Case]:
        retrieved = []
        for case in self.retriever.retrieve(cases, k + len(self.passages)):
            hits = [hit for hit in case.hits if hit.passage.id not in self.passages]
            retrieved.append(replace(case, hits=tuple(hits[:k])))
        return retrieved


def answer_option(
    pipeline: Pipeline, case: Case, category: str, option: Option, limits: Limits
) -> tuple[Reading, ...]:
    """The readings of an option, each with the evidence that fits it best.

    The question is read again with the choice behind it ("AQ, Which category: option", CAmbigNQ). A reading keeps its
    answer, which was verified; what is read again adds and orders its evidence.
    """
    if pipeline.reader is None or not option.readings:
        return option.readings
    question = clarified(case.question, category, option.label)
    more = pipeline.retriever if is_thin(case.hits, option.label) else None
    again = replace(pipeline, retriever=GivenHits(case.hits, more))
    read = again.run([question], "evidence", limits=limits)[0]
    if not read.stopped:
        try:
            with within(limits):
                read = pipeline.reader.read([read])[0]
        except LimitReached:
            return option.readings
    return tuple(_with_evidence(one, read.answers) for one in option.readings)


def is_thin(hits: Sequence[Hit], label: str) -> bool:
    """Whether too few passages have all the words of a label.

    >>> from whichsense.testing import passage_hit
    >>> is_thin([passage_hit("The 2008 film is dark."), passage_hit("A film of 2008.")], "the 2008 film")
    False
    """
    wanted = {token.stem for token in content(tokenize(plain(label)))}
    count = 0
    for hit in hits:
        text = plain(f"{hit.passage.title} {hit.passage.text}")
        count += wanted <= {token.stem for token in tokenize(text)}
    return count < _ENOUGH


def _with_evidence(reading: Reading, answers: Sequence[Candidate]) -> Reading:
    """The reading with the spans that were read again for its answer before those that it had: what was checked stays
    first where it is among them."""
    spans: dict[tuple[str, int], Span] = {}
    if reading.evidence:
        best = reading.evidence[0]
        spans[best.passage.id, best.start] = best
    for candidate in answers:
        if same_answer(candidate.answer, reading.answer):
            for span in candidate.spans:
                spans.setdefault((span.passage.id, span.start), span)
    for span in reading.evidence:
        spans.setdefault((span.passage.id, span.start), span)
    return replace(reading, evidence=tuple(spans.values())[:_MOST_SPANS])
