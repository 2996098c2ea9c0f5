"""What the tests of the page share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = os.environ.get("WHICHSENSE_CHROMIUM") or shutil.which("chromium")
PICTURES = Path(__file__).parents[2] / "docs" / "images" / "page"
JOKER = "Who played the Joker?"
WIDE = {"width": 1200, "height": 800}
PHONE = {"width": 390, "height": 844}
LONGEST_WAIT = 90_000  # milliseconds; a quiet machine answers in two or three seconds
OpenPage = Callable[..., Any]
"""Opens the page at a path, with options of Playwright's `new_context`."""
