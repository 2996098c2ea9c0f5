"""The embedded corpora, written for the project, with questions over them and gold readings.

The sample is full of real ambiguity. It serves the first minute (`whichsense search` without an index), the tests and
the pages. The handbook is a firm's dry documents: policies, data sheets, price lists. Nothing is trained on it.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path

from whichsense import index as indexes
from whichsense.errors import IndexBusy, IndexFault
from whichsense.files import cache_folder
from whichsense.index.folder import FORMAT
from whichsense.index.object_store import url_of

HERE = Path(__file__).parent
PASSAGES, QUESTIONS, UNANSWERABLE = (
    HERE / "passages.jsonl",
    HERE / "questions.jsonl",
    HERE / "unanswerable.jsonl",
)
HANDBOOK = HERE / "handbook"  # the folder of documents, questions, unanswerable
_CORPORA = {"sample": PASSAGES, "handbook": HANDBOOK / "documents.jsonl"}


def open_index(place: str | Path | None = None) -> indexes.Index:
    """Return the index in a folder, or the embedded one of that name: "sample", the default, or "handbook".

    A folder of that name wins over the embedded index.
    """
    if place is None:
        return index()
    if str(place) in _CORPORA and not Path(place).exists():
        return index(str(place))
    return indexes.Index.open(place)


def place_of(index: str | Path | None) -> str | Path:
    """Return where such an index is for a cluster: a URL as it is, since machines fetch their own shards; else its
    folder.
    """
    if index is not None and url_of(index):
        return index
    return open_index(index).folder


@cache
def index(name: str = "sample") -> indexes.Index:
    """Return an embedded corpus's index, built in a second on first use and kept in the user's cache."""
    corpus = _CORPORA[name]
    checksum = hashlib.sha256(corpus.read_bytes()).hexdigest()
    folder = cache_folder() / f"{name}-{FORMAT}.2-{checksum[:12]}"
    try:
        return indexes.Index.open(folder)
    except IndexFault:
        pass  # not there yet, or damaged: it costs nothing to build
    # The handbook's lines are documents.
    cutting = indexes.Cutting(sentences=name == "handbook")
    try:
        return indexes.Index.build(corpus, folder, cutting=cutting)
    except (
        IndexBusy,
        OSError,
    ):  # another process builds it in this moment, or the home cannot be written to
        temporary = Path(tempfile.mkdtemp(prefix=f"whichsense-{name}-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return indexes.Index.build(corpus, temporary, cutting=cutting)


def corpus_name(folder: str | Path) -> str:
    """Return what a person calls the index in a folder: an embedded corpus by its own name, any other by the folder's.

    >>> corpus_name("/data/wiki"), corpus_name(cache_folder() / "handbook-2-0123456789ab")
    ('wiki', 'handbook')
    """
    place = Path(folder)
    if place.parent == cache_folder():
        return place.name.partition("-")[0]
    return place.name or "sample"
