"""The pages of a Wikipedia dump, streamed: memory stays flat however long the file is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from whichsense.corpus.feed import Feed

_CHUNK = 2**18  # bytes that are read at a time
_DEEPEST = 50  # elements inside each other
_COLLECTED = frozenset(("title", "ns", "id", "text"))  # elements whose text is needed


@dataclass(slots=True)
class RawPage:
    """A page as the dump has it. `text` is None where it is too long."""

    id: str = ""
    title: str = ""
    ns: str = "0"
    redirect: str = ""
    text: str | None = ""


@dataclass
class _Handler:
    """Collects the elements of the page at hand from the parser's events."""

    largest: int
    """Characters of a page; the text of a larger one is not kept."""
    ready: list[RawPage] = field(default_factory=list)
    page: RawPage = field(default_factory=RawPage)
    path: list[str] = field(default_factory=list)
    chunks: list[str] | None = None
    held: int = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if not self.path and tag != "mediawiki":
            raise _NotADump
        if len(self.path) > _DEEPEST:
            raise _TooDeep
        self.path.append(tag)
        if tag == "page":
            self.page = RawPage()
        elif tag == "redirect":
            self.page.redirect = attributes.get("title", "")
        elif tag in _COLLECTED:
            self.chunks, self.held = [], 0

    def data(self, chunk: str) -> None:
        if self.chunks is not None:
            self.held += len(chunk)
            if self.held <= self.largest:
                self.chunks.append(chunk)

    def end(self, tag: str) -> None:
        tag = self.path.pop()
        parent = self.path[-1] if self.path else ""
        if tag == "page":
            self.ready.append(self.page)
        if self.chunks is None or tag not in _COLLECTED:
            return
        text = "".join(self.chunks)
        self.chunks = None
        if tag == "text":
            self.page.text = text if self.held <= self.largest else None
        elif parent == "page":  # revisions and contributors have an id too
            setattr(self.page, tag, text.strip()[:1000])


class _NotADump(Exception):
    pass


class _TooDeep(Exception):
    pass


class _EntityDeclared(Exception):
    pass


def _refuse(*_: Any) -> None:
    """Dumps have neither entities nor a DTD. A file that does is made to blow up (billion laughs)."""
    raise _EntityDeclared


def pages(feed: Feed, reader: io.BufferedReader) -> Iterator[RawPage]:
    """Every page, whatever its namespace, in order."""
    handler = _Handler(feed.limits.page)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text, parser.buffer_size = True, 2**16
    parser.StartElementHandler, parser.EndElementHandler = handler.start, handler.end
    parser.CharacterDataHandler = handler.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = _refuse
    chunk, fed = b".", 0
    while chunk:
        chunk = reader.read(_CHUNK)
        fed += len(chunk)
        if fed - parser.CurrentByteIndex > feed.limits.tag:
            raise feed.fault("holds an endless XML tag: refused. Fetch it again.")
        try:
            parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            why = "cut short" if not chunk else f"broken at line {error.lineno}"
            raise feed.fault(
                f"is {why}: {expat.ErrorString(error.code)}. Fetch it again."
            ) from None
        except _NotADump:
            raise feed.fault(
                "is XML, but not a Wikipedia dump (no <mediawiki>). Give a pages-articles dump."
            ) from None
        except _TooDeep:
            raise feed.fault(
                f"nests XML deeper than {_DEEPEST}, which a Wikipedia dump never does: refused."
            ) from None
        except _EntityDeclared:
            raise feed.fault(
                "declares XML entities, which a Wikipedia dump never does: refused."
            ) from None
        yield from handler.ready
        handler.ready.clear()
