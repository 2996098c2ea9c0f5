"""The embedded sample: a small corpus of our own, full of real ambiguity, and questions over it with gold readings.

It serves the first minute (`whichsense search` without an index), the tests and the pages.
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

HERE = Path(__file__).parent
PASSAGES, QUESTIONS, UNANSWERABLE = (
    HERE / "passages.jsonl",
    HERE / "questions.jsonl",
    HERE / "unanswerable.jsonl",
)


@cache
def index() -> indexes.Index:
    """The sample's index, built in a second on first use and kept in the user's cache."""
    folder = (
        cache_folder()
        / f"sample-{FORMAT}-{hashlib.sha256(PASSAGES.read_bytes()).hexdigest()[:12]}"
    )
    try:
        return indexes.Index.open(folder)
    except IndexFault:
        pass  # not there yet, or damaged: it costs nothing to build
    try:
        return indexes.Index.build(PASSAGES, folder)
    except (
        IndexBusy,
        OSError,
    ):  # another process builds it in this moment, or the home cannot be written to
        temporary = Path(tempfile.mkdtemp(prefix="whichsense-sample-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return indexes.Index.build(PASSAGES, temporary)
