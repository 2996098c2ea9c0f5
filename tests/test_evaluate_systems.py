"""Systems in one table: scored as the official script does, run once, with provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from whichsense.errors import BadConfig
from whichsense.lab.datasets import load
from whichsense.lab.evaluation import leaderboard
from whichsense.lab.evaluation.leaderboard import evaluate_systems
from whichsense.lab.evaluation.scoring import score
from whichsense.models.compact import encoder
from whichsense.systems import System, SystemSettings
from whichsense.types import Case, Reading

QUESTIONS = {question.text: question for question in load("sample/questions")}


class Knowing:
    """Gives the first gold pair of a question, or all of them."""

    def __init__(self, every: bool) -> None:
        self.every, self.asked = every, 0

    def run(self, questions: Sequence[str]) -> list[Case]:
        self.asked += len(questions)
        pairs = [QUESTIONS[question].annotations[0].pairs for question in questions]
        cases = []
        for question, own in zip(questions, pairs, strict=True):
            readings = []
            for pair in own if self.every else own[:1]:
                readings.append(Reading(pair.question or question, pair.answers[0]))
            cases.append(Case(question, readings=tuple(readings)))
        return cases


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, Knowing]]:
    """A comparison of two systems that are known by their names, run as real ones are."""
    answerers = {"all": Knowing(True), "one": Knowing(False)}

    def build(settings: SystemSettings, index: object, policy: object) -> System:
        name = settings.name
        return System(answerers[name], settings, rewrites=name == "all")

    monkeypatch.setattr(leaderboard, "build", build)
    monkeypatch.chdir(tmp_path)
    Path("all.toml").write_text("depth = 1\n")
    Path("one.toml").write_text("depth = 1\n")
    path = tmp_path / "systems.toml"
    path.write_text(
        'dataset = "sample/questions"\nlimit = 30\nout = "predictions"\n'
        '[[systems]]\nfile = "all.toml"\n[[systems]]\nfile = "one.toml"\nname = "one"\n'
    )
    return path, answerers


def test_table(file: tuple[Path, dict[str, Knowing]]) -> None:
    path, answerers = file
    result = evaluate_systems(path)
    everything, one = result.systems
    assert (result.questions, everything.name, one.name) == (30, "all", "one")
    assert everything.metrics["f1_ans"] == everything.metrics["f1_edit"] == 1.0
    assert 0.5 < (one.metrics["f1_ans"] or 0) < 1.0 and one.metrics["f1_edit"] is None
    assert (
        everything.metrics["detection_accuracy"] == 1.0 and one.metrics["detection_recall"] == 0.0
    )
    assert everything.seconds_per_question is not None and everything.intervals["f1_ans"] == (
        1.0,
        1.0,
    )
    assert (
        everything.provenance["system"]["name"] == "all"
        and result.provenance["data"]["questions.jsonl"]
    )
    evaluate_systems(path)
    assert answerers["all"].asked == 30  # not run again
    Path("all.toml").write_text("depth = 2\n")
    evaluate_systems(path)
    assert answerers["all"].asked == 60  # it is another system now


def test_gold_is_scored_as_the_dataset_is(
    file: tuple[Path, dict[str, Knowing]], tmp_path: Path
) -> None:
    """Records score as the dataset's own file does, and readings as the official form does."""
    questions = list(QUESTIONS.values())
    predictions = tmp_path / "p.json"
    answered = Knowing(False).run([question.text for question in questions])
    official_form = {
        q.id: [{"question": r.question, "answer": r.answer} for r in own.readings]
        for q, own in zip(questions, answered, strict=True)
    }
    predictions.write_text(json.dumps(official_form))
    path = load("sample/questions").path
    official = score("ambignq", path, predictions, name="one")
    readings = {q.id: own for q, own in zip(questions, answered, strict=True)}
    for gold, predicted in (
        (questions, predictions),
        (load("sample/questions"), official_form),
        (path, readings),
    ):
        assert score("ambignq", gold, predicted, name="one") == official


def test_command(file: tuple[Path, dict[str, Knowing]]) -> None:
    from whichsense.cli import command

    path, _ = file
    Path("mine.json").write_text(
        json.dumps({question.id: ["none"] for question in list(QUESTIONS.values())[:30]})
    )
    with open(path, "a", encoding="utf-8") as more:
        more.write('[[systems]]\npredictions = "mine.json"\n')
    shown = CliRunner().invoke(command, ["evaluate", str(path)])
    assert shown.exit_code == 0, shown.output
    lines = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()[2:]}
    assert lines["all"][:4] == ["100.0"] * 4 and lines["one"][2] == "–"
    assert lines["mine"] == ["0.0", "0.0", "–", "–", "–"]
    printed = CliRunner().invoke(command, ["evaluate", "systems", str(path), "--json"])
    body = json.loads(printed.stdout.splitlines()[-1])
    assert body["questions"] == 30 and [system["name"] for system in body["systems"]] == [
        "all",
        "one",
        "mine",
    ]


def test_another_compact_model_is_another_system(
    file: tuple[Path, dict[str, Knowing]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, answerers = file
    Path("all.toml").write_text('provider = "compact"\n')
    evaluate_systems(path)
    Path("all.toml").write_text('provider = "compact"\nabout = "Only prose."\n')
    evaluate_systems(path)
    assert answerers["all"].asked == 30
    monkeypatch.setattr(encoder, "WEIGHTS", Path("compact-99"))
    evaluate_systems(path)
    assert answerers["all"].asked == 60 and answerers["one"].asked == 30


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("all", "all"),
            r"'all' and 'all' would both be written to 'predictions/all-….json'. Give one another `name`",
        ),
        (("a b", "all", "a/b"), "'a b' and 'a/b' would both"),
    ],
)
def test_systems_of_one_file_are_told_before_any_runs(
    names: tuple[str, ...], message: str, file: tuple[Path, dict[str, Knowing]]
) -> None:
    path, answerers = file
    entries = "".join(f'[[systems]]\nfile = "all.toml"\nname = "{name}"\n' for name in names)
    path.write_text(f'dataset = "sample/questions"\nlimit = 3\n{entries}')
    with pytest.raises(BadConfig, match=message):
        evaluate_systems(path)
    assert answerers["all"].asked == 0 and not Path("predictions").exists()


def test_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "systems.toml"
    path.write_text('dataset = "sample/questions"\n')
    with pytest.raises(BadConfig, match=r"\[\[systems\]\]"):
        evaluate_systems(path)
    path.write_text('dataset = "sample/questions"\n[[systems]]\nfil = "x"\n')
    with pytest.raises(BadConfig, match=r"unknown key 'systems\[0\]\.fil'"):
        evaluate_systems(path)
