"""A real service in a process of its own: a copy of the embedded sample, the handbook, two systems; and a browser."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
httpx = pytest.importorskip("httpx2", reason="needs the extra 'client'")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install playwright"
)

from browsing import JOKER, LONGEST_WAIT, SHALLOW, WIDE, OpenPage

from chromium import CHROMIUM
from patience import LONGEST, wait_for
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
        *("--index", f"sample={folder / 'sample'}", "--index", "handbook=handbook"),
        *("--state", str(folder / "state")),
        *("--compare", str(SHALLOW)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        greeting = process.stdout.readline()
        found = re.search(r"http://\S+", greeting)
        assert found, greeting
        wait_for(lambda: is_ready(found[0]))
        yield found[0]
    finally:
        process.terminate()
        process.wait(LONGEST)
        assert process.stdout is not None
        process.stdout.close()


def is_ready(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return bool(httpx.get(f"{address}/readyz").status_code == 200)
    return False


@pytest.fixture(scope="session")
def conversation(address: str) -> dict[str, str]:
    """A conversation of one turn, whose question is ambiguous."""
    body = {"question": JOKER}
    answer = httpx.post(f"{address}/v1/conversations", json=body, timeout=LONGEST)
    table: dict[str, str] = answer.json()
    return table


@pytest.fixture(scope="session")
def joker(conversation: dict[str, str]) -> str:
    """The id of its case."""
    return conversation["case_id"]


@pytest.fixture(scope="session")
def joker_thread(conversation: dict[str, str]) -> str:
    return conversation["id"]


# Not for the session: its driver keeps an event loop running, beside which no other test could run one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
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
