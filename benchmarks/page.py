"""The page in a browser: what a first view transfers, when it can be used, what jumps.

    python benchmarks/page.py [--repeats 20] [--chromium PATH] [--out results.json]

A service over the embedded sample runs on this machine; Chromium opens its page, each time with an empty cache. It is
interactive when the question's field has the focus: everything is loaded by then, and a key is heard. Layout shift is
the browser's own sum, of a first view and of one question up to its readings.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from whichsense.serve.page import bundle

_SIZES = {"wide": {"width": 1200, "height": 800}, "phone": {"width": 390, "height": 844}}
_QUESTION = "Who played the Joker?"
_WATCH = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({type: 'layout-shift', buffered: true});
document.addEventListener('focusin', (event) => {
  if (event.target.id === 'question') window.usable ??= performance.now();
});
"""
_TRANSFERRED = """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  .filter((one) => !one.name.includes('/v1/'))
  .map((one) => one.encodedBodySize)"""


@contextmanager
def _service() -> Iterator[str]:
    """The address of a service that is ready."""
    with tempfile.TemporaryDirectory() as state:
        command = [sys.executable, "-m", "whichsense", "serve", "--port", "0"]
        process = subprocess.Popen([*command, "--state", state], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            while not _is_ready(found[0]):
                time.sleep(0.2)
            yield found[0]
        finally:
            process.terminate()
            process.wait(30)


def _is_ready(address: str) -> bool:
    with suppress(OSError):
        return bool(urllib.request.urlopen(f"{address}/readyz").status == 200)
    return False


def _first_view(browser: Any, address: str, viewport: dict[str, int]) -> dict[str, Any]:
    """One visit with an empty cache: milliseconds, bytes, layout shift."""
    context = browser.new_context(viewport=viewport)
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(address)
    page.wait_for_selector("#question:focus")
    page.wait_for_timeout(300)  # for what might still move
    paints = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    visit = {
        "usable_ms": page.evaluate("window.usable"),
        "paint_ms": page.evaluate(paints),
        "bytes": sum(page.evaluate(_TRANSFERRED)),
        "shift": page.evaluate("window.shifted"),
    }
    context.close()
    return visit


def _answer_shift(browser: Any, address: str, viewport: dict[str, int]) -> float:
    """Layout shift from a question to its readings."""
    context = browser.new_context(viewport=viewport)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.add_init_script(_WATCH)
    page.goto(address)
    page.wait_for_selector("#question:focus")
    page.keyboard.type(_QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_selector(".actions")
    page.wait_for_timeout(300)
    shift: float = page.evaluate("window.shifted")
    context.close()
    return shift


def measure(browser: Any, address: str, repeats: int) -> dict[str, Any]:
    """Every figure, by the size of the window."""
    table: dict[str, Any] = {"all_assets_gzip": bundle().zipped_bytes}
    for name, viewport in _SIZES.items():
        visits = [_first_view(browser, address, viewport) for _ in range(repeats)]
        usable = sorted(visit["usable_ms"] for visit in visits)
        painted = [visit["paint_ms"] for visit in visits if visit["paint_ms"]]
        table[name] = {
            "first_view_bytes": max(visit["bytes"] for visit in visits),
            "usable_ms_median": round(statistics.median(usable)),
            "usable_ms_worst": round(usable[-1]),
            "paint_ms_median": round(statistics.median(painted)),
            "shift_first_view": max(visit["shift"] for visit in visits),
            "shift_answer": _answer_shift(browser, address, viewport),
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with _service() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        table = measure(browser, address, options.repeats)
        browser.close()
    text = json.dumps(table, indent=1)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
