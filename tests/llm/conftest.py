"""The embedded model, loaded once for all tests of language models."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from whichsense.models.compact.scene import Compact


@pytest.fixture(scope="session")
def compact() -> Compact:
    return Compact(passages=400)
