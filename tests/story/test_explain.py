"""whichsense explain: what it prints, what it refuses."""

from __future__ import annotations

import json

import pytest

from whichsense.cli import main
from whichsense.text.rendering import TERMINAL, show_story
from whichsense.types import Case, Citation, LongAnswer, Passage

QUESTION = "Who plays Leo Bloom in The Producers?"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["explain", *arguments])
    out, err = capsys.readouterr()
    return int(str(stopped.value.code or 0)), out, err


def test_the_paragraph_and_the_cited_passages_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = run(capsys, QUESTION)
    assert status == 0
    paragraph, _, passages = out.partition("\n\n")
    assert "Gene Wilder" in paragraph
    assert "[1]" in paragraph
    assert passages.startswith("[1] ")
    assert "*" in passages


def test_json_has_the_long_answer(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, QUESTION, "--json", "--words", "20-40")
    assert status == 0
    case = Case.from_json(json.loads(out))
    assert case.long_answer is not None
    assert all(citation.passages for citation in case.long_answer.sentences)


@pytest.mark.parametrize("words", ["60", "100-60", "0-10", "a-b"])
def test_a_range_of_words_is_needed(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, QUESTION, "--words", words)
    assert status == 2
    assert "60-100" in err


def test_a_question_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys)
    assert status == 2
    assert "Give a QUESTION" in err


def test_a_long_passage_is_shown_around_what_supports_the_text() -> None:
    text = "Nothing here. " * 300 + "Ann Lee founded the club. " + "More. " * 300
    passage = Passage("1", "Club\x1b[31m", text)
    answer = LongAnswer("Who?", (Citation("Ann Lee founded the club.", (passage,)),))
    shown = TERMINAL.write(show_story(Case("Who?", long_answer=answer)))
    assert "*Ann Lee founded the club.*" in " ".join(shown.split())
    assert "\x1b[31m" not in shown
    assert len(shown) < 3000


def test_a_case_without_a_long_answer_says_so() -> None:
    assert "No answer found." in TERMINAL.write(show_story(Case("Who?")))
    assert "Stopped" in TERMINAL.write(show_story(Case("Who?", stopped="deadline")))
