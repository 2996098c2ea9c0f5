"""Find the readings that are meant: those that words name, and those of what is talked about."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, replace

from whichsense.conversation.followups import Topic, narrowed, stems, subject
from whichsense.conversation.matching import NEAR, cosines, plain, tokenize
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.protocols import Retriever
from whichsense.text.answers import parse_numbers
from whichsense.text.words import sentence_at
from whichsense.types import Case, Reading

# The readings that are about what was meant before, or that a person's words name.

_ITEM = re.compile(r".+?(?:[,;]\s|$)", re.DOTALL)  # of a list


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
        found, by_name = _by_name(pipeline, case, topic, limits)
        if _outrank(by_name, beside, case):
            return _showing(found, by_name, topic)
    if named or beside:
        return _showing(case, named or beside, topic)
    return case if points_back or _is_known(case, topic) else None


def _by_name(
    pipeline: Pipeline, case: Case, topic: Topic, limits: Limits
) -> tuple[Case, list[Reading]]:
    """What the question with the topic's name finds, and which of it is about the topic and the question."""
    found = find(pipeline, narrowed(case.question, topic.name, "for"), limits)
    named = naming(stems(topic.name), found)
    if not named and not _from_titles(topic.titles, case):
        named = _from_titles(topic.titles, found)
    return found, [one for one in named if speaks_of(case.question, one)]


def _is_known(case: Case, topic: Topic) -> bool:
    """Whether what was answered before speaks of a question that has no answer."""
    known = (speaks_of(case.question, one) for one in topic.readings)
    return not case.readings and any(known)


def _outrank(by_name: Sequence[Reading], beside: Sequence[Reading], case: Case) -> bool:
    """Whether readings that the topic's name found are better than what was found without it."""
    if not by_name or beside:
        return bool(by_name) and by_name[0].confidence >= beside[0].confidence
    asked, best = stems(case.question), (by_name[0], *case.readings[:1])
    fits = [len(asked & _all_stems(one)) for one in best]
    return fits[0] >= fits[-1]


def naming(wanted: Set[str], case: Case, *, anywhere: bool = False) -> list[Reading]:
    """Return the readings of a case that have all these stems in the answer, else in label and titles, else with the
    answer in its sentence, else `anywhere` in their passages, those without a label first: it says something else. Of
    those that are merely possible, the first counts if it is by answer, label and titles, or `anywhere`."""
    for stems_of in (_answer_stems, _own_stems, _sentence_stems, _all_stems)[: 3 + anywhere]:
        is_own = stems_of in (_answer_stems, _own_stems)
        named = _having(wanted, case.readings, stems_of)
        if stems_of is _all_stems:
            named = _one_of_each(named)
        if named:
            return sorted(named, key=lambda one: not is_own and bool(one.label))
        if is_own or anywhere:
            named = _having(wanted, case.possible, stems_of)[:1]
        if named:
            return named
    return []


def _having(
    wanted: Set[str], readings: Sequence[Reading], stems_of: Callable[[Reading], Set[str]]
) -> list[Reading]:
    having = [one for one in readings if wanted and wanted <= stems_of(one)]
    if stems_of in (_answer_stems, _own_stems):
        return having
    return [one for one in having if not is_of_another(wanted, one)]


def _one_of_each(readings: Sequence[Reading]) -> list[Reading]:
    """Those without a label, or all; none where two are of one passage, which then tells nothing of them."""
    plain_ones = [one for one in readings if not one.label] or list(readings)
    passages = {span.passage.id for one in plain_ones for span in one.evidence[:1]}
    return plain_ones if len(passages) == len(plain_ones) else []


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


def _answer_stems(reading: Reading) -> frozenset[str]:
    return stems(reading.answer)


def _own_stems(reading: Reading) -> frozenset[str]:
    """The stems of the label and the titles."""
    return stems(" ".join((reading.label, *_titles(reading))))


def _sentence_stems(reading: Reading) -> frozenset[str]:
    """The same, and those of the sentence that has the answer, without other items of its list."""
    return _own_stems(reading) | stems(_items(reading)[0])


def is_of_another(wanted: Set[str], reading: Reading) -> bool:
    """Say whether stems are those of another item of the list that has the answer: "Malta 29, Uruguay 21"."""
    own, others = map(stems, _items(reading))
    return not wanted.isdisjoint(others - own - _own_stems(reading))


def _items(reading: Reading) -> tuple[str, str]:
    """The sentence of an answer that is a number, without the items of a list that have numbers of their own, and these
    items; what stands before a colon is said of all."""
    own, others = "", ""
    for span in reading.evidence[:1]:
        start, end = sentence_at(span.passage.text, span.start)
        sentence = span.passage.text[start:end]
        first = sentence.find(":") + 1
        own = sentence[:first]
        for item in _ITEM.finditer(sentence, first):
            is_asked = item.start() <= span.start - start < item.end() or not _has_number(
                reading.answer
            )
            is_asked = is_asked or span.start - start < first or not _has_number(item[0])
            own, others = (own + item[0], others) if is_asked else (own, others + item[0])
    return own, others


def _has_number(text: str) -> bool:
    return bool(parse_numbers(plain(text))[0])


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
