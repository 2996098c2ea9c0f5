"""The index: a folder in which a corpus is searched. Build, open, search, add, delete, check."""

from __future__ import annotations

from whichsense.index.folder import Manifest
from whichsense.index.growth import Cutting
from whichsense.index.search import Index
from whichsense.index.shards import Spread
from whichsense.index.write import Health, add, check, delete

__all__ = ["Cutting", "Health", "Index", "Manifest", "Spread", "add", "check", "delete"]
