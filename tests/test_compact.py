"""The compact provider as a whole over a real index, with a tiny random model: what holds whatever the weights are."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from small_corpora import Corpus
from tiny_compact import exported, rescored, scored, trusted
from whichsense import index
from whichsense.errors import BadInput, WhichsenseError
from whichsense.index import Index
from whichsense.jobs.limits import Limits
from whichsense.models.compact import rewrite_support, rewriting
from whichsense.models.compact.candidates import Mention
from whichsense.models.compact.encoder import CompactModel, pair
from whichsense.models.compact.rewrite_support import Target
from whichsense.models.compact.rewriting import ask_again, candidates_of, rewrite_answers
from whichsense.models.compact.scene import Compact, ModelParts, Scene
from whichsense.models.compact.scorer import Judge, Scorer, StateProbe, linear
from whichsense.models.compact.scorer_features import Rewrite, added, together
from whichsense.models.compact.writer import Writer
from whichsense.pipeline import Pipeline
from whichsense.stages.detect import CompactDetector
from whichsense.stages.providers import COMPACT
from whichsense.stages.read import CompactReader
from whichsense.stages.verify import CompactVerifier
from whichsense.systems import load
from whichsense.text.words import words
from whichsense.types import FOR_BENCHMARKS, FOR_PEOPLE, Candidate, Case, Policy, Reading, Span

for needed in ("onnx", "onnxruntime", "torch"):
    pytest.importorskip(needed)

RECORDS = [
    ("Dune (1984 film)", "The film Dune of 1984 was directed by David Lynch."),
    ("Dune (novel)", "Dune is a novel by Frank Herbert. It was made a film in 1984 and in 2021."),
    ("Dune (2021 film)", "The film Dune of 2021 was directed by Denis Villeneuve."),
    ("Everest", "Everest was first climbed by Edmund Hillary in 1953."),
    ("Everest in winter", "Everest was first climbed in winter by it in 1980."),
    ("The mountain", "The mountain is made of many a mountain."),
]
QUESTIONS = ["Who directed the film Dune?", "When was Everest first climbed?"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every rewrite holds, and every one may be true."""
    folder = scored(exported(tmp_path_factory.mktemp("weights")), holds_over=-1e9)
    return trusted(folder)


@pytest.fixture
def opened(make_corpus: Corpus, tmp_path: Path) -> Index:
    index.Index.build(make_corpus(RECORDS), tmp_path / "index")
    return Index.open(tmp_path / "index")


@pytest.fixture
def pipeline(opened: Index, weights: Path) -> Pipeline:
    return load(COMPACT, opened, weights=weights, depth=5, keep=3, threshold=1e-9)


@pytest.fixture
def for_benchmarks(opened: Index, weights: Path) -> Pipeline:
    return load(
        COMPACT, opened, weights=weights, depth=5, keep=3, threshold=1e-9, policy=FOR_BENCHMARKS
    )


def model_of(pipeline: Pipeline) -> Compact:
    assert isinstance(pipeline.reader, CompactReader)
    return pipeline.reader.compact


def linked(weights: Path, folder: Path, without: str) -> Path:
    """The same model, but for one file."""
    folder.mkdir()
    for path in weights.iterdir():
        if path.name != without:
            (folder / path.name).hardlink_to(path)
    return folder


def with_scorer(weights: Path, folder: Path, **settings: float) -> Path:
    """The same model, with other settings of its scorer."""
    scorer = Scorer.load(weights / "scorer.json")
    own = linked(weights, folder, without="scorer.json")
    rescored(scorer, **settings).save(own / "scorer.json")
    return own


def with_trust(weights: Path, folder: Path, **settings: Any) -> Path:
    """The same model, with other settings of its trust."""
    return trusted(linked(weights, folder, without="trust.json"), **settings)


