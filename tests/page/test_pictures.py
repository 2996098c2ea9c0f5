"""Pictures of every state for docs/images/page/: made where WHICHSENSE_PICTURES is set."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from browsing import JOKER, PHONE, PICTURES, WIDE, OpenPage, ask, problem
from test_page_documents import drop, remove_all
from test_states import change_case, refuse

from patience import LONGEST

pytestmark = pytest.mark.skipif(
    not os.environ.get("WHICHSENSE_PICTURES"),
    reason="makes pictures of the page: set WHICHSENSE_PICTURES=1",
)
LARGEST = 60_000  # bytes
NOWHERE = "Which colour is the moon of the planet Zorblax?"
CORRECTION = "Jared Leto played him too, in Suicide Squad."
FERRY = b"# The Quillon ferry\n\nThe ferry crosses Lake Orrin every forty minutes.\n"
THREADS = json.dumps(
    [
        {"id": str(number), "cases": [], "asked": asked, "turns": 2, "at": at}
        for number, (asked, at) in enumerate(
            [
                ([JOKER, "and who directed it?"], 1_790_000_000_000),
                (["When was St. Petersburg founded?"], 1_789_950_000_000),
                (["How tall is the Statue of Liberty?"], 1_789_900_000_000),
                (["What is the capital of Brazil?", "and before?"], 1_789_700_000_000),
            ]
        )
    ]
)
"""Threads as the page keeps them in the browser."""
Prepare = Callable[[Any], None]


def first_row(page: Any) -> None:
    page.wait_for_selector(".sense")


def choice(page: Any) -> None:
    page.wait_for_selector(".sense.open")


def source(page: Any) -> None:
    choice(page)
    page.locator(".open .source-link").first.click()
    page.wait_for_selector(".origin")


def story(page: Any) -> None:
    page.wait_for_selector(".story")
    page.locator(".sense.open").first.wait_for()
    page.locator(".cite").last.click()
    if page.viewport_size["width"] < WIDE["width"]:
        page.locator(".story").scroll_into_view_if_needed()


def perhaps(page: Any) -> None:
    """An only answer that is not probable: the service's word is changed on its way."""

    def doubt(case: dict[str, Any]) -> None:
        case |= {"clarification": None, "readings": case["readings"][:1]}
        case["readings"][0]["confidence"] = 0.31

    change_case(page, doubt)
    page.reload()
    page.wait_for_selector(".caution")


def follow_up(page: Any) -> None:
    page.wait_for_selector(".suggested button")
    page.locator(".settings").scroll_into_view_if_needed()


def threads(page: Any) -> None:
    """Threads of an afternoon; a phone shows them in a sheet."""
    page.evaluate("threads => localStorage.setItem('whichsense.threads', threads)", THREADS)
    page.reload()
    first_row(page)
    if page.viewport_size["width"] < WIDE["width"]:
        page.get_by_role("button", name="Threads").click()


def loading(page: Any) -> None:
    page.route("**/v1/conversations", lambda route: None)
    ask(page)
    page.wait_for_selector(".slow")


def offline(page: Any) -> None:
    page.context.set_offline(True)
    ask(page)
    page.wait_for_selector(".trouble")


# What the service says, in its own words.
REFUSALS = {
    "key": problem(
        "key",
        401,
        title="This needs a valid API key.",
        fix="The operator makes keys with whichsense keys add.",
    ),
    "busy": problem(
        "queue-full", 429, 30, title="Too many requests are waiting.", fix="Ask again in 30 s."
    ),
    "index": problem(
        "index",
        503,
        title="The index cannot be read.",
        fix="Tell the operator: whichsense index check DIR says what is wrong.",
    ),
}


def refused(name: str) -> Prepare:
    def prepare(page: Any) -> None:
        refuse(page, **REFUSALS[name])
        ask(page)
        page.wait_for_selector(".trouble")

    return prepare


def too_long(page: Any) -> None:
    ask(page, "Who played the Joker, and why? " * 70)


def in_document(page: Any) -> None:
    page.wait_for_selector(".document .here")


def corpus(page: Any) -> None:
    page.get_by_label("Search the passages").fill(JOKER)
    page.keyboard.press("Enter")
    page.wait_for_selector(".entries li")


def documents(page: Any) -> None:
    """Files that were added, one that cannot be read, and one that is about to be removed."""
    page.wait_for_selector(".zone")
    drop(page, {"ferry.md": FERRY, "old notes.txt": "Caf\xe9".encode("latin-1")})
    page.wait_for_selector(".uploads .trouble-line")
    page.wait_for_selector(".sources li:has-text('ferry.md')")
    page.get_by_role("button", name="Remove ferry.md", exact=True).click()


