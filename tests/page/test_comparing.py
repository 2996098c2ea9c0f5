"""Two systems side by side, and what was asked of a service: in a browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browsing import JOKER, LONGEST_WAIT, PHONE, OpenPage, ask, problem, serious_findings


@pytest.fixture(scope="module")
def link(browser: Any, address: str) -> str:
    """The path of a comparison that was made once, by keyboard alone."""
    page = browser.new_page()
    page.set_default_timeout(LONGEST_WAIT)
    page.goto(f"{address}/compare")
    page.wait_for_selector(".column select")
    page.keyboard.press("Enter")  # the grey example
    page.locator(".stages").nth(1).wait_for()  # both columns are under way
    page.wait_for_selector(".compare-actions button")
    path: str = page.url.removeprefix(address)
    page.close()
    return path


def test_two_systems_side_by_side(open_page: OpenPage, link: str) -> None:
    page = open_page(link, permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_selector(".only")
    assert page.get_by_label("Your question").input_value() == JOKER
    left, right = page.locator(".column").all()
    assert left.locator("select").input_value() == "compact"
    assert right.locator("select").input_value() == "compact-shallow"
    ours = left.locator(".reading h3").all_inner_texts()
    theirs = right.locator(".reading h3").all_inner_texts()
    both = [name for name in theirs if name in ours]
    only = left.locator(".only h3").all_inner_texts()
    assert both and only, "it reads fewer passages"
    assert set(only) == set(ours) - set(theirs)
    assert right.locator(".absent .answer").all_inner_texts() == only
    summary = page.locator(".difference").inner_text()
    assert f"{len(both)} answers in both" in summary
    assert f"{len(only)} only in compact" in summary
    for name in both:  # equal answers stand in one row
        places = [
            column.locator("li", has=page.get_by_role("heading", name=name, exact=True))
            for column in (left, right)
        ]
        tops = {round(place.bounding_box()["y"]) for place in places}
        assert len(tops) == 1
    page.get_by_role("button", name="Share").click()
    page.wait_for_selector(".said:has-text('copied')")
    assert page.evaluate("navigator.clipboard.readText()").endswith(link)


def test_a_system_is_changed_and_asked_again(open_page: OpenPage, link: str) -> None:
    page = open_page(link)
    page.wait_for_selector(".compare-actions button")
    page.get_by_label("First system").select_option("compact-shallow")
    page.wait_for_selector(".difference:has-text('Both give the same')")
    assert page.locator(".only").count() == 0


def test_a_phone_stacks_the_columns(open_page: OpenPage, link: str) -> None:
    page = open_page(link, viewport=PHONE, has_touch=True)
    page.wait_for_selector(".only")
    left, right = [one.bounding_box() for one in page.locator(".column").all()]
    assert right["y"] >= left["y"] + left["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_comparison_is_accessible(open_page: OpenPage, link: str, scheme: str) -> None:
    page = open_page(link, color_scheme=scheme, bypass_csp=True)
    page.wait_for_selector(".only")
    assert not serious_findings(page)


def test_one_system_says_how_to_add_another(open_page: OpenPage) -> None:
    page = open_page("/", bypass_csp=True)

    def leave_out(route: Any) -> None:
        table = route.fetch().json()
        route.fulfill(json=table | {"systems": table["systems"][:1]})

    page.route("**/v1/info", leave_out)
    page.goto(page.url + "compare")
    page.wait_for_selector(".alone")
    assert "whichsense serve --compare" in page.locator("pre").inner_text()
    assert not serious_findings(page)


def test_a_column_that_fails_leaves_the_other_alone(open_page: OpenPage) -> None:
    page = open_page("/compare")

    def refuse_one(route: Any) -> None:
        if "shallow" in (route.request.post_data or ""):
            route.fulfill(**problem("queue-full", 429, retry_after=30))
        else:
            route.fallback()

    page.route("**/v1/ask", refuse_one)
    ask(page)
    page.wait_for_selector(".trouble")
    assert page.locator(".column").nth(1).locator(".trouble").count() == 1
    page.locator(".column").nth(0).locator(".reading").first.wait_for()


def test_traces_show_times_and_what_people_said(
    open_page: OpenPage, address: str, joker: str
) -> None:
    httpx = pytest.importorskip("httpx2")
    path = f"{address}/v1/cases/{joker}/feedback"
    correction = "Jared Leto played him too."
    for body in (
        {"verdict": "up"},
        {"verdict": "down", "about": "answer", "correction": correction},
    ):
        assert httpx.post(path, json=body).status_code == 200
    page = open_page("/traces")
    page.wait_for_selector(".entries li")
    assert page.locator(".strip span").count() >= 5  # a part for each stage
    page.get_by_label("Which ones").select_option("wrong")
    page.wait_for_selector(".entries li:has-text('found it wrong')")
    for entry in page.locator(".entries > li").all():
        assert "found it wrong" in entry.inner_text()
    entry = page.locator(".entries > li", has=page.locator(f"a[href='/q/{joker}']"))
    entry.get_by_role("button", name="Details").click()
    entry.locator(".verdicts li").first.wait_for()
    said = entry.locator(".verdicts").inner_text()
    assert "Right" in said and "Wrong: the answer" in said and correction in said
    assert re.search(r"rerank\s+[\d.]+ s", entry.locator(".times").inner_text())
    page.get_by_label("Which ones").select_option("")
    page.get_by_label("Words of the question").fill("zebra crossing")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Nothing like that was asked.")
