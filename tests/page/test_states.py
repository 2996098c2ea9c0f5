"""What the page shows when something is missing, slow, hostile or narrow; what it costs; whether all can use it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from browsing import PHONE, OpenPage, ask, problem, serious_findings

from whichsense.serve.page import bundle

HOSTILE = (
    '<script>window.owned = true</script><img src=x onerror="window.owned = true">'
)
LARGEST = 120_000  # bytes of all assets, compressed


def refuse(page: Any, **answer: Any) -> None:
    page.route("**/v1/conversations", lambda route: route.fulfill(**answer))


@pytest.mark.parametrize(
    ("kind", "status", "heading"),
    [
        ("index", 503, "The index cannot be read"),
        ("loading", 503, "Not quite ready"),
        ("scope", 403, "This key may not ask"),
        ("unheard-of", 500, "This did not work"),
    ],
)
def test_a_refusal_says_what_to_do(
    open_page: OpenPage, kind: str, status: int, heading: str
) -> None:
    page = open_page()
    refuse(page, **problem(kind, status))
    ask(page)
    assert page.locator(".trouble h2").inner_text() == heading
    assert "Do something else." in page.locator(".trouble").inner_text()
    assert page.get_by_role("button", name="Try again").is_enabled()


def test_a_key_is_asked_for_and_used(open_page: OpenPage) -> None:
    page = open_page()
    sent: list[str] = []

    def answer(route: Any) -> None:
        sent.append(route.request.headers.get("authorization", ""))
        route.fulfill(**problem("key", 401))

    page.route("**/v1/conversations", answer)
    ask(page)
    page.get_by_label("Your key").fill("ws_abc")
    page.get_by_role("button", name="Use this key").click()
    page.wait_for_selector(".trouble")
    assert sent == ["", "Bearer ws_abc"]


def test_too_many_questions_wait_as_long_as_the_service_says(
    open_page: OpenPage,
) -> None:
    page = open_page()
    page.clock.install()
    refuse(page, **problem("queue-full", 429, retry_after=900))
    ask(page)
    assert page.get_by_role(
        "button", name=re.compile("Try again in .* s")
    ).is_disabled()
    page.clock.run_for(901_000)
    page.wait_for_selector("button:text-is('Try again'):enabled")


def test_offline(open_page: OpenPage) -> None:
    page = open_page()
    page.context.set_offline(True)
    page.locator(".offline").wait_for()
    ask(page)
    assert page.locator(".trouble h2").inner_text() == "Nobody answers"
    page.context.set_offline(False)
    page.wait_for_selector(".offline", state="detached")


def test_a_question_that_is_too_long_is_not_sent(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, "why " * 600)
    assert "2,399 characters" in page.locator(".length").inner_text()
    assert page.locator(".ask.empty").count() == 1


def test_slow_says_what_takes_long(open_page: OpenPage) -> None:
    page = open_page()
    page.clock.install()
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    page.route("**/v1/conversations", lambda route: None)  # no answer ever
    ask(page)
    assert page.locator(".doing").inner_text() == "Searching the corpus …"
    page.clock.run_for(60_000)
    page.wait_for_selector(".stages.slow")
    assert "searching the corpus takes long" in page.locator(".doing").inner_text()


def test_a_link_to_nothing(open_page: OpenPage) -> None:
    page = open_page("/q/0123456789abcdef")
    page.wait_for_selector(".trouble")
    assert page.locator(".trouble h2").inner_text() == "There is no such answer"


def change_case(page: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the case of every link on its way to the page."""

    def answer(route: Any) -> None:
        headers = {**route.request.headers, "accept": "application/json"}
        table = json.loads(route.fetch(headers=headers).text())
        change(table["case"])
        done = json.dumps({"id": table["id"], "case": table["case"]})
        body = f"event: done\ndata: {done}\nid: 1\n\n"
        route.fulfill(content_type="text/event-stream", body=body)

    page.route("**/v1/cases/*", answer)


def test_an_answer_in_a_title_is_marked_there(open_page: OpenPage, joker: str) -> None:
    page = open_page()

    def move(case: dict[str, Any]) -> None:
        for reading in case["readings"]:
            span = reading["evidence"][0]
            title, text = f"{reading['answer'].upper()} (actor)", "It is so. It is not."
            span["passage"] |= {"title": title, "text": text}
            reading["evidence"] = [span | {"start": 0, "end": 0}]

    change_case(page, move)
    page.goto(page.url.rstrip("/") + f"/q/{joker}")
    page.wait_for_selector(".senses")
    reading = page.locator(".all .reading").first
    answer = reading.locator("h3.answer").inner_text()
    assert reading.locator(".source-link strong").inner_text() == answer.upper()
    assert reading.locator(".evidence").inner_text() == "It is so."
    assert reading.locator(".evidence strong").count() == 0


