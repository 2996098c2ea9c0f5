"""What the tests of the page share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PICTURES = Path(__file__).parents[2] / "docs" / "images" / "page"
SHALLOW = Path(__file__).parents[2] / "systems" / "compact-shallow.toml"
JOKER = "Who played the Joker?"
WIDE = {"width": 1200, "height": 800}
PHONE = {"width": 390, "height": 844}
NARROW = {"width": 320, "height": 640}
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}
LONGEST_WAIT = 60_000  # milliseconds until an element that is not there fails a test
OFFERED = ".option:visible"
"""What is offered: what is merely possible is folded away."""
OpenPage = Callable[..., Any]
"""Opens the page at a path, with options of Playwright's `new_context`."""


def ask(page: Any, question: str = JOKER) -> None:
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")


def problem(
    kind: str,
    status: int,
    retry_after: int = 0,
    title: str = "It cannot be done.",
    fix: str = "Do something else.",
) -> dict[str, Any]:
    """A refusal of the service, for `route.fulfill`."""
    body = {"type": f"urn:whichsense:problem:{kind}", "title": title, "status": status, "fix": fix}
    headers = {"Retry-After": str(retry_after)} if retry_after else {}
    return {
        "status": status,
        "headers": headers,
        "content_type": "application/problem+json",
        "body": json.dumps(body),
    }


def serious_findings(page: Any) -> list[tuple[str, str]]:
    """What axe finds serious or critical: the rule, and the first element."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    found = axe.Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], one["nodes"][0]["html"]) for one in serious]
