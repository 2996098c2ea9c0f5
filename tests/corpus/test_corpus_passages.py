"""Cutting: slices are exact, nothing is lost, order is kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whichsense.corpus import cut
from whichsense.corpus import cutting as passages
from whichsense.types import Document

TEXT = st.text(
    st.one_of(
        st.sampled_from(" \n\t.!?Aa1\u00a0\u3000\u2028\x1c"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=400,
)


@settings(deadline=None)
@given(TEXT, st.integers(1, 7), st.booleans())
def test_no_word_is_lost(text, words, sentences):
    passages = list(cut(Document("d", "T", text, "s"), words, sentences))
    for passage in passages:
        assert text[passage.start : passage.end] == passage.text
        assert len(passage.text.split()) <= words
    assert [word for passage in passages for word in passage.text.split()] == text.split() or any(
        len(word) > 40 for word in text.split()
    )
    assert "".join("".join(passage.text.split()) for passage in passages) == "".join(text.split())
    numbered = [f"d#{n}" for n in range(len(passages))]
    assert [passage.id for passage in passages] == (["d"] if len(passages) == 1 else numbered)
    starts = [passage.start for passage in passages]
    assert starts == sorted(starts)


@settings(deadline=None)
@given(TEXT, st.integers(1, 7))
def test_all_but_the_last_are_full(text, words):
    passages = list(cut(Document("d", "T", text), words))
    longest = 40 * words
    for passage in passages[:-1]:
        assert len(passage.text.split()) == words or len(text) > longest


@settings(deadline=None)
@given(st.text(min_size=1, max_size=300).filter(str.strip))
def test_whole_documents_stay_whole(text):
    (passage,) = cut(Document("7", "T", text, whole=True), words=3)
    assert passage.text == text and passage.id == "7"


@settings(deadline=None)
@given(TEXT | st.text("ab  \n", max_size=400), st.integers(1, 7))
def test_the_quick_ways_cut_as_the_pattern_does(text, words):
    by_pattern = [match.span() for match in passages._words(words).finditer(text)]
    assert list(passages._runs(text, words)) == by_pattern
    if (plain := text.replace("\n", " ")).isprintable() and plain.strip():
        assert list(passages._long_runs(plain, words)) == by_pattern


def test_long_texts_are_cut_as_short_ones():
    text = "Ein Wörterbuch hat  viele Wörter.\n" * 200
    assert len(text) in passages._LONG
    words = text.split()
    assert [passage.text.split() for passage in cut(Document("d", "T", text))] == [
        words[start : start + 100] for start in range(0, len(words), 100)
    ]


def test_sections_and_source():
    text = "Lead words here. First part text. Second part text."
    document = Document("d", "T", text, "src", ((17, "First"), (34, "First > Second")))
    passages = list(cut(document, words=3))
    assert [(passage.text, passage.section) for passage in passages] == [
        ("Lead words here.", ""),
        ("First part text.", "First"),
        ("Second part text.", "First > Second"),
    ]
    assert {passage.source for passage in passages} == {"src"}


def test_sentences_stay_together():
    text = "Dr. No came out in 1962. It was a film. Word " + "word " * 6 + "end. Last."
    assert [passage.text for passage in cut(Document("d", "T", text), words=6, sentences=True)] == [
        "Dr. No came out in 1962.",
        "It was a film.",
        "Word word word word word word",
        "word end.",
        "Last.",
    ]


def test_text_without_spaces_is_cut_by_length():
    text = "漢" * 10_000
    passages = list(cut(Document("d", "T", text), words=10))
    assert (
        max(len(passage.text) for passage in passages) <= 400
        and "".join(p.text for p in passages) == text
    )


@pytest.mark.parametrize("words", [0, -1])
def test_a_passage_has_a_word(words):
    with pytest.raises(ValueError):
        list(cut(Document("d", "T", "text"), words))


@pytest.mark.parametrize("whole", [False, True])
def test_a_title_stands_on_one_line(whole):
    (passage,) = cut(Document("d", " New\n  York\u2028City ", "text", whole=whole))
    assert passage.title == "New York City"


def test_white_space_only():
    assert list(cut(Document("d", "T", " \n\t "))) == []
