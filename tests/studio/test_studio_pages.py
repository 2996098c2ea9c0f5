"""The studio's pages in a browser: every kind at every width, by keyboard, without a connection, and in two windows."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install playwright"
)

from specimens import DRAFT, PAIRS, QUESTION, ROWS, SEVERAL, SINGLE, STORY

from conftest import Postgres, served
from patience import LONGEST, wait_for
from whichsense.studio import Settings, Studio, create_project
from whichsense.studio.workbench import read_item, with_values

CHROMIUM = os.environ.get("WHICHSENSE_CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no chromium: apt-get install chromium"
)
WIDE = {"width": 1200, "height": 800}
PHONE = {"width": 390, "height": 844}
NARROW = {"width": 320, "height": 700}
REASONED = {"choice": "clarification", "reason": "It is quick to answer."}
HOSTILE = '<script>window.owned = true</script><img src=x onerror="window.owned = true">'


@dataclass
class Desk:
    """A project that is served."""

    studio: Studio
    address: str

    def link(self, name: str, role: str = "annotator", path: str = "/") -> str:
        token = self.studio.members.invite(name, role)
        return f"{self.address}{path}#invitation={token}"

    def submitted(self, item: int = 1) -> dict[str, Any]:
        """What was submitted for an item, by the names of who did."""
        with self.studio.database.reading() as connection:
            found = [read_item(connection, item)]
            values = with_values(connection, self.studio.kind, found)[0].values
        names = {member.id: member.name for member in self.studio.members.all()}
        return {names[who]: dict(value) for who, value in values.items()}


Serve = Callable[..., Desk]
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Serves a new project of a kind."""
    folder = tmp_path_factory.mktemp("pages")
    with contextlib.ExitStack() as ends:

        def serve_project(
            kind: str,
            rows: list[Any] | None = None,
            qualifying: dict[str, Path] | None = None,
            **settings: Any,
        ) -> Desk:
            name = f"project{len(list(folder.iterdir()))}"
            questions = folder / f"{name}.jsonl"
            lines = [json.dumps(row) + "\n" for row in rows or [ROWS[kind]]]
            questions.write_text("".join(lines))
            own = Settings(kind=kind, **{"overlap": 9, **settings})
            project = create_project(folder / name, own, questions, qualifying=qualifying)
            studio = Studio(project)
            ends.callback(studio.close)
            return Desk(studio, ends.enter_context(served(studio)))

        yield serve_project


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a link in a browser of its own. A script error fails the test."""
    errors: list[str] = []
    contexts = []

    def opened(link: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": WIDE} | options)
        contexts.append(context)
        context.set_default_timeout(1000 * LONGEST)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(link)
        page.wait_for_selector("main > *")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors, errors


def begin(page: Any) -> None:
    page.locator(".begin").click()
    page.wait_for_selector(".form")


def saved(page: Any) -> None:
    page.locator(".state:text-is('Saved')").wait_for()


def findings(page: Any) -> str:
    return " ".join(page.locator(".finding").all_inner_texts())


def serious_findings(page: Any) -> list[tuple[str, str]]:
    """What axe finds serious or critical: the rule, and the first element."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    found = axe.Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], one["nodes"][0]["html"]) for one in serious]


