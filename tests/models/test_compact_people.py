"""Readings for people: questions are asked again, and trust in what that gives decides what is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tiny_compact import exported, scored, tagged, trust_of, trusted
from whichsense.errors import WhichsenseError
from whichsense.models.compact import people as people_readings
from whichsense.models.compact.labeller import FRAMES, Label, Labeller
from whichsense.models.compact.people import (
    Asked,
    Panel,
    choose_answers,
    find_labels,
    join_named_together,
    judge_fluency,
    propose_rewrites,
    rewrite_answers,
    split_probable,
)
from whichsense.models.compact.rewrite_support import Target, locate
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer import Standard, Trust, linear, probability
from whichsense.models.compact.tagger import TAGGER
from whichsense.testing import passage_hit
from whichsense.types import FOR_PEOPLE, Candidate, Passage, Policy, Reading, Span

for needed in ("onnx", "onnxruntime", "torch"):
    pytest.importorskip(needed)

QUESTION = "Who directed the film Dune?"
HITS = [
    passage_hit("The film of 1984 was directed by David Lynch in winter.", "Dune (1984 film)"),
    passage_hit("The film of 2021 was directed by Denis Villeneuve.", "Dune (2021 film)"),
    passage_hit("Everest was first climbed by Edmund Hillary in 1953.", "Everest"),
]
YEAR = re.compile(r"\d{4}")
BOTH = ("David Lynch", "Denis Villeneuve")
EVERYTHING = replace(FOR_PEOPLE, threshold=1e-9)


@pytest.fixture(scope="module")
def compact(tmp_path_factory: pytest.TempPathFactory) -> Compact:
    """With a verifier and labels; every rewrite may be true."""
    folder = exported(tmp_path_factory.mktemp("compact"), for_people=True)
    return Compact(trusted(scored(tagged(folder))))


@pytest.fixture(scope="module")
def scene(compact: Compact) -> Scene:
    return compact.read_given(QUESTION, HITS)


def targets_of(scene: Scene, answers: Sequence[str] = BOTH) -> list[Target]:
    return [locate(scene, Candidate(answer, 0.5)) for answer in answers]


def answers_of(scene: Scene, answers: Sequence[str] = BOTH) -> list[Candidate]:
    """Answers with their places in the evidence."""
    found = []
    for answer in answers:
        for passage in scene.evidence.passages:
            if answer in passage.text:
                found.append(named(answer, passage, 0.9))
    return found


def trusting(scene: Scene, **settings: Any) -> Scene:
    """The same scene, with other settings of its trust."""
    compact = Compact(scene.compact.folder)
    compact.parts.__dict__["trust"] = trust_of(**settings)
    return replace(scene, compact=compact)


# Asking again.


def test_masses_are_probabilities(scene: Scene) -> None:
    """Of answers that do not overlap, all together, beside that of no answer."""
    questions = [QUESTION, "Who directed the film Dune in 1984?", "What?"]
    found = Panel.of(scene, targets_of(scene)).ask(questions)
    assert len(found) == len(questions)
    for asked in found:
        assert asked.mass.shape == asked.verdict.shape == (2,)
        assert (asked.mass > 0).all() and 0 < asked.null < 1
        assert asked.mass.sum() + asked.null <= 1 + 1e-5
        assert np.isfinite(asked.verdict).all()
    assert not np.array_equal(found[0].mass, found[1].mass)


def test_a_question_is_asked_together_as_alone(scene: Scene) -> None:
    panel = Panel.of(scene, targets_of(scene))
    work = scene.compact.model.work
    questions = ["Who wrote it?", "Who directed Dune (2021 film)?"]
    before = work.pairs
    together = panel.ask(questions)
    assert work.pairs - before == len(questions) * len(panel.places)
    for question, asked in zip(questions, together, strict=True):
        (alone,) = panel.ask([question])
        np.testing.assert_array_equal(alone.mass, asked.mass)
        np.testing.assert_array_equal(alone.verdict, asked.verdict)
        assert alone.null == asked.null


def test_a_panel_has_passages_of_every_answer_and_no_others(scene: Scene) -> None:
    titles = [passage.title for passage in scene.evidence.passages]
    for answers, wanted in (
        (BOTH, {"Dune (1984 film)", "Dune (2021 film)"}),
        (("Edmund Hillary",), {"Everest"}),
        (("nobody at all",), set()),
    ):
        panel = Panel.of(scene, targets_of(scene, answers))
        assert {titles[place] for place in panel.places} == wanted


def test_an_answer_that_stands_nowhere_has_no_mass(scene: Scene) -> None:
    beside = Panel.of(scene, targets_of(scene, ("David Lynch", "nobody")))
    alone = Panel.of(scene, targets_of(scene, ("nobody",)))
    (first,), (second,) = beside.ask([QUESTION]), alone.ask([QUESTION])
    assert first.own(0) > first.own(1) == second.own(0) == 0 and second.null == 1
    assert first.verdict[1] < first.verdict[0]


def test_the_likeliest_other_answer() -> None:
    asked = Asked(np.array([0.2, 0.5, 0.1]), np.zeros(3), 0.2)
    assert [asked.other(number) for number in range(3)] == [0.5, 0.2, 0.5]
    assert Asked(np.array([0.2]), np.zeros(1), 0.8).other(0) == 0


# What the shipped model has learnt, over a corpus that is invented.

CUPS = [
    passage_hit(
        "The 2011 Varno Cup was played in Teldin. Harbour Rovers won it, with two goals by Iver Sand in the final.",
        "2011 Varno Cup",
    ),
    passage_hit(
        "The 2014 Varno Cup was played in Ostra. Millfield United won it after extra time.",
        "2014 Varno Cup",
    ),
]
WHO_WON = "Who won the Varno Cup?"


@pytest.fixture(scope="module")
def cups() -> Scene:
    return Compact().read_given(WHO_WON, CUPS)


def test_a_true_rewrite_keeps_its_answer_and_a_false_one_loses_it(cups: Scene) -> None:
    panel = Panel.of(cups, targets_of(cups, ("Harbour Rovers", "Millfield United")))
    for first, second in (
        ("Who won the Varno Cup in 2011?", "Who won the Varno Cup in 2014?"),
        ("Who won the 2011 Varno Cup?", "Who won the 2014 Varno Cup?"),
    ):
        early, late = panel.ask([first, second])
        assert early.own(0) > late.own(0) and late.own(1) > early.own(1)
        assert early.own(0) > early.other(0) and late.own(1) > late.other(1)


def test_broken_english_is_less_fluent(cups: Scene) -> None:
    good, bad = judge_fluency(
        cups, ["Who won the Varno Cup in 2011?", "Who won the in 2011 Varno the Cup?"]
    )
    assert good > bad


# Labels, and the rewrites that they give.


@pytest.mark.parametrize(
    ("text", "frame", "wanted"),
    [
        ("in Malta", "", True),
        ("in Malta", "in", False),
        ("Malta", "in", True),
        ("Malta", "", False),
        ("the film", "in", True),
        ("the film", "in the", True),
        ("the film", "for a", True),
        ("the film", "", False),
    ],
)
def test_a_label_and_its_frame_join_once(text: str, frame: str, wanted: bool) -> None:
    (found,) = propose_rewrites(QUESTION, [label(text, frame)])
    assert bool(found) == wanted


def label(text: str, frame: str, sure: float = 0.9, fits: float = 0.8) -> Label:
    return Label(text, sure, FRAMES.index(frame), fits)


def test_a_label_in_the_frame_that_fits_is_proposed() -> None:
    labels = [label("1984", "of"), None, label("2021", "in"), label("2021", "in", fits=0.3)]
    first, none, last, unfit = propose_rewrites(QUESTION, labels)
    for own, phrase in ((first, "of 1984"), (last, "in 2021")):
        assert [one.rewrite for one in own] == [f"Who directed the film Dune {phrase}?"]
    assert none == unfit == []


def test_a_label_is_copied_from_the_evidence_of_its_answer(scene: Scene) -> None:
    answers = answers_of(scene)
    found = find_labels(scene, answers)
    assert any(found)
    for one, answer in zip(found, answers, strict=True):
        passage = answer.spans[0].passage
        assert one is None or one.text in (passage.title + "\n" + passage.text)
        assert one is None or answer.answer not in one.text


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("of 1984", "of 2021", ["of 1984", "of 2021"]),
        ("of 1984", "of 1984", ["", ""]),  # tells neither apart
        ("the film Dune", "of 2021", ["", "of 2021"]),  # the question says it
        ("David Lynch", "of 2021", ["", "of 2021"]),  # so does the answer
    ],
)
def test_labels_that_tell_nothing_apart_are_none(
    first: str, second: str, kept: list[str], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"1984": first, "2021": second}

    def find(self: Labeller, question: str, spans: Sequence[Span]) -> list[Label]:
        years = [next(one for one in texts if one in s.passage.title) for s in spans]
        return [label(texts[year], "") for year in years]

    monkeypatch.setattr(Labeller, "find", find)
    found = find_labels(scene, answers_of(scene))
    assert [one.text if one else "" for one in found] == kept


def test_a_label_that_is_not_sure_is_none(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = [label("of 1984", "", sure=0.2), label("of 2021", "", sure=0.4)]
    monkeypatch.setattr(Labeller, "find", lambda *_: unsure)
    assert find_labels(scene, answers_of(scene)) == [None, None]


def test_without_a_labeller_nothing_has_a_label(tmp_path: Path, scene: Scene) -> None:
    folder = trusted(scored(exported(tmp_path, for_people=True)))
    bare = Compact(folder).read_given(QUESTION, HITS)
    for one in rewrite_answers(bare, answers_of(bare)):
        assert (one.question, one.label) == (QUESTION, "") and one.source


# From answers to readings.


def test_answers_come_most_probable_first(scene: Scene) -> None:
    everything = choose_answers(scene, EVERYTHING)
    scores = [one.score for one in everything]
    assert len(scores) > 1 and scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)
    answer = Standard().answer
    severe = replace(answer, weights=answer.weights * 1000, bias=-5.0)
    some = trusting(scene, answer=severe, only_over=0.0, answerable_over=0.0)
    chosen = choose_answers(some, FOR_PEOPLE)
    assert 0 < len(chosen) < len(everything)
    assert [one.answer for one in chosen] == [one.answer for one in everything[: len(chosen)]]


@pytest.mark.parametrize("policy", [FOR_PEOPLE, EVERYTHING])
def test_where_the_evidence_hardly_holds_an_answer_none_is_chosen(
    policy: Policy, scene: Scene, compact: Compact
) -> None:
    assert choose_answers(compact.read_given(QUESTION, []), policy) == []
    for settings in ({"answerable_over": 1.1}, {"only_over": 1.1}):
        assert choose_answers(trusting(scene, **settings), policy) == []


def named(answer: str, passage: Passage, score: float) -> Candidate:
    start = passage.text.index(answer)
    span = Span(passage, start, start + len(answer), score)
    return Candidate(answer, score, (span,))


def test_answers_that_are_named_together_are_one() -> None:
    text = "It was made by Ann Ray and Bo Finch, not by Cy Dale and, in 1984 and 1985, by Ed."
    passage = passage_hit(text, "Dune").passage
    ann, bo, cy, ed = (
        named(answer, passage, score)
        for answer, score in (("Ann Ray", 0.4), ("Bo Finch", 0.6), ("Cy Dale", 0.5), ("Ed", 0.1))
    )
    both, *others = join_named_together([bo, cy, ann, ed])
    assert (both.answer, both.score) == ("Ann Ray and Bo Finch", 0.6)
    (span,) = both.spans
    assert passage.text[span.start : span.end] == both.answer
    assert others == [cy, ed]
    years = [named(year, passage, 0.5) for year in ("1984", "1985")]
    assert join_named_together(years) == years
    elsewhere = named("Bo Finch", passage_hit(text, "Another").passage, 0.6)
    bare = Candidate("Bo Finch", 0.6)
    for other in (elsewhere, bare):
        assert join_named_together([ann, other]) == [ann, other]
    assert join_named_together([]) == []


def test_an_only_answer_leaves_the_question_as_it_is(scene: Scene) -> None:
    answer = choose_answers(scene, EVERYTHING)[0]
    (reading,) = rewrite_answers(scene, [answer])
    assert (reading.question, reading.source) == (QUESTION, "")
    assert reading.confidence == answer.score and reading.asked_again is None
    assert rewrite_answers(scene, []) == []


@pytest.fixture
def by_year(monkeypatch: pytest.MonkeyPatch) -> None:
    """The labels are the years of the films."""

    def find(self: Labeller, question: str, spans: Sequence[Span]) -> list[Label]:
        years = [YEAR.findall(span.passage.title)[0] for span in spans]
        return [label(year, "of") for year in years]

    monkeypatch.setattr(Labeller, "find", find)


@pytest.mark.usefixtures("by_year")
def test_a_rewrite_says_what_asking_it_again_gave(scene: Scene) -> None:
    answers = answers_of(scene)
    readings = rewrite_answers(scene, answers)
    assert [one.answer for one in readings] == list(BOTH)
    panel = Panel.of(scene, [locate(scene, one, told=True) for one in answers])
    for number, one in enumerate(readings):
        assert one.question != QUESTION and not one.source
        assert one.asked_again is not None and one.confidence == 0.9
        (again,) = panel.ask([one.question])
        assert one.asked_again.own == pytest.approx(again.own(number))
        assert one.asked_again.other == pytest.approx(again.other(number))
        assert 0 < one.asked_again.fluent < 1


def test_a_rewrite_that_is_not_true_gives_way_to_the_source(scene: Scene) -> None:
    strict = trusting(scene, true=-9.0)
    answers = choose_answers(strict, EVERYTHING)
    assert len(answers) > 1
    for answer, one in zip(answers, rewrite_answers(strict, answers), strict=True):
        assert (one.question, one.confidence) == (QUESTION, answer.score)
        assert one.source == answer.spans[0].passage.title
        assert one.asked_again is None


@pytest.mark.usefixtures("by_year")
def test_nothing_is_rewritten_where_one_answer_can_be_shown(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scene, "is_small", property(lambda _: False))
    sure = answers_of(scene)
    answers = [sure[0], replace(sure[1], score=0.17)]
    for one in rewrite_answers(scene, answers):
        assert (one.question, one.asked_again) == (QUESTION, None)
    for same, policy in ((sure, FOR_PEOPLE), (answers, EVERYTHING)):
        readings = rewrite_answers(scene, same, policy=policy)
        assert all(one.asked_again for one in readings)


def test_an_answer_from_a_passage_of_another_year_is_believed_less(
    compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = compact.read_given("Who directed the film Dune of 1984?", HITS)
    halved = {one.answer: one.score for one in choose_answers(scene, EVERYTHING)}
    monkeypatch.setattr(people_readings, "_OF_ANOTHER_YEAR", 1.0)
    for one in choose_answers(scene, EVERYTHING):
        named = any("1984" in span.passage.text for span in one.spans)
        factor = 1.0 if named else 0.5
        assert halved[one.answer] == pytest.approx(factor * one.score)
    assert len(set(halved.values())) > 1


# What is probable, and what is merely possible.


def fake_scene(is_small: bool) -> Any:
    return SimpleNamespace(is_small=is_small)


def told(answer: str, confidence: float, source: str = "") -> Reading:
    question = QUESTION if source else f"Who directed the film Dune, {answer}?"
    return Reading(question, answer, confidence=confidence, source=source)


def split(
    *readings: Reading, policy: Policy = FOR_PEOPLE, is_small: bool = True
) -> tuple[list[Reading], list[Reading]]:
    return split_probable(fake_scene(is_small), readings, policy)


def test_the_probable_ones_are_shown_best_first_and_the_others_kept_apart() -> None:
    low, high, line = told("A", 0.44), told("B", 0.9), told("C", 0.45)
    assert split(low, high, line) == ([high, line], [low])


def test_less_is_certain_over_a_large_corpus() -> None:
    low, high, line = told("A", 0.17), told("B", 0.9), told("C", 0.18)
    assert split(low, high, line, is_small=False) == ([high, line], [low])


def test_an_answer_without_a_rewrite_is_shown_as_others_are() -> None:
    first, titled = told("A", 0.6), told("C", 0.95, "C (film)")
    assert split(first, titled) == ([titled, first], [])


def test_the_best_answer_is_shown_where_none_is_probable() -> None:
    high, low = told("A", 0.1), told("B", 0.05)
    assert split(low, high) == ([high], [low])
    assert split() == ([], [])


def test_a_threshold_of_the_policy_takes_the_place_of_the_own_one() -> None:
    low, titled, high = told("A", 0.1), told("B", 0.4, "B (film)"), told("C", 0.9)
    everything = split(low, titled, high, policy=EVERYTHING)
    assert everything == ([high, titled, low], [])
    half = FOR_PEOPLE.with_threshold(0.5)
    assert split(low, titled, high, policy=half) == ([high], [titled, low])
    surest = FOR_PEOPLE.with_threshold(1.0)
    assert split(low, titled, high, policy=surest) == ([high], [titled, low])


# Trust in a file.


def test_trust_is_saved_and_loaded(tmp_path: Path) -> None:
    own = Trust(
        in_small=Standard(linear(mark=0.5, holds=-0.25), only_over=0.625),
        true=replace(linear(own=2.0), bias=-1.5),
    )
    own.save(tmp_path / "trust.json")
    loaded = Trust.load(tmp_path / "trust.json")
    assert loaded.to_table() == own.to_table() != Trust().to_table()
    assert loaded.in_small.only_over == 0.625 != loaded.in_large.only_over
    rows = [{"own": 1.0}, {"own": 0.0}]
    expected = [1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(1.5))]
    assert probability(loaded.true, rows) == pytest.approx(expected)
    assert probability(loaded.true, []) == []


def test_a_folder_without_trust_has_the_defaults(tmp_path: Path) -> None:
    missing = Trust.load(tmp_path / "trust.json")
    assert missing.to_table() == Trust().to_table()
    assert Compact(tmp_path).trust.to_table() == Trust().to_table()


def damage(change: str) -> str:
    table = Trust().to_table()
    if change == "no net":
        del table["fluent"]
    elif change == "no setting":
        del table["in_large"]["only_over"]
    elif change == "a word for a number":
        table["in_small"]["only_over"] = "often"
    elif change == "a net that is none":
        table["true"] = 3
    else:
        return change
    return json.dumps(table)


@pytest.mark.parametrize(
    "change",
    ["", "{", "[]", "{}", "no net", "no setting", "a word for a number", "a net that is none"],
)
def test_damaged_trust_is_told(change: str, tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_text(damage(change), encoding="utf-8")
    with pytest.raises(WhichsenseError, match=r"trust\.json.*damaged.*train it again"):
        Trust.load(path)


def test_an_article_stands_once() -> None:
    (found,) = propose_rewrites(QUESTION, [label("a film", "for a")])
    assert [one.rewrite for one in found] == ["Who directed the film Dune for a film?"]


def test_a_trust_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = trusted(scored(tagged(exported(tmp_path))), answer=linear(ambiguous=1.0))
    with pytest.raises(WhichsenseError, match=r"trust\.json.*ambiguous"):
        _ = Compact(folder).trust


def test_a_tagger_that_the_trust_needs_is_missed(tmp_path: Path) -> None:
    folder = trusted(scored(tagged(exported(tmp_path))), answer=linear(mark=1.0))
    (folder / TAGGER).unlink()
    with pytest.raises(WhichsenseError, match=TAGGER):
        Compact(folder).load()
    other = trusted(folder, answer=linear(probability=1.0))
    assert Compact(other).tagger is None
