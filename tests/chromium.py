"""The browser of page tests. Without it they are skipped, all by one line of the summary."""

from __future__ import annotations

import os
import shutil

CHROMIUM = os.environ.get("WHICHSENSE_CHROMIUM") or shutil.which("chromium")
