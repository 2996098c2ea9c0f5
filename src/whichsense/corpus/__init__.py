"""Any text becomes records and passages: Wikipedia dumps, JSON lines, tables, Parquet, folders of documents."""

from whichsense.corpus.cutting import cut, pieces, title_line
from whichsense.corpus.duplicates import Seen
from whichsense.corpus.feed import Record
from whichsense.corpus.formats.detection import FORMATS
from whichsense.corpus.memory import RecordCorpus, Sources, make_corpus
from whichsense.corpus.reading import Corpus
from whichsense.corpus.report import Broken, Report

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
