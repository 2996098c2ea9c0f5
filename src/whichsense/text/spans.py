"""Find in the evidence what was written: an answer, or what supports a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.text.function_words import SUMMARY_STOP_WORDS
from whichsense.text.sentences import sentence_spans
from whichsense.text.words import words
from whichsense.types import Hit, Span

_LEAST = (
    0.3  # share of a claim's words that the sentence which supports it has at least
)


def spans_of(answer: str, hits: Sequence[Hit], most: int = 5) -> tuple[Span, ...]:
    """The first occurrence in each passage of the answer's words in a row, in any case; best passages first.

    >>> from whichsense.types import Passage
    >>> hit = Hit(Passage("1", "Dune", "Dune is by Frank  Herbert."), 2.0)
    >>> [span.passage.text[span.start : span.end] for span in spans_of("frank herbert", [hit])]
    ['Frank  Herbert']
    """
    parts = re.findall(r"\w+", answer)
    if not parts:
        return ()
    in_a_row = r"[\W_]+".join(map(re.escape, parts))
    pattern = re.compile(rf"(?<!\w){in_a_row}(?!\w)", re.IGNORECASE)
    spans = []
    for hit in hits:
        match = pattern.search(hit.passage.text)
        if match:
            spans.append(Span(hit.passage, match.start(), match.end(), hit.score))
    return tuple(spans[:most])


def supporting_spans(claims: Sequence[str], text: str) -> list[tuple[int, int]]:
    """The start and end of the sentence that shares most words with each claim, in the order of the text.

    >>> text = "It is by Tim Burton. Jack Nicholson plays the Joker."
    >>> supporting_spans(["The Joker is played by Jack Nicholson."], text)
    [(21, 52)]
    """
    spans = list(sentence_spans(text))
    supporting = set()
    for claim in claims:
        content = set(words(claim)) - SUMMARY_STOP_WORDS
        best, most = None, _LEAST * len(content)
        for start, end in spans:
            shared = len(content.intersection(words(text[start:end])))
            if shared > most:
                best, most = (start, end), shared
        if best is not None:
            supporting.add(best)
    return sorted(supporting)