@pytest.mark.parametrize("policy", [FOR_PEOPLE, FOR_BENCHMARKS])
def test_readings_are_grounded_and_differ(
    policy: Policy, pipeline: Pipeline, for_benchmarks: Pipeline
) -> None:
    """A person is told the source of an answer that no rewrite tells apart."""
    own = pipeline if policy.careful else for_benchmarks
    for case in own.run(QUESTIONS):
        question, readings = case.question, case.readings
        assert len(readings) > 1
        rewritten = [one for one in readings if not one.source]
        # This writer is hardly trained: for people, what it writes may all be refused.
        assert policy.careful or len(rewritten) == len(readings)
        assert len({" ".join(words(one.question)) for one in rewritten}) == len(rewritten)
        for one in readings:
            assert one.question.endswith("?") and 0 < one.confidence < 1
            assert (one.question == question) == bool(one.source)
            assert one.evidence
            surfaces = [
                span.passage.text[span.start : span.end] or span.passage.title
                for span in one.evidence
            ]
            assert any(one.answer in surface for surface in surfaces)
        assert [one.confidence for one in readings] == sorted(
            (one.confidence for one in readings), reverse=True
        )


def test_a_benchmark_encodes_every_pair_once(for_benchmarks: Pipeline) -> None:
    """Reading, rewriting, asking again: what is read again is windows, by the writer."""
    pipeline = for_benchmarks
    pipeline.run(QUESTIONS)
    work, shape = (model_of(pipeline).model.work, model_of(pipeline).model.config["shape"])
    cases = [Case(question) for question in QUESTIONS]
    found = [len(case.hits) for case in pipeline.retriever.retrieve(cases, 5)]
    pairs = sum(found) + len(QUESTIONS)  # and every question without a passage
    late = sum(min(3, count) for count in found) + len(QUESTIONS)
    assert work.pairs == pairs
    read = work.layers - work.prompts * shape["writer_layers"]
    assert work.prompts and read == pairs * shape["early"] + late * (
        shape["layers"] - shape["early"]
    )


def test_questions_together_as_one_by_one(pipeline: Pipeline, opened: Index, weights: Path) -> None:
    together = pipeline.run(QUESTIONS)
    for question, case in zip(QUESTIONS, together, strict=True):
        other = load(COMPACT, opened, weights=weights, depth=5, keep=3, threshold=1e-9)
        assert without_costs(other.ask(question)) == without_costs(case)


def without_costs(case: Case) -> Case:
    return dataclasses.replace(case, spent={})


def test_threads_get_what_one_gets_and_nothing_is_read_twice(opened: Index, weights: Path) -> None:
    """32 questions at once through one pipeline."""
    questions = [f"{QUESTIONS[n % 2][:-1]} {n}?" for n in range(32)]
    shared = load(COMPACT, opened, weights=weights, depth=5, keep=3, threshold=1e-9)
    with ThreadPoolExecutor(32) as threads:
        at_once = list(threads.map(shared.ask, questions))
    one_by_one = load(COMPACT, opened, weights=weights, depth=5, keep=3, threshold=1e-9)
    for question, case in zip(questions, at_once, strict=True):
        assert without_costs(case) == without_costs(one_by_one.ask(question))
    assert model_of(shared).model.work == model_of(one_by_one).model.work


def test_a_case_survives_json(pipeline: Pipeline) -> None:
    for case in pipeline.run(QUESTIONS):
        written = json.loads(json.dumps(case.to_json()))
        assert Case.from_json(written) == case


@pytest.mark.parametrize("after", ["retrieve", "rerank", "read", "disambiguate"])
def test_a_case_that_is_cancelled_has_what_the_stages_before_left(
    pipeline: Pipeline, after: str
) -> None:
    ended: list[str] = []
    limits = Limits.of(cancelled=lambda: after in ended)
    case = pipeline.ask(
        QUESTIONS[0], limits=limits, on_stage=lambda name, cases: ended.append(name)
    )
    assert case.stopped == "cancelled" and ended[-1] == after
    assert list(case.spent) == ended
    assert bool(case.answers) == (after in ("read", "disambiguate"))
    assert bool(case.readings) == (after == "disambiguate")


def test_a_stage_is_left_in_its_middle(pipeline: Pipeline) -> None:
    """The deadline passes between two passages: the encoder reads no further."""
    work = model_of(pipeline).model.work
    asked = iter(range(10**6))

    def gone_after_three_looks() -> bool:
        return next(asked) > 3

    case = pipeline.ask(QUESTIONS[0], limits=Limits.of(cancelled=gone_after_three_looks))
    assert case.stopped == "cancelled" and case.hits and not case.answers
    assert work.prompts == 0
    assert pipeline.ask(QUESTIONS[0]).readings


def test_a_deadline_that_has_passed(pipeline: Pipeline) -> None:
    case = pipeline.ask(QUESTIONS[0], limits=Limits.of(seconds=0.0))
    assert case.stopped == "deadline" and case.hits == () and case.readings == ()


