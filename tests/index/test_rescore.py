"""The second look: each sign counts where it should, and nowhere else."""

from __future__ import annotations

import dataclasses
import random

import pytest

from whichsense.index.bm25 import BY_BOTH, BY_WORDS, Weights, rescore
from whichsense.index.lexical import question_words

NOTHING = Weights(**{field.name: 0.0 for field in dataclasses.fields(Weights)})


def signs(sign: str, question: str, *texts: tuple[str, str]) -> list[float]:
    encoded = [(title.encode(), text.encode()) for title, text in texts]
    weights = dataclasses.replace(NOTHING, **{sign: 1.0})
    return rescore(
        question_words(question), lambda word: 1.0, [0.0] * len(texts), encoded, weights
    ).tolist()


@pytest.mark.parametrize(
    ("sign", "question", "there", "absent"),
    [
        ("coverage", "who founded Puma", ("T", "Puma was founded by"), ("T", "nothing of it")),
        ("title", "who founded puma", ("Pumas (brand)", "x"), ("Puma Energy", "x")),
        ("title_novelty", "who founded puma", ("Dassler", "x"), ("Puma", "x")),
        ("pairs", "first world war", ("T", "the First World"), ("T", "world first")),
        ("lead", "who", ("Puma", "Puma is a brand"), ("Puma", "The brand Puma")),
        ("year", "when was it", ("T", "of 5000 in 1948."), ("T", "in 19489 or 194 or 3000")),
        ("names", "who was it", ("T", "by Rudolf"), ("T", "by nobody")),
        ("places", "where was it", ("T", "in Germany"), ("T", "in a town")),
        ("numbers", "how many are there", ("T", "there are 7"), ("T", "there are some")),
        ("numbers", "what is the population of Bonn", ("T", "has 300,000"), ("T", "has many")),
    ],
)
def test_signs(sign: str, question: str, there: tuple[str, str], absent: tuple[str, str]) -> None:
    found, missed = signs(sign, question, there, absent)
    assert found > 0
    assert missed == 0


def test_hints_are_for_their_own_questions() -> None:
    text = ("T", "Rudolf Dassler, Germany, 1948, 7")
    for sign in ("year", "names", "places", "numbers"):
        assert signs(sign, "what is it about", text) == [0.0]


def test_longer_texts_and_lexical_scores() -> None:
    short, long = signs("length", "x", ("T", "one"), ("T", "one two three"))
    assert short < long
    weights = dataclasses.replace(NOTHING, lexical=2.0)
    assert rescore(["x"], lambda word: 1.0, [3.0], [(b"", b"")], weights).tolist() == [6.0]


@pytest.mark.parametrize("weights", [BY_WORDS, BY_BOTH])
def test_odd_texts_are_no_trouble(weights: Weights) -> None:
    texts = [(b"", b""), (b"(", b"\xff\xfe"), (b"  ", b" ")]
    assert (
        len(
            rescore(
                ["who", "when", "where", "how", "many"], lambda word: 0.0, [1.0] * 3, texts, weights
            )
        )
        == 3
    )
    assert rescore(["who"], lambda word: 0.0, [], [], weights).tolist() == []


def test_words_are_found_as_in_plain_text() -> None:
    """Words of several texts are looked at together; each text has what it has alone."""
    chance = random.Random(3)
    words = ["international", "internationalism", "interned", "war", "warden", "Ab"]
    words += ["internat", "1984", "é", "internationals", "a", "-", "war\nab"]
    for _ in range(300):
        texts = []
        for _ in range(3):
            parts = [
                chance.choice((" ", " ", "  ", "x")).join(chance.choices(words, k=size))
                for size in (chance.randint(0, 3), chance.randint(0, 12))
            ]
            texts.append((parts[0], parts[1]))
        first, second = chance.choices(("war", "international", "interned", "ab"), k=2)
        plain = [f" {title}  {text}".lower() for title, text in texts]
        asked = f"{first} {second}"
        found = signs("pairs", asked, *texts)
        assert found == [float(asked in text) for text in plain]
        # Each of these words is looked for whole: its stem is no shorter.
        for word in ("war", "1984", "ab"):
            found = signs("coverage", word, *texts)
            assert found == [float(f" {word}" in text) for text in plain]
