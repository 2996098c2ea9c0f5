"""What the corpus tests share: reading a source to the end, writing files in every compression, a small dump."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
import zstandard

from whichsense.corpus import Corpus, Record, Report

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


@pytest.fixture
def records() -> Callable[..., tuple[list[Record], Report]]:
    """Read a source to its end: the records and the report."""

    def run(source: Any, skip: int = 0, **options: Any) -> tuple[list[Record], Report]:
        report = Report()
        return list(Corpus(source, **options).records(report, skip)), report

    return run


@pytest.fixture(params=list(PACK))
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Write a file in each of the compressions."""

    def write(name: str, body: bytes) -> Path:
        path = tmp_path / f"{name}{request.param}"
        path.write_bytes(PACK[request.param](body))
        return path

    return write


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Write JSON lines; a bytes record is written as it is."""

    def write(rows: Iterable[Any], name: str = "some.jsonl") -> Path:
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return write


def page(number: int, title: str, text: str, ns: int = 0, redirect: str = "") -> str:
    """A page as a dump has it."""
    pointer = f"<redirect title={quoteattr(redirect)} />" if redirect else ""
    return (
        f"<page><title>{escape(title)}</title><ns>{ns}</ns><id>{number}</id>{pointer}<revision><id>{number + 900}</id>"
        f"<contributor><username>A</username><id>7</id></contributor><model>wikitext</model>"
        f'<text bytes="{len(text)}" xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


DUMP_HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    '<siteinfo><sitename>Wikipedia</sitename><namespaces><namespace key="0" /></namespaces></siteinfo>\n'
)
DUMP_TAIL = "</mediawiki>\n"


@pytest.fixture
def make_page() -> Callable[..., str]:
    return page


@pytest.fixture
def make_dump() -> Callable[..., bytes]:
    """The XML of a dump with these pages."""

    def make(*pages: str) -> bytes:
        return (DUMP_HEAD + "".join(pages) + DUMP_TAIL).encode()

    return make
