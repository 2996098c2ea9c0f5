"""Long answers: sentences of the evidence, each in its context and cited, composed into a paragraph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from whichsense.models.compact.clarifier import clarify
from whichsense.models.compact.phrases import Kind, kind_of
from whichsense.text.answers import parse_date
from whichsense.text.clarification import say_dependence
from whichsense.text.words import (
    EDIT_STOP_WORDS,
    WH_WORDS,
    porter_stem,
    sentence_spans,
    spans_of,
    words,
)
from whichsense.types import Case, Citation, LongAnswer, Passage, Reading, Span

# The sentences of a passage that can be told: clean and whole.

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|&[a-z]{2,8};")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]")
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-z]|citation needed|note \d+)\]")
_BEFORE_MARK = re.compile(r"\s+((?:['’]s|n['’]t)\b|[,;.](?=\s|$))")
_ENDS = re.compile(r"(?<!\b[A-Z])[.!][\"'”’)\]]*$")
_ODD = re.compile(r"https?:|www\.|[|{}<>\\=_~^*]|\.\.\.|…|\b\w{40,}")
_BRACKETS = re.compile(r" ?\([^()]*\)| ?\[[^\[\]]*\]")
_SHORTEST, _LONGEST = 4, 60  # words
_MOST_SENTENCES = 40
# What a sentence begins with that goes on from the one before.
_REFERENCES = frozenset(
    "he she it they his her its their this that these those such both others another there here later instead"
    " afterwards subsequently".split()
)
# Kinds of words that are no names; an auxiliary may be one: "Will Smith".
_LOWER_KINDS = (Kind.ARTICLE, Kind.PREPOSITION, Kind.CONJUNCTION, Kind.PRONOUN, Kind.WH)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence of a passage."""

    text: str
    passage: Passage
    number: int
    """Which of the passage's sentences it is."""
    start: int
    end: int

    @property
    def refers_back(self) -> bool:
        """Whether it goes on from the sentence before."""
        return words(self.text)[0] in _REFERENCES

    @property
    def size(self) -> int:
        return len(self.text.split())


@lru_cache(maxsize=256)
def facts(passage: Passage) -> tuple[Fact, ...]:
    """Return every whole sentence of a passage, in order, without brackets."""
    found = []
    for number, (start, end) in enumerate(islice(sentence_spans(passage.text), _MOST_SENTENCES)):
        text = clean(passage.text[start:end])
        if number == 0:
            text = _without_heading(text, clean(passage.title))
        if is_whole(text):
            found.append(Fact(_capitalized(text), passage, number, start, end))
    return tuple(found)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _without_heading(text: str, title: str) -> str:
    """Return a first sentence without the title that some corpora put before it, such as one in fifteen passages of
    Wikipedia dumps.

    >>> _without_heading("Al Lee (singer) Albert Lee was a singer.", "Al Lee (singer)")
    'Albert Lee was a singer.'
    """
    if not title or not text.startswith(f"{title} "):
        return text
    rest = text[len(title) :].lstrip()
    name = words(title.partition(" (")[0])
    repeats_name = name[-1:] and name[-1] in words(rest)[: len(name) + 3]
    return rest if rest[:1].isupper() and repeats_name else text


def is_whole(text: str) -> bool:
    """Return whether a text is one whole sentence, and no heading or fragment.

    >>> is_whole("It was released in 1989."), is_whole("released in 1989."), is_whole("Cast and crew.")
    (True, False, False)
    """
    if not _SHORTEST <= len(text.split()) <= _LONGEST or not _ENDS.search(text):
        return False
    if not (text[0].isupper() or text[0].isdigit() or text[0] in "\"“'‘"):
        return False
    is_odd = _ODD.search(text) or text.count('"') % 2 or text.count("(") != text.count(")")
    return not is_odd


def clean(text: str) -> str:
    """Return a piece of a passage on one line, without tags, control characters and numbers of notes.

    >>> clean('He <b>won</b>\\x07 it[3] , in ""1989"" .')
    'He won it, in "1989".'
    """
    plain = _NOTE.sub("", _TAG.sub(" ", _CONTROL.sub("", text.replace("&amp;", "&"))))
    for quotation in ('""', "``", "''"):
        plain = plain.replace(quotation, '"')
    return _BEFORE_MARK.sub(r"\1", " ".join(plain.split()))


