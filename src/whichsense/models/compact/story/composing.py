"""Compose the paragraph: why there are several answers, every answer in its order, and what belongs to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from whichsense.models.compact.story.grammar import word_lists
from whichsense.models.compact.story.grammar.gaps import parse_question
from whichsense.models.compact.story.grammar.stating import join, list_statements
from whichsense.models.compact.story.naming import (
    is_same_kind,
    restore_capitals,
    work_of,
)
from whichsense.models.compact.story.telling import (
    Telling,
    attributed,
    content_stems,
    nearest_facts,
    says_more,
    tell,
)
from whichsense.protocols import Support
from whichsense.text.dates import parse_date
from whichsense.text.sentences import sentence_at
from whichsense.types import Case, Citation, LongAnswer, Passage, Reading

_NEAREST = 3  # passages that are cited where there is no answer
_LONGEST_LIST = 70  # words of one sentence
_YEAR = re.compile(r"\b((?:1[0-9]|20)\d\d)s?\b")
_PLACE = re.compile(r"\b(?:in|at) (?:the )?[A-Z]")
_NAME = re.compile(r"\b[A-Z][\w’'.-]*(?: (?:of |the )*[A-Z][\w’'-]*)*")
_WORDS = re.compile(r"[\w’'.-]*\w")
_ORDINAL = re.compile(r"\b(?:season|series|episode|volume|part|book) (\d+)\b", re.I)


@dataclass(frozen=True, slots=True)
class Length:
    """How many words a long answer has; one reading takes one or two sentences."""

    least: int = 60
    most: int = 100


def write_story(case: Case, support: Support, length: Length) -> LongAnswer:
    """The long answer of a case: every sentence with the passages that support it."""
    tellings = _tell_all(case, _in_order(case.readings), support)
    if not tellings:
        sentences = _nothing(case)
    elif len(tellings) == 1:
        sentences = _one_answer(tellings[0], length)
    else:
        sentences = _several_answers(case.question, tellings, length)
    if not case.policy.careful:
        _add_nearest(sentences, case, length)
    return LongAnswer(case.question, tuple(sentences))


def _tell_all(
    case: Case, readings: Sequence[Reading], support: Support
) -> list[Telling]:
    tellings = []
    for reading in readings:
        telling = tell(case, reading, support)
        if telling is not None:
            tellings.append(telling)
    return tellings


def _add_nearest(sentences: list[Citation], case: Case, length: Length) -> None:
    """Sentences of the best passages that have most words of the question, while there are too few words."""
    text = " ".join(citation.sentence for citation in sentences)
    for fact in nearest_facts(case):
        size = len(text.split())
        if size >= length.least:
            return
        if size + len(fact.text.split()) > length.most:
            continue
        if says_more(fact.text, content_stems(text)):
            sentences.append(Citation(fact.text, (fact.passage,)))
            text = f"{text} {fact.text}"


def _nothing(case: Case) -> list[Citation]:
    """That there is no answer, and what the nearest passages are about."""
    nearest = tuple(hit.passage for hit in case.hits[:_NEAREST])
    if not nearest:
        return []
    titles = list(dict.fromkeys(f"“{one.title}”" for one in nearest if one.title))
    text = "No answer to this question was found"
    if titles:
        text += f"; the nearest passages are from {join(titles)}"
    return [Citation(f"{text}.", nearest)]


def _one_answer(telling: Telling, length: Length) -> list[Citation]:
    """The answer, and one more sentence if it says something new."""
    text, passage = telling.sentence
    sentences = [Citation(text, (passage,))]
    fact = telling.answer_fact
    if fact is not None and telling.adds(fact, content_stems(text)):
        count = len(text.split()) + len(fact.text.split())
        if count <= length.most:
            sentences.append(Citation(fact.text, (fact.passage,)))
    return sentences


def _several_answers(
    question: str, tellings: Sequence[Telling], length: Length
) -> list[Citation]:
    """The opening, the answers in a list or one by one, and context until there are enough words."""
    listed = _listed(tellings)
    if listed is not None:
        opening = _opening(question, tellings, listed.passages)
        groups = [[opening, listed], *([] for _ in tellings)]
    else:
        told = _one_by_one(tellings)
        passages = _distinct([one.passages[0] for group in told for one in group])
        opening = _opening(question, tellings, passages)
        groups = [[opening], *told]
    _add_context(groups, tellings, length)
    return [citation for group in groups for citation in group]


def _one_by_one(tellings: Sequence[Telling]) -> list[list[Citation]]:
    """A sentence for each answer. One that gives several answers is told once, where the first of them is."""
    groups: list[list[Citation]] = []
    seen: set[str] = set()
    for telling in tellings:
        text, passage = telling.sentence
        if telling.is_attributed:
            attributed_here = []
            for other in tellings:
                if other.is_attributed and other.passage.id == passage.id:
                    attributed_here.append(other.reading)
            text = attributed(attributed_here, passage)
        is_told = text in seen
        seen.add(text)
        groups.append([] if is_told else [Citation(text, (passage,))])
    return groups


def _opening(
    question: str, tellings: Sequence[Telling], passages: tuple[Passage, ...]
) -> Citation:
    """Why there are several answers; it cites what supports each of them."""
    readings = [telling.reading for telling in tellings]
    gap = parse_question(restore_capitals(question, passages))
    differs = _what_differs(question, readings)
    clause = gap.clause if gap is not None else ""
    # What is asked was not stated of each answer: the passages may not speak of it at all.
    if any(telling.stated is None for telling in tellings):
        differs = clause = ""
    if differs:
        text = f"{clause or 'the answer'} depends on {differs}."
    elif clause:
        text = f"The sources differ on {clause}."
    else:
        text = f"“{_as_quoted(question)}” has more than one answer in the sources."
        return Citation(text, passages)
    return Citation(text[0].upper() + text[1:], passages)


def _as_quoted(question: str) -> str:
    """A question as it stands between quotation marks.

    >>> _as_quoted("who sang it? ")
    'Who sang it'
    """
    words = question.strip().rstrip("?").rstrip()
    return words[:1].upper() + words[1:]


def _listed(tellings: Sequence[Telling]) -> Citation | None:
    """One sentence for all answers; None where they have no form in common."""
    statements = [one.stated for one in tellings if one.stated is not None]
    if len(statements) < len(tellings):
        return None
    text = list_statements(statements)
    if not text or len(text.split()) > _LONGEST_LIST:
        return None
    passages = _distinct([telling.passage for telling in tellings])
    return Citation(f"{text[0].upper()}{text[1:]}.", passages)


def _add_context(
    groups: list[list[Citation]], tellings: Sequence[Telling], length: Length
) -> None:
    """Facts of each reading in turn, behind its answer, until there are enough words."""
    text = " ".join(citation.sentence for group in groups for citation in group)
    count = len(text.split())
    told = content_stems(text)
    queues = [list(telling.context) for telling in tellings]
    while count < length.least and any(queues):
        for group, queue, telling in zip(groups[1:], queues, tellings, strict=True):
            while queue:
                fact = queue.pop(0)
                size = len(fact.text.split())
                if count + size <= length.most and telling.adds(fact, told):
                    group.append(Citation(fact.text, (fact.passage,)))
                    count += size
                    told |= content_stems(fact.text)
                    break


def _distinct(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    return tuple(dict.fromkeys(passages))


def _in_order(readings: Sequence[Reading]) -> list[Reading]:
    """Readings by time where each has a year, by number where each is a numbered part, else by importance."""
    for key in (_time, _number):
        keys = [key(reading) for reading in readings]
        if all(one is not None for one in keys) and len(set(keys)) > 1:
            places = sorted(range(len(readings)), key=lambda place: keys[place] or ())
            return [readings[place] for place in places]
    return list(readings)


def _time(reading: Reading) -> tuple[int, ...] | None:
    """The date that a reading is about: of its answer, of its rewrite, or of its title."""
    date = parse_date(reading.answer)
    if date is not None and date.year is not None:
        return (date.year, date.month or 0, date.day or 0)
    for text in (reading.question, _title(reading), _evidence_sentence(reading)):
        year = _YEAR.search(text)
        if year:
            return (int(year[1]),)
    return None


def _evidence_sentence(reading: Reading) -> str:
    if not reading.evidence:
        return ""
    span = reading.evidence[0]
    start, end = sentence_at(span.passage.text, span.start)
    return span.passage.text[start:end]


def _number(reading: Reading) -> tuple[int, ...] | None:
    match = _ORDINAL.search(reading.question)
    return (int(match[1]),) if match else None


def _what_differs(question: str, readings: Sequence[Reading]) -> str:
    """What the answer depends on, by what the rewrites add; empty where they do not say.

    >>> readings = [Reading("Who won it in 1998?", "A"), Reading("Who won it in 2002?", "B")]
    >>> _what_differs("Who won it?", readings)
    'the year'
    """
    rewrites = [reading.question for reading in readings]
    if len(set(rewrites)) < len(rewrites):
        return ""
    added = [_added(question, rewrite) for rewrite in rewrites]
    if sum(map(bool, added)) < len(added) - 1:
        return ""
    kinds = _works(readings) or [_kind(text) for text in added]
    if all(kinds):
        is_one_kind = all(is_same_kind(kinds[0], kind) for kind in kinds)
        return f"the {kinds[0]}" if is_one_kind else "the version"
    for pattern, noun in ((_YEAR, "the year"), (_PLACE, "the place")):
        if all(pattern.search(text) for text in added):
            return noun
    titles = {one.evidence[0].passage.title for one in readings if one.evidence}
    if len(titles) == 1:  # one document tells its cases apart: no name has two senses
        return "the case"
    name = _shared_name(question, readings)
    return f"which {name} is meant" if name else "what is meant"


def _added(question: str, rewrite: str) -> str:
    """The words that a rewrite adds to a question."""
    before, after = question.rstrip("?").split(), rewrite.rstrip("?").split()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    added: list[str] = []
    for tag, _, _, start, stop in matcher.get_opcodes():
        if tag in ("insert", "replace"):
            added += after[start:stop]
    return " ".join(added)


def _shared_name(question: str, readings: Sequence[Reading]) -> str:
    """The longest name in the question whose words all stand in the title of every reading's evidence."""
    for match in sorted(_NAME.finditer(question, 1), key=lambda one: -len(one[0])):
        name = match[0].removesuffix("’s").removesuffix("'s")
        if name.startswith("The "):
            continue
        parts = set(name.split())
        if all(parts <= set(_WORDS.findall(_title(one))) for one in readings):
            return name
    return ""


def _title(reading: Reading) -> str:
    return reading.evidence[0].passage.title if reading.evidence else ""


def _works(readings: Sequence[Reading]) -> list[str]:
    """The kinds of the works that the evidence is about; empty where not each reading has a work of its own."""
    kinds = []
    for reading in readings:
        work = work_of(reading.evidence[0].passage) if reading.evidence else None
        if work is None:
            return []
        kinds.append(work.kind)
    is_distinct = len({_title(reading) for reading in readings}) == len(readings)
    return kinds if is_distinct else []


def _kind(text: str) -> str:
    """The kind of work that a text names: the last such word."""
    kind = ""
    for word in re.findall(r"[a-z]+", text):
        if word in word_lists.WORK_NOUNS:
            kind = word
    return kind
