"""--threshold: every command that answers takes it, and refuses what is no probability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from whichsense.cli import main
from whichsense.errors import BadInput
from whichsense.pipeline import Pipeline
from whichsense.testing import (
    FakeClarifier,
    FakeDisambiguator,
    FakeReader,
    FakeRetriever,
    FakeSummarizer,
    FakeVerifier,
    passage_hit,
)
from whichsense.types import FOR_PEOPLE, Case

QUESTION = "Who directed the film Dune?"
HITS = [
    passage_hit("David Lynch directed the film Dune of 1984.", "Dune (1984 film)"),
    passage_hit("In 1984 came a film by David Lynch.", "David Lynch"),
    passage_hit("Denis Villeneuve directed the film of 2021.", "Dune (2021 film)"),
]
ANSWERS = {"1984": "David Lynch", "2021": "Denis Villeneuve"}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command over fakes: Lynch has two thirds of the spans, Villeneuve one."""

    def load(system: str, index: object, **settings: Any) -> Pipeline:
        return Pipeline(
            FakeRetriever(HITS),
            reader=FakeReader(ANSWERS),
            disambiguator=FakeDisambiguator(),
            verifier=FakeVerifier(),
            clarifier=FakeClarifier(),
            summarizer=FakeSummarizer(),
        ).with_threshold(settings["threshold"])

    monkeypatch.setattr("whichsense.systems.load", load)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call


@pytest.mark.parametrize("command", ["ask", "clarify", "explain"])
def test_a_threshold_decides_what_is_shown(command: str, run: Run) -> None:
    shown = []
    for threshold in ("0.1", "0.5"):
        arguments = ("--system", "fakes.toml", "--threshold", threshold)
        status, out, _ = run(command, QUESTION, *arguments)
        assert status == 0
        # The question back names the rewrites, which have the titles.
        shown.append("Villeneuve" in out or "Dune (2021 film)" in out)
    assert shown == [True, False]


@pytest.mark.parametrize("command", ["ask", "clarify", "explain", "chat", "serve"])
@pytest.mark.parametrize("wrong", ["0", "-1", "1.5"])
def test_nonsense_is_refused_with_the_range(command: str, wrong: str, run: Run) -> None:
    question = () if command in ("chat", "serve") else (QUESTION,)
    status, _, err = run(command, *question, "--threshold", wrong)
    assert status == 2 and "0<x<=1" in err


@pytest.mark.parametrize("wrong", [0.0, -1.0, 1.5, float("nan")])
def test_a_policy_refuses_nonsense_with_the_range(wrong: float) -> None:
    with pytest.raises(BadInput, match="more than 0 and at most 1"):
        FOR_PEOPLE.with_threshold(wrong)
    assert FOR_PEOPLE.with_threshold(None) is FOR_PEOPLE
    assert Case("Who?", policy=FOR_PEOPLE.with_threshold(1)).policy.threshold == 1
