"""Documents are added by drag and drop and by keyboard, asked about, and removed; bad ones are told at their place."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from browsing import OpenPage, ask, problem, serious_findings

from patience import LONGEST, wait_for

SAMPLE = "passages"  # the source of the embedded passages
FERRY = (
    b"# The Quillon ferry\n\nThe Quillon ferry crosses Lake Orrin every forty minutes. "
    b"The ferry master of the Quillon ferry is Adela Brandt.\n"
)
MEGABYTE = 2**20


def drop(page: Any, files: Mapping[str, bytes | int]) -> None:
    """Drop files on the page, as the browser does for a person; a number is a file of so many bytes."""
    encoded = {
        name: body if isinstance(body, int) else base64.b64encode(body).decode()
        for name, body in files.items()
    }
    page.evaluate(
        """(files) => {
            const data = new DataTransfer();
            for (const [name, body] of Object.entries(files)) {
              const bytes = typeof body === 'number'
                ? new Uint8Array(body) : Uint8Array.from(atob(body), (one) => one.charCodeAt(0));
              data.items.add(new File([bytes], name, {lastModified: 1700000000000}));
            }
            const view = document.querySelector('.corpus-view');
            for (const type of ['dragover', 'drop']) {
              view.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
            }
        }""",
        encoded,
    )


def remove_all(address: str) -> None:
    """Leave the sample alone in the index."""
    httpx = pytest.importorskip("httpx2")
    sources = f"{address}/v1/corpus/sources"
    for one in httpx.get(sources, timeout=LONGEST).json()["sources"]:
        if one["source"] != SAMPLE:
            httpx.delete(f"{sources}/{one['source']}", timeout=LONGEST)


@pytest.fixture
def corpus(open_page: OpenPage, address: str) -> Iterator[Any]:
    page = open_page("/corpus", bypass_csp=True)
    page.wait_for_selector(".zone")
    yield page
    remove_all(address)


def row(page: Any, name: str) -> Any:
    return page.locator(".uploads > li", has_text=name)


def test_a_document_is_dropped_asked_about_and_removed(corpus: Any) -> None:
    page = corpus
    drop(page, {"ferry.md": FERRY})
    page.wait_for_selector(".uploads a:has-text('Ask about it')")
    assert "1 passage added." in row(page, "ferry.md").inner_text()
    page.wait_for_selector(".corpus-view > .quiet:has-text('402 passages')")
    assert not serious_findings(page)
    row(page, "ferry.md").get_by_role("link", name="Ask about it").click()
    ask(page, "Who is the ferry master of the Quillon ferry?")
    page.wait_for_selector(".actions")
    assert page.locator(".answer").first.inner_text() == "Adela Brandt"
    page.get_by_role("link", name="Corpus").click()
    page.get_by_role("button", name="Remove ferry.md", exact=True).click()
    assert page.evaluate("document.activeElement.textContent") == "Keep"
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove ferry.md", exact=True).click()
    page.get_by_role("button", name="Remove ferry.md for good").click()
    page.wait_for_selector(".sources li:has-text('ferry.md')", state="detached")
    assert "401 passages" in page.locator(".corpus-view > .quiet").inner_text()


def test_files_are_chosen_by_keyboard_alone(corpus: Any) -> None:
    page = corpus
    chosen = {"name": "ferry.md", "mimeType": "text/markdown", "buffer": FERRY}
    page.on("filechooser", lambda chooser: chooser.set_files(chosen))
    page.keyboard.press("Tab")  # from the search field to its button
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "choose-files"
    page.keyboard.press("Enter")
    page.wait_for_selector(".uploads a")
    page.wait_for_selector(".sources li:has-text('ferry.md')")


def test_bad_files_say_so_and_lose_nothing_else(corpus: Any) -> None:
    page = corpus
    page.evaluate("window.name = 'kept'")
    drop(
        page,
        {
            "latin.txt": "Caf\xe9".encode("latin-1"),
            "broken.pdf": b"%PDF-1.4 broken",
            "empty.md": b"",
            "huge.txt": 65 * MEGABYTE,
            "some.jsonl": b'{"title": "Tollan", "text": "A bridge of 1931."}\nno\n',
            "ferry.md": FERRY,
        },
    )
    page.wait_for_selector(".uploads progress", state="detached")
    for name, told in (
        ("latin.txt", "not utf-8"),
        ("broken.pdf", "cannot be read as pdf"),
        ("empty.md", "The file is empty."),
        ("huge.txt", "at most 64 MB are taken"),
        ("some.jsonl", "1 passage added. Ask about it 1 record left out; line 2"),
        ("ferry.md", "1 passage added."),
    ):
        row(page, name).locator(f"text={told.split(' Ask')[0]}").first.wait_for()
        assert told in row(page, name).inner_text()
    assert row(page, "latin.txt").get_by_role("button").count() == 0
    assert page.evaluate("window.name") == "kept"  # the browser did not open a file


def test_an_upload_goes_on_after_a_break(corpus: Any) -> None:
    """Two pieces arrive, the connection breaks; the same file, dropped again, goes on with the third."""
    page = corpus
    # Few words, so that it is indexed soon.
    body = b" ".join(b"%d" % number * 200 for number in range(10_000, 13_200))
    assert 3 * MEGABYTE < len(body) < 4 * MEGABYTE
    offsets: list[int] = []

    def count(route: Any) -> None:
        offset = int(route.request.headers["upload-offset"])
        if len(offsets) >= 2:
            route.abort()
        else:
            offsets.append(offset)
            route.continue_()

    page.route(
        "**/v1/corpus/uploads/*",
        lambda route: count(route) if route.request.method == "PATCH" else route.fallback(),
    )
    page.clock.install()
    drop(page, {"long.txt": body})
    page.wait_for_selector(".uploads p:has-text('The connection broke')")
    given_up = page.get_by_role("button", name="Go on")

    def gives_up() -> bool:
        page.clock.run_for(20_000)
        page.wait_for_timeout(100)
        return bool(given_up.is_visible())

    wait_for(gives_up)
    assert offsets == [0, MEGABYTE]
    page.unroute("**/v1/corpus/uploads/*")
    page.reload()
    page.wait_for_selector(".zone")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.headers.get("upload-offset", "")))
    drop(page, {"long.txt": body})
    page.wait_for_selector(".uploads a:has-text('Ask about it')")
    assert [int(offset) for offset in sent if offset] == [2 * MEGABYTE, 3 * MEGABYTE]
    assert "passages added" in row(page, "long.txt").inner_text()


def test_what_may_not_be_changed_says_how(open_page: OpenPage) -> None:
    page = open_page("/")

    def refuse(route: Any) -> None:
        table = route.fetch().json()
        fix = "Serve an index of your own."
        route.fulfill(json=table | {"writable": False, "fix": fix})

    page.route("**/v1/corpus", refuse)
    page.get_by_role("link", name="Corpus").click()
    page.wait_for_selector(".closed")
    assert "Serve an index of your own." in page.locator(".closed").inner_text()
    assert page.get_by_role("button", name="Remove").count() == 0
    drop(page, {"ferry.md": FERRY})
    assert page.locator(".uploads > li").count() == 0


def test_a_corpus_that_needs_a_key_asks_for_it(open_page: OpenPage) -> None:
    page = open_page("/")
    page.route("**/v1/corpus/sources", lambda route: route.fulfill(**problem("key", 401)))
    page.get_by_role("link", name="Corpus").click()
    page.get_by_label("Your key").wait_for()
