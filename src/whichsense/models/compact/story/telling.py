"""What is told of one reading: its answer in a sentence, and facts that go with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.story.facts import Fact, clean, compress, facts
from whichsense.models.compact.story.grammar import word_lists
from whichsense.models.compact.story.grammar.stating import Statement, join, statement
from whichsense.models.compact.story.naming import restore_capitals
from whichsense.protocols import Support
from whichsense.text.function_words import EDIT_STOP_WORDS, WH_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.sentences import sentence_at
from whichsense.text.spans import spans_of
from whichsense.text.words import words
from whichsense.types import Case, Passage, Reading, Span

# Of answers over Wikipedia readers found half of the statements supported that reach .5, three in four from .9 on, and
# all but one of 21 from .95 on.
_LEAST_SUPPORT = 0.95
_LEAST_SUPPORT_OF_SURE = 0.5  # where the reading itself is sure
_SURE = 0.6
# "The" inside a question that begins no name: "The British version".
_LOOSE_ARTICLE = re.compile(
    rf"(?<=[a-z] )The(?= (?:[a-z\d]|(?:{'|'.join(sorted(word_lists.NATIONAL_ADJECTIVES))}) [a-z]))"
)
_NAMED = re.compile(r"[A-Z]\w*|\d+")
_NEAREST = 10  # passages in which names of the question are looked for
_NEAREST_READ = 5  # passages whose sentences are told where too little else is
_SPANS = 3  # of an answer's evidence that are looked at
_AROUND = 200  # characters before the sentence with the answer
_LEAST_NEAR = 0.6  # share of the rewrite's words that stand near the answer
_OWN = 0.2  # added to the share of the sentence in which the answer was found
_LEAST_RELEVANT = 0.2  # share of the rewrite's words in a sentence that answers it
_LEAST_FLUENT = 0.3
_LONGEST_FACT = 30  # words, where cuts allow it
_MOST_WORDS = 45  # words of a fact in any case
_LEAST_SHARED = 2  # content words of the rewrite that a fact has at least
_SAME = 0.75  # share of a statement's words that a fact which says the same has
_LEAST_NEW = 0.5  # share of a fact's words that the text before must not have
_LEAST_NEW_WITH_ANSWER = 0.35


@dataclass(frozen=True, slots=True)
class Telling:
    """One reading with everything that may be told of it."""

    reading: Reading
    stated: Statement | None
    """The answer as a statement, if its passage supports it."""
    passage: Passage
    """What supports the statement, or where the answer stands."""
    answer_fact: Fact | None
    """The sentence of the evidence that holds the answer, shortened."""
    is_relevant: bool
    """Whether that sentence speaks of what the rewrite asks."""
    context: tuple[Fact, ...]
    """Other sentences about it, the nearest first."""

    @property
    def is_attributed(self) -> bool:
        """Whether no sentence holds the answer in a form that can be told."""
        has_fact = self.answer_fact is not None and self.is_relevant
        return self.stated is None and not has_fact

    @property
    def sentence(self) -> tuple[str, Passage]:
        """The answer in one sentence, and what supports it."""
        if self.stated is not None and not self._says_fact():
            return self.stated.text, self.passage
        if self.answer_fact is not None and self.is_relevant:
            return self.answer_fact.text, self.answer_fact.passage
        return attributed([self.reading], self.passage), self.passage

    def adds(self, fact: Fact, told: frozenset[str]) -> bool:
        """Whether a fact says enough that the text before, of which `told` are the stems, does not."""
        least = _LEAST_NEW_WITH_ANSWER if fact is self.answer_fact else _LEAST_NEW
        return says_more(fact.text, told, least)

    def _says_fact(self) -> bool:
        """Whether the sentence of the evidence says what the statement says: it then stands alone."""
        if self.answer_fact is None or self.stated is None:
            return False
        names = set(_NAMED.findall(self.stated.text[1:]))
        if not names <= set(_NAMED.findall(self.answer_fact.text)):
            return False
        stated = content_stems(self.stated.text)
        shared = stated & content_stems(self.answer_fact.text)
        return len(shared) >= _SAME * len(stated)


def attributed(readings: Sequence[Reading], passage: Passage) -> str:
    """Say the answers, each with its label, by the title of the passage in which they were found.

    >>> readings = [Reading("When?", "1989", label="in Malta"), Reading("When?", "1990")]
    >>> attributed(readings, Passage("1", "Dates", ""))
    'The answers found in “Dates” are 1989 (in Malta) and 1990.'
    """
    title = clean(passage.title)
    names = []
    for reading in readings:
        label = f" ({clean(reading.label)})" if reading.label else ""
        names.append(f"{clean(reading.answer)}{label}")
    if len(names) > 1:
        where = f" in “{title}”" if title else ""
        return f"The answers found{where} are {join(names)}."
    # A passage about the answer has it for its title.
    where = f", in “{title}”" if title and title != names[0] else ""
    return f"The answer found is {names[0]}{where}."


def tell(case: Case, reading: Reading, support: Support) -> Telling | None:
    """What can be told of a reading; None where nothing holds its answer."""
    spans = reading.evidence or spans_of(reading.answer, case.hits)
    if not spans:
        return None
    spans = spans[:_SPANS]
    answer_fact, share = _answer_fact(reading, spans)
    is_relevant = share >= _LEAST_RELEVANT
    nearest = [hit.passage for hit in case.hits[:_NEAREST]]
    question = restore_capitals(
        reading.question, [*(span.passage for span in spans), *nearest], case.question
    )
    question = _LOOSE_ARTICLE.sub("the", question)
    stated, passage = _supported_statement(question, reading, spans, support)
    context = _context(reading, spans, answer_fact)
    return Telling(reading, stated, passage, answer_fact, is_relevant, tuple(context))


def _supported_statement(
    question: str, reading: Reading, spans: Sequence[Span], support: Support
) -> tuple[Statement | None, Passage]:
    """The rewrite with its answer, and the first passage that supports it."""
    first = spans[0].passage
    again = reading.asked_again
    if again is not None and not reading.source and 0 < again.fluent < _LEAST_FLUENT:
        return None, first
    stated = statement(question, reading.answer, spans[0])
    if stated is None:
        return None, first
    near = [span for span in spans if _is_near(reading, span)]
    pairs = [(stated.text, evidence_text(span.passage)) for span in near]
    is_sure = reading.confidence >= _SURE
    least = _LEAST_SUPPORT_OF_SURE if is_sure else _LEAST_SUPPORT
    for span, chance in zip(near, support.supports(pairs), strict=True):
        if chance >= least:
            return stated, span.passage
    return None, first


def _is_near(reading: Reading, span: Span) -> bool:
    """Whether the title and the sentences around the answer speak of what the rewrite asks."""
    asked = content_stems(reading.question) - content_stems(reading.answer)
    text = span.passage.text
    start, end = sentence_at(text, span.start)
    around = text[max(0, start - _AROUND) : end + _AROUND // 2]
    shared = asked & content_stems(f"{span.passage.title} {around}")
    return len(shared) >= _LEAST_NEAR * len(asked)


def evidence_text(passage: Passage) -> str:
    """A passage as the judge of support reads it."""
    return f"{passage.title}\n{passage.text}"


def _answer_fact(reading: Reading, spans: Sequence[Span]) -> tuple[Fact | None, float]:
    """Of the told sentences with the answer the one that has the largest share of the rewrite's words, and that share.

    Of equals the first: spans are in the order of their strength.
    """
    asked = content_stems(reading.question) - content_stems(reading.answer)
    best: Fact | None = None
    largest = -1.0
    passages = dict.fromkeys(span.passage for span in spans)
    for fact in (fact for passage in passages for fact in facts(passage)):
        if not _holds(fact.text, reading.answer):
            continue
        shortened = _shorten(fact, [reading.answer])
        share = len(asked & content_stems(shortened.text)) / max(len(asked), 1)
        if any(
            fact.passage is span.passage and fact.holds(span.start) for span in spans
        ):
            share += _OWN
        if share > largest and len(shortened.text.split()) <= _MOST_WORDS:
            best, largest = shortened, share
    return best, largest


def _holds(text: str, answer: str) -> bool:
    """Whether a text has an answer, and not only as part of a word or a number.

    >>> _holds("It costs 120 or 6,780.", "12"), _holds("It costs 12, or more.", "12")
    (False, True)
    """
    whole = rf"(?<![\w])(?<!\d[.,]){re.escape(answer)}(?!\w|[.,]\d)"
    return re.search(whole, text) is not None


def _shorten(fact: Fact, needed: Sequence[str]) -> Fact:
    text = compress(fact.text, needed, _LONGEST_FACT)
    return Fact(text, fact.passage, fact.start, fact.end)


def _context(
    reading: Reading, spans: Sequence[Span], answer_fact: Fact | None
) -> Iterator[Fact]:
    """The sentence with the answer, then those that share most words with the rewrite and the answer."""
    if answer_fact is not None:
        yield answer_fact
    asked = content_stems(f"{reading.question} {reading.answer}")
    others = []
    passages = {span.passage.id: span.passage for span in spans}
    for passage in passages.values():
        for fact in facts(passage):
            if answer_fact is not None and fact.start == answer_fact.start:
                continue
            shared = len(asked & content_stems(fact.text))
            if shared < _LEAST_SHARED:
                continue
            # What names the answer, or opens the passage, says most about it.
            weight = (
                shared + 2 * _holds(fact.text, reading.answer) + 2 * (fact.start == 0)
            )
            others.append((weight, _shorten(fact, ())))
    others.sort(key=lambda one: -one[0])
    for _, fact in others:
        if len(fact.text.split()) <= _MOST_WORDS:
            yield fact


def says_more(text: str, told: frozenset[str], least: float = _LEAST_NEW) -> bool:
    """Whether enough of a text's words are new beside what was told, of which these are the stems."""
    stems = content_stems(text)
    fresh = stems - told
    return len(fresh) >= 3 and len(fresh) >= least * len(stems)


def nearest_facts(case: Case) -> list[Fact]:
    """Sentences of the best passages that share words with the question: the largest share first, of equals those of
    the better passage."""
    asked = content_stems(case.question)
    near = []
    for hit in case.hits[:_NEAREST_READ]:
        for fact in facts(hit.passage):
            shortened = _shorten(fact, ())
            shared = len(asked & content_stems(shortened.text))
            is_short = len(shortened.text.split()) <= _MOST_WORDS
            if is_short and shared >= min(_LEAST_SHARED, len(asked)):
                near.append((shared, shortened))
    near.sort(key=lambda one: -one[0])
    return [fact for _, fact in near]


def content_stems(text: str) -> frozenset[str]:
    """The stems of a text's content words."""
    return frozenset(
        porter_stem(word)
        for word in words(text)
        if word not in EDIT_STOP_WORDS and word not in WH_WORDS
    )
