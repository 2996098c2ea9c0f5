"""Every goal over a dataset with what it gives: the form of predictions, resuming, bad input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from whichsense import sample
from whichsense.config import load_as
from whichsense.errors import BadConfig, BadInput
from whichsense.lab.datasets import (
    ClarifiedQuestion,
    ConflictDocument,
    ConflictQuestion,
    Question,
    load,
)
from whichsense.lab.datasets.records import QAPair
from whichsense.lab.datasets.rows import several_answers
from whichsense.lab.evaluation.leaderboard import LeaderboardConfig, evaluate_systems
from whichsense.lab.evaluation.prediction import (
    GivenDocuments,
    Setting,
    predict,
    with_gold_readings,
)
from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import offered
from whichsense.stages.summarize import BestPassages, QuestionRepeated
from whichsense.systems import build, load_settings
from whichsense.testing import (
    FakeClarifier,
    FakeDetector,
    FakeDisambiguator,
    FakeReader,
    FakeReranker,
    FakeRetriever,
    FakeSummarizer,
    passage_hit,
)
from whichsense.types import FOR_BENCHMARKS, FOR_PEOPLE, Case, Option

HITS = [passage_hit("Ann won in 2012.", "2012"), passage_hit("Bo won in 2016.", "2016")]
PIPELINE = Pipeline(
    FakeRetriever(HITS),
    FakeReranker(),
    FakeReader({"Ann": "Ann", "Bo": "Bo"}),
    FakeDisambiguator(),
    clarifier=FakeClarifier(),
    summarizer=FakeSummarizer(),
)
PAIRS = (QAPair(("Ann", "Ann Lee"), ("Who won in 2012?",)), QAPair(("Bo",), ("Who won in 2016?",)))
QUESTION = ClarifiedQuestion(
    "1",
    "Who won?",
    several_answers(PAIRS),
    clarification="As of which year: 2012, or 2016?",
    clarified_answers=(("Ann", "Ann Lee"), ("Bo",)),
    category="year",
    options=("2012", "2016"),
)


def prediction(setting: Setting, pipeline: Pipeline = PIPELINE) -> object:
    (case,) = setting.run(pipeline, [QUESTION])
    return setting.prediction(pipeline, case, rewrites=True)


def test_each_goal_has_its_form() -> None:
    readings = prediction(Setting())
    assert readings == [
        {"question": "Who won (2012)?", "answer": "Ann", "confidence": 0.5},
        {"question": "Who won (2016)?", "answer": "Bo", "confidence": 0.5},
    ]
    assert prediction(Setting("ambiguity")) == {"ambiguous": True, "score": None}
    asked = "Which reading: Who won (2012)?, or Who won (2016)??"
    assert prediction(Setting("clarification")) == asked
    assert prediction(Setting("clarified answers")) == {
        "asked": True,
        "clarification": asked,
        "options": [
            {"option": "Who won (2012)?", "answer": "Ann"},
            {"option": "Who won (2016)?", "answer": "Bo"},
        ],
        "answers": ["Ann", "Bo"],
    }
    told = prediction(Setting("long answer"))
    assert told == {
        "text": "Who won (2012)? Ann. Who won (2016)? Bo.",
        "sentences": [
            {"sentence": "Who won (2012)? Ann.", "citations": [1]},
            {"sentence": "Who won (2016)? Bo.", "citations": [2]},
        ],
        "documents": [
            {"title": "2012", "text": "Ann won in 2012."},
            {"title": "2016", "text": "Bo won in 2016."},
        ],
    }


@dataclass(frozen=True)
class Sparing:
    """A reader that gives as few answers as it may."""

    reader: FakeReader

    def read(self, cases: Sequence[Case]) -> list[Case]:
        read = self.reader.read(cases)
        return [replace(one, answers=one.answers[: one.policy.least]) for one in read]


def test_who_is_asked_has_a_choice() -> None:
    """Of an only reading nothing could be asked. What is answered without asking stays as it is."""
    assert isinstance(PIPELINE.reader, FakeReader)
    sparing = replace(PIPELINE, reader=Sparing(PIPELINE.reader), policy=FOR_BENCHMARKS)
    told = prediction(Setting("clarified answers"), sparing)
    assert isinstance(told, dict) and told["asked"]
    assert [one["answer"] for one in told["options"]] == ["Ann", "Bo"]
    assert told["answers"] == ["Ann"]
    people = replace(sparing, policy=FOR_PEOPLE)
    told = prediction(Setting("clarified answers", policy="people"), people)
    assert isinstance(told, dict) and not told["asked"]


def test_options_are_read_anew_where_that_is_wanted() -> None:
    """The fake reader sees every passage for every option, so both options get the same first answer: collapse."""
    answers = prediction(Setting("clarified answers", options="read"))
    assert isinstance(answers, dict)
    assert [one["answer"] for one in answers["options"]] == ["Ann", "Ann"]


def test_a_detector_may_hold_a_question_back() -> None:
    setting = Setting("clarified answers")
    (case,) = setting.run(PIPELINE, [QUESTION])
    case = replace(case, is_ambiguous=False)
    held = replace(PIPELINE, detector=FakeDetector())
    assert setting.prediction(held, case, rewrites=True)["asked"] is False
    assert setting.prediction(PIPELINE, case, rewrites=True)["asked"] is True


def test_in_a_dialogue_the_reply_decides() -> None:
    """The person says "2016": understood as that option, not as the first."""
    setting = Setting("clarified answers", options="dialogue")
    case = with_gold_readings(QUESTION, Case("Who won?", hits=tuple(HITS)))
    asked = offered("Which year", "year", ("2012", "2016"), case.readings)
    case = replace(case, clarification=asked)
    answers = setting.prediction(PIPELINE, case, rewrites=True)["options"]
    assert [one["answer"] for one in answers] == ["Ann", "Bo"]
    # Two options of the same words cannot be told apart: nobody is given either answer by chance.
    same = offered("Which year", "year", ("2012", "2012"), case.readings)
    case = replace(case, clarification=same)
    answers = setting.prediction(PIPELINE, case, rewrites=True)["options"]
    assert [one["answer"] for one in answers] != ["Ann", "Bo"]


def test_options_of_groups_are_scored_one_by_one() -> None:
    case = with_gold_readings(QUESTION, Case("Who won?", hits=tuple(HITS)))
    asked = offered("Which year", "year", ("2012", "2016"), case.readings)
    group = Option("1", "the 2010s", readings=case.readings, options=asked.options)
    case = replace(case, clarification=replace(asked, options=(group,)))
    answers = Setting("clarified answers").prediction(PIPELINE, case, rewrites=True)
    assert [one["option"] for one in answers["options"]] == ["2012", "2016"]


def test_gold_answers_are_given() -> None:
    asked = prediction(Setting("clarification", "answers"))
    assert asked == "Which reading: Who won in 2012?, or Who won in 2016??"
    case = with_gold_readings(QUESTION, Case("Who won?", hits=tuple(HITS)))
    assert [reading.answer for reading in case.readings] == ["Ann", "Bo"]
    span = case.readings[1].evidence[0]
    assert span.passage.text[span.start : span.end] == "Bo"


def test_the_gold_clarification_is_given_and_its_options_are_read() -> None:
    answers = prediction(Setting("clarified answers", "clarification"))
    assert isinstance(answers, dict)
    assert answers["clarification"] == "As of which year: 2012, or 2016?"
    assert [one["option"] for one in answers["options"]] == ["2012", "2016"]
    assert answers["answers"] == []  # the readings were not asked for


def test_documents_are_given() -> None:
    documents = tuple(ConflictDocument(hit.passage.text, "correct", "") for hit in HITS)
    question = ConflictQuestion("7", "Who won?", several_answers(PAIRS), documents=documents)
    given = GivenDocuments([question])
    (hits,) = given.search_many(["Who won?"])
    assert [hit.passage.text for hit in hits] == [hit.passage.text for hit in HITS]
    assert given.passage("7/1").text == "Bo won in 2016."
    assert given.describe()["passages"] == 2
    with pytest.raises(BadInput, match="comes without documents"):
        GivenDocuments([QUESTION])


def test_without_a_reader_from_passages_alone() -> None:
    """ASQA's baselines read nothing."""
    bare = replace(PIPELINE, reader=None, summarizer=BestPassages(2))
    told = prediction(Setting("long answer"), bare)
    assert isinstance(told, dict) and told["text"] == "Ann won in 2012. Bo won in 2016."
    assert [one["citations"] for one in told["sentences"]] == [[1], [2]]
    told = prediction(Setting("long answer"), replace(bare, summarizer=QuestionRepeated(2)))
    assert isinstance(told, dict) and told["text"] == "Who won? Who won?"


