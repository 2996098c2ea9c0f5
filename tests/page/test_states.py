"""What the page shows when something is missing, slow, hostile or narrow; what it costs; whether all can use it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from browsing import JOKER, NARROW, OFFERED, PHONE, WIDE, OpenPage, ask, problem, serious_findings

from patience import wait_for
from whichsense.serve.page import bundle

HOSTILE = '<script>window.owned = true</script><img src=x onerror="window.owned = true">'
LARGEST = 120_000  # bytes of all assets, compressed


def refuse(page: Any, **answer: Any) -> None:
    page.route("**/v1/conversations", lambda route: route.fulfill(**answer))


@pytest.mark.parametrize(
    ("kind", "status", "heading"),
    [
        ("scope", 403, "Your key does not allow this"),
        ("internal", 500, "The service failed at this"),
        ("unheard-of", 500, "This did not work"),
    ],
)
def test_a_refusal_says_what_to_do(
    open_page: OpenPage, kind: str, status: int, heading: str
) -> None:
    page = open_page()
    refuse(page, **problem(kind, status, fix="Send the header: X"))
    ask(page)
    trouble = page.locator(".trouble")
    assert trouble.locator("h2").inner_text() == heading
    said_to_operators = trouble.locator("details p")
    if kind == "unheard-of":
        assert "Send the header: X" in trouble.inner_text()
    else:
        assert "Send the header: X" in said_to_operators.text_content()
        assert not said_to_operators.is_visible()
    assert page.get_by_role("button", name="Try again").is_enabled()


@pytest.mark.parametrize(
    ("kind", "status", "wait"), [("loading", 503, 0), ("queue-full", 429, 900)]
)
def test_what_passes_is_tried_again_by_itself(
    open_page: OpenPage, kind: str, status: int, wait: int
) -> None:
    page = open_page()
    page.clock.install()
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    asked: list[str] = []

    def answer(route: Any) -> None:
        asked.append(route.request.post_data)
        route.fulfill(**problem(kind, status, retry_after=wait))

    page.route("**/v1/conversations", answer)
    ask(page)
    page.wait_for_selector(f".retry:has-text('in {wait or 5} s')")
    assert page.get_by_role("button", name="Try now").count() == (0 if wait else 1)
    page.clock.run_for(1000 * (wait or 5))
    page.wait_for_selector(f".retry:has-text('in {wait or 5} s')")
    assert len(asked) == 2
    assert asked[0] == asked[1]


def test_a_lost_service_is_found_again(open_page: OpenPage) -> None:
    """A stream breaks off before its first event, and is rejoined; nothing is asked twice."""
    page = open_page()
    asked: list[str] = []

    def cut(route: Any) -> None:
        asked.append(route.request.url)
        response = route.fetch()
        headers = {"location": response.headers["location"]}
        route.fulfill(body=": cut\n\n", content_type="text/event-stream", headers=headers)

    page.route("**/v1/conversations", cut)
    ask(page)
    page.wait_for_selector(".sense")
    assert len(asked) == 1


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


def test_offline(open_page: OpenPage) -> None:
    page = open_page()
    page.context.set_offline(True)
    page.locator(".offline").wait_for()
    ask(page)
    assert page.locator(".trouble h2").inner_text() == "Nobody answers"
    page.context.set_offline(False)
    page.wait_for_selector(".offline", state="detached")
    page.wait_for_selector(".sense")  # it was asked again by itself


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
    assert page.locator(".doing span").inner_text() == "Searching the corpus …"
    page.clock.run_for(60_000)
    page.wait_for_selector(".stages.slow")
    assert "searching the corpus takes long" in page.locator(".doing").inner_text()


def test_a_link_to_nothing(open_page: OpenPage) -> None:
    for path in ("/q/0123456789abcdef", "/t/0123456789abcdef/2"):
        page = open_page(path)
        page.wait_for_selector(".trouble")
        assert page.locator(".trouble h2").inner_text() == "There is no such answer"


def change_case(page: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the case of every link on its way to the page."""

    def answer(route: Any) -> None:
        table = route.fetch().json()
        change(table["case"])
        route.fulfill(json=table)

    page.route("**/v1/cases/*", answer)


def replayed(open_page: OpenPage, case_id: str, change: Callable[[dict[str, Any]], None]) -> Any:
    """The page of a case that was changed on its way."""
    page = open_page()
    change_case(page, change)
    page.goto(page.url.rstrip("/") + f"/q/{case_id}")
    page.wait_for_selector(".chapter")
    return page


def test_an_answer_in_a_title_is_marked_there(open_page: OpenPage, joker: str) -> None:
    def move(case: dict[str, Any]) -> None:
        case["clarification"] = None
        for reading in case["readings"]:
            span = reading["evidence"][0]
            title, text = f"{reading['answer'].upper()} (actor)", "It is so. It is not."
            span["passage"] |= {"title": title, "text": text}
            reading["evidence"] = [span | {"start": 0, "end": 0}]

    page = replayed(open_page, joker, move)
    page.keyboard.press("1")
    reading = page.locator(".sense.open")
    answer = reading.locator(".option .answer").inner_text()
    assert reading.locator(".source-link strong").inner_text() == answer.upper()
    assert reading.locator(".evidence").inner_text() == "It is so."
    assert reading.locator(".evidence strong").count() == 0


def test_readings_without_rewrites_are_told_apart_by_label_or_source(
    open_page: OpenPage, joker: str
) -> None:
    def unwrite(case: dict[str, Any]) -> None:
        case["clarification"] = None
        for reading in case["readings"]:
            reading |= {"question": case["question"], "source": "A list", "label": ""}
        case["readings"][0]["label"] = "the 2019 film"

    page = replayed(open_page, joker, unwrite)
    assert page.locator(".lead").inner_text() == "This depends on what is meant."
    told = page.locator(".option .label").all_inner_texts()
    assert told[:2] == ["the 2019 film", "from “A list”"]


