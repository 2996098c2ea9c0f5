"""Ask, choose, go on, stop, reload, share, go back: in a browser, over the embedded sample."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from browsing import CLIPBOARD, JOKER, OFFERED, OpenPage
from browsing import ask as begin

from patience import wait_for

# In the page, and not from here: an answer may come between a look at it and a click.
STOP_UNDER_WAY = """() => new MutationObserver((_, observer) => {
    if (!document.querySelector('.stage.full')) return;
    observer.disconnect();
    document.querySelector('.stop').click();
}).observe(document.body, {subtree: true, childList: true, attributes: true})"""


def ask(page: Any, question: str) -> None:
    begin(page, question)
    page.wait_for_selector(".actions")


def say(page: Any, text: str) -> None:
    """Reply in the thread, and wait for what is said to it."""
    turns = turn_of(page)
    page.get_by_label("Your follow-up").fill(text)
    page.keyboard.press("Enter")
    wait_for_turn(page, turns + 1)


def turn_of(page: Any) -> int:
    return int(page.url.partition("?")[0].rpartition("/")[2])


def wait_for_turn(page: Any, turn: int) -> None:
    page.wait_for_url(re.compile(rf"/t/\w+/{turn}(\?|$)"))


def number_of(page: Any, text: str) -> str:
    """The number of the reading that has this text: which one it is, is the model's."""
    number: str = row(page, text).locator("kbd").inner_text()
    return number


def open_row(page: Any, number: int | str) -> None:
    turns = turn_of(page)
    page.keyboard.press(str(number))
    wait_for_turn(page, turns + 1)


def opened(page: Any) -> list[str]:
    """The numbers of the readings that are open."""
    texts: list[str] = page.locator(".sense.open > h3 kbd").all_inner_texts()
    return texts


def row(page: Any, text: str) -> Any:
    return page.locator(".sense", has_text=text).first


@pytest.fixture
def thread(open_page: OpenPage, joker_thread: str) -> Any:
    """A thread whose question was answered; other tests may have gone on in it."""
    page = open_page(f"/t/{joker_thread}/1", **CLIPBOARD)
    page.wait_for_selector(".senses")
    return page


def test_the_first_view_is_a_question_in_grey_and_three_examples(open_page: OpenPage) -> None:
    page = open_page()
    field = page.get_by_label("Your question")
    assert field.get_attribute("placeholder") == JOKER
    assert page.locator(".examples li").count() == 3
    assert "401 passages" in page.locator(".corpus").inner_text()
    assert field.evaluate("field => field === document.activeElement")
    assert page.locator(".side").is_hidden(), "there is no thread yet"


