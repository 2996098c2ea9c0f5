"""A system's file names a model for each stage; mistakes in it are told."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest

from whichsense import sample
from whichsense.config import load_as
from whichsense.errors import BadConfig, MissingStage
from whichsense.lab.evaluation.leaderboard import LeaderboardConfig
from whichsense.models.compact import encoder
from whichsense.pipeline import Pipeline
from whichsense.stages.baselines import DisambiguateFirst
from whichsense.stages.clarify import SeqClarifier
from whichsense.stages.detect import AnswersDetector
from whichsense.stages.disambiguate import PromptCopy, SeqDisambiguator
from whichsense.stages.read import CompactReader, ExtractiveReader, SeqReader, VotingReader
from whichsense.stages.rerank import CompactReranker, CrossEncoderReranker
from whichsense.stages.summarize import SeqSummarizer
from whichsense.stages.verify import EMVerifier, LMVerifier
from whichsense.systems import System, build, describe, load, load_settings
from whichsense.types import FOR_BENCHMARKS


def trained(folder: Path, name: str, task: str, about: str) -> str:
    """A folder as training leaves it, as far as a system's file looks at it before the first question."""
    place = folder / name
    place.mkdir()
    (place / about).write_text(json.dumps({"task": task}))
    (place / "selected.json").write_text(json.dumps({"step": len(name)}))
    return str(place)


@pytest.fixture
def models(tmp_path: Path) -> dict[str, str]:
    kinds = {
        "cross": ("reranker", "bert.json"),
        "spans": ("extractive-reader", "bert.json"),
        "fid": ("answer-prediction", "seq2seq.json"),
        "qd": ("question-disambiguation", "seq2seq.json"),
        "ambiguity": ("ambiguity-detector", "bert.json"),
        "first": ("disambiguate-first", "seq2seq.json"),
        "asks": ("clarification", "seq2seq.json"),
        "tells": ("long-answer", "seq2seq.json"),
    }
    return {name: trained(tmp_path, name, *kind) for name, kind in kinds.items()}


