"""whichsense: one question, many readings. Every plausible answer, what it answers, and where it was found.

The names below are imported when they are first used, so that `import whichsense` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from whichsense.version import __version__ as __version__

if TYPE_CHECKING:
    from whichsense.errors import WhichsenseError as WhichsenseError
    from whichsense.index import Index as Index
    from whichsense.pipeline import Pipeline as Pipeline
    from whichsense.types import Hit as Hit
    from whichsense.types import Passage as Passage
    from whichsense.types import Reading as Reading


_HOME = {
    "Hit": "whichsense.types",
    "Index": "whichsense.index",
    "Passage": "whichsense.types",
    "Pipeline": "whichsense.pipeline",
    "Reading": "whichsense.types",
    "WhichsenseError": "whichsense.errors",
}

__all__ = [
    "Hit",
    "Index",
    "Passage",
    "Pipeline",
    "Reading",
    "WhichsenseError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'whichsense' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)