def test_one_answer_leaves_the_question_as_it_is(
    opened: Index, weights: Path, tmp_path: Path
) -> None:
    plain = with_scorer(weights, tmp_path / "plain", single_under=1.1)
    for question in ("Who directed the film Dune?", "who directed  the film dune"):
        pipeline = load(COMPACT, opened, weights=plain, threshold=1.0)
        readings = pipeline.readings(question)
        assert [one.question for one in readings] == [question]


@pytest.mark.parametrize("policy", [FOR_PEOPLE, FOR_BENCHMARKS])
def test_an_only_answer_among_several_says_which_reading_it_is(
    policy: Policy, opened: Index, weights: Path, tmp_path: Path
) -> None:
    """The provider's flag is for benchmarks: for people, what is shown decides whether a question is ambiguous."""
    unsure = with_scorer(weights, tmp_path / "unsure", single_under=0.0)
    pipeline = load(COMPACT, opened, weights=unsure, threshold=1.0, policy=policy)
    for case in pipeline.run(QUESTIONS):
        (reading,) = case.readings
        assert reading.told_apart(case.question) and reading.question.endswith("?")
        assert case.is_ambiguous != policy.careful and not case.has_several_readings


def test_without_a_true_rewrite_a_person_is_told_the_source(
    opened: Index, weights: Path, tmp_path: Path
) -> None:
    unsure = with_trust(weights, tmp_path / "unsure", true=-9.0)
    careful = load(COMPACT, opened, weights=unsure, threshold=1e-9)
    for case in careful.run(QUESTIONS):
        assert len(case.readings) > 1
        for one in case.readings:
            assert one.question == case.question and one.asked_again is None
            assert one.source == one.evidence[0].passage.title