def _without_brackets(fact: Fact, answer: str) -> Fact:
    """Return a fact without what stands in brackets, but for the answer."""
    kept = _BRACKETS.sub(
        lambda inside: inside[0] if answer and answer in inside[0] else "", fact.text
    )
    return replace(fact, text=_BEFORE_MARK.sub(r"\1", " ".join(kept.split())))


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    content = []
    for word in words(text):
        if word not in EDIT_STOP_WORDS and word not in WH_WORDS:
            content.append(porter_stem(word))
    return frozenset(content)


# What is told of one reading: its answer in a sentence of the evidence, and facts that go with it.

_NEAREST_READ = 5  # passages whose sentences are told where too little else is
_SPANS = 3  # of an answer's evidence that are looked at
_OWN = 0.2  # added to the share of the sentence in which the answer was found
_LEAST_RELEVANT = 0.2  # share of the question's words in a sentence that answers it
_MOST_WORDS = 45  # words of a fact beside the answer's
_LEAST_SHARED = 2  # content words of the question that a fact has at least
_LEAST_NEW = 0.5  # share of a fact's words that the text before must not have


@dataclass(frozen=True, slots=True)
class _Telling:
    """One reading with what may be told of it."""

    reading: Reading
    passage: Passage
    """Where the answer stands."""
    fact: Fact | None
    """The sentence that holds the answer and speaks of what is asked."""
    context: tuple[Fact, ...]
    """Other sentences about it, the nearest first."""


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
        names.append(f"{clean(reading.answer).rstrip('.')}{label}")
    names = list(dict.fromkeys(names))
    if len(names) > 1:
        where = f" in “{title}”" if title else ""
        return f"The answers found{where} are {join(names)}."
    # A passage about the answer has it for its title.
    where = f", in “{title}”" if title and title != names[0] else ""
    return f"The answer found is {names[0]}{where}."


def _tell(case: Case, reading: Reading) -> _Telling | None:
    """Return what can be told of a reading; None where nothing holds its answer."""
    spans = (reading.evidence or spans_of(reading.answer, case.hits))[:_SPANS]
    if not spans:
        return None
    fact = _answer_fact(reading, spans)
    context = _context(reading, spans, fact)
    return _Telling(reading, fact.passage if fact else spans[0].passage, fact, tuple(context))


def _answer_fact(reading: Reading, spans: Sequence[Span]) -> Fact | None:
    """Return the sentence with the answer that has the largest share of the question's words; None where none has
    enough of them. Of equals the first: spans are in the order of their strength."""
    asked = content_stems(f"{reading.question} {reading.label}") - content_stems(reading.answer)
    best: Fact | None = None
    largest = _LEAST_RELEVANT
    for fact in _facts_of(spans):
        if not _tells(fact, reading.answer):
            continue
        shorter = _without_brackets(fact, reading.answer)
        share = len(asked & content_stems(shorter.text)) / max(len(asked), 1)
        share += _OWN * any(_is_at(fact, span) for span in spans)
        if share > largest or (best is None and share == largest):
            best, largest = shorter, share
    return best


def _facts_of(spans: Sequence[Span]) -> Iterator[Fact]:
    for passage in dict.fromkeys(span.passage for span in spans):
        yield from facts(passage)


def _is_at(fact: Fact, span: Span) -> bool:
    return fact.passage == span.passage and fact.start <= span.start < fact.end


def _tells(fact: Fact, answer: str) -> bool:
    """Return whether a fact has an answer, or is of a passage about it."""
    return _holds(fact.text, answer) or _holds(clean(fact.passage.title), answer)


def _holds(text: str, answer: str) -> bool:
    """Return whether a text has an answer, and not only as part of a word or a number.

    >>> _holds("It costs 120 or 6,780.", "12"), _holds("It costs 12, or more.", "12")
    (False, True)
    """
    whole = rf"(?<![\w])(?<!\d[.,]){re.escape(answer)}(?!\w|[.,]\d)"
    return re.search(whole, text) is not None


