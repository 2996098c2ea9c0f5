"""Functions for the workers of a page stripper: a parser that hangs, dies and fails; and one that never ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from whichsense.corpus import wikipedia
from whichsense.corpus.cutting import Page
from whichsense.corpus.wikipedia import StrippedPage, strip_pages

_plain = wikipedia.plain


def _odd(text: str) -> Page:
    if "HANG" in text:
        signal.pause()
    if "DIE" in text:
        os._exit(1)
    if "FAIL" in text:
        raise RecursionError
    return _plain(text)


def strip_oddly(texts: list[str]) -> list[StrippedPage]:
    wikipedia.plain = _odd
    return strip_pages(texts)


def strip_first(texts: list[str]) -> list[StrippedPage]:
    """Note each batch in a file; all but the first never end."""
    done = Path(os.environ["STRIPPED"])
    with done.open("a") as file:
        file.write("x")
    if len(done.read_text()) > 1:
        signal.pause()
    return strip_pages(texts)
