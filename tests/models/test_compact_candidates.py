"""From span scores to answers: probabilities that add up, whole words and numbers, one answer for one meaning."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_compact import VOCABULARY
from whichsense.errors import WhichsenseError
from whichsense.models.compact import scorer_features
from whichsense.models.compact.candidates import (
    LONGEST_SPAN,
    Answer,
    Evidence,
    Mention,
    apart,
    cuts_number,
    gathered,
    mentions,
    passage_probabilities,
    span_probabilities,
    trimmed,
)
from whichsense.models.compact.encoder import Late, Pair, Tokenizer, pair
from whichsense.models.compact.scorer import Judge, Net, NgramProbe, Scorer, StateProbe, chosen
from whichsense.models.compact.scorer_features import SceneView
from whichsense.testing import passage_hit
from whichsense.types import Hit

TOKENIZER = Tokenizer({word: number for number, word in enumerate(VOCABULARY)})
QUESTION = "When was Everest first climbed?"


def read(
    hit: Hit, relevance: float, wanted: dict[str, float], ambiguity: float = 0.0
) -> tuple[Pair, Late]:
    """A pair as if the encoder had found these strings, with these scores, in the passage's text."""
    made = pair(TOKENIZER, TOKENIZER.ids(QUESTION), hit.passage.title, hit.passage.text)
    span = np.full((len(made), 2), -8.0, dtype=np.float32)
    for string, score in wanted.items():
        in_title = string not in hit.passage.text
        text = hit.passage.title if in_title else hit.passage.text
        first, last = made.title if in_title else made.text
        start = text.index(string)
        inside = [
            at
            for at in range(first, last)
            if start <= made.starts[at] and made.ends[at] <= start + len(string)
        ]
        span[inside[0], 0] = span[inside[-1], 1] = score
    states = np.zeros((len(made), 48), dtype=np.float32)
    return made, Late(states, relevance, span, ambiguity)


def evidence(*parts: tuple[Hit, float, dict[str, float]]) -> Evidence:
    found = [read(*part) for part in parts]
    hits = tuple(Hit(hit.passage, relevance) for hit, relevance, _ in parts)
    places = tuple((place, 10.0 - place) for place in range(len(parts)))
    return Evidence(
        QUESTION, hits, tuple(p for p, _ in found), tuple(late for _, late in found), places
    )


FIRST = passage_hit("Edmund Hillary climbed Everest on 29 May 1953, first of all.", "Mount Everest")
SECOND = passage_hit("The first ascent was in 1953. In winter it was climbed in 1980.", "Everest")
HIDING = {"1953": 9.0, "1980": 1.0}
"""Scores in the second passage: beside the first the second has next to nothing."""
THIRD = passage_hit("It cost 1,500,000 dollars (in all).", "Everest 1996")


def test_answers_that_mean_the_same_are_one() -> None:
    found = gathered(
        mentions(
            evidence((FIRST, 2.0, {"29 May 1953": 5.0}), (SECOND, 1.5, {"1953": 4.0, "1980": 3.0})),
            VOCABULARY,
        )
    )
    assert [answer.text for answer in found[:2]] == ["29 May 1953", "1980"]
    best = found[0]
    assert {mention.surface for mention in best.mentions} >= {"29 May 1953", "1953"}
    assert {mention.passage for mention in best.mentions} == {0, 1}
    assert best.mass > found[1].mass
    for mention in best.mentions:
        text = (FIRST, SECOND)[mention.passage].passage.text
        assert text[mention.start : mention.end] == mention.surface


def test_a_span_in_the_title() -> None:
    found = mentions(evidence((THIRD, 1.0, {"Everest 1996": 6.0})), VOCABULARY)
    assert found[0].surface == "Everest 1996" and found[0].in_title


def test_a_number_is_never_cut() -> None:
    found = mentions(evidence((THIRD, 1.0, {"500,000": 6.0, "1,500,000": 5.0})), VOCABULARY)
    assert "500,000" not in {mention.surface for mention in found}
    assert found[0].surface == "1,500,000"
    assert (
        cuts_number("1,500", 2, 5)
        and cuts_number("1.5", 0, 1)
        and not cuts_number("In 1953, 1980", 3, 7)
    )


def test_an_answer_that_another_one_hides_shows_when_that_is_gone() -> None:
    found = {
        mention.surface: mention
        for mention in mentions(evidence((SECOND, 1.0, HIDING)), VOCABULARY)
    }
    first, hidden = found["1953"], found["1980"]
    assert first.left == 1 and first.probability > 0.99
    assert hidden.probability < 1e-6 and hidden.left < 1e-5 and hidden.alone > 0.99
    assert hidden.probability == pytest.approx(hidden.left * hidden.alone)
    made, late = read(SECOND, 1.0, HIDING)
    whole = span_probabilities(made, late.span)
    first_token, after = hidden.tokens
    assert hidden.probability == pytest.approx(
        whole[first_token, after - first_token - 1], rel=1e-3
    )


