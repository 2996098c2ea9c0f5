"""One renderer: what a terminal, Markdown and plain text show of the same document."""

from __future__ import annotations

from dataclasses import replace

from whichsense.testing import passage_hit
from whichsense.text.rendering import (
    MARKDOWN,
    PLAIN,
    TERMINAL,
    show_case,
    show_clarification,
    show_readings,
    show_sources,
    show_story,
)
from whichsense.types import Case, Citation, Clarification, LongAnswer, Option, Reading, Span

HIT = passage_hit("David Lynch directed the *1984* film. It failed.", "Dune (film)")
READING = Reading("Who made it?", "David Lynch", (Span(HIT.passage, 0, 11),), 0.9)


def test_an_answer_is_strong_and_marked_in_its_sentence() -> None:
    blocks = show_readings([READING], "Who made it?")
    assert PLAIN.write(blocks).splitlines() == [
        "  1. David Lynch  90%",
        "     *David Lynch* directed the *1984* film.  [Dune (film)]",
    ]
    assert TERMINAL.write(blocks).startswith("  1. \x1b[1mDavid Lynch\x1b[0m  90%")


def test_markdown_escapes_what_sources_say() -> None:
    assert MARKDOWN.write(show_readings([READING], "Who made it?")).splitlines() == [
        "1. **David Lynch**  90%",
        r"   *David Lynch* directed the \*1984\* film.  [Dune (film)]".replace(
            "[Dune (film)]", r"\[Dune (film)\]"
        ),
    ]


def test_control_characters_reach_no_format() -> None:
    hostile = replace(READING, answer="Ann\x1b[31m\x07")
    for form in (PLAIN, MARKDOWN, TERMINAL):
        text = form.write(show_case(Case("Who\x1b[2J?", readings=(hostile,))))
        assert "\x07" not in text and "\x1b[31m" not in text and "\x1b[2J" not in text


def test_a_question_back_is_numbered() -> None:
    options = (Option("1", "the film", "of 1984"), Option("2", "the book"))
    asked = Clarification("Version", "Which version: the film, or the book?", "version", options)
    lines = MARKDOWN.write(show_clarification(asked)).splitlines()
    assert lines[0] == "**Which version?**"
    assert [line for line in lines if line[:1].isdigit()] == ["1. the film", "2. the book"]


def test_a_story_cites_its_passages_with_the_support_marked() -> None:
    told = LongAnswer("Who?", (Citation("David Lynch directed it.", (HIT.passage,)),))
    case = Case("Who made it?", readings=(READING,), long_answer=told)
    text = PLAIN.write(show_story(case))
    assert "David Lynch directed it [1]." in text
    assert "*David Lynch directed the *1984* film.* It failed." in text


def test_sources_are_shown_once() -> None:
    assert PLAIN.write(show_sources([READING, READING])).count("Dune (film)") == 1
    assert PLAIN.write(show_sources([])) == "There is no evidence to show."
