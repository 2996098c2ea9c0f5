"""Datasets by name, lazy and typed, with where they come from.

>>> from whichsense import datasets
>>> dev = datasets.load("ambignq/dev")      # nothing is read yet
>>> "asqa/dev" in datasets.names()
True
"""

from __future__ import annotations

from pathlib import Path

from whichsense.datasets.catalog import Entry, entry, names
from whichsense.datasets.checking import Report, check
from whichsense.datasets.dataset import Dataset, load
from whichsense.datasets.faults import DamagedData, MissingData, NoDataset
from whichsense.datasets.folder import data_folder, find
from whichsense.datasets.near import near_duplicates
from whichsense.datasets.records import (
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
from whichsense.jobs.progress import Progress, silent

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


def fetch(
    name: str,
    data_dir: str | Path | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Path:
    """Download a dataset into the data folder, check it, and put it in its place in one step.

    What is there already is not fetched again, unless `force` says so. An interrupted download goes on where it
    stopped, if the server can do that and its file is still the same.
    """
    from whichsense.datasets.fetching import (
        fetch as fetch_now,  # brings the network modules, which loading does not need
    )

    return fetch_now(name, data_dir, force, progress)
