"""Datasets by name, lazy and typed, with where they come from.

>>> from whichsense import datasets
>>> dev = datasets.load("ambignq/dev")      # nothing is read yet
>>> "asqa/dev" in datasets.names()
True
"""

from __future__ import annotations

from .catalog import Entry, entry, names
from .checking import Report, check
from .dataset import Dataset, load
from .faults import DamagedData, MissingData, NoDataset
from .fetching import fetch
from .folder import data_folder, find
from .near import near_duplicates
from .records import (
    Annotation,
    ClarifiedQuestion,
    Condition,
    ConditionalQuestion,
    Context,
    EntityQuestion,
    FullQuestion,
    GroundedQuestion,
    JudgedQuestion,
    LongQuestion,
    LongReference,
    QAPair,
    Question,
    SearchQuery,
    SituatedQuestion,
)

__all__ = [
    "Annotation",
    "ClarifiedQuestion",
    "Condition",
    "ConditionalQuestion",
    "Context",
    "DamagedData",
    "Dataset",
    "EntityQuestion",
    "Entry",
    "FullQuestion",
    "GroundedQuestion",
    "JudgedQuestion",
    "LongQuestion",
    "LongReference",
    "MissingData",
    "NoDataset",
    "QAPair",
    "Question",
    "Report",
    "SearchQuery",
    "SituatedQuestion",
    "check",
    "data_folder",
    "entry",
    "fetch",
    "find",
    "load",
    "names",
    "near_duplicates",
]