def fits(page: Any) -> bool:
    """Whether nothing makes the page scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def write_several(page: Any) -> None:
    """Fill in two pairs from the keyboard alone."""
    page.keyboard.press("2")
    page.locator("[data-edit]").nth(1).wait_for(state="attached")
    page.locator(".entry textarea").first.focus()
    for pair in PAIRS:
        for text in (pair["question"], pair["answers"][0]):
            page.keyboard.press("Control+a")
            page.keyboard.insert_text(text)
            page.keyboard.press("Enter")


@pytest.mark.parametrize("kind", ROWS)
def test_every_kind_for_everyone(serve: Serve, open_page: Open, kind: str) -> None:
    """Both widths and a narrow one, light and dark, with what axe asks for."""
    empty = {**ROWS[kind], "draft": ""}  # a draft would fill the form in
    page = open_page(serve(kind, [empty]).link("ann"))
    begin(page)
    assert page.get_by_role("heading", level=1).inner_text() == QUESTION
    for viewport, scheme in ((WIDE, "light"), (PHONE, "dark"), (NARROW, "light")):
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=scheme)
        assert fits(page)
        assert serious_findings(page) == []
    page.set_viewport_size(WIDE)
    page.keyboard.press("Control+Enter")  # nothing is written yet
    page.locator(".finding.error").first.wait_for()
    focused = page.evaluate("document.activeElement.closest('.form') !== null")
    assert focused, "the focus is not at what is missing"
    assert serious_findings(page) == []


def test_ambignq_from_generators_to_a_validator(serve: Serve, open_page: Open) -> None:
    """Two generators search, read and write by keyboard; a validator sees both and chooses."""
    questions = [ROWS["generate"], {"question": "How tall is the Statue of Liberty?"}]
    generating = serve("generate", questions, overlap=2, require_search=True)
    for name in ("ann", "bo"):
        page = open_page(generating.link(name))
        begin(page)
        for _ in questions:
            asked = page.get_by_role("heading", level=1).inner_text()
            page.keyboard.press("/")
            page.keyboard.type(asked)
            page.keyboard.press("Enter")
            page.locator(".hit").first.press("Enter")
            page.locator(".document").wait_for()
            page.locator("h1").focus()
            if asked == QUESTION and name == "ann":
                write_several(page)
            else:
                page.keyboard.press("1")
                page.locator("#main textarea").first.focus()
                answer = "Joaquin Phoenix" if asked == QUESTION else "151 feet"
                page.keyboard.insert_text(answer)
            saved(page)
            page.keyboard.press("Control+Enter")
            page.wait_for_function(
                "asked => document.querySelector('h1').textContent !== asked", arg=asked
            )
        page.get_by_text("2 questions submitted").wait_for()
    found = generating.submitted(1)
    assert found["ann"]["pairs"] == [
        {"question": pair["question"], "answers": pair["answers"][:1]} for pair in PAIRS
    ]
    assert found["bo"] == SINGLE
    assert len(generating.submitted(2)) == 2

    row = {"question": QUESTION, "annotations": [found["ann"], found["bo"]]}
    validating = serve("validate", [{**row, "pages": ["The Dark Knight"]}], overlap=1)
    page = open_page(validating.link("cy"))
    begin(page)
    shown = page.locator(".annotation").all_inner_texts()
    assert "Heath Ledger" in shown[0] and "Joaquin Phoenix" in shown[1]
    page.get_by_role("button", name="The Dark Knight").click()
    page.locator(".document h3:text-is('The Dark Knight')").wait_for()
    page.locator("h1").focus()
    page.keyboard.press("2")
    page.get_by_role("group", name="Which one?").wait_for()
    page.keyboard.press("Tab")
    page.get_by_label("Annotation 1").check()
    saved(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("1 question submitted").wait_for()
    assert validating.submitted() == {"cy": {"verdict": "better", "better": 0}}


def test_edits_and_reasons_as_they_are_typed(serve: Serve, open_page: Open) -> None:
    page = open_page(serve("generate").link("ann"))
    begin(page)
    page.keyboard.press("2")
    rewrites = page.locator(".entry-fields .field:first-child textarea")
    rewrites.nth(0).fill("Who first played the Joker?")
    assert page.locator(".edit mark").all_inner_texts() == ["first"]
    rewrites.nth(0).fill("Who plays the Joker?")
    page.locator(".edit del").wait_for()
    assert page.locator(".edit del").inner_text() == "played"
    rewrites.nth(1).fill("Who plays the Joker?")
    page.get_by_text("Pair 1 asks this already.").wait_for()
    rewrites.nth(1).fill("Who played the joker?")
    page.get_by_text("This asks the same as the question above.").wait_for()


def test_a_missing_answer_is_said_at_once(serve: Serve, open_page: Open) -> None:
    page = open_page(serve("long-answer").link("ann"))
    begin(page)
    text = page.get_by_label("Long answer")
    text.fill(STORY.split(", and")[0])
    page.get_by_text("“Joaquin Phoenix” is not in the text.").wait_for()
    assert "Heath" not in findings(page)
    text.fill(STORY)
    page.locator(".finding").first.wait_for(state="detached")


def test_a_draft_is_taken_apart_and_read_back(serve: Serve, open_page: Open) -> None:
    desk = serve("clarification")
    page = open_page(desk.link("ann"))
    begin(page)
    page.keyboard.press("1")
    assert page.get_by_label("No problem").is_checked()
    assert page.get_by_label("Category").input_value() == "Which film"
    page.get_by_label("Category").fill("Which version")
    assert page.get_by_label("Revised").is_checked()  # it is not kept as it was
    reads = page.locator(".composed")
    assert reads.inner_text() == "It reads: Which version: The Dark Knight, or Joker?"
    saved(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("1 question submitted").wait_for()
    kept = desk.submitted()["ann"]
    assert (kept["action"], kept["lead"]) == ("revise", "Which version")
    assert [one["reading"] for one in kept["options"]] == [0, 1]


def test_marks_by_keyboard(serve: Serve, open_page: Open) -> None:
    desk = serve("readings")
    page = open_page(desk.link("ann"))
    begin(page)
    for key in "yyynyyny":
        page.keyboard.press(key)
    saved(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("1 question submitted").wait_for()
    marks = desk.submitted()["ann"]["marks"]
    said = [one[name] for one in marks for name in ("answer", "true", "apart", "fluent")]
    assert said == [key == "y" for key in "yyynyyny"]


def test_a_draft_survives_a_lost_connection(serve: Serve, open_page: Open) -> None:
    """Also where the page is closed before the connection is back."""
    desk = serve("long-answer")
    page = open_page(desk.link("ann"))
    begin(page)
    page.context.set_offline(True)
    page.get_by_label("Long answer").fill("Written on a train.")
    page.get_by_text("What you write is kept in this browser").wait_for()
    page.context.set_offline(False)
    saved(page)
    assert page.locator("#offline").is_hidden()

    page.context.set_offline(True)
    page.get_by_label("Long answer").fill("Written in a tunnel.")
    page.get_by_text("What you write is kept in this browser").wait_for()
    context = page.context
    page.close()
    context.set_offline(False)
    again = context.new_page()
    again.goto(f"{desk.address}/item/1")
    saved(again)
    assert again.get_by_label("Long answer").input_value() == "Written in a tunnel."
    member = next(one for one in desk.studio.members.all() if one.name == "ann")
    view = desk.studio.view(member, 1)
    assert view["draft"]["value"] == {"text": "Written in a tunnel."}


def test_a_draft_survives_a_database_that_is_gone(
    serve: Serve, open_page: Open, postgres: Postgres
) -> None:
    """The page says so, keeps what is written, and sends it by itself; other pages come back by themselves too."""
    desk = serve("long-answer", database=postgres.make_database())
    page = open_page(desk.link("ann"))
    begin(page)
    work = page.context.new_page()
    postgres.stop("immediate")
    try:
        page.get_by_label("Long answer").fill("Written meanwhile.")
        page.get_by_text("What you write is kept in this browser").wait_for()
        work.goto(f"{desk.address}/")
        work.get_by_role("heading", name="The project's database does not answer.").wait_for()
    finally:
        postgres.start()
    saved(page)
    assert page.locator("#offline").is_hidden()
    work.locator(".begin").wait_for()
    work.close()


def test_two_windows_overwrite_nothing(serve: Serve, open_page: Open) -> None:
    desk = serve("long-answer")
    here = open_page(desk.link("ann"))
    begin(here)
    there = here.context.new_page()
    there.goto(f"{desk.address}/item/1")
    there.get_by_label("Long answer").fill("Written there.")
    saved(there)
    here.get_by_label("Long answer").fill("Written here.")
    dialog = here.get_by_role("dialog")
    dialog.wait_for()
    assert "Written here." in dialog.inner_text()
    assert "Written there." in dialog.inner_text()
    assert serious_findings(here) == []
    dialog.get_by_role("button", name="Keep the one here").click()
    saved(here)
    here.get_by_role("button", name="Undo").click()
    here.wait_for_function("() => document.querySelector('textarea').value === 'Written there.'")
    here.get_by_role("button", name="Redo").click()
    here.wait_for_function("() => document.querySelector('textarea').value === 'Written here.'")


def test_a_lease_ends_when_the_page_is_left(serve: Serve, open_page: Open) -> None:
    desk = serve("generate", overlap=1)
    ann = open_page(desk.link("ann"))
    begin(ann)
    bo = open_page(desk.link("bo"))
    bo.locator(".begin").click()
    bo.get_by_text("Nothing is left for you.").wait_for()
    ann.close(run_before_unload=True)
    wait_for(lambda: desk.studio.status()["annotations"]["free"] == 1)
    begin(bo)


def test_hostile_text_is_text(serve: Serve, open_page: Open) -> None:
    row = {**ROWS["validate"], "question": f"Who {HOSTILE}?", "pages": [HOSTILE]}
    guidelines = f"# {HOSTILE}\n\n- {HOSTILE}\n\n[x](javascript:alert) [y](https://a.b)"
    desk = serve("validate", [row], guidelines=guidelines)
    page = open_page(desk.link(HOSTILE[:90]))
    begin(page)
    page.keyboard.press("g")
    drawer = page.get_by_role("dialog")
    drawer.wait_for()
    assert HOSTILE in drawer.inner_text()
    assert [one.get_attribute("href") for one in drawer.locator("a").all()] == ["https://a.b"]
    assert page.evaluate("window.owned") is None
    assert page.locator("img, main script").count() == 0


def test_entry_without_an_invitation(serve: Serve, open_page: Open) -> None:
    desk = serve("generate")
    page = open_page(f"{desk.address}/")
    assert serious_findings(page) == []
    link = desk.link("ann")
    page.get_by_label("Your link").fill(link)
    page.keyboard.press("Enter")
    page.locator(".begin").wait_for()
    page.keyboard.press("?")
    page.get_by_role("heading", name="Keys").wait_for()
    page.keyboard.press("Escape")
    forged = open_page(f"{desk.address}/#invitation=ws_forged")
    forged.get_by_label("Your link").wait_for()
    assert "invitation" not in forged.url


def test_what_was_submitted_may_be_changed(serve: Serve, open_page: Open) -> None:
    desk = serve("preference")
    page = open_page(desk.link("ann"))
    begin(page)
    page.keyboard.press("1")
    page.get_by_label("Why?").fill("It is quick to answer.")
    page.keyboard.press("Control+Enter")
    page.get_by_role("link", name=QUESTION).click()
    page.get_by_role("button", name="Change it").click()
    page.get_by_label("To see all answers").check()
    saved(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("1 question submitted").wait_for()
    assert desk.submitted()["ann"]["choice"] == "rewrites"


def annotate(desk: Desk) -> None:
    """Two people submit different annotations of the first question."""
    for name, value in (("ann", SEVERAL), ("bo", SINGLE)):
        desk.studio.members.invite(name)
        member = next(one for one in desk.studio.members.all() if one.name == name)
        assert desk.studio.take(member, 1) is not None
        hit = desk.studio.search(member, 1, "Joker film", 5)[0]
        desk.studio.read_page(member, 1, hit["id"])
        desk.studio.save(member, 1, 0, value)
        desk.studio.submit(member, 1, 1)


def test_the_owner_sees_who_agrees_and_decides(serve: Serve, open_page: Open) -> None:
    """Two annotations that differ: progress, agreement, a decision, people, pay, data."""
    desk = serve("generate", overlap=2)
    annotate(desk)
    page = open_page(desk.link("cy", "owner"))
    for label, shown in (
        ("Progress", "2 of 2 annotations submitted"),
        ("Agreement", "F1"),
        ("Pay", "Amounts in USD"),
        ("People", "cy (you)"),
        ("Adjudicate", "1 question to decide"),
    ):
        page.get_by_role("navigation").get_by_role("link", name=label).click()
        page.get_by_text(shown).first.wait_for()
        for viewport, scheme in ((WIDE, "light"), (PHONE, "dark"), (NARROW, "light")):
            page.set_viewport_size(viewport)
            page.emulate_media(color_scheme=scheme)
            assert fits(page)
            assert serious_findings(page) == []
        page.set_viewport_size(WIDE)
    page.get_by_role("link", name=QUESTION).click()
    page.get_by_role("button", name="Accept ann’s").wait_for()
    assert serious_findings(page) == []
    page.keyboard.press("1")
    page.get_by_text("decided").first.wait_for()
    assert page.evaluate("fetch('/v1/adjudication/1').then(got => got.json())")["final"] == dict(
        SEVERAL
    )
    page.get_by_role("navigation").get_by_role("link", name="Progress").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="AmbigNQ", exact=True).click()
    assert download.value.suggested_filename == "ambignq.zip"


def test_an_invitation_is_made_and_used(serve: Serve, open_page: Open) -> None:
    desk = serve("generate")
    page = open_page(desk.link("cy", "owner", "/members"))
    page.get_by_label("Name").fill("dee")
    page.get_by_role("button", name="Invite").click()
    link = page.get_by_label("The link for dee.").input_value()
    begin(open_page(link))
    page.get_by_role("button", name="Pause dee").click()
    page.get_by_text("Paused: by an owner").wait_for()
    page.get_by_role("button", name="Remove dee").click()
    page.get_by_role("button", name="Remove dee for good").click()
    page.get_by_text("dee", exact=True).wait_for(state="detached")


def test_training_tells_what_is_right(tmp_path: Path, serve: Serve, open_page: Open) -> None:
    training = tmp_path / "training.jsonl"
    training.write_text(json.dumps({**ROWS["preference"], "value": REASONED}) + "\n")
    desk = serve("preference", qualifying={"training": training})
    page = open_page(desk.link("ann"))
    begin(page)
    assert page.locator(".crumb").inner_text() == "Training"
    page.keyboard.press("2")
    page.get_by_label("Why?").fill("All of it is there.")
    page.keyboard.press("Control+Enter")
    page.locator(".feedback-own").get_by_text("0% right.").wait_for()
    assert REASONED["reason"] in page.locator(".feedback-own").inner_text()
    assert serious_findings(page) == []
    page.get_by_role("button", name="Next question").click()
    page.locator(".crumb:text-is('Which would you rather be asked?')").wait_for()


# Pictures for docs/images/studio.


def look_at_pages(page: Any) -> None:
    write_several(page)
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.insert_text("Joker film")
    page.keyboard.press("Enter")
    page.locator(".hit").first.click()
    page.locator(".document").wait_for()
    page.evaluate("() => window.scrollTo(0, 0)")


def revise(page: Any) -> None:
    page.keyboard.press("2")
    page.get_by_label("Category").fill("Which year's film")
    assert page.locator(".draft").first.inner_text() == f"Draft: {DRAFT}"


def leave_one_out(page: Any) -> None:
    page.get_by_label("Long answer").fill(STORY.split(", and")[0] + ".")
    page.locator(".finding").first.wait_for()


PICTURES = Path(__file__).parents[2] / "docs" / "images" / "studio"
LARGEST = 60_000  # bytes
DRAWN: dict[str, tuple[str, dict[str, Any], Callable[[Any], None]]] = {
    "generate": ("generate", {"viewport": WIDE}, look_at_pages),
    "clarification": ("clarification", {"viewport": PHONE}, revise),
    "long-answer": ("long-answer", {"viewport": WIDE, "color_scheme": "dark"}, leave_one_out),
}


@pytest.mark.skipif(
    not os.environ.get("WHICHSENSE_PICTURES"),
    reason="makes pictures of the studio: set WHICHSENSE_PICTURES=1",
)
@pytest.mark.parametrize("name", [*DRAWN, "adjudicate"])
def test_picture(serve: Serve, open_page: Open, name: str) -> None:
    if name == "adjudicate":
        desk = serve("generate", overlap=2)
        annotate(desk)
        page = open_page(desk.link("cy", "owner", "/adjudicate/1"))
        page.locator(".accept").first.wait_for()
    else:
        kind, look, prepare = DRAWN[name]
        page = open_page(serve(kind).link("ann"), reduced_motion="reduce", **look)
        begin(page)
        prepare(page)
        saved(page)
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": 55}
    taken = session.send("Page.captureScreenshot", options)["data"]
    picture = base64.b64decode(taken)
    assert len(picture) <= LARGEST
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.webp").write_bytes(picture)