def closed(page: Any) -> None:
    def refuse_writing(route: Any) -> None:
        table = route.fetch().json()
        fix = "Use a key made with: whichsense keys add NAME --scope ask --scope write"
        route.fulfill(json=table | {"writable": False, "fix": fix})

    page.route("**/v1/corpus", refuse_writing)
    page.reload()
    page.wait_for_selector(".closed")


def alone(page: Any) -> None:
    """One system: the service's word is changed on its way."""

    def leave_out(route: Any) -> None:
        table = route.fetch().json()
        route.fulfill(json=table | {"systems": table["systems"][:1]})

    page.route("**/v1/info", leave_out)
    page.reload()
    page.wait_for_selector(".alone")


def traces(page: Any) -> None:
    page.get_by_label("Which ones").select_option("wrong")
    page.wait_for_selector(".entries li:has-text('found it wrong')")
    page.get_by_role("button", name="Details").first.click()
    page.wait_for_selector(".verdicts")


# Name → path (names in braces: ids), what is done there.
STATES: dict[str, tuple[str, Prepare]] = {
    "empty": ("/", lambda page: None),
    "loading": ("/", loading),
    "readings": ("/t/{fresh}", first_row),
    "choice": ("/t/{chosen}", choice),
    "source": ("/t/{chosen}", source),
    "follow-up": ("/t/{thread}/3", follow_up),
    "story": ("/t/{story}", story),
    "threads": ("/t/{fresh}", threads),
    "perhaps": ("/q/{joker}", perhaps),
    "nothing": ("/q/{nothing}", lambda page: page.wait_for_selector(".nothing")),
    "offline": ("/", offline),
    "key": ("/", refused("key")),
    "busy": ("/", refused("busy")),
    "corpus": ("/corpus", corpus),
    "in-document": ("/corpus?passage=joker-2&answer=51-65", in_document),
    "documents": ("/corpus", documents),
    "documents-closed": ("/corpus", closed),
    "compare": (
        "/compare/{joker}/{shallow}",
        lambda page: page.wait_for_selector(".compare-actions button"),
    ),
    "compare-alone": ("/compare", alone),
    "traces": ("/traces", lambda page: page.wait_for_selector(".entries li")),
    "traces-judged": ("/traces", traces),
}
LOOKS = (("wide", WIDE, "light"), ("phone", PHONE, "dark"))


@pytest.fixture(scope="session")
def ids(address: str, joker: str) -> dict[str, str]:
    """What is shown, by name. Somebody said what is wrong with the Joker's case."""
    httpx = pytest.importorskip("httpx2")

    def post(path: str, **body: Any) -> dict[str, str]:
        answer = httpx.post(f"{address}/v1/{path}", json=body, timeout=LONGEST)
        table: dict[str, str] = answer.json()
        return table

    def talk(question: str, *replies: dict[str, Any]) -> str:
        begun = post("conversations", question=question)["id"]
        for reply in replies:
            post(f"conversations/{begun}/replies", **reply)
        return begun

    wrong = {"verdict": "down", "about": "answer", "correction": CORRECTION}
    post(f"cases/{joker}/feedback", **wrong)
    on_dark_knight = [{"options": ["3"]}, {"text": "and who directed it?"}]
    return {
        "joker": joker,
        "thread": talk(JOKER, *on_dark_knight),
        "fresh": talk(JOKER),
        "chosen": talk(JOKER, {"options": ["4"]}),
        "story": talk(JOKER, {"options": ["3"]}, {"explain": True}),
        "shallow": post("ask", question=JOKER, system="compact-shallow")["id"],
        "nothing": post("ask", question=NOWHERE)["id"],
    }


@pytest.mark.parametrize("state", STATES)
def test_picture(open_page: OpenPage, address: str, ids: dict[str, str], state: str) -> None:
    path, prepare = STATES[state]
    path = path.format_map(ids)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for width, viewport, scheme in LOOKS:
        look = {"viewport": viewport, "color_scheme": scheme}
        page = open_page(path, reduced_motion="reduce", **look)
        prepare(page)
        picture = taken(page)
        assert len(picture) <= LARGEST
        (PICTURES / f"{state}-{width}-{scheme}.webp").write_bytes(picture)
        if state == "documents":
            remove_all(address)


def taken(page: Any) -> bytes:
    """What is in the window, as WebP; Playwright itself knows PNG and JPEG alone."""
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": 55}
    return base64.b64decode(session.send("Page.captureScreenshot", options)["data"])
