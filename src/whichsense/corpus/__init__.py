"""Any text becomes records and passages: Wikipedia dumps, JSON lines, tables, Parquet, folders of documents."""

from whichsense.corpus.cutting import Seen, cut, pieces, title_line
from whichsense.corpus.feed import Broken, Record, Report
from whichsense.corpus.file_formats import FORMATS, SUFFIXES
from whichsense.corpus.reading import Corpus, RecordCorpus, Sources, make_corpus

__all__ = [
    "FORMATS",
    "SUFFIXES",
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
