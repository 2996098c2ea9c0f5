"""The tagger: spans from marks, candidates from spans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tiny_compact import exported, tagged
from whichsense.models.compact.encoder import CompactModel, Pair
from whichsense.models.compact.tagger import Tagger, Tags, read_tags
from whichsense.types import Passage

WORDS = "Adults pay £12 and students £9 .".split()


def pair_of(words: list[str]) -> Pair:
    """A pair whose text is these words, after a question of one token and a title of one."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    starts = [int(end) - len(word) for end, word in zip(ends, words, strict=True)]
    before = [0] * 5
    size = len(words)
    return Pair(
        ids=[*range(5), *range(5, 5 + size), 2],
        types=[0, 0, 0, 1, 1, *[1] * (size + 1)],
        title=(3, 4),
        text=(5, 5 + size),
        starts=[*before, *starts, 0],
        ends=[*before, *map(int, ends), 0],
    )


def marks(inside: dict[str, float], begins: dict[str, float]) -> np.ndarray:
    """Logits for the words that are named; all others are unlikely."""
    rows = np.full((6 + len(WORDS), 3), -6.0, np.float32)
    for column, table in enumerate((inside, begins)):
        for word, logit in table.items():
            rows[5 + WORDS.index(word), column] = logit
    return rows


def spans_of(tags: np.ndarray, holds: float = 4.0) -> list[str]:
    found = read_tags(Tags(tags, holds, tags), pair_of(WORDS))
    return [" ".join(WORDS[one.first - 5 : one.last - 4]) for one in found]


def test_every_marked_answer_is_a_span_best_first() -> None:
    inside = {"£12": 2.0, "students": -6.0, "£9": 4.0}
    assert spans_of(marks(inside, {"£12": 2.0, "£9": 3.0})) == ["£9", "£12"]


def test_a_span_goes_on_while_tokens_are_inside_and_none_begins_another() -> None:
    inside = {"£12": 4.0, "and": 3.0, "students": 3.0, "£9": 3.0}
    assert spans_of(marks(inside, {"£12": 3.0})) == ["£12 and students £9"]
    both = spans_of(marks(inside, {"£12": 3.0, "students": 3.0}))
    assert sorted(both) == ["students £9", "£12 and"]


def test_what_begins_nothing_or_is_not_inside_is_no_span() -> None:
    assert spans_of(marks({"£12": 4.0}, {})) == []
    assert spans_of(marks({}, {"£12": 4.0})) == []


def test_a_span_ends_where_tokens_are_far_less_likely_than_its_first() -> None:
    inside = {"pay": 4.0, "£12": 3.0, "and": -1.0}
    assert spans_of(marks(inside, {"pay": 3.0})) == ["pay £12"]
    # Of what is unlikely as a whole, all tokens are about as likely.
    inside = {"pay": -1.0, "£12": -1.2, "and": -1.4}
    assert spans_of(marks(inside, {"pay": -1.0})) == ["pay £12 and"]


@pytest.mark.parametrize("question", ["who directed dune", "when"])
def test_what_is_found_stands_in_its_passage(question: str, tmp_path: Path) -> None:
    tagger = Tagger(CompactModel(tagged(exported(tmp_path)), threads=1))
    film = Passage("film", "Dune", "The film was made in 1984 by David Lynch.")
    found = tagger.find(question, [film])
    assert found
    for one in found:
        text = film.text[one.span.start : one.span.end]
        assert text and text == text.strip() and one.span.passage is film
        assert one.span.score == one.inside * one.holds
