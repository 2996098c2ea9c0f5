"""Files into the index and out of it. Runs in a thread; what is wrong with a file is told without its path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from whichsense import index as indexes
from whichsense.corpus import Corpus, Report
from whichsense.errors import BadInput, IndexBusy, MissingExtra
from whichsense.index import Index
from whichsense.index.growth import Cutting, cut_record
from whichsense.jobs.limits import check_limits
from whichsense.jobs.progress import Progress
from whichsense.serve.problems import Problem, Refused
from whichsense.types import Document

LISTED = 20_000
"""Passages up to which an index is gone through for a list of its sources."""
_EXAMPLES = 3  # broken records that are named
_QUERY, _EQUALS = (
    2_000,
    10,
)  # by how much of a passage its equals are searched for, and among how many hits
_BUSY = Problem(
    409,
    "index-busy",
    "Another process is writing to the index.",
    "Try again when it is done.",
    headers={"Retry-After": "10"},
)
_FORMATS = "Send text, Markdown, HTML, PDF, Word, JSON lines, TSV or CSV under a name that says so."
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")
_PICTURE = Problem(
    422,
    "file",
    "The file is a picture, and pictures are not read.",
    f"Send its text. {_FORMATS}",
)
# The part of a fix that only the command line can do: ", or name it with --format".
_OPTIONS = re.compile(r",? or [^.]*--[a-z]+(?: [\w-]+)?")


@dataclass(frozen=True, slots=True)
class AddedFile:
    """What became of a file."""

    source: str
    """What its passages name as their source, and what deletes them."""
    passages: int
    """In the whole index, after the change."""
    changed: int
    added: int
    replaced: int
    """Passages of an earlier file of this name, which are gone."""
    duplicates: int
    """Passages that the index has already."""
    left_out: int
    """Records that could not be read."""
    why: Sequence[str] = ()
    """Of the first of them."""


def add_file(folder: str, path: Path, progress: Progress) -> AddedFile:
    """Add a file in the place of what was added under its name before. A file that cannot be read, or whose whole text
    other sources have, changes nothing."""
    with open(path, "rb") as file:
        if file.read(16).startswith(_PICTURES):
            raise Refused(_PICTURE)
    with _explained(path):
        corpus = Corpus(path, prefix=True)
        (source,) = corpus.source_names()
        with closing(Index.open(folder)) as index:
            before = len(index)
            is_known = bool(index.of_source(source))
            twin = _holder(index, corpus, source)
        if twin:
            raise Refused(_duplicate(twin))
        replaced = 0
        if is_known:
            # Read it once before the old one goes.
            for _ in corpus.records(Report()):
                check_limits()
            _, replaced = indexes.delete(folder, [], [source])
        manifest = indexes.add([path], folder, progress=progress)
    report = Report.from_dict(dict(manifest.report))
    return AddedFile(
        source,
        manifest.passages,
        changed=manifest.passages - before,
        added=report.passages,
        replaced=replaced,
        duplicates=report.duplicates,
        left_out=report.broken,
        why=[f"{one.where}: {one.why}" for one in report.named[:_EXAMPLES]],
    )


def _holder(index: Index, corpus: Corpus, source: str) -> str:
    """Return another source that has the text of a file; empty where any of its passages is in no other source."""
    cutting, holder = Cutting(**index.manifest.settings), ""
    with closing(corpus.records(Report())) as records:
        for record in records:
            check_limits()
            if not isinstance(record, Document):
                return ""
            for piece in cut_record(record, "", cutting):
                holder = _source_of(index, piece.title, piece.text, source)
                if not holder:
                    return ""
    return holder


def _source_of(index: Index, title: str, text: str, but: str) -> str:
    for hit in index.search(f"{title} {text}"[:_QUERY], _EQUALS, "bm25"):
        passage = hit.passage
        if (passage.title, passage.text) == (title, text) and passage.source != but:
            return passage.source
    return ""


def _duplicate(source: str) -> Problem:
    title = f"The file holds nothing new: '{source[:100]}' has its text already."
    fix = "Delete that source first if this name is the better one."
    return Problem(422, "file", title, fix)


def delete_source(folder: str, source: str) -> tuple[int, int]:
    """Delete the passages of a source: how many are left in the index, and how many went."""
    try:
        manifest, deleted = indexes.delete(folder, [], [source])
    except IndexBusy:
        raise Refused(_BUSY) from None
    return manifest.passages, deleted


def list_sources(index: Index) -> list[dict[str, object]]:
    """Every source, the latest first: its name, the title of its first passage, documents and passages."""
    titles: dict[str, str] = {}
    documents: dict[str, set[str]] = {}
    passages: dict[str, int] = {}
    for passage in index.passages():
        source = passage.source
        titles.setdefault(source, passage.title)
        document = passage.id.rpartition("#")[0] or passage.id
        documents.setdefault(source, set()).add(document)
        passages[source] = passages.get(source, 0) + 1
    table: list[dict[str, object]] = []
    for source in reversed(titles):
        table.append(
            {
                "source": source,
                "title": titles[source],
                "documents": len(documents[source]),
                "passages": passages[source],
            }
        )
    return table


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of what is read as problems."""
    try:
        yield
    except IndexBusy:
        raise Refused(_BUSY) from None
    except MissingExtra:
        title = "The service cannot read files of this format."
        fix = "Tell the operator: pip install 'whichsense[documents]'"
        raise Refused(Problem(409, "format", title, fix)) from None
    except BadInput as error:
        raise Refused(unreadable(str(error), path)) from None


def unreadable(message: str, path: Path) -> Problem:
    """What is wrong with a file, without where it lies.

    >>> message = "'/x/a.txt' is not utf-8 (byte 3). Save it as UTF-8, or say --encoding cp1252."
    >>> problem = unreadable(message, Path("/x/a.txt"))
    >>> problem.title, problem.fix
    ('The file is not utf-8 (byte 3).', 'Save it as UTF-8.')
    """
    message = message.replace(f"'{path}' ", "").replace(f"{path}, ", "")
    reason, _, fix = _OPTIONS.sub("", message).partition(". ")
    title = f"The file {reason.rstrip('.')}."
    if str(path.parent) in message:
        title, fix = "The file holds nothing that can be read.", ""
    fix = fix[:1].upper() + fix[1:]
    return Problem(422, "file", title[:300], fix[:500] or _FORMATS)
