"""Any text becomes records and passages: Wikipedia dumps, JSON lines, tables, Parquet, folders of documents."""

from whichsense.corpus.cutting import Seen, cut, pieces, title_line
from whichsense.corpus.feed import Broken, Record, Report
from whichsense.corpus.reading import (
    FORMATS,
    Corpus,
    RecordCorpus,
    Sources,
    make_corpus,
)

__all__ = [
    "FORMATS",
    "Broken",
    "Corpus",
    "Record",
    "RecordCorpus",
    "Report",
    "Seen",
    "Sources",
    "cut",
    "make_corpus",
    "pieces",
    "title_line",
]
