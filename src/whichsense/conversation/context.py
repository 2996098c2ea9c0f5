"""Find the readings that are meant: those of an option, those that words name, those of what is talked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from whichsense.conversation.followups import Topic, by_topic, stems
from whichsense.jobs.limits import LimitReached, Limits, within
from whichsense.models.seq2seq.formats import clarified
from whichsense.pipeline import Pipeline
from whichsense.protocols import Retriever
from whichsense.text.answers import same_answer
from whichsense.types import Candidate, Case, Hit, Option, Reading, Span

# The readings that are about what was meant before, or that a person's words name.


def find(pipeline: Pipeline, question: str, limits: Limits) -> Case:
    """Ask a question, without what providers keep for themselves."""
    return replace(pipeline.ask(question, limits=limits), scratch=None)


def in_context(
    pipeline: Pipeline, case: Case, topic: Topic, limits: Limits
) -> tuple[Case, bool]:
    """Return the case with the readings that are about the topic before all others, and whether there are any.

    A question that names nothing itself, and has no answer that names the topic, is asked about the topic by name.
    """
    own, by_name = _about(case, topic)
    question = by_topic(case.question, topic)
    if by_name or not question or (own and question == case.question):
        return _showing(case, own)
    found = find(pipeline, question, limits)
    other, _ = _about(found, topic)
    if not case.readings:
        other = other or named_by(stems(topic.named), found)
    if other and _is_better(other[0], [*own, *case.readings][:1], case):
        return _showing(found, other)
    return _showing(case, own)


def _is_better(other: Reading, known: Sequence[Reading], case: Case) -> bool:
    """Whether a reading has as many of the question's words in its passages, and is as probable."""

    def fits(reading: Reading) -> tuple[int, float]:
        return len(stems(case.question) & _all_stems(reading)), reading.confidence

    return all(fits(other) >= fits(one) for one in known)


def _about(case: Case, topic: Topic) -> tuple[tuple[Reading, ...], bool]:
    """The readings that name the topic, and True; else those from where its answers are, and False."""
    wanted = stems(topic.named)
    if wanted:
        for readings in (case.readings, case.possible):
            named = [one for one in readings if wanted <= _own_stems(one)]
            if named:
                return tuple(named if readings is case.readings else named[:1]), True
    beside = [one for one in case.readings if not topic.titles.isdisjoint(_titles(one))]
    return tuple(beside), False


def _showing(case: Case, readings: Sequence[Reading]) -> tuple[Case, bool]:
    if not readings:
        return case, False
    rest = [one for one in (*case.readings, *case.possible) if one not in readings]
    return replace(case, readings=tuple(readings), possible=tuple(rest)), True


def named_by(words: Iterable[str], case: Case) -> tuple[Reading, ...]:
    """Return the reading of a case that the stems of a reply name best: in its label or title, else in its passage."""
    wanted = frozenset(words)
    ranked: list[tuple[int, int, Reading]] = []
    for place, reading in enumerate((*case.readings, *case.possible)):
        is_shown = place < len(case.readings)
        if wanted <= _own_stems(reading):
            ranked.append((int(not is_shown), place, reading))
        elif wanted <= _all_stems(reading):
            ranked.append(
                (2 + bool(reading.label) + 2 * (not is_shown), place, reading)
            )
    return tuple(one[2] for one in sorted(ranked, key=lambda one: one[:2])[:1])


def _own_stems(reading: Reading) -> frozenset[str]:
    """The stems of the label and the titles."""
    return stems(" ".join((reading.label, *_titles(reading))))


def _all_stems(reading: Reading) -> frozenset[str]:
    """The same, and those of the passages."""
    texts = [span.passage.text for span in reading.evidence]
    return _own_stems(reading) | stems(" ".join(texts))


def _titles(reading: Reading) -> list[str]:
    return [span.passage.title for span in reading.evidence]


# The answer to a reading that was chosen: its evidence ranked anew, more of it where it is thin.

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
    wanted = stems(label)
    texts = [f"{hit.passage.title} {hit.passage.text}" for hit in hits]
    return sum(wanted <= stems(text) for text in texts) < _ENOUGH


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
