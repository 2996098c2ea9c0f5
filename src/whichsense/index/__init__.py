"""The index: a folder in which a corpus is searched. Build, open, search, add, delete, check.

What changes an index is imported when it is first used: a question needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from whichsense.index.folder import Manifest
from whichsense.index.search import Index
from whichsense.index.shards import Spread

if TYPE_CHECKING:
    from whichsense.index.growth import Cutting
    from whichsense.index.write import Health, add, check, delete

__all__ = ["Cutting", "Health", "Index", "Manifest", "Spread", "add", "check", "delete"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'whichsense.index' has no attribute '{name}'")
    home = "growth" if name == "Cutting" else "write"
    return getattr(importlib.import_module(f"whichsense.index.{home}"), name)
