"""Find the readings that are meant: those that words name, and those of what is talked about."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace

from whichsense.conversation.followups import Topic, narrowed, stems, subject
from whichsense.conversation.matching import NEAR, cosines, plain, tokenize
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.protocols import Retriever
from whichsense.text.words import sentence_at
from whichsense.types import Case, Reading

# The readings that are about what was meant before, or that a person's words name.


def find(pipeline: Pipeline, question: str, limits: Limits) -> Case:
    """Ask a question, without what providers keep for themselves."""
    return replace(pipeline.ask(question, limits=limits), scratch=None)


def in_context(
    pipeline: Pipeline, case: Case, topic: Topic, points_back: bool, limits: Limits
) -> Case | None:
    """Return the case of a question with the readings that are about the topic first; None where it stands by itself.

    Where no answer names the topic, the question is asked with the topic's name. What that finds counts if its passage
    speaks of what the question is about, and of no less than what was found without the name; if that was in the
    topic's document, too, what is more probable counts. A question that does not
    point back (by a pronoun, or as a part of one) is about the topic only if there is such evidence.
    """
    wanted = stems(topic.name)
    named = naming(wanted, case)
    beside = _from_titles(topic.titles, case)
    if not named and not wanted <= stems(case.question):
        found = find(pipeline, narrowed(case.question, topic.name, "for"), limits)
        by_name = naming(wanted, found)
        if not by_name and not beside:
            by_name = _from_titles(topic.titles, found)
        by_name = [one for one in by_name if speaks_of(case.question, one)]
        if _outrank(by_name, beside, case):
            return _showing(found, by_name, topic)
    if named or beside:
        return _showing(case, named or beside, topic)
    if points_back:
        return case
    known = [one for one in topic.readings if speaks_of(case.question, one)]
    return case if known and not case.readings else None


def _outrank(by_name: Sequence[Reading], beside: Sequence[Reading], case: Case) -> bool:
    """Whether readings that the topic's name found are better than what was found without it."""
    if not by_name or beside:
        return bool(by_name) and by_name[0].confidence >= beside[0].confidence
    asked, best = stems(case.question), (by_name[0], *case.readings[:1])
    fits = [len(asked & _all_stems(one)) for one in best]
    return fits[0] >= fits[-1]


def naming(wanted: Set[str], case: Case, *, anywhere: bool = False) -> list[Reading]:
    """Return the readings of a case that have all these stems in label and titles, else in the sentence of the answer,
    else `anywhere` in their passages, those without a label first: it says something else. Of those that are merely
    possible, the first counts if it is by label and titles, or `anywhere`."""

    def having(readings: Sequence[Reading]) -> list[Reading]:
        return [one for one in readings if wanted and wanted <= stems_of(one)]

    for stems_of in (_own_stems, _sentence_stems, _all_stems)[: 2 + anywhere]:
        is_own = stems_of is _own_stems
        named = having(case.readings)
        if named:
            return sorted(named, key=lambda one: not is_own and bool(one.label))
        named = having(case.possible[: None if is_own or anywhere else 0])
        if named:
            return named[:1]
    return []


def speaks_of(text: str, reading: Reading) -> bool:
    """Whether a reading's evidence has half of what a text is about, in these words or in others that mean nearly the
    same."""
    known = _all_stems(reading)
    words = tuple({word.text for word in tokenize(plain(_evidence(reading)))})
    about = subject(text)
    said = 0
    for token in about:
        is_near = token.number is None and words
        said += token.stem in known or bool(is_near and cosines(token.text, words).max() >= NEAR)
    return 2 * said >= len(about)


def _from_titles(titles: Collection[str], case: Case) -> list[Reading]:
    return [one for one in case.readings if not set(titles).isdisjoint(_titles(one))]


def _showing(case: Case, readings: Sequence[Reading], topic: Topic) -> Case:
    """The case with these readings alone as probable, the evidence of each from the topic's documents first."""
    rest = [one for one in (*case.readings, *case.possible) if one not in readings]
    shown = [_from_topic(one, case.question, topic) for one in readings]
    return replace(case, readings=tuple(shown), possible=tuple(rest))


def _from_topic(reading: Reading, question: str, topic: Topic) -> Reading:
    own = [one for one in reading.evidence if one.passage.title in topic.titles]
    if not own or own[0] == reading.evidence[0]:
        return reading
    evidence = (*own, *(one for one in reading.evidence if one not in own))
    # Its label and its rewrite are of another document.
    title = own[0].passage.title
    return replace(reading, question=question, label="", source=title, evidence=evidence)


def _own_stems(reading: Reading) -> frozenset[str]:
    """The stems of the label and the titles."""
    return stems(" ".join((reading.label, *_titles(reading))))


def _sentence_stems(reading: Reading) -> frozenset[str]:
    """The same, and those of the sentence that has the answer."""
    said = ""
    for span in reading.evidence[:1]:
        start, end = sentence_at(span.passage.text, span.start)
        said = span.passage.text[start:end]
    return _own_stems(reading) | stems(said)


def _all_stems(reading: Reading) -> frozenset[str]:
    """The same, and those of the passages."""
    return _own_stems(reading) | stems(_evidence(reading))


def _evidence(reading: Reading) -> str:
    spans = reading.evidence
    return " ".join(f"{span.passage.title} {span.passage.text}" for span in spans)


def _titles(reading: Reading) -> list[str]:
    return [span.passage.title for span in reading.evidence]


# What else there is, where none of the options was meant.


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