def test_a_hidden_answer_comes_before_what_surrounds_the_first() -> None:
    found = gathered(mentions(evidence((SECOND, 1.0, HIDING)), VOCABULARY))
    assert [answer.text for answer in found[:2]] == ["1953", "1980"]
    made = SceneView(evidence((SECOND, 1.0, HIDING)), found)
    first, hidden = (scorer_features.of_answer(place, made) for place in (0, 1))
    assert first["left"] == 0 > hidden["left"]
    assert first["mass"] - hidden["mass"] > 3 * (first["support"] - hidden["support"]) > 0


def test_of_answers_in_one_place_one_is_kept() -> None:
    def answer(text: str, *spans: tuple[int, int]) -> Answer:
        found = tuple(
            Mention(0, text, 0, 1, in_title=False, tokens=span, alone=0.5) for span in spans
        )
        return Answer(text, found)

    whole, within, beside = (
        answer("Rufus Wainwright", (3, 5)),
        answer("Wainwright", (4, 5)),
        answer("Cale", (7, 8)),
    )
    elsewhere = answer("Rufus", (3, 4), (20, 21), (30, 31))
    assert within.overlap([whole]) == 1 and beside.overlap([whole, within]) == 0
    assert elsewhere.overlap([whole]) == pytest.approx(1 / 3)
    answers = [whole, within, beside, elsewhere]
    assert apart(answers, [0, 1, 2, 3]) == [0, 2, 3]
    assert apart(answers, [1, 0, 2]) == [1, 2]


def test_no_span_holds_what_was_taken() -> None:
    made, late = read(SECOND, 1.0, HIDING)
    taken = np.zeros(len(made), dtype=bool)
    taken[made.text[0] + 3] = True
    found = span_probabilities(made, late.span, taken)
    for first, length in zip(*np.nonzero(found), strict=True):
        assert not taken[first : first + length + 1].any()
    assert not span_probabilities(made, late.span, np.ones(len(made), dtype=bool)).any()


def test_probabilities_add_up() -> None:
    given = evidence((FIRST, 2.0, {"29 May 1953": 5.0}), (SECOND, -1.0, {}))
    shares, null = passage_probabilities(given.read)
    assert shares.sum() + null == pytest.approx(1) and shares[0] > null > shares[1]
    for made, late in zip(given.pairs, given.read, strict=True):
        found = span_probabilities(made, late.span)
        assert 0 < found.sum() <= 1
        whole = [np.exp(late.span[first:last]) for first, last in (made.title, made.text)]
        starts, ends = np.concatenate(whole).sum(axis=0)
        first = made.text[0] + 1
        by_hand = np.exp(late.span[first, 0]) / starts * np.exp(late.span[first + 2, 1]) / ends
        assert found[first, 2] == pytest.approx(by_hand, rel=1e-4)
        for first, length in zip(*np.nonzero(found), strict=True):
            place, last = int(first), int(first + length)
            assert any(low <= place and last < high for low, high in (made.title, made.text))
    assert passage_probabilities([])[1] == 1.0


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30))
def test_any_pair_has_span_probabilities(title: int, text: int) -> None:
    made = pair(TOKENIZER, TOKENIZER.ids("who"), "film " * title, "dune " * text)
    scores = (
        np.random.default_rng(title * 31 + text).standard_normal((len(made), 2)).astype(np.float32)
    )
    found = span_probabilities(made, scores)
    assert found.shape == (len(made), LONGEST_SPAN)
    assert found.sum() <= 1 + 1e-5 and bool(found.sum() > 0) == bool(title + text)


