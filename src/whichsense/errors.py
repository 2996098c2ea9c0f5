"""One error tree. Every message says what is wrong and what to do about it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class WhichsenseError(Exception):
    """Anything that goes wrong for a reason the user can act on. The command prints it without a traceback."""


class BadInput(WhichsenseError):
    """A question, file or record that cannot be used as it is."""


class NoDataset(BadInput):
    """No dataset has this name."""


class MissingData(BadInput):
    """The dataset is known, but its file is not in the data folder, or cannot be fetched."""


class DamagedData(BadInput):
    """The file of a dataset is not what it should be: wrong checksum, count or schema."""


class BadConfig(WhichsenseError):
    """A setting that does not exist or has a value it cannot have."""


class IndexFault(WhichsenseError):
    """Something about an index folder: the base of the errors below."""


class NoIndex(IndexFault):
    """The folder holds no index."""


class DamagedIndex(IndexFault):
    """The index does not match its manifest."""


class IndexBusy(IndexFault):
    """Another process is writing to the index."""


class WriteFault(IndexFault):
    """The index could not be written."""


class DiskFull(IndexFault):
    """There is no room for what is being written."""

    def __init__(self, place: object) -> None:
        super().__init__(
            f"The disk is full: '{place}' could not be written. Free some space and run the same command again. "
            "The index that was there is untouched."
        )


class ClusterFault(WhichsenseError):
    """Something about a cluster: it is not there, or a node of it cannot do the work."""


class MissingExtra(WhichsenseError):
    """An optional dependency is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"'{module}' is not installed. Run: pip install 'whichsense[{extra}]'")


class MissingStage(WhichsenseError):
    """The pipeline was asked for something that needs a stage it was not given."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that is there but fails to import one of its own parts must not be reported as missing.
        if error.name is None or not module.startswith(error.name):
            raise
        raise MissingExtra(module.partition(".")[0], extra) from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence that helps with a mistyped name.

    >>> did_you_mean("asqa/dve", ["asqa/dev", "ambignq/dev"])
    "Did you mean 'asqa/dev'?"
    >>> did_you_mean("zzz", ["one", "two"])
    'Known: one, two.'
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    return f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(names)}."