@pytest.mark.parametrize(
    ("goal", "given", "message"),
    [
        ("long anser", "question", "no goal 'long anser'. Did you mean 'long answer'"),
        ("readings", "answers", "Gold answers are given for the goals"),
        ("clarification", "clarification", "for the goal 'clarified answers'"),
        ("readings", "gold", "There is no given 'gold'"),
    ],
)
def test_wrong_settings(goal: str, given: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Setting(goal, given)  # type: ignore[arg-type]


def test_a_question_without_a_clarification_is_refused() -> None:
    plain = Question("1", "Who won?", several_answers(PAIRS))
    with pytest.raises(BadInput, match="no gold clarification"):
        Setting("clarified answers", "clarification").run(PIPELINE, [plain])


@dataclass
class Fragile:
    """A clarifier that breaks after some questions."""

    left: int
    asked: int = 0

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        self.asked += len(cases)
        if self.asked > self.left:
            raise RuntimeError("broken")
        return FakeClarifier().clarify(cases)


def test_any_goal_resumes(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    setting = Setting("clarification")
    fragile = Fragile(4)
    with pytest.raises(RuntimeError):
        broken = replace(PIPELINE, clarifier=fragile)
        predict(broken, "sample/questions", out, setting=setting, limit=10, batch=2)
    with pytest.raises(BadInput, match="another system"):
        predict(PIPELINE, "sample/questions", out, limit=10)
    rest = Fragile(100)
    pipeline = replace(PIPELINE, clarifier=rest)
    predict(pipeline, "sample/questions", out, setting=setting, limit=10, batch=2)
    assert rest.asked == 6 and len(json.loads(out.read_text())) == 10


class Rewriting:
    """A system that is not a pipeline."""

    def run(self, questions: Sequence[str]) -> list[Case]:
        return [Case(question) for question in questions]


def test_long_answers_of_the_sample_end_to_end(tmp_path: Path) -> None:
    """Real retrieval, no model: the baseline over a file, run and described."""
    (tmp_path / "best.toml").write_text('[summarizer]\nprovider = "passages"\n')
    questions = list(load("sample/questions"))[:3]
    system = build(load_settings(tmp_path / "best.toml"), sample.open_index(None), FOR_BENCHMARKS)
    out = tmp_path / "out.json"
    predict(system.answerer, "sample/questions", out, setting=Setting("long answer"), limit=3)
    written = json.loads(out.read_text())
    assert list(written) == [question.id for question in questions]
    for one in written.values():
        assert one["text"] and all(item["citations"] == [1] for item in one["sentences"])
    with pytest.raises(BadInput, match="no goal but"):
        Setting("clarification").run(Rewriting(), questions)


def test_several_datasets_are_one(tmp_path: Path) -> None:
    predict(PIPELINE, "sample/questions+handbook/questions", tmp_path / "out.json", rewrites=False)
    both = len(load("sample/questions")) + len(load("handbook/questions"))
    assert len(json.loads((tmp_path / "out.json").read_text())) == both


def test_a_wrong_goal_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "systems.toml"
    path.write_text(
        'dataset = "sample/questions"\ngoal = "novel"\n[[systems]]\nprovider = "compact"\n'
    )
    with pytest.raises(BadConfig, match="goal"):
        evaluate_systems(path)


SHIPPED = Path(__file__).parents[2] / "systems"


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*/all*.toml")), ids=str)
def test_shipped_comparisons_name_shipped_systems(path: Path) -> None:
    listed = load_as(LeaderboardConfig, path)
    assert listed.systems
    for entry in listed.systems:
        assert (SHIPPED.parent / entry.file).is_file()