def test_readings_without_rewrites_are_told_apart_by_label_or_source(
    open_page: OpenPage, joker: str
) -> None:
    page = open_page()

    def unwrite(case: dict[str, Any]) -> None:
        case["clarification"] = None
        for reading in case["readings"]:
            reading |= {"question": case["question"], "source": "A list", "label": ""}
        case["readings"][0]["label"] = "the 2019 film"

    change_case(page, unwrite)
    page.goto(page.url.rstrip("/") + f"/q/{joker}")
    page.wait_for_selector(".senses")
    assert page.locator("h2.divider").inner_text() == "This depends on what is meant."
    told = page.locator(".rewrite").all_inner_texts()
    assert told[:2] == ["the 2019 film", "from “A list”"]
    assert page.locator(".rewrite mark").all_inner_texts() == ["the 2019 film"]


def test_an_only_answer_that_is_not_probable_is_tentative(
    open_page: OpenPage, joker: str
) -> None:
    page = open_page()

    def doubt(case: dict[str, Any]) -> None:
        case["clarification"] = None
        case["readings"] = case["readings"][:1]
        case["readings"][0]["confidence"] = 0.49

    change_case(page, doubt)
    page.goto(page.url.rstrip("/") + f"/q/{joker}")
    page.wait_for_selector(".reading.large")
    assert page.locator(".large h2").inner_text().startswith("Perhaps: ")


def test_what_a_corpus_holds_is_text_and_never_markup(
    open_page: OpenPage, joker: str
) -> None:
    page = open_page()

    def poison(case: dict[str, Any]) -> None:
        for place in (*case["readings"], *case["clarification"]["options"]):
            for name in ("question", "answer", "label", "description"):
                if name in place:
                    place[name] = HOSTILE
        for reading in case["readings"]:
            for span in reading["evidence"]:
                span["passage"] |= {
                    "text": HOSTILE,
                    "title": HOSTILE,
                    "source": HOSTILE,
                }

    change_case(page, poison)
    page.route("**/v1/passages/*", lambda route: route.abort())
    page.goto(page.url.rstrip("/") + f"/q/{joker}")
    page.wait_for_selector(".senses")
    page.keyboard.press("s")
    assert HOSTILE in page.locator(".panel .here").first.inner_text()
    assert HOSTILE in page.locator(".option .label").first.inner_text()
    assert page.evaluate("window.owned") is None
    assert page.locator("main img, main script").count() == 0


def test_a_phone_is_wide_enough(open_page: OpenPage, joker: str) -> None:
    page = open_page(f"/q/{joker}", viewport=PHONE, has_touch=True)
    page.wait_for_selector(".clarification")
    page.get_by_role("button", name="Tell the whole story").click()
    page.locator(".cite").first.click()
    column = page.locator(".story-text").bounding_box()
    note = page.locator(".note:visible").bounding_box()
    assert note["x"] + note["width"] <= column["x"] + column["width"] + 1
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for option in page.locator(".option").all():
        assert option.bounding_box()["height"] >= 44


@pytest.mark.parametrize("path", ["/", "/compare", "/corpus", "/traces"])
def test_nothing_leaves_a_narrow_phone(open_page: OpenPage, path: str) -> None:
    page = open_page(path, viewport={"width": 320, "height": 640}, has_touch=True)
    page.wait_for_selector("main *")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    # A scroll bar takes some of the width.
    width = page.evaluate("document.documentElement.clientWidth")
    for item in page.locator("nav > :visible, .question").all():
        box = item.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_light_dark_and_the_switch(open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(paper)
    page.get_by_role("button", name="Dark or light").click()
    light = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == light


def test_nothing_jumps(open_page: OpenPage, joker: str) -> None:
    page = open_page(f"/q/{joker}")
    page.wait_for_selector(".clarification")
    shift = page.evaluate(
        """() => new Promise((resolve) => {
            let sum = 0;
            new PerformanceObserver((list) => {
              for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
            }).observe({type: 'layout-shift', buffered: true});
            setTimeout(() => resolve(sum), 200);
        })"""
    )
    assert shift == 0


@pytest.mark.parametrize("path", ["/", "/q", "/corpus", "/traces"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(open_page: OpenPage, joker: str, path: str, scheme: str) -> None:
    options = {"color_scheme": scheme, "bypass_csp": True}
    page = open_page(f"/q/{joker}" if path == "/q" else path, **options)
    if path == "/q":
        page.wait_for_selector(".actions")
        page.keyboard.press("s")
        page.get_by_role("button", name="This is wrong").click()
    if path == "/traces":
        page.wait_for_selector(".entries li")
        page.get_by_role("button", name="Details").first.click()
    assert not serious_findings(page)


def test_all_assets_are_small() -> None:
    assert bundle().zipped_bytes < LARGEST


def test_files_are_compressed_and_kept(address: str) -> None:
    httpx = pytest.importorskip("httpx2")
    document = httpx.get(address)
    head = httpx.head(f"{address}/compare")
    assert head.headers["etag"] == document.headers["etag"] and not head.content
    assert document.headers["content-encoding"] == "gzip"
    assert "'unsafe" not in document.headers["content-security-policy"]
    tag = {"If-None-Match": document.headers["etag"]}
    assert httpx.get(address, headers=tag).status_code == 304
    script = httpx.get(f"{address}/page/{bundle().version}/app.js")
    assert "immutable" in script.headers["cache-control"]
    assert (
        httpx.get(f"{address}/page/older/app.js").headers["cache-control"] == "no-cache"
    )
    assert httpx.get(f"{address}/page/older/none.js").status_code == 404