def test_a_title_that_names_an_answer_tells_none_apart(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any rewrite an answer is put to a title, but to none that holds its own name."""
    question = QUESTIONS[0]
    hits = pipeline.run([question], "evidence")[0].hits
    scene = model_of(pipeline).read_given(question, hits)
    wanted = rewrite_support.locate(scene, Candidate("David Lynch", 1.0))
    first, *_ = [scene.evidence.passages[place].title for place in wanted.marked]
    monkeypatch.setattr(rewriting, "rewrites", lambda *_, **__: [[], []])
    for named, told in (("David Lynch", True), (first, False)):
        given = [Candidate(named, 0.9), Candidate("Nobody", 0.8)]
        readings = rewrite_answers(scene, given)
        asked = f"{question[:-1]}, according to “{first}”?"
        assert (asked in [one.question for one in readings]) == told


def test_an_answer_is_told_where_the_reader_finds_it(pipeline: Pipeline) -> None:
    marked = {0: [(5, 7), (20, 22)], 1: [(4, 6)], 2: [(1, 2), (9, 11)], 3: [(8, 9)]}
    found = [
        Mention(0, "Lynch", 0, 5, False, (20, 23), 0.9),
        Mention(1, "Lynch", 0, 5, False, (4, 6), 0.001),  # next to nothing beside it
        Mention(2, "Lynch", 0, 5, True, (1, 2), 0.5),  # a title: the whole text is about it
    ]
    assert rewrite_support.places_read(marked, found) == {0: [(20, 22)], 2: [(1, 2), (9, 11)]}
    assert rewrite_support.places_read(marked, []) == {}
    scene = model_of(pipeline).read_given(
        QUESTIONS[0], pipeline.run(QUESTIONS[:1], "evidence")[0].hits
    )
    for text in [scene.answers[0].text, "no such answer"]:
        everywhere, told = (
            rewrite_support.locate(scene, Candidate(text, 1.0), told=told) for told in (False, True)
        )
        for place, spans in told.marked.items():
            assert set(spans) <= set(everywhere.marked[place])
        assert bool(told.marked) == bool(everywhere.marked)


def test_rewrites_that_add_the_same_are_alike() -> None:
    question, said = (
        "Who won the cup?",
        (
            "What country won the 2014 FIFA cup?",
            "Who won the FIFA cup in 2014?",
            "Who won in Rome?",
        ),
    )
    options = [[Rewrite(said[0], 2.0)], [Rewrite(said[1], 2.0), Rewrite(said[2], 1.0)]]
    assert [one.question for one in together(options) if one] == [said[0], said[1]]
    alike = partial(added, question)
    assert [one.question for one in together(options, alike) if one] == [said[0], said[2]]
    assert [one.question for one in together(options * 8, alike) if one] == [
        said[0],
        said[2],
    ]  # greedily


def test_the_detector_says_what_the_reader_says(opened: Index, weights: Path) -> None:
    pipeline = load(COMPACT, opened, weights=weights)
    detector = CompactDetector(model_of(pipeline))
    for case in pipeline.run(QUESTIONS):
        (detected,) = detector.detect([Case(case.question, case.hits)])
        assert detected.ambiguous is not None and 0 < detected.ambiguous < 1
        assert bool(detected.is_ambiguous) <= case.has_several_readings
    (nothing,) = detector.detect([Case("xylophones zzzz")])
    assert nothing.ambiguous == 0 and nothing.is_ambiguous is False


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"answer": dataclasses.replace(linear(), bias=-9.0), "only_over": 0.0}, 1),
        ({"only_over": 1.1}, 0),
        ({"answerable_over": 1.1}, 0),
    ],
)
def test_caution_declines_and_gives_one_answer(
    settings: dict[str, Any], count: int, opened: Index, weights: Path, tmp_path: Path
) -> None:
    """A benchmark's question is answered in any case, and gets every answer that pays."""
    plain = with_scorer(weights, tmp_path / "plain", missing=9.0)
    folder = with_trust(plain, tmp_path / "cautious", **settings)
    careful, bold = (
        load(COMPACT, opened, weights=folder, policy=policy)
        for policy in (FOR_PEOPLE, FOR_BENCHMARKS)
    )
    assert [len(case.readings) for case in careful.run(QUESTIONS)] == [count] * 2
    assert all(len(case.readings) > 1 for case in bold.run(QUESTIONS))


def test_a_question_that_cannot_be_answered(opened: Index, weights: Path, tmp_path: Path) -> None:
    """No threshold brings its answers back."""
    shy = with_trust(weights, tmp_path / "shy", answerable_over=1.1)
    for threshold in (None, 1e-9):
        pipeline = load(COMPACT, opened, weights=shy, threshold=threshold)
        case = pipeline.ask(QUESTIONS[0])
        assert case.readings == () and case.possible == () and len(case.hits) > 2
        assert not case.has_several_readings and case.confidence == case.answerable


def test_nothing_found_at_all(pipeline: Pipeline) -> None:
    case = pipeline.ask("?! …")
    assert case.readings == () and case.hits == () and case.confidence == 0


def test_what_a_case_says(pipeline: Pipeline) -> None:
    case = pipeline.ask(QUESTIONS[0])
    assert case.has_several_readings
    assert case.confidence == case.readings[0].confidence
    stages = ["retrieve", "rerank", "read", "disambiguate", "verify"]
    assert list(case.spent) == stages and case.seconds > 0
    assert case.answerable is not None and case.ambiguous is not None


def test_the_order_is_the_encoders(pipeline: Pipeline) -> None:
    (case,) = pipeline.retriever.retrieve([Case(QUESTIONS[0])], 5)
    assert pipeline.reranker is not None
    found = pipeline.reranker.rerank([case])[0].hits
    assert sorted(hit.passage.id for hit in found) == sorted(hit.passage.id for hit in case.hits)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_answers_may_be_given(pipeline: Pipeline) -> None:
    """Rewrites for gold answers, wherever they stand or stand not."""
    hits = pipeline.run(QUESTIONS[:1], "evidence")[0].hits
    given = (Candidate("David Lynch", 1.0), Candidate("Denis Villeneuve", 1.0))
    answers = {candidate.answer for candidate in given}
    readings = rewritten(pipeline, Case(QUESTIONS[0], hits, given))
    assert readings and {one.answer for one in readings} <= answers
    (alone,) = rewritten(pipeline, Case(QUESTIONS[0], hits, given[:1]))
    assert (alone.answer, alone.question) == ("David Lynch", QUESTIONS[0])
    assert rewritten(pipeline, Case(QUESTIONS[0], hits)) == ()


def rewritten(pipeline: Pipeline, case: Case) -> tuple[Reading, ...]:
    assert pipeline.disambiguator is not None
    return pipeline.disambiguator.disambiguate([case])[0].readings


def verified(pipeline: Pipeline, case: Case) -> tuple[Reading, ...]:
    assert pipeline.verifier is not None
    return pipeline.verifier.verify([case])[0].readings


def test_a_benchmark_gets_a_rewrite_of_what_may_not_be_ambiguous(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An only answer leaves a person's question as it is; a rewrite that is there stays."""
    monkeypatch.setattr(Scene, "is_ambiguous", property(lambda scene: False))
    hits = pipeline.run(QUESTIONS[:1], "evidence")[0].hits
    given = (Candidate("David Lynch", 1.0),)
    edited = (Reading("Who directed Dune in 1984?", "David Lynch"),)
    nothing_joins = dataclasses.replace(FOR_BENCHMARKS, threshold=1.0)
    for policy, left in ((FOR_PEOPLE, True), (nothing_joins, False)):
        (alone,) = rewritten(pipeline, Case(QUESTIONS[0], hits, given, policy=policy))
        assert (alone.question == QUESTIONS[0]) == left
        case = Case(QUESTIONS[0], hits, given, edited, policy=policy)
        (alone,) = verified(pipeline, case)
        assert alone.question == edited[0].question


def test_what_only_shares_a_word_is_no_evidence(pipeline: Pipeline) -> None:
    hits = pipeline.run(QUESTIONS[:1], "evidence")[0].hits
    scores = (0.5, 0.01, 0.009, 0.0)
    spans = tuple(Span(hits[0].passage, 0, 4, score) for score in scores)
    answers = (Candidate("Dune", 0.9, spans), Candidate("David Lynch", 0.8))
    for one in rewritten(pipeline, Case(QUESTIONS[0], hits, answers)):
        assert one.evidence == (spans[:2] if one.answer == "Dune" else ())
    nothing_joins = dataclasses.replace(FOR_BENCHMARKS, threshold=1.0)
    readings = (Reading(QUESTIONS[0], "Dune", spans),)
    case = Case(QUESTIONS[0], hits, readings=readings, policy=nothing_joins)
    (one,) = verified(pipeline, case)
    assert one.evidence == spans[:2]


@pytest.mark.parametrize(
    "wrong", [{"threshold": float("nan")}, {"threshold": -1.0}, {"keep": 0}, {"threads": 0}]
)
def test_impossible_settings_are_refused(wrong: dict[str, Any], opened: Index) -> None:
    with pytest.raises(BadInput, match=r"more than 0 and at most 1|at least 1"):
        load(COMPACT, opened, **wrong)


def scripted(monkeypatch: pytest.MonkeyPatch, likely: dict[tuple[str, str], float]) -> None:
    """Likelihoods as given for (question, answer), and -5 for all others."""

    def likelihoods(scene: Scene, questions: Sequence[str], targets: Sequence[Target]) -> Any:
        return np.array(
            [
                [likely.get((question, one.answer), -5.0) for one in targets]
                for question in questions
            ]
        )

    monkeypatch.setattr(rewriting, "likelihoods", likelihoods)


def reading_of(candidate: Candidate, question: str) -> Reading:
    return Reading(question, candidate.answer, candidate.spans, candidate.score)


def test_rewrites_are_asked_again(
    pipeline: Pipeline,
    weights: Path,
    opened: Index,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    strict = with_scorer(weights, tmp_path / "strict", holds_over=0.0, single_under=1.1)
    model = Compact(strict)
    hits = pipeline.run(QUESTIONS[:1], "evidence")[0].hits
    scene = model.read_given(QUESTIONS[0], hits)
    one, two, new = candidates_of(scene, scene.apart[:3])
    first, second = reading_of(one, "First?"), reading_of(two, "Second?")
    scripted(monkeypatch, {("First?", one.answer): -1.0, ("Second?", two.answer): -1.0})
    assert ask_again(scene, [first, second], 0.0) == ([True, True], [])
    scripted(
        monkeypatch,
        {
            ("First?", one.answer): -1.0,
            ("Second?", one.answer): -1.0,
            ("Second?", two.answer): -2.0,
        },
    )
    assert ask_again(scene, [first, second], 0.0) == ([True, False], [])
    scripted(
        monkeypatch,
        {
            ("First?", one.answer): -1.0,
            ("Second?", two.answer): -3.0,
            ("Second?", new.answer): -2.0,
        },
    )
    assert ask_again(scene, [first, second], 0.0) == ([True, True], [scene.apart[2]])
    asked = reading_of(one, QUESTIONS[0])  # the question itself brings nothing new
    scripted(monkeypatch, {(QUESTIONS[0], new.answer): -1.0})
    assert ask_again(scene, [asked, second], 0.0)[1] == []
    with monkeypatch.context() as unasked:  # and need not be asked, if it is the only one
        unasked.setattr(rewriting, "likelihoods", None)
        assert ask_again(scene, [asked], 0.0) == ([True], [])
    scripted(monkeypatch, {("First?", one.answer): -2.0, ("First?", new.answer): -1.0})
    assert ask_again(scene, [first], 0.0) == ([True], [scene.apart[2]])
    verifier = CompactVerifier(model)
    scripted(monkeypatch, {("First?", two.answer): -1.0, ("Second?", one.answer): -1.0})
    case = Case(QUESTIONS[0], hits, readings=(first, second), policy=FOR_BENCHMARKS)
    (left,) = verifier.verify([case])[0].readings
    best = max(first, second, key=lambda reading: reading.confidence)
    # One stays in any case.
    assert (left.question, left.answer) == (best.question, best.answer)


@pytest.mark.parametrize(
    "question",
    [
        "?",
        "???",
        "the",
        "Dune",
        "who " * 400,
        "北京 Dune",
        "Dune\u0301 \u200b?",
        "dune\tfilm\n?",
        "«»",
    ],
)
def test_odd_questions(question: str, pipeline: Pipeline) -> None:
    case = pipeline.ask(question)
    assert case.question == question
    for reading in case.readings:
        assert reading.answer and reading.question


@pytest.mark.parametrize(
    "records",
    [
        [("", "Dune"), ("Dune", ".")],
        [("Dune " * 60, "Dune was. " * 500)],
        [("(", "( Dune ) ( “ ,"), ("Dune", "🏆 Dune 🏆")],
    ],
)
def test_odd_passages(
    records: list[tuple[str, str]], weights: Path, make_corpus: Corpus, tmp_path: Path
) -> None:
    index.Index.build(make_corpus(records, "odd.jsonl"), tmp_path / "odd")
    pipeline = load(COMPACT, tmp_path / "odd", weights=weights, threshold=1e-9)
    for reading in pipeline.readings("Who made Dune?"):
        for span in reading.evidence:
            assert span.passage.text[span.start : span.end] or span.start == 0


def test_hits_from_elsewhere_are_read(weights: Path, opened: Index) -> None:
    """A reader that is given passages which no reranker of its own ordered encodes them itself."""
    model = Compact(weights)
    reader, hits = CompactReader(model), tuple(opened.search(QUESTIONS[0], 3))
    everything = dataclasses.replace(FOR_BENCHMARKS, threshold=1e-9)
    (read,) = reader.read([Case(QUESTIONS[0], hits, policy=everything)])
    pairs = len(hits) + 1  # and the question without a passage
    assert read.answers and model.model.work.pairs == pairs
    (again,) = reader.read([read])  # its scene travels with it
    assert again == read and model.model.work.pairs == pairs
    reader.read([dataclasses.replace(read, hits=hits[:1])])
    assert model.model.work.pairs == pairs + 2


def test_a_question_is_read_alone_too(weights: Path, opened: Index) -> None:
    """What the encoder makes of it without a passage, whatever was found for it; the scorer weighs that."""
    hits = opened.search(QUESTIONS[0], 3)
    model = CompactModel(weights)
    alone = []
    for question in QUESTIONS:
        bare = pair(model.tokenizer, model.tokenizer.ids(question), "", "")
        ((early, _),) = model.early([bare])
        states = early[0], model.late([early])[0].states
        alone.append(
            np.concatenate([part for one in states for part in (one[0], one[1:-1].mean(axis=0))])
        )
        np.testing.assert_array_equal(Compact(weights).alone(question), alone[-1])
        for some, keep in ((hits, 9), (hits, 1), (hits[:1], 9), ([], 9)):
            scene = Compact(weights, keep=keep).read_search(question, some)
            np.testing.assert_array_equal(scene.evidence.alone, alone[-1])
            # The bare question is not a passage.
            assert len(scene.evidence.read) == min(len(some), keep)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3


@pytest.mark.parametrize(("others", "several"), [(0.01, False), (0.9, True)])
def test_where_several_answers_are_given_a_question_is_ambiguous(
    weights: Path, opened: Index, others: float, several: bool
) -> None:
    """By a judge without a threshold of its own."""
    own = Compact(weights)
    judge = dataclasses.replace(own.scorer.in_small, single_under=None, missing=0.0)
    own.parts.__dict__["scorer"] = dataclasses.replace(own.scorer, in_large=judge, in_small=judge)
    scene = own.read_given(QUESTIONS[0], opened.search(QUESTIONS[0], 3))
    scene.__dict__["probabilities"] = [0.95, *[others] * (len(scene.answers) - 1)]
    assert scene.is_ambiguous == (len(scene.likely()) > 1) == several
    assert len(scene.likely(threshold=0.94)) == 1
    assert not own.read_given(QUESTIONS[0], []).is_ambiguous


def test_what_the_encoder_makes_of_a_question_says_whether_it_is_ambiguous(
    weights: Path, opened: Index
) -> None:
    """A scorer whose large judge hears the impression alone: its odds are the impression's."""
    model, question = Compact(weights), QUESTIONS[0]
    states = model.alone(question)
    for sign in (1.0, -1.0):
        impression = StateProbe((sign * states / (states @ states)).astype(np.float32), bias=sign)
        judge = Judge(linear(), linear(alone=1.0))
        scorer = dataclasses.replace(
            model.scorer, large=linear(), in_large=judge, in_small=judge, impression=impression
        )
        own = Compact(weights)
        own.parts.__dict__["scorer"] = scorer
        scene = own.read_given(question, opened.search(question, 3))
        assert scene.ambiguous == pytest.approx(1 / (1 + np.exp(-2 * sign)), abs=1e-4)
        assert scene.is_ambiguous == (sign > 0)


def test_a_pipeline_knows_the_size_of_its_corpus_and_shares_what_is_loaded(
    weights: Path, opened: Index
) -> None:
    model = Compact(weights)
    own = model_of(load(COMPACT, opened, model=model))
    assert own.passages == len(opened) and own.model is model.model and own.scorer is model.scorer
    hits = opened.search(QUESTIONS[0], 4)
    for passages, name in ((len(opened), "in_small"), (1_000_000, "in_large")):
        over = model.over(passages)
        assert over.read_given(QUESTIONS[0], hits).judge is getattr(model.scorer, name)


def test_a_model_that_is_there_reads_as_much_as_the_pipeline_keeps(
    weights: Path, opened: Index
) -> None:
    """Else what its reranker read to the end is not what the reader is given, and is read again."""
    model = Compact(weights, keep=1)
    pipeline = load(
        COMPACT, opened, depth=5, keep=3, threshold=1e-9, model=model, policy=FOR_BENCHMARKS
    )
    own = model_of(pipeline)
    assert own.keep == 3 and own.parts is model.parts and model.keep == 1
    pipeline.ask(QUESTIONS[0])
    assert own.model.work.pairs == len(opened.search(QUESTIONS[0], 5)) + 1


def test_a_part_is_loaded_once_by_however_many_threads(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though Python's cached properties have no lock: before 3.12 theirs is taken away here."""
    for owner, name in (
        (CompactModel, "_early"),
        (ModelParts, "model"),
        (ModelParts, "writer"),
        (Writer, "_session"),
    ):
        monkeypatch.setattr(vars(owner)[name], "lock", contextlib.nullcontext(), raising=False)
    begun: list[str] = []

    def slow(_: CompactModel, name: str, threads: int = 1) -> object:
        begun.append(name)
        time.sleep(0.1)
        return object()

    monkeypatch.setattr(CompactModel, "session", slow)
    model = Compact(weights)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: (model.model._early, model.writer._session), range(4)))
    assert sorted(begun) == ["early.onnx", "writer.onnx"] and len(set(parts)) == 1


def test_weights_may_load_while_something_else_is_done(weights: Path, tmp_path: Path) -> None:
    model = Compact(weights)
    model.prepare().join()
    assert {"tokenizer", "_early", "_late", "_verifier"} <= vars(model.model).keys()
    assert model.labeller is None
    missing = Compact(tmp_path / "nowhere")
    missing.prepare().join()  # says nothing
    with pytest.raises(WhichsenseError, match="no compact model"):
        missing.alone("Who?")
