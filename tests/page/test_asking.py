"""Ask, choose, reply, explain, open sources, share, go back: in a browser, over the embedded sample."""

from __future__ import annotations

import json
from typing import Any

from browsing import JOKER, OpenPage
from browsing import ask as begin

NICHOLSON = "Who played the Joker in the 1989 film?"


def ask(page: Any, question: str) -> None:
    begin(page, question)
    page.wait_for_selector(".actions")


def answers(page: Any) -> list[str]:
    return [
        text for text in page.locator(".reading > .answer").all_inner_texts() if text
    ]


def test_the_first_view_is_a_question_in_grey_and_three_examples(
    open_page: OpenPage,
) -> None:
    page = open_page()
    field = page.get_by_label("Your question")
    assert field.get_attribute("placeholder") == JOKER
    assert page.locator(".examples li").count() == 3
    assert "401 passages" in page.locator(".corpus").inner_text()
    assert field.evaluate("field => field === document.activeElement")


def test_ask_the_grey_example_by_keyboard_alone(open_page: OpenPage) -> None:
    """Enter asks, stages fill, 2 chooses, e tells the story, s opens the sources, / goes back to the field."""
    page = open_page()
    page.keyboard.press("Enter")
    page.wait_for_selector(".clarification")
    stages = page.locator(".stage").all_inner_texts()
    assert stages[0].endswith("passages") and stages[3].endswith(("checked", "shown"))
    assert page.url.rpartition("/")[0].endswith("/q")
    assert JOKER in page.title()
    label = page.locator(".option .label").nth(1).inner_text()
    page.keyboard.press("2")
    assert label in page.locator(".chosen-line").inner_text()
    assert len(answers(page)) == 1
    page.wait_for_selector(".answer-area > .doing", state="detached")
    page.keyboard.press("s")
    assert page.locator(".panel .here").first.is_visible()
    page.keyboard.press("e")
    page.wait_for_selector(".story")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_reading_marks_what_it_adds_and_its_answer(
    open_page: OpenPage, joker: str
) -> None:
    page = open_page(f"/q/{joker}")
    page.wait_for_selector(".senses")
    reading = page.locator(".all .reading", has_text="Jack Nicholson").first
    assert reading.locator(".rewrite").inner_text() == NICHOLSON
    marked = reading.locator(".rewrite mark").all_inner_texts()
    assert marked == ["in the 1989 film"]
    assert reading.locator("h3.answer").inner_text() == "Jack Nicholson"
    assert reading.locator(".evidence strong").inner_text() == "Jack Nicholson"
    assert "of 100" in reading.locator(".sure").get_attribute("title")


def test_choose_several_and_all(open_page: OpenPage, joker: str) -> None:
    page = open_page(f"/q/{joker}")
    page.get_by_role("button", name="Several").click()
    page.keyboard.press("1")
    page.keyboard.press("3")
    page.get_by_role("button", name="Show 2 choices").click()
    assert page.locator(".senses").first.locator("> li").count() == 2
    page.get_by_role("button", name="Change").click()
    page.wait_for_selector(".clarification")
    everything = page.locator(".option").count()
    page.keyboard.press("a")
    assert page.locator(".senses").first.locator("> li").count() == everything


def test_a_free_reply_is_understood(open_page: OpenPage) -> None:
    page = open_page("/?threshold=0.8")
    ask(page, JOKER)
    page.get_by_label("Or in your own words").fill("the one with Batman of 1989")
    page.keyboard.press("Enter")
    page.wait_for_selector(".chosen-line")
    assert answers(page)[0] == "Jack Nicholson"
    page.reload()  # the same conversation goes on after a reload
    page.get_by_role("button", name="Something else").click()
    page.wait_for_selector(".message")
    assert "merely possible" in page.locator(".message").inner_text()


def test_citations_open_their_passages(open_page: OpenPage, joker: str) -> None:
    page = open_page(f"/q/{joker}")
    page.get_by_role("button", name="Tell the whole story").click()
    page.wait_for_selector(".story")
    cite = page.locator(".cite").last
    cite.click()
    note = page.locator(".note:visible")
    assert note.count() == 1 and len(note.inner_text()) > 100
    column = page.locator(".story-text").bounding_box()
    assert note.bounding_box()["x"] >= column["x"] + column["width"]  # in the margin
    cite.click()
    assert page.locator(".note:visible").count() == 0


def test_copy_share_and_judge(open_page: OpenPage, joker: str) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    page = open_page(f"/q/{joker}", permissions=permissions)

    def copied(name: str) -> str:
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_function(
            "name => document.querySelector('.said').textContent.includes(name)",
            arg="link" if name == "Share" else name,
        )
        text: str = page.evaluate("navigator.clipboard.readText()")
        return text

    assert "Cesar Romero" in copied("text")
    assert "**Cesar Romero**" in copied("Markdown")
    assert json.loads(copied("JSON"))["question"] == JOKER
    assert copied("Share") == page.url
    page.get_by_role("button", name="This is right").click()
    page.wait_for_selector(".said:has-text('Thank you')")
    page.get_by_role("button", name="This is wrong").click()
    page.get_by_label("the source").check()
    page.get_by_label("What would be right?").fill("another one")
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector("text=It is kept beside this answer")


def test_a_threshold_is_kept_in_the_address_and_asked_with(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, JOKER)
    several = len(answers(page))
    assert several > 2 and "threshold" not in page.url
    assert page.get_by_text("This depends on").is_visible()
    page.get_by_label("Show answers from").fill("100")
    page.wait_for_selector(".reading.large")
    assert page.url.endswith("?threshold=1")
    assert "merely possible" in page.locator(".fold > summary").first.inner_text()
    assert page.locator(".fold").first.get_attribute("open") is None
    page.reload()
    page.wait_for_selector(".reading.large")
    assert page.locator(".threshold output").inner_text() == "100"
    page.get_by_role("button", name="Usual").click()
    page.wait_for_selector(".clarification")
    assert "threshold" not in page.url and len(answers(page)) == several


def test_earlier_questions_are_listed_and_opened(
    open_page: OpenPage, joker: str
) -> None:
    page = open_page(f"/q/{joker}")
    page.wait_for_selector(".actions")
    page.get_by_role("link", name="whichsense").click()
    page.get_by_role("button", name="Earlier").click()
    page.locator("dialog").get_by_role("link", name=JOKER).click()
    page.wait_for_selector(".clarification")
    assert page.url.endswith(joker)
    page.go_back()
    page.wait_for_selector(".ask.empty")


def test_no_answer_shows_what_comes_nearest(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, "Which colour is the moon of the planet Zorblax?")
    page.wait_for_selector(".nothing")
    assert page.locator(".nearest li").count() > 0
    assert "passages came near" in page.locator(".nothing > p").first.inner_text()
