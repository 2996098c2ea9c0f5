"""The PTB tokenizer's rules, one by one. Each line was made with the Java tokenizer 3.4.1."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whichsense.text import ptb
from whichsense.text.ptb import lexemes, tokenize, tokenize_question

LINES = [
    ("I cannot, he's gonna, they don't", "i can not , he 's gon na , they do n't"),
    ("'Tis 'twas", "'t is 't was"),
    (
        "Ann's dogs' O'Brien rock'n'roll y'all o'clock ma'am",
        "ann 's dogs ' o'brien rock 'n' roll y' all o'clock ma'am",
    ),
    ("St.Louis asp.net u.s. town.", "st.louis asp.net u.s. town ."),
    ("US$5 us$5 C$10 £5 €10 5¢", "us$ 5 us $ 5 c$ 10 # 5 $ 10 5 cents"),
    ("C++ C# R&B r&b a+b", "c++ c# r&b r & b a + b"),
    ("café/bar and/or 24/7 9/11/2001 1-2-3", "café / bar and/or 24/7 9/11/2001 1-2-3"),
    (
        "x@example.org www.example.org https://a.b/c?d=e.",
        "x@example.org www.example.org https://a.b/c?d=e .",
    ),
    ("(a) [b] {c}", "-lrb- a -rrb- -lsb- b -rsb- -lcb- c -rcb-"),
    ("½ x² 23°26′ 1⁄10", "1/2 x ² 23 ° 26 ′ 1⁄10"),
    ("foo—bar a -- b x – y --- z", "foo -- bar a -- b x -- y -- z"),
    ("‘hi’ “hi” 'hi'", "` hi ' `` hi '' ` hi '"),
    ("12:30 1,000,000 5% 50%off a,b", "12:30 1,000,000 5 % 50 % off a , b"),
    ("Vol.2 No. 5 Mr. X etc.", "vol .2 no. 5 mr. x etc. ."),
    ("😀 ok 你好 naïve", "ok 你好 naïve"),
    ("P!nk Ke$ha M*A*S*H Jeopardy!", "p!nk ke $ ha m * a * s * h jeopardy !"),
    ("what?who wait... no", "what?who wait ... no"),
    ("S&P-500 pro- Cap'n &amp; co", "s&p-500 pro- cap'n & co"),
]


@pytest.mark.parametrize(("text", "expected"), LINES, ids=[text for text, _ in LINES])
def test_lines(text: str, expected: str) -> None:
    assert lexemes(text) == expected.split()


def test_punctuation_is_dropped_but_brackets_stay() -> None:
    assert tokenize("Who (the 2nd)? -- 'x', y: z; ...") == [
        "who",
        "-lrb-",
        "the",
        "2nd",
        "-rrb-",
        "x",
        "y",
        "z",
    ]


def test_question_words_are_normalized() -> None:
    assert tokenize_question("Who's the 1st (a man)?\n") == ("who", "s", "1st", "lrb", "man", "rrb")


def test_a_lone_symbol_outside_the_basic_plane_is_a_break() -> None:
    assert lexemes("a😀b") == ["a", "b"]


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=60))
def test_any_text_is_tokenized(text: str) -> None:
    tokens = lexemes(text)
    assert all(tokens)
    assert not any(" " in token for token in tokens)


PIECES = "who wrote cannot it's don't (2012) U.S. 5 2003-2010 X-ray \"x\" one, two: 3rd? Ann's? a.b".split()


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.sampled_from(["", "?", "??", "."]))
def test_the_fast_path_changes_nothing(words: list[str], end: str) -> None:
    text = " ".join(words) + end
    fast = lexemes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ptb, "_PLAIN", re.compile("(?!)"))
        assert lexemes(text) == fast