def _context(reading: Reading, spans: Sequence[Span], answer_fact: Fact | None) -> list[Fact]:
    """Return the sentences that share most words with the question and the answer; what names the answer or opens the
    passage says most about it."""
    asked = content_stems(f"{reading.question} {reading.answer}")
    others = []
    for fact in _facts_of(spans):
        shorter = _without_brackets(fact, "")
        shared = len(asked & content_stems(shorter.text))
        is_told = answer_fact is not None and (fact.passage, fact.number) == (
            answer_fact.passage,
            answer_fact.number,
        )
        is_short_sentence = shorter.size <= _MOST_WORDS and ": " not in shorter.text
        if is_short_sentence and not is_told and shared >= _LEAST_SHARED:
            weight = shared + 2 * _holds(fact.text, reading.answer) + 2 * (fact.number == 0)
            others.append((weight, shorter))
    others.sort(key=lambda one: -one[0])
    return [fact for _, fact in others]


def _in_context(fact: Fact, answer: str) -> str:
    """Return an answer's sentence, after its passage's title where it does not say what it is about.

    >>> passage = Passage("1", "Batman (1989 film)", "")
    >>> _in_context(Fact("He played the Joker.", passage, 1, 0, 20), "Nicholson")
    'According to “Batman (1989 film)”, he played the Joker.'
    """
    title = clean(fact.passage.title)
    in_both = content_stems(fact.text) & content_stems(title)
    says_title = not fact.refers_back and not all(map(str.isdigit, in_both))
    if not title or (says_title and _holds(fact.text, answer)):
        return fact.text
    return f"According to “{title}”{_continued(fact.text)}"


def _continued(text: str) -> str:
    """Return a sentence as it goes on after a comma; after a colon where its first word may need its capital, or where
    it is a row of values."""
    first = text.split(maxsplit=1)[0].rstrip(",")
    if kind_of(first) in _LOWER_KINDS or first.lower() in _REFERENCES:
        return f", {text[0].lower()}{text[1:]}"
    return f": {text}"


def _says_more(text: str, told: frozenset[str]) -> bool:
    """Return whether enough of a text's words are new beside what was told, of which these are the stems."""
    stems = content_stems(text)
    fresh = stems - told
    return len(fresh) >= 3 and len(fresh) >= _LEAST_NEW * len(stems)


def _nearest_facts(case: Case) -> list[Fact]:
    """Return sentences of the best passages that share most words with the question, those of better ones first."""
    asked = content_stems(case.question)
    near = []
    for hit in case.hits[:_NEAREST_READ]:
        for fact in facts(hit.passage):
            shorter = _without_brackets(fact, "")
            shared = len(asked & content_stems(shorter.text))
            if shorter.size <= _MOST_WORDS and shared >= min(_LEAST_SHARED, len(asked)):
                near.append((shared, shorter))
    near.sort(key=lambda one: -one[0])
    return [fact for _, fact in near]


# Compose the paragraph: why there are several answers, every answer in its order, and what belongs to it.

_CITED_NEAREST = 3  # passages that are cited where there is no answer
_YEAR = re.compile(r"\b((?:1[0-9]|20)\d\d)s?\b")


@dataclass(frozen=True, slots=True)
class Length:
    """How many words a long answer has; for people one reading takes one or two sentences."""

    least: int = 60
    most: int = 100


@dataclass(slots=True)
class _Paragraph:
    """The sentences of a long answer, in groups of one reading each, while they are collected."""

    length: Length
    groups: list[list[Citation]]

    @property
    def text(self) -> str:
        return " ".join(citation.sentence for group in self.groups for citation in group)

    def add(self, group: int, fact: Fact, previous: Fact | None) -> bool:
        """Add a fact to a group if it fits, says something new and stands alone, or follows its own previous sentence;
        return whether it was added."""
        follows = (
            previous is not None
            and previous.passage == fact.passage
            and previous.number + 1 == fact.number
            and len(self.groups[group]) == 1
        )
        fits = len(self.text.split()) + fact.size <= self.length.most
        stands = follows or not fact.refers_back
        if not (fits and stands and _says_more(fact.text, content_stems(self.text))):
            return False
        self.groups[group].append(Citation(fact.text, (fact.passage,)))
        return True

    def is_long_enough(self) -> bool:
        return len(self.text.split()) >= self.length.least


def write_story(case: Case, length: Length) -> LongAnswer:
    """Write the long answer of a case: every sentence with the passages that support it."""
    tellings = []
    for reading in _in_order(case.readings):
        telling = _tell(case, reading)
        if telling is not None:
            tellings.append(telling)
    groups = _one_by_one(tellings, in_context=case.policy.careful)
    if not tellings:
        groups = [_nothing(case)]
    elif len(tellings) > 1:
        groups.insert(0, [_opening(case, groups)])
    paragraph = _Paragraph(length, groups)
    _add_context(paragraph, tellings)
    if not case.policy.careful:
        for fact in _nearest_facts(case):
            if paragraph.is_long_enough():
                break
            paragraph.add(-1, fact, None)
    sentences = tuple(citation for group in paragraph.groups for citation in group)
    return LongAnswer(case.question, sentences)