def written(folder: Path, body: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(body)
    return path


def system(folder: Path, body: str) -> System:
    path = written(folder, body)
    return build(load_settings(path), sample.index(), FOR_BENCHMARKS)


def test_refuel(tmp_path: Path, models: dict[str, str]) -> None:
    found = system(
        tmp_path,
        f"""
        depth = 1000
        keep = 100
        rounds = 5
        reranker.model = "{models["cross"]}"
        reader.model = "{models["fid"]}"
        disambiguator = {{ model = "{models["qd"]}", beams = 1 }}
        verifier = {{ model = "{models["fid"]}", threshold = -5.0 }}
        """,
    )
    pipeline = found.answerer
    assert isinstance(pipeline, Pipeline) and found.name == "mine" and found.rewrites
    assert (pipeline.depth, pipeline.keep, pipeline.rounds) == (1000, 100, 5)
    assert isinstance(pipeline.reranker, CrossEncoderReranker) and isinstance(
        pipeline.reader, SeqReader
    )
    assert (
        isinstance(pipeline.disambiguator, SeqDisambiguator) and pipeline.disambiguator.beams == 1
    )
    assert isinstance(pipeline.verifier, LMVerifier) and pipeline.verifier.threshold == -5.0


def test_thresholding_and_votes(tmp_path: Path, models: dict[str, str]) -> None:
    body = f'reranker.model = "{models["cross"]}"\n'
    body += f'reader = {{ model = "{models["spans"]}", threshold = 0.1 }}'
    found = system(tmp_path, body)
    assert isinstance(found.answerer, Pipeline) and not found.rewrites
    assert (
        isinstance(found.answerer.reader, ExtractiveReader) and found.answerer.reader.gamma == 0.1
    )
    assert isinstance(found.answerer.reranker, CrossEncoderReranker)
    assert isinstance(found.answerer.disambiguator, PromptCopy) and found.answerer.depth == 100
    voting = system(
        tmp_path,
        f'reader = {{ provider = "vote", models = ["{models["spans"]}", "{models["fid"]}"] }}\n'
        'verifier.provider = "exact-match"',
    )
    assert isinstance(voting.answerer, Pipeline) and isinstance(
        voting.answerer.reader, VotingReader
    )
    assert isinstance(voting.answerer.verifier, EMVerifier)
    assert system(
        tmp_path, f'reader.model = "{models["fid"]}"\ndisambiguator.provider = "prompt-copy"'
    ).rewrites


def test_disambiguate_first(tmp_path: Path, models: dict[str, str]) -> None:
    reader = f'reader.model = "{models["spans"]}"\n'
    detector = f'detector.model = "{models["ambiguity"]}"\n'
    rewriter = f'rewriter.model = "{models["first"]}"\n'
    first = system(tmp_path, reader + detector + rewriter)
    assert isinstance(first.answerer, DisambiguateFirst)
    with pytest.raises(BadConfig, match=r"\[detector\] and \[rewriter\]"):
        system(tmp_path, reader + rewriter)
    with pytest.raises(BadConfig, match="whichsense predict"):
        load(written(tmp_path, reader + detector + rewriter))


def test_every_stage_may_be_named(tmp_path: Path, models: dict[str, str]) -> None:
    body = f'''
        reader.model = "{models["spans"]}"
        detector.provider = "answers"
        clarifier.model = "{models["asks"]}"
        summarizer.model = "{models["tells"]}"
    '''
    pipeline = system(tmp_path, body).answerer
    assert isinstance(pipeline, Pipeline)
    assert isinstance(pipeline.detector, AnswersDetector)
    assert isinstance(pipeline.clarifier, SeqClarifier)
    assert isinstance(pipeline.summarizer, SeqSummarizer)


@pytest.mark.parametrize(
    ("body", "error", "told"),
    [
        ("depth = 3", MissingStage, "needs a reader"),
        ('reader.modle = "x"', BadConfig, "unknown key 'reader.modle'. Did you mean 'model'"),
        ('reader.model = "nowhere"', BadConfig, "'nowhere' holds no trained model"),
        ('reader.provider = "llama"', BadConfig, "no provider 'llama'"),
        ("reader = 3", BadConfig, "'reader' must be a table"),
        ("reader = {}", BadConfig, "[reader] needs a model"),
    ],
)
def test_mistakes_are_told(body: str, error: type[Exception], told: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=told.replace("[", r"\[")):
        system(tmp_path, body)


SHIPPED = Path(__file__).parents[1] / "systems"


@pytest.mark.parametrize("path", sorted(SHIPPED.rglob("*.toml")), ids=lambda path: path.stem)
def test_shipped_systems_name_what_recipes_train(path: Path) -> None:
    """Every model that a shipped system names is what a shipped recipe leaves, and its settings exist."""
    if path == SHIPPED / "all.toml":
        listed = load_as(LeaderboardConfig, path)
        named = {Path(entry.file).name for entry in listed.systems}
        # A language model needs a server, so no comparison runs it unasked.
        # The shallow one is there to be compared on the page.
        apart = {"all.toml", "llm.toml", "compact-shallow.toml"}
        assert named == {other.name for other in SHIPPED.glob("*.toml")} - apart
    if path.stem.startswith("all"):  # a comparison
        return
    table = load_settings(path)
    assert table.about
    recipes = set()
    for file in (SHIPPED.parent / "recipes").glob("*.toml"):
        variants = tomllib.loads(file.read_text(encoding="utf-8")).get("variants", {})
        recipes |= {file.stem, *variants}
    for model in (
        stage["model"] for stage in dataclasses.asdict(table).values() if isinstance(stage, dict)
    ):
        assert not model or (
            Path(model).parent.name in recipes
            and Path(model).parts[0] == "runs"
            and Path(model).name == "model"
        )


def test_compact_for_all_stages_or_for_one(tmp_path: Path, models: dict[str, str]) -> None:
    whole = load()
    assert isinstance(whole, Pipeline) and isinstance(whole.reader, CompactReader)
    assert isinstance(whole.reranker, CompactReranker) and whole.disambiguator is not None
    mixed = system(
        tmp_path, f'provider = "compact"\nkeep = 7\nreader.model = "{models["spans"]}"'
    ).answerer
    assert (
        isinstance(mixed, Pipeline)
        and isinstance(mixed.reader, ExtractiveReader)
        and mixed.keep == 7
    )
    assert isinstance(mixed.reranker, CompactReranker)
    one = system(
        tmp_path, f'reader.model = "{models["spans"]}"\nreranker.provider = "compact"'
    ).answerer
    assert (
        isinstance(one, Pipeline)
        and isinstance(one.reranker, CompactReranker)
        and one.verifier is None
    )


def test_another_compact_model(tmp_path: Path) -> None:
    table = dataclasses.replace(load_settings("compact"), weights=str(tmp_path))
    found = build(table, sample.index(), FOR_BENCHMARKS).answerer
    assert isinstance(found, Pipeline) and isinstance(found.reader, CompactReader)
    assert found.reader.compact.folder == tmp_path
    (tmp_path / "selected.json").write_text("{}")
    before = describe(table, sample.index())
    assert before["compact"] == str(tmp_path) and before != describe(
        load_settings("compact"), sample.index()
    )
    (tmp_path / "selected.json").write_text('{"step": 2}')
    assert before != describe(table, sample.index())  # trained anew, in the same place


def test_unknown_provider() -> None:
    with pytest.raises(BadConfig, match="--system FILE"):
        load_settings("seq2seq")


def test_description_changes_with_the_training_run(tmp_path: Path, models: dict[str, str]) -> None:
    found = system(tmp_path, f'reader.model = "{models["spans"]}"')
    before = describe(found.settings, sample.index())
    assert before == describe(found.settings, sample.index())
    (Path(models["spans"]) / "selected.json").write_text("{}")
    assert before != describe(found.settings, sample.index())


def test_description_names_the_compact_model_where_it_is_asked_for(
    tmp_path: Path, models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = system(
        tmp_path, f'reader.model = "{models["spans"]}"\nreranker.provider = "compact"'
    ).settings
    without = system(tmp_path, f'reader.model = "{models["spans"]}"').settings
    before = describe(one, sample.index())
    assert before["compact"] == encoder.WEIGHTS.name and "compact" not in describe(
        without, sample.index()
    )
    monkeypatch.setattr(encoder, "WEIGHTS", Path("compact-99"))
    assert before != describe(one, sample.index())


def test_prose_does_not_decide_what_a_system_is() -> None:
    table = load_settings("compact")
    told = dataclasses.replace(table, about="Reads twice.")
    assert describe(table, sample.index()) == describe(told, sample.index())
