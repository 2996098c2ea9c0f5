"""A form is drawn by its seed, resumes, survives the way to disk and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from small_forms import Numbered, write_dataset

from whichsense.cli.evaluate import command
from whichsense.errors import BadInput
from whichsense.lab.evaluation.judging import Form, draw_form, load_form, show_reading
from whichsense.types import Passage, Reading, Span


def draw(folder: Path, name: str = "form.json", seed: int = 13, **options: Any) -> Form:
    dataset = write_dataset(folder / "questions.json", 40)
    options = {"draw": "several"} | options
    return draw_form(Numbered(), str(dataset), folder / name, seed=seed, **options)


def ids(form: Form) -> list[str]:
    return [question.id for question in form.questions]


def test_the_seed_decides_what_is_drawn(tmp_path: Path) -> None:
    one = draw(tmp_path, "one.json", seed=1, questions=5)
    again = draw(tmp_path, "again.json", seed=1, questions=5)
    more = draw(tmp_path, "more.json", seed=1, questions=9)
    other = draw(tmp_path, "other.json", seed=2, questions=5)
    assert one.questions == again.questions == more.questions[:5]
    assert ids(one) != ids(other)
    assert ids(one) != sorted(ids(one))


def test_only_questions_with_several_readings_are_taken_and_all_are_counted(tmp_path: Path) -> None:
    form = draw(tmp_path, questions=6)
    assert len(form.questions) == 6
    assert all(len(question.readings) > 1 for question in form.questions)
    assert form.asked == 6 + form.one_reading + form.no_reading
    everything = draw(tmp_path, "everything.json", questions=100)
    counts = (everything.asked, everything.one_reading, everything.no_reading)
    assert (len(everything.questions), *counts) == (20, 40, 10, 10)


def test_all_questions_are_taken_whatever_they_get(tmp_path: Path) -> None:
    form = draw(tmp_path, questions=12, draw="all")
    assert len(form.questions) == form.asked == 12
    assert {len(question.readings) for question in form.questions} == {0, 1, 2, 3}


def test_ambiguous_questions_are_drawn_before_they_are_asked(tmp_path: Path) -> None:
    dataset = str(write_dataset(tmp_path / "questions.json", 40))
    answerer = Numbered()
    form = draw_form(answerer, dataset, tmp_path / "a.json", seed=13, questions=9)
    assert form.draw == "ambiguous" and form.available == 14
    assert len(answerer.asked) == form.asked == len(form.questions) == 9
    assert all(int(name[1:]) % 3 == 0 for name in ids(form))
    assert {len(question.readings) for question in form.questions} == {0, 1, 2, 3}
    every = draw(tmp_path, "every.json", draw="ambiguous", questions=100)
    assert every.questions[:9] == form.questions and len(every.questions) == 14
    assert (every.one_reading, every.no_reading) == (3, 4)
    other = draw(tmp_path, "other.json", draw="ambiguous", questions=9, seed=14)
    assert ids(other) != ids(form)


def test_gold_readings_are_of_the_first_annotation_with_the_most(tmp_path: Path) -> None:
    form = draw(tmp_path, draw="ambiguous", questions=2)
    for question in form.questions:
        name = f"a{question.id[1:]}"
        assert question.gold == tuple((f"{name}-{rank}", f"alias {rank}") for rank in range(3))
    assert form.gold == 6
    # Questions that were chosen by what they got cannot tell what is missing.
    assert draw(tmp_path, "several.json", questions=2).gold == 0


def test_a_dataset_without_ambiguous_questions(tmp_path: Path) -> None:
    dataset = str(write_dataset(tmp_path / "questions.json", 40))
    rows = [row for row in json.loads(Path(dataset).read_text()) if row["id"] == "q1"]
    Path(dataset).write_text(json.dumps(rows))
    with pytest.raises(BadInput, match="all annotators gave several"):
        draw_form(Numbered(), dataset, tmp_path / "a.json", seed=1, questions=1)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    form = draw(tmp_path, questions=4, seed=3)
    assert load_form(tmp_path / "form.json") == form
    question = form.questions[0]
    shown = question.readings[1]
    assert shown.sentence == "It was Ann 1 who came."
    assert shown.sentence[shown.start : shown.end] == shown.answer == "Ann 1"
    assert shown.asked_again is not None and shown.asked_again.own == 0.9
    assert question.readings[0].asked_again is None
    assert shown.marks.missing == ["answer", "true", "apart", "fluent"]
    assert form.provenance["seed"] == 3
    assert list(form.provenance["data"]) == ["questions.json"]


def test_a_title_that_is_the_answer_is_shown_with_its_passage() -> None:
    passage = Passage("p", "Dune", "It is a novel. It won a prize.")
    shown = show_reading(Reading("Which?", "Dune", (Span(passage, 0, 0),)), "Which?")
    assert (shown.title, shown.sentence) == ("Dune", passage.text)
    assert shown.start == shown.end
    without = show_reading(Reading("Which?", "Dune", source="A list"), "Which?")
    assert (without.title, without.sentence) == ("", "")
    assert without.source == "from “A list”"
    labelled = show_reading(Reading("Which?", "Dune", label="of 1965"), "Which?")
    assert labelled.source == "of 1965"
    rewritten = show_reading(Reading("Which of 1965?", "Dune", label="x"), "Which?")
    assert (rewritten.rewrite, rewritten.source) == ("Which of 1965?", "")


def test_progress_is_the_share_of_the_form(tmp_path: Path) -> None:
    shares: list[float | None] = []
    form = draw(tmp_path, questions=3, progress=lambda done, _: shares.append(done))
    assert shares == sorted(shares, key=lambda share: share or 0)
    assert shares[-1] == 1.0 and len(shares) == form.asked


def test_a_run_that_failed_resumes_and_asks_nothing_twice(tmp_path: Path) -> None:
    dataset = str(write_dataset(tmp_path / "questions.json", 40))
    out = tmp_path / "form.json"
    first, second = Numbered(fails_after=7), Numbered()
    with pytest.raises(RuntimeError):
        draw_form(first, dataset, out, seed=13, questions=8, system={"name": "a"})
    assert not out.exists()
    with pytest.raises(BadInput, match="begun by another system"):
        draw_form(second, dataset, out, seed=13, questions=8, system={"name": "b"})
    resumed = draw_form(second, dataset, out, seed=13, questions=8, system={"name": "a"})
    whole = draw(tmp_path, "whole.json", draw="ambiguous", questions=8)
    assert len(first.asked) == 7 and not set(first.asked) & set(second.asked)
    assert len(first.asked) + len(second.asked) == whole.asked
    assert replace(resumed, provenance={}) == replace(whole, provenance={})
    assert not list(tmp_path.glob("*.partial"))


def test_a_form_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    draw(tmp_path, questions=2)
    with pytest.raises(BadInput, match="may hold marks"):
        draw(tmp_path, questions=2)
    with pytest.raises(BadInput, match=r"Give --out FORM\.json"):
        draw(tmp_path, "form.html", questions=2)


def test_forms_of_the_first_schema_are_read(tmp_path: Path) -> None:
    draw(tmp_path, questions=2)
    body = json.loads((tmp_path / "form.json").read_text())
    for several, name in ((True, "several"), (False, "all")):
        old = {key: value for key, value in body.items() if key != "draw"}
        form = Form.from_json(old | {"schema": 1, "several": several})
        assert form.draw == name and form.gold == 0


def test_the_command_draws_from_the_sample(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "form.json"
    arguments = ["readings", "--dataset", "sample/questions", "--questions", "1"]
    arguments += ["--draw", "several"]
    done = CliRunner().invoke(
        command, [*arguments, "--out", str(out), "--json"], catch_exceptions=False
    )
    printed = json.loads(done.stdout.splitlines()[-1])
    form = load_form(out)
    assert printed["readings"] == form.shown > 1
    assert form.provenance["system"]["name"] == "compact"
