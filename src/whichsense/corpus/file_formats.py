"""The formats of a corpus: one table, how a file's format is recognised, and which function reads it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from whichsense import files
from whichsense.corpus.feed import Reader
from whichsense.corpus.tables import is_dpr
from whichsense.errors import BadInput, did_you_mean, require


@dataclass(frozen=True, slots=True)
class Format:
    """What is known of a format: adding one is a row of the table below and a reader."""

    name: str
    reader: str
    """The module of this folder and the function in it that reads a file of this format."""
    suffixes: tuple[str, ...] = ()
    marks: tuple[bytes, ...] = ()
    """What such a file begins with, in small letters."""
    needs: str = ""
    """A library of the extra `documents`."""
    is_document: bool = False
    """Whether a file is one document; the others hold many records."""


_TABLE = (
    Format("wikipedia", "wikipedia.read_dump", (".xml",), (b"<mediawiki",)),
    Format("jsonl", "tables.read_jsonl", (".jsonl", ".ndjson")),
    Format("passages", "tables.read_passages"),
    Format("dpr", "tables.read_dpr"),
    Format("csv", "tables.read_csv", (".csv",)),
    Format("tsv", "tables.read_tsv", (".tsv",)),
    Format("parquet", "tables.read_parquet", (".parquet", ".pq"), (b"par1",), "pyarrow.parquet"),
    Format("text", "documents.read_text", (".txt", ".text"), is_document=True),
    Format(
        "markdown",
        "documents.read_markdown",
        (".md", ".markdown"),
        needs="markdown_it",
        is_document=True,
    ),
    Format(
        "html",
        "documents.read_html",
        (".html", ".htm", ".xhtml"),
        (b"<!doctype html", b"<html"),
        "selectolax.lexbor",
        is_document=True,
    ),
    Format("pdf", "documents.read_pdf", (".pdf",), (b"%pdf-",), "pypdf", is_document=True),
    Format("docx", "documents.read_docx", (".docx",), (b"pk\x03\x04",), "docx", is_document=True),
)
FORMATS = {each.name: each for each in _TABLE}
SUFFIXES = {suffix: each.name for each in _TABLE for suffix in each.suffixes}
ARCHIVES = (".zip", ".epub", ".tar", ".tgz", ".7z", ".rar")
# A JSON list of objects, or an object over several lines: records, but not one on each line.
_JSON = re.compile(rb'\[\s*+\{|\{\s*+"[^"\n]{0,200}+"\s*+:')


def check_format(name: str) -> str:
    """Return the name of a format; raise BadInput with help for a mistyped one."""
    if name not in FORMATS:
        raise BadInput(f"No format named '{name}'. {did_you_mean(name, FORMATS)}")
    return name


def format_by_name(path: Path) -> str | None:
    """Return the format that a file's name tells; None where it tells nothing."""
    name = SUFFIXES.get(files.plain_suffix(path))
    return "dpr" if name == "tsv" and is_dpr(_head(path)) else whole_lines(path, name)


def whole_lines(path: Path, name: str | None) -> str | None:
    """Return "passages" for JSON lines whose file is called so (passages.jsonl): they are not cut again."""
    if name == "jsonl" and path.name.lower().startswith(("passages", "psgs")):
        return "passages"
    return name


def format_by_content(path: Path) -> str | None:
    """Return the format that a file's first bytes tell; "text" for any other text, None for anything else.

    "json", which is no format, stands for JSON that is not on lines.
    """
    head = _head(path)
    start = _unmarked(head)[:512].lower()
    if name := _format_of_records(head, start):
        return name
    is_utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not is_utf16 and (not head or b"\0" in head):
        return None
    is_json = files.plain_suffix(path) == ".json" or _JSON.match(start)
    return "json" if is_json and not is_utf16 else "text"


def _format_of_records(head: bytes, start: bytes) -> str:
    """Return the format that a mark or the first record tells; empty where neither does."""
    for each in _TABLE:
        if each.marks and start.startswith(each.marks):
            return each.name
    if start.startswith((b"{", b"<doc ")) and _one_record_a_line(head):
        return "jsonl"
    return "dpr" if is_dpr(head) else ""


def jq_program(path: Path) -> str:
    """Return what makes lines of a JSON file that seems to hold texts to read; empty for one of settings."""
    head = _head(path)
    if b'"text"' not in head and b'"contents"' not in head:
        return ""
    return "'.[]'" if _unmarked(head).startswith(b"[") else "."


def _one_record_a_line(head: bytes) -> bool:
    """Tell whether the first line is a record; one that is longer than what was read gets the benefit of the doubt."""
    line, end, _ = _unmarked(head).partition(b"\n")
    if line.startswith(b"<doc "):
        return True
    if not end:
        return _JSON.match(line) is not None
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _unmarked(head: bytes) -> bytes:
    """Return the first bytes without UTF-8's byte order mark and white space."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def _head(path: Path) -> bytes:
    with files.open_source(path)[1] as reader:
        return reader.read(2**16)


def reader_of(name: str) -> Reader:
    """Return the reader of a format; raise the error that says which extra brings the library it needs."""
    chosen = FORMATS[name]
    if chosen.needs:
        require(chosen.needs, "documents")
    module, _, function = chosen.reader.partition(".")
    reader: Reader = getattr(import_module(f"whichsense.corpus.{module}"), function)
    return reader
