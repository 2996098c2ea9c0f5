"""Find an answer in the evidence, for models that write answers instead of marking spans."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.types import Hit, Span


def spans_of(answer: str, hits: Sequence[Hit], most: int = 5) -> tuple[Span, ...]:
    """The first occurrence in each passage of the answer's words in a row, in any case; best passages first.

    >>> from whichsense.types import Passage
    >>> hit = Hit(Passage("1", "Dune", "Dune is by Frank  Herbert."), 2.0)
    >>> [span.passage.text[span.start : span.end] for span in spans_of("frank herbert", [hit])]
    ['Frank  Herbert']
    """
    words = re.findall(r"\w+", answer)
    if not words:
        return ()
    in_a_row = r"[\W_]+".join(map(re.escape, words))
    pattern = re.compile(rf"(?<!\w){in_a_row}(?!\w)", re.IGNORECASE)
    spans = []
    for hit in hits:
        match = pattern.search(hit.passage.text)
        if match:
            spans.append(Span(hit.passage, match.start(), match.end(), hit.score))
    return tuple(spans[:most])
