"""Writes the long answer: sentence by sentence as it streams in, each with the passages that it cites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from whichsense.models.compact.story.facts import is_whole
from whichsense.models.llm.exchange import LLMFault
from whichsense.models.llm.fences import clean, fence
from whichsense.models.llm.replies import without_thoughts
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.windows import best_window, fence_lines
from whichsense.text.sentences import sentence_spans
from whichsense.text.words import normalize
from whichsense.types import Case, Citation, Passage, Reading

_MOST_TOKENS = 320
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
    """The sentences that say something and that `holds` gives back, with what supports them, until there are enough
    words. Raises `LLMFault` where none is left."""
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
    """How many words a long answer has, at least and at most."""
    return _ONE if len(case.readings) < 2 else _SEVERAL


def is_told(sentence: str) -> bool:
    """Whether a sentence is a whole one about what was asked.

    >>> [is_told(text) for text in ("It opened in 1932.", "Cobalt Bridge.", "The paragraph says when it opened.")]
    [True, False, False]
    >>> is_told("It mentions that the bridge opened in 1932.")
    False
    """
    return is_whole(sentence) and not _OF_ITSELF.search(sentence)


def left_out(
    readings: Sequence[Reading], sentences: Sequence[Citation]
) -> list[Reading]:
    """The readings whose answers no sentence gives.

    >>> told = [Citation("Ida Morrow directed the film of 1996.", ())]
    >>> [one.answer for one in left_out([Reading("?", "Ida Morrow"), Reading("?", "Per Lund")], told)]
    ['Per Lund']
    """
    text = normalize(" ".join(citation.sentence for citation in sentences))
    padded = f" {text} "
    return [one for one in readings if f" {normalize(one.answer)} " not in padded]


def write_sentences(talk: Talk, case: Case) -> Iterator[Citation]:
    """The sentences of a long answer as they are written. A sentence that cites nothing has no passages."""
    passages = cited_passages(case)
    texts = []
    for number, passage in enumerate(passages, 1):
        window = best_window(passage.text, case.question, _LONGEST_PASSAGE)
        texts.append(fence(f"{passage.title}. {window}", f"text {number}"))
    lines = []
    for reading in case.readings:
        lines.append(f"- {clean(reading.question)} {clean(reading.answer)}")
    least, most = words_wanted(case)
    request = talk.request(
        "explain",
        _MOST_TOKENS,
        question=clean(case.question),
        readings=fence_lines(lines, "readings"),
        texts="\n".join(texts),
        least=str(least),
        most=str(most),
    )
    for sentence in whole_sentences(talk.stream(request)):
        yield cite(sentence, passages)


def cited_passages(case: Case) -> list[Passage]:
    """The passages that the readings rest on, the first of every reading before any second one."""
    columns = [[span.passage for span in one.evidence] for one in case.readings]
    passages: dict[str, Passage] = {}
    for row in zip_longest(*columns):
        for passage in row:
            if passage is not None:
                passages.setdefault(passage.id, passage)
    return list(passages.values())[:_MOST_PASSAGES]


def whole_sentences(pieces: Iterator[str]) -> Iterator[str]:
    """Sentences out of pieces of text, each as soon as the next one has begun.

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
    """A sentence without its numbers, and the passages that these stand for.

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
