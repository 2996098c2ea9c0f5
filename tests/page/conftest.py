"""A real service over a copy of the embedded sample, with two systems, in a process of its own; and a browser."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
httpx = pytest.importorskip("httpx2", reason="needs the extra 'client'")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install playwright"
)

from browsing import CHROMIUM, JOKER, LONGEST_WAIT, SHALLOW, WIDE, OpenPage

from whichsense import sample


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one service for all tests."""
    folder = tmp_path_factory.mktemp("served")
    embedded = sample.open_index(None)
    shutil.copytree(embedded.folder, folder / "sample")
    embedded.close()
    command = [
        *(sys.executable, "-m", "whichsense", "serve", "--port", "0"),
        *("--index", str(folder / "sample"), "--state", str(folder / "state")),
        *("--compare", str(SHALLOW)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        greeting = process.stdout.readline()
        found = re.search(r"http://\S+", greeting)
        assert found, greeting
        _wait_until_ready(found[0])
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def _wait_until_ready(address: str) -> None:
    ends_at = time.monotonic() + 120
    while time.monotonic() < ends_at:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{address}/readyz").status_code == 200:
                return
        time.sleep(0.1)
    raise TimeoutError("The service did not become ready.")


@pytest.fixture(scope="session")
def joker(address: str) -> str:
    """The id of an answered case with a question back."""
    body = {"question": JOKER}
    answer = httpx.post(f"{address}/v1/conversations", json=body, timeout=120)
    case_id: str = answer.json()["case_id"]
    return case_id


# Not for the session: its driver keeps an event loop running, beside which no other test could run one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("There is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[OpenPage]:
    """Opens the page at a path: in a fresh context, with options of `new_context`. A script error fails the test."""
    errors: list[str] = []
    contexts = []

    def opened(path: str = "/", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": WIDE} | options)
        contexts.append(context)
        context.set_default_timeout(LONGEST_WAIT)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}{path}")
        page.wait_for_selector("main > *")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors, errors
