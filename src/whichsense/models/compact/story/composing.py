"""Compose the paragraph: why there are several answers, every answer, and what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.story.casing import restore_capitals
from whichsense.models.compact.story.grammar.questions import parse_question
from whichsense.models.compact.story.listing import join, list_statements
from whichsense.models.compact.story.relating import in_order, what_differs
from whichsense.models.compact.story.telling import (
    Telling,
    attributed,
    content_stems,
    nearest_facts,
    says_more,
    tell,
)
from whichsense.protocols import Support
from whichsense.types import Case, Citation, LongAnswer, Passage, Reading

_NEAREST = 3  # passages that are cited where there is no answer
_LONGEST_LIST = 70  # words of one sentence


@dataclass(frozen=True, slots=True)
class Length:
    """How many words a long answer has; one reading takes one or two sentences."""

    least: int = 60
    most: int = 100


def write_story(case: Case, support: Support, length: Length) -> LongAnswer:
    """The long answer of a case: every sentence with the passages that support it."""
    tellings = _tell_all(case, in_order(case.readings), support)
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
    differs = what_differs(question, readings)
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
