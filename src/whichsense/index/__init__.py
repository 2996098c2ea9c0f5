"""The index: a folder in which a corpus is searched. Build, add, delete, check, open, search."""

from __future__ import annotations

from whichsense.index.check import Health, check
from whichsense.index.folder import Manifest
from whichsense.index.search import Index
from whichsense.index.write import Cutting, add, build, delete

__all__ = ["Cutting", "Health", "Index", "Manifest", "add", "build", "check", "delete"]