def _nothing(case: Case) -> list[Citation]:
    """Say that there is no answer, and what the nearest passages are about."""
    nearest = tuple(hit.passage for hit in case.hits[:_CITED_NEAREST])
    if not nearest:
        return []
    titles = list(dict.fromkeys(f"“{one.title}”" for one in nearest if one.title))
    text = "No answer to this question was found"
    if titles:
        text += f"; the nearest passages are from {join(titles)}"
    return [Citation(f"{text}.", nearest)]


def _one_by_one(tellings: Sequence[_Telling], *, in_context: bool) -> list[list[Citation]]:
    """Return a sentence for each answer. One that gives several answers is told once, where the first of them is."""
    groups: list[list[Citation]] = []
    seen: set[str] = set()
    for telling in tellings:
        if telling.fact is None:
            text = attributed(_found_in(telling.passage, tellings), telling.passage)
        elif in_context or not _holds(telling.fact.text, telling.reading.answer):
            text = _in_context(telling.fact, telling.reading.answer)
        else:
            text = telling.fact.text
        is_told = text in seen
        seen.add(text)
        groups.append([] if is_told else [Citation(text, (telling.passage,))])
    return groups


def _found_in(passage: Passage, tellings: Sequence[_Telling]) -> list[Reading]:
    """Return the readings with an answer in a passage that no sentence tells."""
    found = []
    for telling in tellings:
        if telling.fact is None and telling.passage.id == passage.id:
            found.append(telling.reading)
    return found


def _opening(case: Case, groups: Sequence[Sequence[Citation]]) -> Citation:
    """Say that there are several answers and, to people, what they depend on; it cites what supports each of them."""
    passages = dict.fromkeys(
        passage for group in groups for one in group for passage in one.passages
    )
    asked = clarify(case) if case.policy.careful else None
    if asked is not None and asked.category != "one":
        text = say_dependence(asked)
    else:
        question = case.question.strip().rstrip("?").rstrip()
        text = f"“{_capitalized(question)}” has more than one answer in the sources."
    return Citation(text, tuple(passages))


def _add_context(paragraph: _Paragraph, tellings: Sequence[_Telling]) -> None:
    """Add facts of each reading in turn, after its answer, until there are enough words; to an only answer one."""
    first = len(paragraph.groups) - len(tellings)
    queues = [list(telling.context) for telling in tellings]
    if len(tellings) == 1:
        queues = [queues[0][:0]]
    while any(queues) and not paragraph.is_long_enough():
        for number, (queue, telling) in enumerate(zip(queues, tellings, strict=True), first):
            while queue and not paragraph.add(number, queue.pop(0), telling.fact):
                pass


def _in_order(readings: Sequence[Reading]) -> list[Reading]:
    """Return readings by time where each has a year, else as they are."""
    times = [_time(reading) for reading in readings]
    placed = [time for time in times if time is not None]
    if len(placed) < len(readings):
        return list(readings)
    order = sorted(range(len(readings)), key=lambda number: placed[number])
    return [readings[number] for number in order]


def _time(reading: Reading) -> tuple[int, ...] | None:
    """Return the date that a reading is about: of its answer, of its rewrite or label, or of its title."""
    date = parse_date(reading.answer)
    if date is not None and date.year is not None:
        return (date.year, date.month or 0, date.day or 0)
    title = reading.evidence[0].passage.title if reading.evidence else ""
    for text in (f"{reading.question} {reading.label}", title):
        year = _YEAR.search(text)
        if year:
            return (int(year[1]), 0, 0)
    return None


def join(items: Sequence[str]) -> str:
    """Join items with commas and "and"; with semicolons where an item has a comma itself.

    >>> join(["a", "b"]), join(["a", "b", "c"]), join(["a, x", "b", "c"])
    ('a and b', 'a, b, and c', 'a, x; b; and c')
    """
    *first, last = items
    if len(items) < 3:
        between = ", and " if any(", " in item for item in items) else " and "
        return between.join(items)
    mark = "; " if any(", " in item for item in items) else ", "
    return f"{mark.join(first)}{mark}and {last}"
