"""Open WebUI itself, over the service: options to click, sources, several choices, a new question.

It is large, and pins other versions than ours: install it into an environment of its own, and name its command in
WHICHSENSE_OPEN_WEBUI. With WHICHSENSE_PICTURES=1 the picture for the docs is made anew.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import JOKER, LONGEST_WAIT, PICTURES
from test_pictures import taken

from patience import LONGEST

httpx = pytest.importorskip("httpx2", reason="needs the extra 'client'")
COMMAND = os.environ.get("WHICHSENSE_OPEN_WEBUI", "")
needs_it = pytest.mark.skipif(
    not COMMAND, reason="needs Open WebUI: set WHICHSENSE_OPEN_WEBUI to its command"
)


@pytest.fixture(scope="module")
def open_webui(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Open WebUI, set up as deploy/compose.yaml does, but without accounts."""
    folder = tmp_path_factory.mktemp("open-webui")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "OPENAI_API_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": "none",
        "ENABLE_OLLAMA_API": "false",
        "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "a secret of this test, and of no other",
        "DATA_DIR": str(folder),
        "OFFLINE_MODE": "true",
        "RAG_EMBEDDING_ENGINE": "openai",  # no weights to load
    }
    environment = {**os.environ, **settings}
    environment.pop("PYTHONPATH", None)  # it has its own packages
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [COMMAND, "serve", "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield _when_ready(f"http://127.0.0.1:{port}", process, folder / "log")
    finally:
        process.terminate()
        process.wait(LONGEST)


def _when_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> str:
    ends_at = time.monotonic() + LONGEST
    while time.monotonic() < ends_at and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{address}/health").status_code == 200:
                return address
        time.sleep(0.5)
    raise TimeoutError(log.read_text(errors="replace")[-2000:])


@needs_it
def test_a_clarifying_conversation(open_webui: str, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_default_timeout(LONGEST_WAIT)
    page.goto(open_webui)
    box = page.locator("#chat-input")
    box.wait_for()
    page.get_by_role("button", name="Okay, Let's Go!").click()  # what is new in it
    messages = page.locator("#messages-container")

    def say(text: str) -> None:
        box.click()
        page.keyboard.type(text)
        page.keyboard.press("Enter")

    def wait_for(text: str) -> None:
        messages.get_by_text(text).last.wait_for()

    say(JOKER)
    wait_for("Found ")  # a stage that has ended
    wait_for("Reply with a number")
    option = page.locator("button", has_text="the Dark Knight film").last
    option.wait_for()
    option.click()
    wait_for("Who played the Joker in the Dark Knight film?")
    wait_for("1 Source")
    page.wait_for_timeout(1000)
    if os.environ.get("WHICHSENSE_PICTURES"):
        (PICTURES.parent / "open-webui.webp").write_bytes(taken(page))
    page.get_by_text("1 Source").last.click()
    page.locator("button", has_text="The Dark Knight").last.click()
    page.get_by_text("released in 2008, in which").last.wait_for()
    page.keyboard.press("Escape")
    say("1 and 3")
    wait_for("Who played the Joker in the 1989 film Batman?")
    wait_for("2 Sources")
    say("the one on television")
    wait_for("Who played the Joker in the 1960s television series?")
    say("Who directed The Dark Knight?")
    wait_for("Christopher Nolan")
    title = page.locator("button", has_text=JOKER).or_(page.get_by_text(JOKER))
    assert title.count() >= 2, "the chat is named by its question"
    page.close()
