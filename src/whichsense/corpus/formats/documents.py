"""Files that are one document each: text, Markdown, HTML, PDF, Word. All but text need the extra `documents`."""

from __future__ import annotations

import io
import logging
import re
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from whichsense import files
from whichsense.corpus.feed import LARGEST_DOCUMENT, Feed, Reader, Step, one_line
from whichsense.corpus.outline import Page
from whichsense.errors import WhichsenseError, require
from whichsense.text.words import whole_characters

# A Word file is a zip file of XML, which shrinks 5 to 30 times. Sizes are checked before anything is unpacked.
_ZIP_RATIO, _ZIP_FLOOR, _ZIP_LARGEST = 100, 2**26, 2**29
_TAG = re.compile(r"<[^<>]*>")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset=[\"']?([\w-]+)", re.IGNORECASE)
_LONGEST_MARKDOWN, _LONGEST_FRONT_MATTER = 2**23, 2**16
# A PDF may list one page any number of times, and may take any time for each.
_PDF_REPEATS, _PDF_SECONDS = 10, 120.0


class Parsed(NamedTuple):
    """What a parser found; an empty title means: take the file's name."""

    title: str
    text: str
    sections: tuple[tuple[int, str], ...] = ()


def reader_of(name: str) -> Reader:
    """The reader of one of the document formats. A document is one record, so an earlier one is not even opened."""
    parse = _PARSERS[name]

    def read(feed: Feed) -> Iterator[Step]:
        if feed.passed():
            return
        body = feed.body()
        try:
            title, text, sections = parse(feed, body)
        except WhichsenseError:
            raise
        except Exception as error:  # whatever a parser does on a file made to break it, the file is what is wrong
            message = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise feed.fault(
                f"cannot be read as {name} ({message}). Open and save it again."
            ) from None
        if not text or text.isspace():
            raise feed.fault(
                "holds no text."
                + (" Is it a scan? Run OCR over it first." if name == "pdf" else "")
            )
        title = one_line(title) or _stem(feed.path)
        yield feed.document(
            "",
            feed.name,
            whole_characters(title),
            whole_characters(text),
            sections=sections,
        )

    return read


def _stem(path: Path) -> str:
    stem = path.with_suffix("") if path.suffix.lower() in files.COMPRESSED else path
    return stem.stem


def decoded(feed: Feed, body: bytes) -> str:
    """Text by its byte order mark, the encoding that was asked for, or UTF-8; never by a guess."""
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


def parse_text(feed: Feed, body: bytes) -> Parsed:
    """The text exactly as it stands in the file, so that offsets hold there too."""
    return Parsed("", decoded(feed, body))


def parse_markdown(feed: Feed, body: bytes) -> Parsed:
    """Headings become sections; link texts, code and table cells stay; marks go."""
    text = decoded(feed, body)
    named, begin = _front_matter(text)
    text = text[begin:]
    if (
        len(text) > _LONGEST_MARKDOWN
    ):  # no hand wrote this, and the parser would take minutes
        return Parsed(named, text)
    page, level = Page(), 0
    for token in (
        require("markdown_it", "documents")
        .MarkdownIt("commonmark")
        .enable("table")
        .parse(text)
    ):
        if token.type == "heading_open":
            level = int(token.tag[1:])
        elif token.type == "inline":
            content = "".join(_inline(child) for child in token.children or ())
            if level:
                page.heading(level, content)
            else:
                page.line(content)
            level = 0
        elif token.type in ("fence", "code_block"):
            page.block(token.content.strip("\n"))
        elif token.type == "html_block":
            page.line(_TAG.sub(" ", token.content))
    return Parsed(named or page.first_heading, page.text, page.sections)


def _front_matter(text: str) -> tuple[str, int]:
    """The title that a block between --- and --- at the very start gives, and where the text behind it begins."""
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


def _inline(token: Any) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return str(token.content) if token.type in ("text", "code_inline", "image") else ""


def parse_html(feed: Feed, body: bytes) -> Parsed:
    """What a reader of the page would read: no scripts, styles, navigation or forms."""
    from whichsense.corpus.formats.html import page_of

    if not feed.encoding and (declared := _CHARSET.search(body[:2048])):
        try:
            body.decode("utf-8-sig")
        except UnicodeDecodeError:  # an old page, which says itself how it is written
            feed.encoding = declared[1].decode()
    try:
        title, page = page_of(decoded(feed, body))
    except LookupError:
        raise feed.fault(
            f"is written in an unknown encoding ({feed.encoding}). Save it as UTF-8."
        ) from None
    return Parsed(title or page.first_heading, page.text, page.sections)


def parse_pdf(feed: Feed, body: bytes) -> Parsed:
    """The pages in order, each a section."""
    pypdf = require("pypdf", "documents")
    logging.getLogger("pypdf").setLevel(
        logging.ERROR
    )  # its warnings are about files that it reads all the same
    reader = pypdf.PdfReader(io.BytesIO(body))
    if reader.is_encrypted:
        try:
            opened = reader.decrypt("")
        except Exception:  # an unknown cipher, or one whose library is not there
            opened = False
        if not opened:
            raise feed.fault("is encrypted. Remove its password first.")
    sheets = list(reader.pages)
    listed = Counter(
        sheet.indirect_reference.idnum
        for sheet in sheets
        if sheet.indirect_reference is not None
    )
    if listed and listed.most_common(1)[0][1] > _PDF_REPEATS:
        raise feed.fault(
            f"lists one page over {_PDF_REPEATS} times: refused. Print it to a new PDF."
        )
    page, begun = Page(), time.monotonic()
    for number, sheet in enumerate(sheets, 1):
        page.heading(1, f"page {number}", shown=False)
        page.block(sheet.extract_text().replace("\0", "").strip())
        if page.length > LARGEST_DOCUMENT or time.monotonic() - begun > _PDF_SECONDS:
            raise feed.fault(
                f"takes too long to read (stopped behind page {number:,}). Split it, or give its text."
            )
    title = reader.metadata.title if reader.metadata else None
    return Parsed(str(title or ""), page.text, page.sections)


def parse_docx(feed: Feed, body: bytes) -> Parsed:
    """Paragraphs and tables in order; paragraphs in a heading's style become sections."""
    docx = require("docx", "documents")
    _refuse_bombs(feed, body)
    document = docx.Document(io.BytesIO(body))
    page, title = Page(), document.core_properties.title
    for item in document.iter_inner_content():
        if hasattr(item, "rows"):
            for row in item.rows:  # the cells that are there: row.cells repeats each over the columns it claims to span
                cells = (docx.table._Cell(cell, item) for cell in row._tr.tc_lst)
                page.line(" | ".join(cell.text for cell in cells))
            continue
        style = item.style.name if item.style is not None else ""
        if style == "Title":
            title = title or item.text
        if found := re.fullmatch(r"Heading (\d)", style or ""):
            page.heading(int(found[1]), item.text)
        else:
            page.line(item.text)
    return Parsed(title or page.first_heading, page.text, page.sections)


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
    if unpacked > _ZIP_LARGEST or (
        unpacked > _ZIP_FLOOR and unpacked > _ZIP_RATIO * len(body)
    ):
        raise feed.fault(
            f"unpacks to {unpacked // 2**20:,} MB: refused. Save its text in another format."
        )


_PARSERS: dict[str, Callable[[Feed, bytes], Parsed]] = {
    "text": parse_text,
    "markdown": parse_markdown,
    "html": parse_html,
    "pdf": parse_pdf,
    "docx": parse_docx,
}
