"""Rewrites that the evidence itself gives: what stands beside one answer and not beside the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny_compact import exported, scored
from whichsense.models.compact import rewriting, writer
from whichsense.models.compact.rewrite_support import locate, support
from whichsense.models.compact.rewriting import (
    RewriteOptions,
    insert_phrase,
    phrase_rewrites,
    rewrite_answers,
    written,
)
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer_features import Option, key
from whichsense.testing import passage_hit
from whichsense.types import FOR_BENCHMARKS, Candidate

for needed in ("onnx", "onnxruntime", "torch"):
    pytest.importorskip(needed)

HITS = [
    passage_hit(
        "The film of 1984 was directed by David Lynch in Mexico. It rained.", "Dune (1984 film)"
    ),
    passage_hit(
        "It was made again in 2021. Denis Villeneuve directed it in Jordan.", "Dune (2021 film)"
    ),
]
QUESTION = "Who directed the film Dune?"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder: Path = scored(exported(tmp_path_factory.mktemp("compact")))
    return Compact(folder).read_given(QUESTION, HITS)


def questions(scene: Scene, *answers: str) -> list[list[str]]:
    targets = [locate(scene, Candidate(answer, 1.0)) for answer in answers]
    told = [support(scene, one, policy=FOR_BENCHMARKS) for one in targets]
    return [[one.question for one in some] for some in phrase_rewrites(scene, targets, told)]


def test_what_stands_beside_one_answer_tells_it_from_the_other(scene: Scene) -> None:
    lynch, villeneuve = questions(scene, "David Lynch", "Denis Villeneuve")
    assert "Who directed the film Dune (1984 film)?" in lynch
    assert (
        "Who directed the film Dune in 1984?" in lynch
        and "Who directed the film Dune in Mexico?" in lynch
    )
    assert "Who directed the film Dune in Jordan?" in villeneuve
    assert not any("2021" in one or "Jordan" in one for one in lynch)
    assert not any("1984" in one or "Mexico" in one for one in villeneuve)


def test_neither_the_answer_nor_what_is_asked_already(scene: Scene) -> None:
    for some in questions(scene, "David Lynch", "Denis Villeneuve"):
        assert not any("Lynch" in one or "Villeneuve" in one for one in some)
        assert QUESTION not in some
    (mexico, _) = questions(scene, "Mexico", "Jordan")
    assert not any("Mexico" in one for one in mexico)


def test_an_answer_that_stands_nowhere_gives_no_phrase(scene: Scene) -> None:
    assert questions(scene, "nobody at all", "David Lynch")[0] == []


@pytest.mark.parametrize(
    ("question", "title", "rewrite"),
    [
        ("Who wrote dune?", r"Dune (\1)", r"Who wrote dune (\1)?"),
        ("Who made dune?", r"Dune (\emph{1984} film)", r"Who made dune (\emph{1984} film)?"),
        (
            "Who played spider man first?",
            "Spider-Man (2002 film)",
            "Who played spider man (2002 film) first?",
        ),
        ("Who is in AC / DC", "AC/DC (band)", "Who is in AC / DC (band)?"),
        ("Who made airplane! first?", "Airplane! (film)", "Who made airplane! (film) first?"),
        (
            "Who is spider man in Spider-Man?",
            "Spider-Man (film)",
            "Who is spider man in Spider-Man (film)?",
        ),
        ("Who played spiderman?", "Spider-Man (2002 film)", "Who played spiderman?"),
    ],
)
def test_what_is_in_brackets_follows_the_name_as_the_question_spells_it(
    question: str, title: str, rewrite: str
) -> None:
    assert insert_phrase(question, title) == rewrite


def test_a_name_spelt_otherwise_is_explained_and_no_question_is_its_own_rewrite(
    scene: Scene,
) -> None:
    """Also of one so long that the writer writes nothing. İ in lower case is two signs: its name is not found."""
    for name, found in (("Spider-Man", "spider man (2002 film)"), ("İzmir", None)):
        asked = f"who played {name.lower().replace('-', ' ')} {'and who directed it ' * 20}"
        hits = [
            passage_hit("It was directed by David Lynch.", f"{name} (2002 film)"),
            passage_hit("It was directed by Denis Villeneuve.", f"{name} (2012 film)"),
        ]
        own = scene.compact.read_given(asked, hits)
        targets = [
            locate(own, Candidate(answer, 1.0)) for answer in ("David Lynch", "Denis Villeneuve")
        ]
        first, _ = written(
            own, targets, [support(own, one, policy=FOR_BENCHMARKS) for one in targets]
        )
        given = [one.question for one in first.options]
        assert key(asked) not in map(key, given)
        assert found is None or any(found in one for one in given)


def test_readings_take_them(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the writer has nothing better to say."""
    monkeypatch.setattr(writer, "drawn", lambda _, prompts, *__, **___: [[] for _ in prompts])
    answers = [Candidate("David Lynch", 0.6), Candidate("Denis Villeneuve", 0.5)]
    found = rewrite_answers(scene, answers)
    assert len({one.question for one in found}) == 2
    given = questions(scene, "David Lynch", "Denis Villeneuve")
    assert all(one.question in some for one, some in zip(found, given, strict=True))


def test_a_phrase_that_is_drawn_too_counts_as_the_writers(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its words, and has the writer's likelihood."""
    answers = [Candidate("David Lynch", 0.6), Candidate("Denis Villeneuve", 0.5)]
    targets = [locate(scene, answer) for answer in answers]
    told = [support(scene, one, policy=FOR_BENCHMARKS) for one in targets]
    phrase = QUESTION.replace("Dune", "Dune in Mexico")
    drawn = RewriteOptions((Option(phrase.lower(), likely=-0.5),), (phrase.lower(),))
    nothing = RewriteOptions((), ())
    monkeypatch.setattr(rewriting, "draw_rewrites", lambda *_: [drawn, nothing])
    first, second = written(scene, targets, told)
    (both,) = (one for one in first.options if key(one.question) == key(phrase))
    assert both == Option(phrase, likely=-0.5, phrase=False)
    assert first.drawn == drawn.drawn
    assert second.options and all(option.phrase for option in second.options)
