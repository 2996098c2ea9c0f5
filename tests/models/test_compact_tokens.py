"""Our tokenizer gives BERT's tokens, and each token's place in the text as it was written."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whichsense import sample
from whichsense.models import static
from whichsense.models.compact.encoder import BEGIN, END, Tokenizer, pair

tokenizers = pytest.importorskip("tokenizers")


@cache
def ours() -> Tokenizer:
    """With BERT's vocabulary, which the static encoder ships."""
    return Tokenizer(static.VectorTable.load(static.WEIGHTS).vocabulary)


@cache
def theirs() -> object:
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(dict(ours().vocabulary), unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return made


def expected(text: str) -> list[int]:
    return theirs().encode(text, add_special_tokens=False).ids  # type: ignore[attr-defined, no-any-return]


def surfaces(text: str) -> list[str]:
    found = ours().pieces(text)
    return [text[start:end] for start, end in zip(found.starts, found.ends, strict=True)]


def test_the_sample_is_cut_as_bert_cuts_it() -> None:
    for line in sample.PASSAGES.read_text(encoding="utf-8").splitlines():
        text = json.loads(line)["text"]
        assert ours().ids(text) == expected(text)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Élysée Palace", ["Élysée", "Palace"]),
        ("Cafe\u0301 noir", ["Cafe\u0301", "noir"]),
        ("naïve—coöperation", ["naïve", "—", "coöperation"]),
        ("Łódź, 1.5 km", ["Łódź", ",", "1", ".", "5", "km"]),
        ("北京 city", ["北", "京", "city"]),
        ("a\u00a0b\tc\nd", ["a", "b", "c", "d"]),
        ("win 🏆👨‍👩‍👧 cup", ["win", "🏆👨‍👩‍👧", "cup"]),
    ],
)
def test_places_are_those_of_the_original(text: str, cut: list[str]) -> None:
    pieces = ours().pieces(text)
    names, words = list(ours().vocabulary), list[str]()
    for place, number in enumerate(pieces.ids):
        surface = text[pieces.starts[place] : pieces.ends[place]]
        if names[number].startswith("##"):
            words[-1] += surface
        else:
            words.append(surface)
    assert words == cut
    assert pieces.ids == expected(text)


LATIN = st.characters(max_codepoint=0x24F, exclude_categories=("Cn",))


@settings(max_examples=300, deadline=None)
@given(st.text(LATIN | st.sampled_from("\u0301\u0308ﬁ—’“”…🏆京"), max_size=60))
def test_any_text_is_cut_as_bert_cuts_it(text: str) -> None:
    assert ours().ids(text) == expected(text)
    pieces = ours().pieces(text)
    assert all(
        0 <= start < end <= len(text) for start, end in zip(pieces.starts, pieces.ends, strict=True)
    )
    assert pieces.starts == sorted(pieces.starts)


def test_the_words_are_cut_short_where_asked() -> None:
    whole = ours().pieces("The unmistakably long title of it")
    for most in range(len(whole) + 2):
        short = ours().pieces("The unmistakably long title of it", most)
        assert (short.ids, short.starts, short.ends) == (
            whole.ids[:most],
            whole.starts[:most],
            whole.ends[:most],
        )


def test_a_pair_knows_where_title_and_text_stand() -> None:
    title, text = "Dune (novel)", "Frank Herbert wrote Dune in 1965. " * 40
    made = pair(ours(), ours().ids("Who wrote Dune?"), title, text)
    assert (
        len(made) == 224
        and made.ids[0] == BEGIN
        and made.ids[-1] == END
        and made.ids.count(END) == 3
    )
    first, last = made.title
    assert title[made.starts[first] : made.ends[last - 1]] == title
    first, last = made.text
    assert text[made.starts[first] : made.ends[first + 1]] == "Frank Herbert"
    assert made.types == [0] * made.title[0] + [1] * (224 - made.title[0])
    bare = pair(ours(), [], "", "")
    assert bare.ids == [BEGIN, END, END, END] and bare.types == [0, 0, 1, 1]
