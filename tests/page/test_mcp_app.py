"""The app with buttons in a host: a browser's frame, messages as MCP Apps has them, the real service behind."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra 'serve'")

from browsing import JOKER, LONGEST_WAIT
from mcp import Client
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID

HOST = """<!doctype html><title>host</title>
<iframe id="view" sandbox="allow-scripts" style="width: 640px; height: 600px" srcdoc="{page}"></iframe>
<script>
  const frame = document.getElementById("view");
  window.heard = [];
  const post = (message) => frame.contentWindow.postMessage({{ jsonrpc: "2.0", ...message }}, "*");
  window.addEventListener("message", async (event) => {{
    if (event.source !== frame.contentWindow) return;
    const {{ id, method, params }} = event.data;
    window.heard.push([method, params]);
    if (method === "ui/initialize") {{
      const context = {{ theme: "dark", styles: {{ variables: {{ "--color-text-primary": "rgb(1, 2, 3)" }} }} }};
      const result = {{ protocolVersion: "2026-01-26", hostCapabilities: {capabilities}, hostContext: context }};
      post({{ id, result }});
    }} else if (method === "ui/notifications/initialized") {{
      post({{ method: "ui/notifications/tool-input", params: {{ arguments: {{}} }} }});
      const params = await window.callTool("ask", {{ question: {question} }});
      post({{ method: "ui/notifications/tool-result", params }});
    }} else if (method === "tools/call") {{
      post({{ id, result: await window.callTool(params.name, params.arguments) }});
    }} else if (id !== undefined) post({{ id, result: {{}} }});
  }});
</script>"""

OpenHost = Callable[..., Any]


@pytest.fixture(scope="module")
def answered() -> dict[str, Any]:
    return {}


@pytest.fixture
def open_host(browser: Any, address: str, answered: dict[str, Any]) -> Iterator[OpenHost]:
    """Opens a host that shows the app for a question, and calls tools of the service for it."""
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 700, "height": 640})
    context.set_default_timeout(LONGEST_WAIT)
    threads = ThreadPoolExecutor(1)

    def with_client(use: Any) -> Any:
        async def run() -> Any:
            apps = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
            async with Client(f"{address}/mcp", extensions=[apps]) as client:
                return await use(client)

        return threads.submit(lambda: asyncio.run(run())).result()

    def call_tool(name: str, arguments: Any) -> Any:
        # A conversation is gone on with any number of times: what was asked once is remembered.
        key = str(arguments)
        if name != "ask":
            return called(name, arguments)
        if key not in answered:
            answered[key] = called(name, arguments)
        return answered[key]

    def called(name: str, arguments: Any) -> Any:
        async def use(client: Client) -> Any:
            result = await client.call_tool(name, arguments)
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        return with_client(use)

    async def app_page(client: Client) -> str:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        uri = (tools["ask"].meta or {})["ui"]["resourceUri"]
        (contents,) = (await client.read_resource(uri)).contents
        return str(getattr(contents, "text", ""))

    def opened(question: str = JOKER, capabilities: str = "{ serverTools: {} }") -> Any:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.expose_function("callTool", call_tool)
        shown = html.escape(with_client(app_page))
        asked = f'"{question}"'
        page.set_content(HOST.format(page=shown, capabilities=capabilities, question=asked))
        return page

    yield opened
    context.close()
    threads.shutdown()
    assert not errors, errors


def view_of(page: Any) -> Any:
    return page.frame_locator("#view")


def heard(page: Any, method: str) -> list[Any]:
    messages = page.evaluate("window.heard")
    return [params for name, params in messages if name == method]


def test_a_button_chooses_and_the_model_is_told(open_host: OpenHost) -> None:
    page = open_host()
    view = view_of(page)
    option = view.get_by_role("button", name="1989 film Batman")
    option.wait_for()
    assert view.locator("h1").text_content() == "Which one?"
    color = "getComputedStyle(document.body).color"
    assert page.frames[1].evaluate(color) == "rgb(1, 2, 3)", "the host's own colour"
    option.click()
    view.locator(".answer").wait_for()
    answers = view.locator(".answer b").all_text_contents()
    assert answers == ["Jack Nicholson"]
    page.wait_for_function("window.heard.some(([m]) => m === 'ui/update-model-context')")
    (told,) = heard(page, "ui/update-model-context")
    text = " ".join(part["text"] for part in told["content"])
    assert "1989 film Batman" in text and "Jack Nicholson" in text
    assert heard(page, "ui/notifications/size-changed")[-1]["height"] > 20


def test_several_all_and_own_words(open_host: OpenHost) -> None:
    view = view_of(open_host())
    view.get_by_role("checkbox").first.check()
    offered = view.get_by_role("checkbox").count()
    several = view.get_by_role("button", name="Show the ticked ones")
    assert several.is_hidden(), "one is chosen by its button"
    view.get_by_role("checkbox").nth(1).check()
    several.click()
    view.locator(".answer").first.wait_for()
    assert view.locator(".answer").count() == 2

    view = view_of(open_host())
    view.get_by_role("button", name="All of them").click()
    view.locator(".answer").first.wait_for()
    assert view.locator(".answer").count() == offered

    view = view_of(open_host())
    view.get_by_placeholder("Or in your own words").fill("the one of 2008")
    view.get_by_placeholder("Or in your own words").press("Enter")
    view.locator(".answer").wait_for()
    assert view.locator(".answer b").all_text_contents() == ["Heath Ledger"]


def test_a_host_without_tools_passes_the_choice_on(open_host: OpenHost) -> None:
    page = open_host(capabilities="{}")
    view_of(page).get_by_role("button", name="1989 film").click()
    page.wait_for_function("window.heard.some(([m]) => m === 'ui/message')")
    (message,) = heard(page, "ui/message")
    assert "1989 film" in message["content"]["text"]


def test_what_needs_no_choice_is_shown(open_host: OpenHost) -> None:
    view = view_of(open_host("Who directed the 1976 version of King Kong?"))
    view.locator(".answer").wait_for()
    assert view.locator("h1").count() == 0
    view = view_of(open_host("Is there zzzz qqqq?"))
    view.get_by_text("no probable answer").wait_for()
    view = view_of(open_host(" "))
    view.get_by_text("'question' is wrong").wait_for()
