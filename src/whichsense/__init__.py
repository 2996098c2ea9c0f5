"""whichsense: one question, many readings. Every plausible answer, what it answers, and where it was found.

    import whichsense as ws
    case = ws.load().ask("Who played the Joker?")
    case.readings

The names below are imported when they are first used, so that `import whichsense` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from whichsense.client import Client as Client
    from whichsense.errors import WhichsenseError as WhichsenseError
    from whichsense.index import Index as Index
    from whichsense.lab import datasets as datasets
    from whichsense.lab.evaluation.scoring import score as score
    from whichsense.pipeline import Pipeline as Pipeline
    from whichsense.systems import load
    from whichsense.types import Case as Case
    from whichsense.types import Clarification as Clarification
    from whichsense.types import Document as Document
    from whichsense.types import Hit as Hit
    from whichsense.types import LongAnswer as LongAnswer
    from whichsense.types import Passage as Passage
    from whichsense.types import Reading as Reading
    from whichsense.types import Span as Span

# Where each name lives; the module itself where the two are the same.
_HOME = {
    "Case": "whichsense.types",
    "Clarification": "whichsense.types",
    "Client": "whichsense.client",
    "Document": "whichsense.types",
    "Hit": "whichsense.types",
    "Index": "whichsense.index",
    "LongAnswer": "whichsense.types",
    "Passage": "whichsense.types",
    "Pipeline": "whichsense.pipeline",
    "Reading": "whichsense.types",
    "Span": "whichsense.types",
    "WhichsenseError": "whichsense.errors",
    "datasets": "whichsense.lab.datasets",
    "load": "whichsense.systems",
    "score": "whichsense.lab.evaluation.scoring",
}

__all__ = [
    "Case",
    "Clarification",
    "Client",
    "Document",
    "Hit",
    "Index",
    "LongAnswer",
    "Passage",
    "Pipeline",
    "Reading",
    "Span",
    "WhichsenseError",
    "__version__",
    "datasets",
    "load",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'whichsense' has no attribute '{name}'")
    module = importlib.import_module(_HOME[name])
    return module if _HOME[name].endswith(f".{name}") else getattr(module, name)
