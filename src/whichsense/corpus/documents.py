"""Read documents: text, Markdown, HTML, PDF and Word files become headed sections."""

from __future__ import annotations

import io
import logging
import re
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from whichsense import files
from whichsense.corpus.cutting import Page
from whichsense.corpus.feed import Feed, Reader, Step, one_line
from whichsense.errors import WhichsenseError, require
from whichsense.text.words import whole_characters

# The text of an HTML page, with its headings as sections.

_DROPPED = "script, style, noscript, template, nav, footer, aside, form, iframe, svg, math, button, select, [hidden]"
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small span "
    "strike strong sub sup time tt u var wbr".split()
)
_CELLS = frozenset(("td", "th"))
# Elements that need no end tag, and so say nothing about depth.
_SHALLOW = frozenset(
    "area base br col dd dt embed hr html body head img input li link meta option p source tbody td tfoot th thead tr "
    "track wbr".split()
)
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*+)[^<>]*+>")
# One that is left open takes the rest, as in a browser: no place is looked at twice.
SCRIPT = re.compile(r"<(script|style)\b.*?(?:</\1\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_DEEPEST = 2000


def page_of(source: str) -> tuple[str, Page]:
    """Return the <title> and the text. The tree is walked without recursion."""
    page = Page()
    if (
        _depth(source) > _DEEPEST
    ):  # made to break parsers: the time that ours takes grows with the square of the depth
        page.line(unescape(_TAG.sub(" ", SCRIPT.sub(" ", source))))
        return "", page
    tree = require("selectolax.lexbor", "documents").LexborHTMLParser(source)
    head = tree.css_first("title")
    title = head.text() if head else ""
    for node in tree.css(_DROPPED):
        node.decompose()
    if tree.body is not None:
        _walk(tree.body, page)
    return title, page


def _depth(source: str) -> int:
    """Return how deep the elements are nested at most, roughly."""
    depth = deepest = 0
    for close, tag in _TAG.findall(source):
        if tag.lower() not in _SHALLOW:
            depth = max(0, depth - 1) if close else depth + 1
            deepest = max(deepest, depth)
    return deepest


def _walk(body: Any, page: Page) -> None:
    held: list[str] = []  # the text since the last block
    stack: list[Any] = [body]  # nodes to go into, and the tags of blocks to be left
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if item in _CELLS:  # the cells of a row stay on one line
                held.append(" ")
            else:
                _end(page, held, item)
        elif item.tag == "-text":
            held.append(item.text_content or "")
        elif item.tag[0].isalpha():
            if item.tag not in _INLINE:
                if item.tag not in _CELLS:
                    _end(page, held)
                stack.append(item.tag)
            stack += reversed(list(item.iter(include_text=True)))
    _end(page, held)


def _end(page: Page, held: list[str], tag: str = "") -> None:
    """A block begins or ends: what was held becomes a line, or a heading."""
    text = "".join(held)
    held.clear()
    if tag in _HEADINGS:
        page.heading(_HEADINGS[tag], text)
    else:
        page.line(text)


# Files that are one document each: text, Markdown, HTML, PDF, Word. All but text need the extra
# `documents`.

# A Word file is a zip file of XML, which shrinks 5 to 30 times. Sizes are checked before anything is unpacked.
_ZIP_RATIO = 100
_ZIP_LARGEST = 2**29  # bytes
_DOCUMENTS_TAG = re.compile(r"<[^<>]*>")
_SCRIPT_TAG = re.compile(r"<(/?)(?:script|style)\b", re.IGNORECASE)
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset=[\"']?([\w-]+)", re.IGNORECASE)
_LONGEST_MARKDOWN = 2**23  # characters
_LONGEST_FRONT_MATTER = 2**16  # characters
# A PDF may list one page any number of times, and may take any time for each.
_PDF_REPEATS = 10


class _Parsed(NamedTuple):
    """The content of a document. Without a title it is named after its file."""

    title: str
    text: str
    sections: tuple[tuple[int, str], ...] = ()


def _reader(name: str, parse: Callable[[Feed, bytes], _Parsed]) -> Reader:
    """Make the reader of a document format. A document is one record, so an earlier one is not even opened."""

    def read(feed: Feed) -> Iterator[Step]:
        if feed.passed():
            return
        body = feed.body()
        try:
            title, text, sections = parse(feed, body)
        except WhichsenseError:
            raise
        except (
            Exception
        ) as error:  # whatever a parser does on a file made to break it, the file is what is wrong
            message = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise feed.fault(
                f"cannot be read as {name} ({message}). Open and save it again."
            ) from None
        if not text or text.isspace():
            fix = " Is it a scan? Run OCR over it first." if name == "pdf" else ""
            raise feed.fault(f"holds no text.{fix}")
        title = one_line(title) or _stem(feed.path)
        yield feed.document(
            "", feed.name, whole_characters(title), whole_characters(text), sections=sections
        )

    return read


def _stem(path: Path) -> str:
    stem = path.with_suffix("") if path.suffix.lower() in files.COMPRESSED else path
    return stem.stem


def _decode(feed: Feed, body: bytes) -> str:
    """Return text by its byte order mark, the encoding that was asked for, or UTF-8; never by a guess."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    else:
        encoding = feed.encoding or "utf-8-sig"
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        fix = "Save it as UTF-8, or say what it is, for example --encoding cp1252."
        raise feed.fault(
            f"is not {encoding.removesuffix('-sig')} (byte {error.start}). {fix}"
        ) from None
    if "\0" in text:
        raise feed.fault("is binary, not text. Give it the suffix of its format.")
    return text


def _parse_text(feed: Feed, body: bytes) -> _Parsed:
    """Return the text exactly as it stands in the file, so that offsets hold there too."""
    return _Parsed("", _decode(feed, body))


def _parse_markdown(feed: Feed, body: bytes) -> _Parsed:
    """Headings become sections; link texts, code and table cells stay; marks go."""
    text = _decode(feed, body)
    named, begin = _front_matter(text)
    text = text[begin:]
    if len(text) > _LONGEST_MARKDOWN:
        # No person wrote this, and the parser would take minutes.
        return _Parsed(named, text)
    markdown = require("markdown_it", "documents")
    parser = markdown.MarkdownIt("commonmark").enable("table")
    # A link that is not one, as javascript:…, would stay as text with its address. Addresses are dropped anyway.
    parser.validateLink = lambda address: True
    page = Page()
    level = 0  # of the heading that is open; 0 outside of headings
    for token in parser.parse(text):
        if token.type == "heading_open":
            level = int(token.tag[1:])
        elif token.type == "inline":
            content = _inline(token.children or ())
            if level:
                page.heading(level, content)
            else:
                page.line(content)
            level = 0
        elif token.type in ("fence", "code_block"):
            page.block(token.content.strip("\n"))
        elif token.type == "html_block":
            page.line(_DOCUMENTS_TAG.sub(" ", SCRIPT.sub(" ", token.content)))
    return _Parsed(named or page.first_heading, page.text, page.sections)


def _front_matter(text: str) -> tuple[str, int]:
    """Return the title that a block between --- and --- at the very start gives, and where the text after it begins."""
    first, *lines = text[:_LONGEST_FRONT_MATTER].split("\n")
    if first.rstrip() != "---":
        return "", 0
    title, at = "", len(first) + 1
    for line in lines:
        at += len(line) + 1
        if line.rstrip() in ("---", "..."):
            return title, at
        if not title and line[:6].lower() == "title:":
            title = line[6:].strip().strip("\"'")
    return "", 0


def _inline(tokens: Iterable[Any]) -> str:
    """Return what is read of a paragraph: no marks, no addresses, nothing of a script."""
    parts, is_script = [], False
    for token in tokens:
        if token.type == "html_inline" and (tag := _SCRIPT_TAG.match(token.content)):
            is_script = not tag[1]
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type in ("text", "code_inline", "image") and not is_script:
            parts.append(str(token.content))
    return "".join(parts)


def _parse_html(feed: Feed, body: bytes) -> _Parsed:
    """Return what a reader of the page would read: no scripts, styles, navigation or forms."""

    if not feed.encoding and (declared := _CHARSET.search(body[:2048])):
        try:
            body.decode("utf-8-sig")
        except UnicodeDecodeError:  # an old page, which says itself how it is written
            feed.encoding = declared[1].decode()
    try:
        title, page = page_of(_decode(feed, body))
    except LookupError:
        raise feed.fault(
            f"is written in an unknown encoding ({feed.encoding}). Save it as UTF-8."
        ) from None
    return _Parsed(title or page.first_heading, page.text, page.sections)


def _most_repeated(sheets: list[Any]) -> int:
    """Return how often the page is listed that is listed most."""
    references = [sheet.indirect_reference for sheet in sheets]
    repeats = Counter(one.idnum for one in references if one is not None)
    return max(repeats.values(), default=0)


def _is_decrypted(reader: Any) -> bool:
    """Try a PDF without a password."""
    try:
        return bool(reader.decrypt(""))
    except Exception:  # an unknown cipher, or one whose library is not there
        return False


def _parse_pdf(feed: Feed, body: bytes) -> _Parsed:
    """Return the pages in order, each a section."""
    pypdf = require("pypdf", "documents")
    # Its warnings are about files that it reads all the same.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    reader = pypdf.PdfReader(io.BytesIO(body))
    if reader.is_encrypted and not _is_decrypted(reader):
        raise feed.fault("is encrypted. Remove its password first.")
    sheets = list(reader.pages)
    if _most_repeated(sheets) > _PDF_REPEATS:
        raise feed.fault(
            f"lists one page over {_PDF_REPEATS} times: refused. Print it to a new PDF."
        )
    page = Page()
    start = time.monotonic()
    for number, sheet in enumerate(sheets, 1):
        page.heading(1, f"page {number}", shown=False)
        page.block(sheet.extract_text().replace("\0", "").strip())
        seconds = time.monotonic() - start
        if page.length > feed.limits.document or seconds > feed.limits.pdf_seconds:
            raise feed.fault(
                f"takes too long to read (stopped behind page {number:,}). Split it, or give its text."
            )
    title = reader.metadata.title if reader.metadata else None
    return _Parsed(str(title or ""), page.text, page.sections)


def _row_text(docx: Any, table: Any, row: Any) -> str:
    """Return the cells of a row. Not row.cells, which repeats a cell over the columns that it claims to span."""
    return " | ".join(docx.table._Cell(cell, table).text for cell in row._tr.tc_lst)


def _parse_docx(feed: Feed, body: bytes) -> _Parsed:
    """Paragraphs and tables in order; paragraphs in a heading's style become sections."""
    docx = require("docx", "documents")
    _refuse_bombs(feed, body)
    document = docx.Document(io.BytesIO(body))
    page, title = Page(), document.core_properties.title
    for item in document.iter_inner_content():
        if hasattr(item, "rows"):
            for row in item.rows:
                page.line(_row_text(docx, item, row))
            continue
        style = item.style.name if item.style is not None else ""
        if style == "Title":
            title = title or item.text
        if heading := re.fullmatch(r"Heading (\d)", style or ""):
            page.heading(int(heading[1]), item.text)
        else:
            page.line(item.text)
    return _Parsed(title or page.first_heading, page.text, page.sections)


def _refuse_bombs(feed: Feed, body: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            unpacked = sum(item.file_size for item in archive.infolist())
            word = any(name.startswith("word/") for name in archive.namelist())
    except zipfile.BadZipFile:
        raise feed.fault(
            "is not a Word file (.docx), or is cut short. Open and save it again."
        ) from None
    if not word:
        raise feed.fault(
            "is a zip archive, not a Word file (.docx). Unpack it and give the folder."
        )
    is_bomb = unpacked > feed.limits.zip_floor and unpacked > _ZIP_RATIO * len(body)
    if is_bomb or unpacked > _ZIP_LARGEST:
        raise feed.fault(
            f"unpacks to {unpacked // 2**20:,} MB: refused. Save its text in another format."
        )


read_text = _reader("text", _parse_text)
read_markdown = _reader("markdown", _parse_markdown)
read_html = _reader("html", _parse_html)
read_pdf = _reader("pdf", _parse_pdf)
read_docx = _reader("docx", _parse_docx)