def test_a_sure_only_answer_looks_different_from_one_that_is_not(
    open_page: OpenPage, joker: str
) -> None:
    looks = []
    for confidence in (0.49, 0.95):

        def only(case: dict[str, Any], confidence: float = confidence) -> None:
            case["clarification"] = None
            case["readings"] = case["readings"][:1]
            case["readings"][0]["confidence"] = confidence

        page = replayed(open_page, joker, only)
        answer = page.locator(".large h3")
        weight = answer.evaluate("one => getComputedStyle(one).fontWeight")
        looks.append((answer.inner_text(), weight, page.locator(".caution").count()))
    (unsure, light, caution), (sure, heavy, none) = looks
    assert unsure == f"Perhaps {sure}" and light < heavy and (caution, none) == (1, 0)


def test_what_a_corpus_holds_is_text_and_never_markup(open_page: OpenPage, joker: str) -> None:
    def poison(case: dict[str, Any]) -> None:
        options = case["clarification"]["options"]
        for place in (*case["readings"], *case["possible"], *options):
            for name in ("question", "answer", "label", "description"):
                if name in place:
                    place[name] = HOSTILE
        for option in options:
            case["readings"] += option["readings"]
        for reading in (*case["readings"], *case["possible"]):
            for span in reading["evidence"]:
                fields = ("text", "title", "source")
                span["passage"] |= dict.fromkeys(fields, HOSTILE)

    page = open_page()
    page.route("**/v1/passages/*", lambda route: route.abort())
    change_case(page, poison)
    page.route("**/v1/conversations", lambda route: route.abort())
    page.goto(page.url.rstrip("/") + f"/q/{joker}")
    page.wait_for_selector(".senses")
    page.locator(OFFERED).last.click()
    page.keyboard.press("s")
    assert HOSTILE in page.locator(".panel .here").first.inner_text()
    assert HOSTILE in page.locator(".option .label").first.inner_text()
    assert page.evaluate("window.owned") is None
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("viewport", [PHONE, NARROW], ids=["390", "320"])
def test_a_phone_has_the_first_answer_above_the_fold(
    open_page: OpenPage, joker_thread: str, viewport: dict[str, int]
) -> None:
    page = open_page(f"/t/{joker_thread}/1", viewport=viewport, has_touch=True)
    page.wait_for_selector(".sense")
    box = page.locator(".option .answer").first.bounding_box()
    assert box["y"] + box["height"] <= viewport["height"] / 2
    if page.locator(".fold").count():
        page.locator(".fold > summary").click()
    for option in page.locator(OFFERED).all():
        assert option.bounding_box()["height"] >= 44
    page.keyboard.press("1")
    page.keyboard.press("s")
    page.wait_for_selector(".panel:visible")
    assert_fits(page, viewport["width"])
    page.get_by_role("button", name="Threads").click()
    page.locator("dialog").get_by_role("link", name=JOKER).wait_for()
    assert_fits(page, viewport["width"])


def assert_fits(page: Any, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("path", ["/", "/compare", "/corpus", "/traces"])
def test_nothing_leaves_a_narrow_phone(open_page: OpenPage, path: str) -> None:
    page = open_page(path, viewport=NARROW, has_touch=True)
    page.get_by_role("button", name="Menu").click()
    assert page.get_by_role("link", name="Traces").is_visible()
    assert_fits(page, 320)
    # A scroll bar takes some of the width.
    width = page.evaluate("document.documentElement.clientWidth")
    for item in page.locator(".top > :visible, nav > :visible, .question").all():
        box = item.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_the_field_fits_again_when_the_window_is_another(open_page: OpenPage) -> None:
    page = open_page()
    field = page.get_by_label("Your question")
    field.fill("Who played the Joker in the film of that name, and who wrote it?")
    wide = field.bounding_box()["height"]
    page.set_viewport_size(NARROW)
    wait_for(lambda: field.bounding_box()["height"] > wide)
    page.set_viewport_size(WIDE)
    wait_for(lambda: field.bounding_box()["height"] == wide)


def test_light_dark_and_the_switch(open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(paper)
    page.get_by_role("button", name="Dark or light").click()
    light = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == light


def test_nothing_jumps(open_page: OpenPage, joker_thread: str) -> None:
    page = open_page(f"/t/{joker_thread}/1")
    page.wait_for_selector(".sense")
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


@pytest.mark.parametrize("path", ["/", "/t", "/corpus", "/traces"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(open_page: OpenPage, joker_thread: str, path: str, scheme: str) -> None:
    options = {"color_scheme": scheme, "bypass_csp": True}
    page = open_page(f"/t/{joker_thread}/1" if path == "/t" else path, **options)
    if path == "/t":
        page.wait_for_selector(".sense")
        page.locator(OFFERED).last.click()
        page.keyboard.press("s")
        page.wait_for_selector(".origin")
    if path == "/traces":
        page.wait_for_selector(".entries li")
        page.get_by_role("button", name="Details").first.click()
    assert not serious_findings(page)


def test_all_assets_are_small() -> None:
    assert bundle().zipped_bytes < LARGEST


def test_all_addresses_begin_with_the_root_path() -> None:
    document = bundle("/ws").document.plain.decode()
    addresses = re.findall(r'(?:href|src)="([^"#]*)"', document)
    assert addresses and all(one.startswith("/ws/") for one in addresses)


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
    assert httpx.get(f"{address}/page/older/app.js").headers["cache-control"] == "no-cache"
    assert httpx.get(f"{address}/page/older/none.js").status_code == 404
