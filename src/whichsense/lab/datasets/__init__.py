"""Datasets by name, lazy and typed, with their sources.

>>> from whichsense import datasets
>>> dev = datasets.load("ambignq/dev")      # nothing is read yet
>>> "asqa/dev" in datasets.names()
True
"""

from __future__ import annotations

from pathlib import Path

from whichsense.jobs.limits import Progress, silent
from whichsense.lab.datasets.catalog import Entry, data_folder, entry, find, names
from whichsense.lab.datasets.dataset import (
    CheckReport,
    Dataset,
    check,
    find_near_duplicates,
    load,
    load_questions,
    locate_questions,
)
from whichsense.lab.datasets.records import (
    Annotation,
    AnnotationKind,
    Claim,
    ClarifiedQuestion,
    Condition,
    ConditionalQuestion,
    ConflictDocument,
    ConflictQuestion,
    Context,
    EntityQuestion,
    ErrorSpan,
    FeedbackQuestion,
    FullQuestion,
    GroundedAnswer,
    GroundedLongQuestion,
    GroundedQuestion,
    JudgedQuestion,
    LongQuestion,
    LongReference,
    MissingInformation,
    Preference,
    QAPair,
    Question,
    Record,
    SearchQuery,
    SentencePassage,
    SituatedQuestion,
    merge_answers,
    rewrites_as_questions,
)

__all__ = [
    "Annotation",
    "AnnotationKind",
    "CheckReport",
    "Claim",
    "ClarifiedQuestion",
    "Condition",
    "ConditionalQuestion",
    "ConflictDocument",
    "ConflictQuestion",
    "Context",
    "Dataset",
    "EntityQuestion",
    "Entry",
    "ErrorSpan",
    "FeedbackQuestion",
    "FullQuestion",
    "GroundedAnswer",
    "GroundedLongQuestion",
    "GroundedQuestion",
    "JudgedQuestion",
    "LongQuestion",
    "LongReference",
    "MissingInformation",
    "Preference",
    "QAPair",
    "Question",
    "Record",
    "SearchQuery",
    "SentencePassage",
    "SituatedQuestion",
    "check",
    "data_folder",
    "entry",
    "fetch",
    "find",
    "find_near_duplicates",
    "load",
    "load_questions",
    "locate_questions",
    "merge_answers",
    "names",
    "rewrites_as_questions",
]


def fetch(
    name: str, data_dir: str | Path | None = None, force: bool = False, progress: Progress = silent
) -> Path:
    """Download a dataset into the data folder, check it, and move it into place in one step.

    A file that is there already is not fetched again without `force`.
    """
    # The network modules cost import time that loading does not need.
    from whichsense.lab.datasets.fetching import fetch_dataset

    return fetch_dataset(name, data_dir, force, progress)
