"""Ambiguity, clarifications and long answers by a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from whichsense.models.compact.story import is_whole
from whichsense.models.llm.endpoint import LLMFault, Reply, clean, fence
from whichsense.models.llm.talk import (
    Talk,
    best_window,
    choice_probability,
    fence_lines,
    numbered_answers,
    without_thoughts,
)
from whichsense.text.clarification import ParsedClarification, parse_clarification
from whichsense.text.words import SMALL_WORDS, normalize, porter_stem, sentence_spans, words
from whichsense.types import Case, Citation, Passage, Reading

# Detects ambiguity: with the answers that were found, is the question meant in several ways?

_MOST_TOKENS = 4
_TOP = 8


def detect_ambiguity(talk: Talk, case: Case, threshold: float = 0.5) -> Case:
    """Return the case with the probability that it is ambiguous. With less than two answers there is nothing to ask."""
    if len(case.answers) < 2:
        return replace(case, is_ambiguous=False)
    request = talk.request(
        "detect",
        _MOST_TOKENS,
        top_logprobs=_TOP,
        question=clean(case.question),
        answers=numbered_answers(case.answers),
    )
    (probability,) = talk.ask([request], _understand)
    if probability is None:
        return case
    return replace(case, ambiguous=probability, is_ambiguous=probability >= threshold)


def _understand(reply: Reply) -> float | None:
    return choice_probability(reply, ("yes", "no")).get("yes")


# Asks which reading is meant: after six examples, and again where the form is not kept.

_CLARIFYING_MOST_TOKENS = 120
_ATTEMPTS = 3
_WARM = 0.7
LONGEST_LABEL = 40
_LONGEST_CATEGORY = 3  # words


def write_clarification(talk: Talk, case: Case) -> ParsedClarification:
    """Return a clarification in the right form: an option for each reading, in their order, in words that are said of
    it. Raises `LLMFault` where the model keeps giving another form.
    """
    lines = []
    for number, reading in enumerate(case.readings, 1):
        text = reading.question
        told = reading.told_apart(case.question)
        if told not in ("", text):
            text = f"{text} ({told})"
        lines.append(f"{number}. {clean(text)}")
    for seed in range(_ATTEMPTS):
        request = talk.request(
            "clarify",
            _CLARIFYING_MOST_TOKENS,
            temperature=_WARM if seed else 0.0,
            seed=seed,
            question=clean(case.question),
            rewrites=fence_lines(lines, "readings"),
            number=str(len(lines)),
        )
        (parsed,) = talk.ask([request], _reader_of(len(lines)))
        if parsed is None or not keeps_form(parsed, len(lines)):
            continue
        pairs = zip(parsed.options, case.readings, strict=True)
        if all(is_of(option, reading) for option, reading in pairs) and tell_apart(
            parsed.options, case.question
        ):
            return parsed
    raise LLMFault(
        f"The language model '{talk.endpoint.model}' wrote no clarification question in the right form."
    )


def _reader_of(count: int) -> Callable[[Reply], ParsedClarification | None]:
    def read(reply: Reply) -> ParsedClarification:
        """Parse any reply; the caller looks at its form and asks again."""
        for line in without_thoughts(reply.text).splitlines():
            parsed = parse_clarification(line.strip("*\"' "), expected=count)
            if parsed is not None:
                return parsed
        return ParsedClarification("", ())

    return read


def is_of(option: str, reading: Reading) -> bool:
    """Tell whether at least half of an option's words are said of its reading: in the rewrite, its label, its source
    or its evidence's title.

    >>> reading = Reading("Who directed the 1996 film Harbour Lights?", "Ida Morrow")
    >>> [is_of(option, reading) for option in ("the 1996 film", "the musical", "in the")]
    [True, False, False]
    """
    titles = [span.passage.title for span in reading.evidence]
    said = " ".join([reading.question, reading.label, reading.source, *titles])
    stems = {porter_stem(word) for word in words(said)}
    own = [word for word in words(option) if word not in SMALL_WORDS]
    shared = sum(porter_stem(word) in stems for word in own)
    return bool(own) and 2 * shared >= len(own)


def tell_apart(options: Sequence[str], question: str) -> bool:
    """Tell whether every option has a word that the question does not have, or none has: a part of the question beside
    something new names no reading, and looks as if the question had chosen it.

    >>> question = "Who plays Leo Bloom in The Producers?"
    >>> tell_apart(("Leo Bloom", "the 1967 film"), question), tell_apart(("2005", "1967"), question)
    (False, True)
    """
    asked = set(words(question)) | SMALL_WORDS
    says_new = [not set(words(option)) <= asked for option in options]
    return all(says_new) or not any(says_new)


def keeps_form(parsed: ParsedClarification, count: int) -> bool:
    """Tell whether there are as many options as readings, distinct, short, and without the category, which is a few
    words.

    >>> keeps_form(ParsedClarification("year", ("2017", "2018")), 2)
    True
    >>> [keeps_form(ParsedClarification("year", options), 2) for options in (("2017",), ("year 2017", "2018"))]
    [False, False]
    >>> keeps_form(ParsedClarification("option sets the reading apart", ("Wyoming", "America")), 2)
    False
    """
    labels = [" ".join(words(option)) for option in parsed.options]
    if len(labels) != count or len(set(labels)) < count:
        return False
    if any(len(option) > LONGEST_LABEL for option in parsed.options):
        return False
    if len(parsed.category.split()) > _LONGEST_CATEGORY:
        return False
    category = set(words(parsed.category)) - {"one"}
    return not any(category & set(label.split()) for label in labels)


# Writes the long answer: sentence by sentence as it streams in, each with the passages that it cites.

_EXPLAINING_MOST_TOKENS = 320
_MOST_PASSAGES = 8
_LONGEST_PASSAGE = 90  # words
_SEVERAL = (60, 100)  # words
_ONE = (12, 40)  # words, where there is one reading
# A paragraph that speaks of itself or of what it was given, and not of what was asked.
_OF_ITSELF = re.compile(
    r"\b(?:the|this|these) (?:paragraphs?|passages?|(?:given|following|provided) texts?)\b|\btext \d"
    r"|\banswers? (?:to )?(?:the|this) question\b|^it (?:mentions|says|states|notes|describes)\b",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"\s*\[(\d+(?:\s*[,;]\s*\d+)*)\]")


def write_supported(
    talk: Talk, case: Case, holds: Callable[[Citation], Citation | None]
) -> Iterator[Citation]:
    """Yield the sentences that say something and that `holds` gives back, with what supports them, until there are
    enough words. Raises `LLMFault` where none is left.
    """
    _, most = words_wanted(case)
    count = 0
    for written in write_sentences(talk, case):
        if not is_told(written.sentence):
            continue
        length = len(written.sentence.split())
        citation = holds(written) if not count or count + length <= most else None
        if citation is not None:
            count += length
            yield citation
    if not count:
        raise LLMFault(
            f"The language model '{talk.endpoint.model}' wrote no sentence that its evidence supports."
        )


def words_wanted(case: Case) -> tuple[int, int]:
    """Return how many words a long answer has, at least and at most."""
    return _ONE if len(case.readings) < 2 else _SEVERAL


def is_told(sentence: str) -> bool:
    """Tell whether a sentence is a whole one about what was asked.

    >>> [is_told(text) for text in ("It opened in 1932.", "Cobalt Bridge.", "The paragraph says when it opened.")]
    [True, False, False]
    >>> is_told("It mentions that the bridge opened in 1932.")
    False
    """
    return is_whole(sentence) and not _OF_ITSELF.search(sentence)


def left_out(readings: Sequence[Reading], sentences: Sequence[Citation]) -> list[Reading]:
    """Return the readings whose answers no sentence gives.

    >>> told = [Citation("Ida Morrow directed the film of 1996.", ())]
    >>> [one.answer for one in left_out([Reading("?", "Ida Morrow"), Reading("?", "Per Lund")], told)]
    ['Per Lund']
    """
    text = normalize(" ".join(citation.sentence for citation in sentences))
    padded = f" {text} "
    return [one for one in readings if f" {normalize(one.answer)} " not in padded]


def write_sentences(talk: Talk, case: Case) -> Iterator[Citation]:
    """Yield the sentences of a long answer as they are written. A sentence that cites nothing has no passages."""
    passages = cited_passages(case)
    texts = [
        fence(
            f"{passage.title}. {best_window(passage.text, case.question, _LONGEST_PASSAGE)}",
            f"text {number}",
        )
        for number, passage in enumerate(passages, 1)
    ]
    lines = [f"- {clean(reading.question)} {clean(reading.answer)}" for reading in case.readings]
    least, most = words_wanted(case)
    request = talk.request(
        "explain",
        _EXPLAINING_MOST_TOKENS,
        question=clean(case.question),
        readings=fence_lines(lines, "readings"),
        texts="\n".join(texts),
        least=str(least),
        most=str(most),
    )
    for sentence in whole_sentences(talk.stream(request)):
        yield cite(sentence, passages)


def cited_passages(case: Case) -> list[Passage]:
    """Return the passages that the readings rest on, the first of every reading before any second one."""
    columns = [[span.passage for span in one.evidence] for one in case.readings]
    passages: dict[str, Passage] = {}
    for row in zip_longest(*columns):
        for passage in row:
            if passage is not None:
                passages.setdefault(passage.id, passage)
    return list(passages.values())[:_MOST_PASSAGES]


def whole_sentences(pieces: Iterator[str]) -> Iterator[str]:
    """Yield sentences out of pieces of text, each as soon as the next one has begun.

    >>> list(whole_sentences(iter(["It opened in 1932 [1]. It ", "closed in 1990 [2]."])))
    ['It opened in 1932 [1].', 'It closed in 1990 [2].']
    """
    text = ""
    given = 0
    for piece in pieces:
        text += piece
        if "<think>" in text and "</think>" not in text:
            continue
        spans = _spans(text)
        for start, end in spans[given:-1]:
            yield _plain(text, start, end)
        given = max(given, len(spans) - 1)
    for start, end in _spans(text)[given:]:
        yield _plain(text, start, end)


def _spans(text: str) -> list[tuple[int, int]]:
    thought = len(text) - len(without_thoughts(text)) if "</think>" in text else 0
    return [span for span in sentence_spans(text) if span[0] >= thought]


def _plain(text: str, start: int, end: int) -> str:
    return " ".join(text[start:end].split())


def cite(sentence: str, passages: Sequence[Passage]) -> Citation:
    """Return a sentence without its numbers, and the passages that these stand for.

    >>> cite("It opened in 1932 [1, 7].", [Passage("a", "Bridge", "It opened in 1932.")]).sentence
    'It opened in 1932.'
    """
    own: dict[str, Passage] = {}
    for match in _NUMBERS.finditer(sentence):
        for number in re.findall(r"\d+", match[1]):
            if 1 <= int(number) <= len(passages):
                passage = passages[int(number) - 1]
                own[passage.id] = passage
    return Citation(_NUMBERS.sub("", sentence).strip(), tuple(own.values()))
