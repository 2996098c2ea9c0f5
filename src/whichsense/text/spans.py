"""Where an answer stands in the evidence: for models that write answers instead of pointing at them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.types import Hit, Span


def spans_of(answer: str, hits: Sequence[Hit], most: int = 5) -> tuple[Span, ...]:
    """The first place in each passage that has the answer's words in a row, whatever their case; best passages first.

    >>> from whichsense.types import Passage
    >>> hit = Hit(Passage("1", "Dune", "Dune is by Frank  Herbert."), 2.0)
    >>> [span.passage.text[span.start : span.end] for span in spans_of("frank herbert", [hit])]
    ['Frank  Herbert']
    """
    words = re.findall(r"\w+", answer)
    if not words:
        return ()
    pattern = re.compile(
        r"(?<!\w)" + r"[\W_]+".join(map(re.escape, words)) + r"(?!\w)", re.IGNORECASE
    )
    found = ((hit, pattern.search(hit.passage.text)) for hit in hits)
    return tuple(
        Span(hit.passage, *place.span(), hit.score) for hit, place in found if place
    )[:most]
