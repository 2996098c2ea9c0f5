"""Which format a file is in: by its name, and by its first bytes where the name does not tell."""

from __future__ import annotations

import json
import re
from pathlib import Path

from whichsense import files
from whichsense.corpus.feed import Reader
from whichsense.corpus.formats.tables import is_dpr
from whichsense.errors import BadInput, did_you_mean, require

DOCUMENTS = ("text", "markdown", "html", "pdf", "docx")
"""Formats of one document a file; the others hold many records."""
FORMATS = ("wikipedia", "jsonl", "passages", "dpr", "csv", "tsv", "parquet", *DOCUMENTS)

_SUFFIXES = {
    ".xml": "wikipedia",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}
# A JSON list of objects, or an object over several lines: records, but not one on each line.
_JSON = re.compile(rb'\[\s*+\{|\{\s*+"[^"\n]{0,200}+"\s*+:')
_MARKS = (
    (b"%pdf-", "pdf"),
    (b"pk\x03\x04", "docx"),
    (b"par1", "parquet"),
    (b"<mediawiki", "wikipedia"),
    (b"<!doctype html", "html"),
    (b"<html", "html"),
)
ARCHIVES = (".zip", ".epub", ".tar", ".tgz", ".7z", ".rar")
_MODULES = {
    "parquet": "pyarrow.parquet",
    "markdown": "markdown_it",
    "html": "selectolax.lexbor",
    "pdf": "pypdf",
    "docx": "docx",
}


def check(name: str) -> str:
    """A format's name, or an error that helps with a mistyped one."""
    if name not in FORMATS:
        raise BadInput(f"No format named '{name}'. {did_you_mean(name, FORMATS)}")
    return name


def by_name(path: Path) -> str | None:
    """The format that a file's name tells; None where it tells nothing."""
    return _SUFFIXES.get(files.plain_suffix(path))


def refined(path: Path, name: str) -> str:
    """The format when more than the suffix is looked at: records that are passages already are not cut again.

    DPR's are a TSV with a known header; JSON lines are passages where their file is called so (passages.jsonl).
    """
    if name == "jsonl" and path.name.lower().startswith(("passages", "psgs")):
        return "passages"
    return "dpr" if name == "tsv" and is_dpr(_head(path)) else name


def by_content(path: Path) -> str | None:
    """The format that a file's first bytes tell; "text" for any other text, None for anything else.

    "json", which is no format, stands for JSON that is not on lines.
    """
    head = _head(path)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:512].lower()
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    if start.startswith((b"{", b"<doc ")) and _one_record_a_line(head):
        return "jsonl"
    if is_dpr(head):
        return "dpr"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text"
    if not head or b"\0" in head:
        return None
    return (
        "json" if files.plain_suffix(path) == ".json" or _JSON.match(start) else "text"
    )


def jq_program(path: Path) -> str:
    """What makes lines of a JSON file that seems to hold texts to read; empty for one of settings."""
    head = _head(path)
    if b'"text"' not in head and b'"contents"' not in head:
        return ""
    return (
        "'.[]'" if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[") else "."
    )


def _one_record_a_line(head: bytes) -> bool:
    """Whether the first line is a record; one that is longer than what was read gets the benefit of the doubt."""
    line, end, _ = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if line.startswith(b"<doc "):
        return True
    if not end:
        return _JSON.match(line) is not None
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _head(path: Path) -> bytes:
    with files.open_source(path)[1] as reader:
        return reader.read(2**16)


def reader_of(name: str) -> Reader:
    """The reader of a format, with the libraries it needs, or the error that says which extra brings them."""
    if name in _MODULES:
        require(_MODULES[name], "documents")
    if name in DOCUMENTS:
        from whichsense.corpus.formats import documents

        return documents.reader_of(name)
    if name == "wikipedia":
        from whichsense.corpus.wikipedia.articles import read_dump

        return read_dump
    if name == "parquet":
        from whichsense.corpus.formats.parquet import read_parquet

        return read_parquet
    from whichsense.corpus.formats import jsonlines, tables

    return {
        "jsonl": jsonlines.read_jsonl,
        "passages": jsonlines.read_passages,
        "csv": tables.read_csv,
        "tsv": tables.read_tsv,
        "dpr": tables.read_dpr,
    }[name]