def test_a_conversation_by_keyboard_alone(open_page: OpenPage) -> None:
    """Enter asks, 2 opens a reading, s its source; a follow-up is about it; e tells the story beside the readings."""
    page = open_page()
    page.keyboard.press("Enter")
    page.wait_for_selector(".sense")
    stages = page.locator(".stage").all_inner_texts()
    assert stages[0].endswith("passages") and stages[3].endswith(("checked", "shown"))
    assert JOKER in page.title()
    ledger = number_of(page, "Ledger")
    open_row(page, ledger)
    assert opened(page) == [ledger] and turn_of(page) == 2
    page.keyboard.press("s")
    assert page.locator(".panel .here").first.is_visible()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.type("and who directed it?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".read-as")
    assert "The Dark Knight" in page.locator(".read-as").inner_text()
    last = page.locator(".chapter").last
    assert last.locator(".large h3").inner_text() == "Christopher Nolan"
    assert opened(page) == [ledger], "what was chosen stays"
    page.keyboard.press("e")
    page.wait_for_selector(".story")
    story, readings = last.locator(".story"), last.locator(".column")
    assert story.bounding_box()["x"] >= readings.bounding_box()["width"]
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_reload_a_shared_link_and_back_keep_the_choice(open_page: OpenPage) -> None:
    page = open_page(**CLIPBOARD)
    ask(page, JOKER)
    open_row(page, 2)
    open_row(page, 1)
    assert opened(page) == ["1"]
    page.get_by_role("button", name="Share").click()
    page.wait_for_selector(".said:has-text('copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    page.reload()
    page.wait_for_selector(".sense.open")
    assert opened(page) == ["1"]
    other = open_page(link.partition("/t/")[1] + link.partition("/t/")[2])
    other.wait_for_selector(".sense.open")
    assert opened(other) == ["1"]
    page.go_back()
    page.wait_for_selector(".sense.open kbd:text-is('2')")
    page.go_back()
    page.wait_for_selector(".sense.open", state="detached")
    assert "This thread goes on" in page.locator(".further").inner_text()
    page.go_forward()
    page.wait_for_selector(".sense.open kbd:text-is('2')")
    page.go_back()
    page.go_back()
    page.wait_for_selector(".ask.empty")


def test_several_options_are_chosen_by_key_and_by_click(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, JOKER)
    assert page.locator(".add:visible").count() == 0, "nothing is chosen yet"
    open_row(page, 1)
    page.keyboard.press("Shift+Digit2")
    wait_for_turn(page, 3)
    assert opened(page) == ["1", "2"]
    page.locator(".sense").nth(2).locator(".add").click()
    wait_for_turn(page, 4)
    page.reload()
    page.wait_for_selector(".sense.open")
    assert opened(page) == ["1", "2", "3"]
    open_row(page, 4)
    assert opened(page) == ["4"], "a choice takes the place of those before"


def test_options_and_readings_are_one_list(thread: Any) -> None:
    page = thread
    assert page.locator(".senses:visible").count() == 1
    answers = page.locator(f"{OFFERED} .answer").all_inner_texts()
    assert {"Jack Nicholson", "Cesar Romero"} <= set(answers)
    assert len(answers) == page.locator(OFFERED).count()
    nicholson = row(page, "Jack Nicholson")
    nicholson.get_by_role("button").first.click()
    assert nicholson.locator(".source").first.inner_text() == "Batman (1989 film)"
    assert nicholson.locator(".evidence strong").inner_text() == "Jack Nicholson"
    assert "of 100" in nicholson.locator(".sure").get_attribute("title")
    assert len(opened(page)) == 1


def test_a_rewrite_marks_what_it_adds(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, "Who plays Willy Wonka?")
    wilder = row(page, "Gene Wilder")
    wilder.get_by_role("button").first.click()
    rewrite = wilder.locator(".rewrite").inner_text()
    marked = wilder.locator(".rewrite mark").all_inner_texts()
    assert "1971" in " ".join(marked)
    assert all(one in rewrite for one in marked)


def test_all_of_them_something_else_and_words_of_ones_own(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, JOKER)
    everything = page.locator(OFFERED).count()
    nicholson = number_of(page, "Jack Nicholson")
    page.keyboard.press("a")
    wait_for_turn(page, 2)
    assert len(opened(page)) == everything
    say(page, "the one with Batman of 1989")
    assert opened(page) == [nicholson]
    page.get_by_role("button", name="Something else").click()
    wait_for_turn(page, 4)
    assert page.locator(".reply .message").inner_text()
    page.reload()
    page.wait_for_selector(".reply .message")
    assert opened(page) == [nicholson]


def test_suggestions_ask_the_same_about_other_readings(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, JOKER)
    open_row(page, number_of(page, "Ledger"))
    say(page, "and who directed it?")
    page.locator(".suggested").get_by_role("button", name="Joker (2019 film)").click()
    wait_for_turn(page, 4)
    last = page.locator(".chapter").last
    assert last.locator(".answer").first.inner_text() == "Todd Phillips"


def test_an_answer_is_stopped_and_its_question_is_there_again(
    open_page: OpenPage, address: str
) -> None:
    page = open_page()
    deleted: list[str] = []
    page.on("request", lambda one: deleted.append(one.url) if one.method == "DELETE" else None)
    page.evaluate(STOP_UNDER_WAY)
    begin(page, JOKER)
    page.wait_for_selector(".message:has-text('Stopped.')")
    assert page.locator(".ask.empty").count() == 1
    assert page.get_by_label("Your question").input_value() == JOKER
    assert page.url.rstrip("/") == address
    wait_for(lambda: any("/v1/cases/" in one for one in deleted))
    ask(page, JOKER)  # the field asks again
    page.route("**/replies", lambda route: None)  # no answer ever
    page.get_by_label("Your follow-up").fill("Who directed The Dark Knight?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".pending .stages")
    page.keyboard.press("Escape")
    field = page.get_by_label("Your follow-up")
    assert field.input_value() == "Who directed The Dark Knight?"
    assert page.locator(".chapter").count() == 1 and turn_of(page) == 1


def test_citations_open_their_passages(thread: Any) -> None:
    page = thread
    page.get_by_role("button", name="Show all of it").or_(
        page.get_by_role("button", name="Tell the whole story")
    ).first.click()
    if not page.locator(".story").count():
        page.keyboard.press("e")
    page.wait_for_selector(".story")
    cite = page.locator(".cite").last
    cite.click()
    note = page.locator(".note:visible")
    assert note.count() == 1 and len(note.inner_text()) > 100
    cite.click()
    assert page.locator(".note:visible").count() == 0


def test_a_source_is_read_in_its_document(thread: Any) -> None:
    page = thread
    page.locator(".option", has_text="Jack Nicholson").click()
    page.locator(".open .evidence").first.click()  # the whole card opens
    page.get_by_role("link", name="Read on in the document").first.click()
    page.wait_for_selector(".document .here")
    assert page.locator(".document .here strong").inner_text() == "Jack Nicholson"
    assert "passage=" in page.url
    page.go_back()
    page.wait_for_selector(".senses")


def test_copy_and_judge(thread: Any) -> None:
    page = thread
    if page.locator(".further button").count():
        page.locator(".further button").click()

    def copied(name: str) -> str:
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_selector(f".said:has-text('{name}')")
        text: str = page.evaluate("navigator.clipboard.readText()")
        return text

    assert "Cesar Romero" in copied("text")
    assert "**Cesar Romero**" in copied("Markdown")
    assert json.loads(copied("JSON"))["question"] == JOKER
    page.get_by_role("button", name="This is right").click()
    page.wait_for_selector(".said:has-text('Thank you')")
    page.get_by_role("button", name="This is wrong").click()
    page.get_by_label("the source").check()
    page.get_by_label("What would be right?").fill("another one")
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector("text=It is kept with this answer")


def test_a_threshold_is_kept_in_the_address_and_asked_with(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, JOKER)
    several = page.locator(OFFERED).count()
    assert several > 1 and "threshold" not in page.url
    page.get_by_label("Show what is").select_option("almost certain")
    page.wait_for_url(re.compile(r"threshold=0\.9"))
    fewer = page.locator(f"{OFFERED}, .large")  # an only one is shown at large
    assert 0 < fewer.count() < several
    assert "merely possible" in page.locator(".fold > summary").first.inner_text()
    page.reload()
    page.wait_for_selector(".fold")
    assert page.get_by_label("Show what is").input_value() == "0.9"
    page.get_by_label("Show what is").select_option("probable enough")
    page.wait_for_url(re.compile(r"/1$"))
    assert page.locator(OFFERED).count() == several


def test_threads_are_listed_searched_opened_and_deleted(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, "Who directed The Dark Knight?")
    nolan = page.url
    page.keyboard.press("n")
    ask(page, JOKER)
    side = page.locator(".side")
    assert side.locator("[aria-current]").inner_text() == JOKER
    page.get_by_label("Search your threads").fill("dark directed")
    assert side.locator("li").count() == 1
    side.get_by_role("link", name="Who directed The Dark Knight?").click()
    page.wait_for_selector(".large")
    assert page.url.startswith(nolan.rpartition("/")[0])
    side.get_by_role("button", name="Delete the thread").click()
    assert page.evaluate("document.activeElement.textContent") == "Keep"
    side.get_by_role("button", name="for good").click()
    page.wait_for_selector(".ask.empty")
    page.get_by_label("Search your threads").fill("")
    assert side.locator("li").count() == 1
    gone = open_page(nolan.partition("/t/")[1] + nolan.partition("/t/")[2])
    gone.wait_for_selector(".trouble")


def test_a_case_from_its_link_becomes_a_thread(open_page: OpenPage, joker: str) -> None:
    page = open_page(f"/q/{joker}")
    page.wait_for_selector(".senses")
    page.keyboard.press("2")
    page.wait_for_url(re.compile(r"/t/\w+/2"))
    assert opened(page) == ["2"]
    page.goto(page.url.partition("/t/")[0] + f"/q/{joker}")
    page.wait_for_selector(".senses")


def test_no_answer_shows_what_comes_nearest(open_page: OpenPage) -> None:
    page = open_page()
    ask(page, "Which colour is the moon of the planet Zorblax?")
    page.wait_for_selector(".nothing")
    assert page.locator(".nothing .source-card").count() > 0
    assert "passages came near" in page.locator(".nothing > p").first.inner_text()


def test_another_index_is_chosen_and_a_thread_stays_with_it(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_label("Which corpus").select_option("handbook")
    page.wait_for_url(re.compile(r"\?index=handbook"))
    page.keyboard.press("Tab")  # the field has been focused
    page.locator(".question button").click()  # the grey example
    page.wait_for_selector(".actions")
    page.reload()
    page.wait_for_selector(".actions")
    assert "handbook" in page.locator(".corpus").inner_text()
    assert page.get_by_label("Which corpus").count() == 0
    if page.locator(OFFERED).count():
        page.locator(OFFERED).first.click()
    page.locator(".source-link:visible").first.click()
    page.get_by_role("link", name="Read on in the document").first.click()
    page.wait_for_selector(".document .here")
    assert "index=handbook" in page.url
    assert page.get_by_label("Which corpus").input_value() == "handbook"
