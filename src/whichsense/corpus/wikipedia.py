"""Read Wikipedia dumps: articles in plain text, redirects and the senses of disambiguation pages."""

from __future__ import annotations

import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Generic, NamedTuple, TypeVar
from xml.parsers import expat

import mwparserfromhell
from mwparserfromhell import nodes

from whichsense.corpus.cutting import Page
from whichsense.corpus.feed import Feed, Step, short
from whichsense.jobs.workers import WorkerLost, Workers
from whichsense.types import Redirect, Sense

# The pages of a Wikipedia dump, streamed: memory stays flat however long the file is.

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
    """Yield every page, whatever its namespace, in order."""
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


# Wiki markup → plain text with sections. Templates, tables, references, files and categories go; link
# texts stay.

LONGEST_PARSED = 2**20
"""Longer pages are lists and tables without end, and are stripped by patterns alone."""

# Parts of an article that hold no prose but what other people wrote.
_BACK_MATTER = frozenset(
    (
        "references",
        "external links",
        "see also",
        "further reading",
        "notes",
        "footnotes",
        "sources",
        "citations",
    )
)
_DROPPED_TAGS = frozenset(
    "ref references table gallery math chem timeline syntaxhighlight source imagemap score hiero templatestyles graph "
    "mapframe maplink inputbox categorytree noinclude includeonly indicator section".split()
)
_NAMESPACE = re.compile(
    r"\s*:?\s*(file|image|category|media|special|template|portal|help|user|draft)\s*:",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(r"\s*(?:[a-z]{2,3}|simple)(?:-[a-z]+)*:\S")
_STYLE = re.compile(r"'{2,5}|__[A-Z]{3,}__")
_EMPTY_BRACKETS = re.compile(r"\([;,:\s]*\)|\[\s*\]")
_OPEN_BRACKET = re.compile(r"\(\s*[;,:]\s*")
_SPACE_BEFORE = re.compile(r" ([,.;:!?)](?:\s|$))")

# What is taken out before the parser sees it: it carries no text, and most of the parser's work.
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Each stops at the next tag of its kind, so that a page of open tags takes no longer than its length.
# Groups are atomic, not possessive: those of Python 3.11.2, which Debian 12 has, fail where they match nothing.
_BLOCK = re.compile(
    r"<(ref|gallery|math|timeline|syntaxhighlight|score|imagemap|templatestyles)\b[^<>]*+"
    r"(?:(?<=/)>|>[^<]*+(?>(?:<(?!/?\1\b)[^<]*+)*)</\1\s*>)",
    re.IGNORECASE,
)
# A table that holds no other: lines from "{|" to "|}". Repeated, it takes nested ones from the inside outwards.
_TABLE = re.compile(
    r"^[ \t:*]*\{\|[^\n]*\n(?>(?:(?![ \t:*]*(?:\{\||\|\}))[^\n]*\n)*)[ \t:*]*\|\}(?!\})",
    re.MULTILINE,
)


def plain(wikitext: str) -> Page:
    """Return the text of a page by the parser, heading by heading."""
    page = Page()
    code = mwparserfromhell.parse(_lightened(wikitext), skip_style_tags=True)
    part: list[str] = []
    shown = True
    for node in code.nodes:
        if isinstance(node, nodes.Heading):
            if shown:
                _add(page, "".join(part))
            part = []
            shown = _open(page, node.level, _flat(node.title.nodes))
        elif shown:
            part.append(_text(node))
    if shown:
        _add(page, "".join(part))
    return page


def _lightened(wikitext: str) -> str:
    """Without what holds no text of the article, whichever way the rest is parsed."""
    wikitext = _BLOCK.sub("", _COMMENT.sub("", wikitext))
    for _ in range(10):
        wikitext, changed = _TABLE.subn("", wikitext)
        if not changed:
            break
    return wikitext


def _open(page: Page, level: int, heading: str) -> bool:
    """Open a section; False where nothing of it is wanted."""
    heading = _STYLE.sub("", heading).strip()
    if heading.lower() in _BACK_MATTER:
        return False
    page.heading(level, heading, shown=False)
    return True


def _add(page: Page, text: str) -> None:
    for line in text.split("\n"):
        page.line(_tidied(line))


def _tidied(line: str) -> str:
    """Return a line without the traces of what was taken out: quotes, empty brackets, spaces before a comma."""
    line = " ".join(_STYLE.sub("", line).split())
    line = _OPEN_BRACKET.sub("(", _EMPTY_BRACKETS.sub("", line))
    return _SPACE_BEFORE.sub(r"\1", line)


def _flat(items: Iterable[Any]) -> str:
    return "".join(map(_text, items))


def _text(node: Any) -> str:
    """Return what a reader of the page would read of a node."""
    if isinstance(node, nodes.Text):
        return str(node.value)
    write = _WRITERS.get(type(node))
    return write(node) if write else ""


def _link(node: Any) -> str:
    target = str(node.title)
    if _NAMESPACE.match(target) and not (node.text and target.lstrip().startswith(":")):
        return ""
    if node.text is not None:
        return _flat(node.text.nodes)
    return "" if _LANGUAGE.match(target) else _flat(node.title.nodes).strip().lstrip(":")


def _external_link(node: Any) -> str:
    return _flat(node.title.nodes) if node.title is not None else ""


def _tag(node: Any) -> str:
    name = str(node.tag).strip().lower()
    if name in _DROPPED_TAGS:
        return ""
    if name in ("br", "hr"):
        return "\n"
    return _flat(node.contents.nodes) if node.contents is not None and not node.self_closing else ""


def _entity(node: Any) -> str:
    return unescape(str(node))


# Templates that show their first value, or their last.
_OF_FIRST = ("nowrap", "nobr", "small", "big", "em", "strong", "sic", "abbr", "tooltip")
_OF_LAST = ("lang", "transl", "transliteration")


def _template(node: Any) -> str:
    """Return the few templates that stand for words within a sentence; all others are left out."""
    name = str(node.name).strip().lower().replace("_", " ")
    values = [_flat(param.value.nodes).strip() for param in node.params if not param.showkey]
    if name in ("circa", "c."):
        return f"c. {''.join(values[:1])}"
    if not values:
        return _MARKS.get(name, "")
    if name in ("convert", "cvt") and len(values) > 1:
        return f"{values[0]} {values[1]}"
    if name in _OF_FIRST:
        return values[0]
    if name in _OF_LAST or name.startswith("lang-"):
        return values[-1]
    return _MARKS.get(name, "")


_MARKS = {
    "ndash": "–",
    "mdash": "—",
    "snd": " – ",
    "spaced ndash": " – ",
    "nbsp": " ",
    "'": "'",
    "·": " · ",
    "!": "|",
}
_WRITERS: dict[type, Callable[[Any], str]] = {
    nodes.Wikilink: _link,
    nodes.ExternalLink: _external_link,
    nodes.Tag: _tag,
    nodes.HTMLEntity: _entity,
    nodes.Template: _template,
}

# A template, a table, a link of either kind, a tag: those that hold no other.
_INNERMOST = re.compile(
    r"\{\{[^{}]*\}\}|\{\|[^{}]*?\|\}|\[\[([^\[\]]*)\]\]"
    r"|\[(?:https?:)?//[^\s\[\]]*\s?([^\[\]\n]*)\]|<[^<>]*>"
)
_HEADING = re.compile(r"^(={1,6})(.{1,300}?)\1[ \t]{0,20}$", re.MULTILINE)


def _bare(markup: re.Match[str]) -> str:
    """Return what a reader would read of a piece of markup: of links their text."""
    link = markup[1]
    if link is None:
        return markup[2] or ""
    target, bar, text = link.partition("|")
    if _NAMESPACE.match(target):
        return ""
    return text.rpartition("|")[2] if bar else target * (_LANGUAGE.match(target) is None)


def rough_line(wikitext: str) -> str:
    """Take markup out by patterns alone, from the inside outwards: quick, and good enough for a line."""
    wikitext = _lightened(wikitext)
    for _ in range(10):
        wikitext, changed = _INNERMOST.subn(_bare, wikitext)
        if not changed:
            break
    lines = [line.lstrip("*#:;") for line in unescape(wikitext).split("\n")]
    return "\n".join(lines)


def rough(wikitext: str) -> Page:
    """Return the text of a page by patterns alone, for pages that the parser cannot manage."""
    page, shown, at = Page(), True, 0
    for heading in _HEADING.finditer(wikitext):
        if shown:
            _add(page, rough_line(wikitext[at : heading.start()]))
        shown, at = _open(page, len(heading[1]), rough_line(heading[2])), heading.end()
    if shown:
        _add(page, rough_line(wikitext[at:]))
    return page


# Strip wiki markup from pages in worker processes: one core parses a few hundred pages a second.
#
# A page that hangs or kills its worker is stripped by patterns, and the worker is replaced.

_BATCH_CHARACTERS = 2**20  # a batch ends here: long pages keep all workers busy too

Item = TypeVar("Item")


class StrippedPage(NamedTuple):
    """The plain text of a page, with its sections as (offset, heading)."""

    text: str
    sections: tuple[tuple[int, str], ...]
    by_patterns: bool
    """Whether the parser was not used: the page is too long, or the parser fails on it."""


@dataclass
class _Batch(Generic[Item]):
    """Items in order, and the texts of those that have one."""

    items: list[Item] = field(default_factory=list)
    has_text: list[bool] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class PageStripper:
    """Strips pages and keeps their order. Use it in a `with` block, which ends its workers."""

    def __init__(
        self,
        workers: int = 0,
        *,
        seconds: float = 20.0,
        seconds_in_batch: float = 0.5,
        batch_pages: int = 128,
        function: str = f"{__name__}:strip_pages",
    ) -> None:
        """Workers: 0 for one a core. A page alone may take `seconds`; a batch also `seconds_in_batch` for each page.
        `function` ('module:name') runs in the workers."""
        self._count = workers or os.cpu_count() or 1
        self._seconds = seconds
        self._seconds_in_batch = seconds_in_batch
        self._batch_pages = batch_pages
        self._workers: Workers[list[str], list[StrippedPage]] = Workers.fresh(function, self._count)

    def __enter__(self) -> PageStripper:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.close()

    def strip(
        self, pages: Iterable[tuple[Item, str | None]]
    ) -> Iterator[tuple[Item, StrippedPage | None]]:
        """Yield each item with its text stripped, in order; an item without a text is handed through."""
        waiting: deque[tuple[_Batch[Item], Future[list[StrippedPage]]]] = deque()
        for batch in _batches(pages, self._batch_pages):
            waiting.append((batch, self._submit(batch.texts)))
            if len(waiting) > 2 * self._count:
                yield from self._join(*waiting.popleft())
        while waiting:
            yield from self._join(*waiting.popleft())

    def _submit(self, texts: list[str]) -> Future[list[StrippedPage]]:
        if texts:
            seconds = self._seconds + self._seconds_in_batch * len(texts)
            return self._workers.submit(texts, seconds)
        nothing: Future[list[StrippedPage]] = Future()
        nothing.set_result([])
        return nothing

    def _join(
        self, batch: _Batch[Item], future: Future[list[StrippedPage]]
    ) -> Iterator[tuple[Item, StrippedPage | None]]:
        try:
            results = future.result()
        except WorkerLost:
            results = self._strip_singly(batch.texts)
        stripped = iter(results)
        for item, has_text in zip(batch.items, batch.has_text, strict=True):
            yield item, next(stripped) if has_text else None

    def _strip_singly(self, texts: list[str]) -> list[StrippedPage]:
        """Strip a failed batch page by page: only the page that breaks the parser is stripped by patterns."""
        futures = [self._workers.submit([text], self._seconds) for text in texts]
        results = []
        for text, future in zip(texts, futures, strict=True):
            try:
                results += future.result()
            except WorkerLost:
                results.append(_strip_by_patterns(text))
        return results


def _batches(pages: Iterable[tuple[Item, str | None]], most: int) -> Iterator[_Batch[Item]]:
    """Group pages: large enough to be worth a message, small enough to keep all workers busy."""
    batch: _Batch[Item] = _Batch()
    characters = 0
    for item, text in pages:
        batch.items.append(item)
        batch.has_text.append(text is not None)
        if text is not None:
            batch.texts.append(text)
            characters += len(text)
        if len(batch.items) >= most or characters >= _BATCH_CHARACTERS:
            yield batch
            batch = _Batch()
            characters = 0
    if batch.items:
        yield batch


def strip_pages(texts: list[str]) -> list[StrippedPage]:
    """Strip the markup of some pages. It runs in the workers."""
    return [_strip_page(text) for text in texts]


def _strip_page(text: str) -> StrippedPage:
    if len(text) > LONGEST_PARSED:
        return _strip_by_patterns(text)
    try:
        return _stripped(plain(text), by_patterns=False)
    except Exception:
        # A parser that fails on one page must not end a build of millions.
        return _strip_by_patterns(text)


def _strip_by_patterns(text: str) -> StrippedPage:
    return _stripped(rough(text), by_patterns=True)


def _stripped(page: Page, *, by_patterns: bool) -> StrippedPage:
    return StrippedPage(page.text, page.sections, by_patterns)


# Disambiguation pages: the list of what a name may mean, which is the list of readings of a question
# about it.

# Templates by which a page says that it is one, in English and in the larger other Wikipedias.
_MARK = re.compile(
    r"\{\{\s*(?:disambig(?:uation)?(?:[ -](?:page|cleanup))?|disamb|dab|hndis(?:-cleanup)?|geodis|mathdab|numberdis"
    r"|roaddis|schooldis|hospitaldis|callsigndis|mil-unit-dis|shipindex|(?:[\w-]+ ){1,3}disambiguation"
    r"|begriffsklärung|homonymie|desambiguación|desambiguação|disambigua|doorverwijspagina|неоднозначность"
    r"|ujednoznacznienie|förgrening|消歧义|曖昧さ回避)\s*(?:\||\}\})|__DISAMBIG__",
    re.IGNORECASE,
)
_TITLE_END = re.compile(
    r"\s*\((?:disambiguation|begriffsklärung|homonymie|desambiguación|disambigua)\)$", re.IGNORECASE
)
_LINK = re.compile(r"\[\[([^\[\]|#]+)(?:#[^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")
_NO_ARTICLE = re.compile(
    r"\s*:?\s*(?:file|image|category|special|wikt|wiktionary|[a-z]{2,3}):", re.IGNORECASE
)


_OTHER_SECTIONS = ("see also", "references", "external links", "notes")


def is_disambiguation(title: str, wikitext: str) -> bool:
    """Tell whether a page lists what its name may mean.

    >>> is_disambiguation("Mercury", "* [[Mercury (planet)]]\\n{{Disambiguation|geo}}")
    True
    >>> is_disambiguation("Mercury (planet)", "It is [[hot]].{{disambiguation needed|date=May 2020}}")
    False
    """
    return bool(_TITLE_END.search(title) or _MARK.search(wikitext))


def senses(title: str, wikitext: str) -> list[Sense]:
    """One for each list entry that links to an article, but for those under "See also".

    >>> senses("Java (disambiguation)", "* '''[[Java]]''', an island\\n==See also==\\n* [[Jaffa]]")
    [Sense(name='Java', title='Java', gloss='Java, an island')]
    """
    name = _TITLE_END.sub("", title)
    entries: dict[str, Sense] = {}  # by the title of the article
    wanted = True
    for line in wikitext.split("\n"):
        if heading := _HEADING.match(line):
            wanted = heading[2].strip().lower() not in _OTHER_SECTIONS
        elif wanted and line.startswith(("*", "#")):
            target = _first_article(line)
            if target:
                gloss = short(_tidied(rough_line(line)))
                entries.setdefault(target, Sense(name, target, gloss))
    return list(entries.values())


def _first_article(line: str) -> str:
    """Return the title of the first article that a line links to; empty where it links to none."""
    for link in _LINK.findall(line):
        if not _NO_ARTICLE.match(link):
            target = short(link.replace("_", " "))
            # Titles begin with a capital, links to them need not.
            return target[:1].upper() + target[1:]
    return ""


# A Wikipedia dump (`pages-articles.xml.bz2`, multistream or not): articles, redirects, disambiguation
# pages.

_REDIRECT = re.compile(
    r"\s*#\s*(?:redirect|weiterleitung|redirection|redirección|перенаправление)\s*:?\s*\[\[([^\[\]|#]+)",
    re.I,
)

DumpItem = RawPage | Step


def read_dump(feed: Feed) -> Iterator[Step]:
    """Yield one document for an article, one redirect for a redirect, one sense for each entry of a disambiguation
    page.

    Only the main namespace is read. What an earlier run consumed is parsed as XML but not stripped of markup.
    """
    with feed.open() as reader, PageStripper() as stripper:
        for item, page in stripper.strip(_items(feed, pages(feed, reader))):
            if not isinstance(item, RawPage):
                yield item
            elif page is None or not page.text:
                yield feed.broken(
                    _where(item), "no text is left when templates and tables are taken out."
                )
            else:
                feed.report.rough += page.by_patterns
                yield feed.document(
                    _where(item), item.id, item.title, page.text, sections=page.sections
                )


def _items(feed: Feed, raw: Iterator[RawPage]) -> Iterator[tuple[DumpItem, str | None]]:
    """Yield what is to be handed over, in order: articles with their markup, the rest as it is."""
    for page in raw:
        if page.ns != "0":
            feed.tick()
            continue
        steps = _steps(feed, page)
        for step in steps:
            if not feed.passed():
                yield step, None
        if not steps and not feed.passed():
            yield page, page.text


def _steps(feed: Feed, page: RawPage) -> list[Step]:
    """Return the steps of a page that is not an article; none for one that is."""
    if page.text is None:
        return [feed.broken(_where(page), f"the page is over {feed.limits.page // 2**20} MB.")]
    if not page.title or not page.id:
        return [feed.broken(_where(page), "a page without title or id.")]
    if page.redirect:
        return [Redirect(page.title, short(page.redirect))]
    if found := _REDIRECT.match(page.text):  # dumps of before 2009 have no <redirect> element
        return [Redirect(page.title, short(found[1].replace("_", " ")))]
    if not page.text or page.text.isspace():
        return [feed.broken(_where(page), "the page is empty.")]
    return list(senses(page.title, page.text)) if is_disambiguation(page.title, page.text) else []


def _where(page: RawPage) -> str:
    return f"page '{page.title}'" if page.title else f"page {page.id or '?'}"
