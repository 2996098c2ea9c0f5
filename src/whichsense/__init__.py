"""whichsense: one question, many readings. Every plausible answer, what it answers, and where it was found."""

from __future__ import annotations

__version__ = "0.1.0"