@settings(max_examples=200, deadline=None)
@given(st.text('ab (),;"“”[]', max_size=12), st.data())
def test_trimming_stays_inside(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = trimmed(text, start, end)
    assert start <= first <= last <= end
    assert trimmed(text, first, last) == (first, last)


def context() -> SceneView:
    given = evidence((FIRST, 2.0, {"29 May 1953": 5.0}), (SECOND, 1.5, {"1953": 4.0, "1980": 3.0}))
    return SceneView(given, gathered(mentions(given, VOCABULARY)))


def test_features_say_what_they_are_called() -> None:
    made = context()
    first, second = (scorer_features.of_answer(place, made) for place in (0, 1))
    assert tuple(first) == tuple(second) == scorer_features.ANSWER_FEATURES
    assert all(math.isfinite(value) for value in first.values())
    assert first["passages"] == pytest.approx(math.log(2)) and second["passages"] == 0
    assert first["beside_best"] == 0 > second["beside_best"]
    assert first["when asked, date given"] == 1 and second["when asked, year given"] == 1
    assert first["in_title"] == 0
    asked = scorer_features.of_question(made, [0.8, 0.4])
    assert tuple(asked) == scorer_features.QUESTION_FEATURES
    assert (asked["first"], asked["second"], asked["third"]) == (0.8, 0.4, 0.0) and asked[
        "when asked"
    ] == 1


def net(**weights: float) -> Net:
    mean, spread = (
        np.full(len(weights), 0.5, dtype=np.float32),
        np.full(len(weights), 2.0, dtype=np.float32),
    )
    return Net(
        tuple(weights), mean, spread, np.array(list(weights.values()), dtype=np.float32), bias=-0.25
    )


def scorer_of(answer: Net, **settings: Any) -> Scorer:
    small = Judge(net(mass=0.5), net(wording=1.0), single_under=0.125)
    large = Judge(answer, net(null=1.0), single_under=None, missing=1.25)
    return Scorer(net(first=1.0), net(titles=3.0), large, small, **settings)


def test_the_scorer_is_kept_whole(tmp_path: Path) -> None:
    wording = NgramProbe({"who sang": 0.25, "^who": -1.5}, bias=0.125)
    impression = StateProbe(np.array([0.5, -0.25], np.float32), bias=0.125)
    told = {"wording": wording, "impression": impression, "decline_under": 0.75}
    scorer_of(net(mass=1.0, share=2.0), **told).save(tmp_path / "scorer.json")
    again = Scorer.load(tmp_path / "scorer.json")
    assert (
        again.impression(np.array([2.0, 2.0], np.float32))
        == impression(np.array([2.0, 2.0], np.float32))
        == 0.625
    )
    assert again.decline_under == 0.75 and again.wording == wording
    assert again.in_large.missing == 1.25 and again.in_large.single_under is None
    assert again.in_small.single_under == 0.125 and again.in_small.answer.names == ("mass",)
    rows = [scorer_features.of_answer(place, context()) for place in (0, 1)]
    by_hand = [
        1 / (1 + math.exp(-((row["mass"] - 0.5) / 2 + 2 * (row["share"] - 0.5) / 2 - 0.25)))
        for row in rows
    ]
    assert again.in_large.answer.probabilities(rows) == pytest.approx(by_hand, abs=1e-5)
    assert again.in_large.answer.probabilities([]) == []


def test_each_kind_of_corpus_has_its_judge() -> None:
    scorer, told = scorer_of(net(mass=1.0)), scorer_features.of_corpus(context())
    assert tuple(told) == scorer_features.CORPUS_FEATURES
    assert scorer.judge({**told, "titles": 3.0}) is scorer.in_large
    # The size of a corpus, where it is known and telling, is more than its looks.
    assert scorer.judge({**told, "titles": 3.0}, 200) is scorer.in_small
    assert scorer.judge({**told, "titles": -3.0}, 1_000_000) is scorer.in_large
    assert scorer.judge({**told, "titles": 3.0}, 50_000) is scorer.in_large
    assert scorer.judge({**told, "titles": 0.0}) is scorer.in_small


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"large": {}}', '{"large": {"names": ["null"], "mean": []}}']
)
def test_a_damaged_scorer_is_told(damage: str, tmp_path: Path) -> None:
    (tmp_path / "scorer.json").write_text(damage)
    with pytest.raises(WhichsenseError, match=r"scorer\.json"):
        Scorer.load(tmp_path / "scorer.json")


def test_a_scorer_for_other_features_is_told(tmp_path: Path) -> None:
    scorer_of(net(mass=1.0, beauty=1.0)).save(tmp_path / "scorer.json")
    with pytest.raises(WhichsenseError, match="beauty"):
        Scorer.load(tmp_path / "scorer.json")
    table = json.loads((tmp_path / "scorer.json").read_text())
    table["settings"]["unheard"] = 1
    (tmp_path / "scorer.json").write_text(json.dumps(table))
    with pytest.raises(WhichsenseError):
        Scorer.load(tmp_path / "scorer.json")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=6), st.floats(0, 2))
def test_the_chosen_set_has_the_highest_expected_f1(
    probabilities: list[float], missing: float
) -> None:
    found = chosen(probabilities, missing)
    assert bool(found) == bool(probabilities)
    expected = max(sum(probabilities) + missing, 1.0)

    def f1(places: list[int]) -> float:
        return 2 * sum(probabilities[place] for place in places) / (len(places) + expected)

    order = sorted(range(len(probabilities)), key=lambda place: -probabilities[place])
    assert all(f1(found) >= f1(order[:count]) - 1e-9 for count in range(1, len(order) + 1))
    low, high = (set(chosen(probabilities, missing, threshold)) for threshold in (0.2, 0.7))
    assert high <= low
