"""Draw questions by a seed, ask them, and write the form for people to fill in."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense import records
from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.evaluation.journal import Journal
from whichsense.evaluation.predict import questions_of
from whichsense.evaluation.readings.form import Draw, Form, JudgedQuestion, ShownReading
from whichsense.evaluation.readings.page import build_form_page
from whichsense.files import as_json, write_atomically
from whichsense.jobs.progress import Progress, silent
from whichsense.protocols import Answerer
from whichsense.provenance import provenance
from whichsense.text.sentences import sentence_at
from whichsense.types import Reading, Span


@dataclass(frozen=True, slots=True)
class _Goal:
    """When enough questions were asked."""

    questions: int
    several: bool

    def takes(self, readings: int) -> bool:
        """Whether a question with so many readings goes into the form."""
        return readings > 1 or not self.several


def draw_form(
    answerer: Answerer,
    dataset: str,
    out: str | Path,
    *,
    seed: int,
    questions: int,
    draw: Draw = "ambiguous",
    system: Mapping[str, Any] | None = None,
    data_dir: str | Path | None = None,
    progress: Progress = silent,
) -> Form:
    """Ask questions of a dataset in an order that the seed decides, and write `out` and a page beside it.

    Of the ambiguous questions, or of all, the first are taken, whatever they get; with "several" it goes on until so
    many questions got several readings. Until the form is written the readings lie in `out.partial`, from which a run
    that was killed or stopped resumes. `system` says what answers; resuming with another one is refused.
    """
    out = Path(out)
    if out.suffix != ".json":
        raise BadInput(f"The form is a JSON file; '{out}' is not. Give --out FORM.json")
    if out.exists():
        raise BadInput(
            f"'{out}' exists and may hold marks. Remove it, or give another --out."
        )
    every, paths = questions_of(dataset, data_dir)
    if draw == "ambiguous":
        every = [question for question in every if question.is_ambiguous]
        if not every:
            raise BadInput(
                f"'{dataset}' has no question to which all annotators gave several answers. Give --draw all."
            )
    goal = _Goal(questions, several=draw == "several")
    about = {"system": dict(system or {}), "dataset": dataset, "seed": seed}
    with Journal(out, about, draw_questions(every, seed)) as journal:
        _ask_until(goal, answerer, journal, progress)
    chosen, counts = _choose(goal, journal)
    origin = provenance(paths, seed) | {"system": about["system"]}
    form = Form(
        dataset=dataset,
        seed=seed,
        draw=draw,
        available=len(every),
        asked=sum(counts.values()),
        one_reading=counts["one"],
        no_reading=counts["none"],
        questions=tuple(chosen),
        provenance=origin,
    )
    # The form comes last: where it is, the page is, too.
    page = build_form_page(form, out.stem)
    write_atomically(out.with_suffix(".html"), page)
    write_atomically(out, as_json(form.to_json(), indent=1))
    journal.finish()
    return form


def draw_questions(questions: list[Question], seed: int) -> list[Question]:
    """All questions in an order that the seed alone decides."""
    drawn = list(questions)
    random.Random(seed).shuffle(drawn)
    return drawn


def _ask_until(
    goal: _Goal, answerer: Answerer, journal: Journal, progress: Progress
) -> None:
    """Ask question by question until enough of them go into the form, or none is left."""
    taken = len(_choose(goal, journal)[0])

    def report(done: float | None, count: int) -> None:
        # The share of the form, not of the dataset.
        progress(min(1.0, taken / goal.questions), count)

    if taken >= goal.questions:
        return
    for batch in journal.batches(1, report):
        question = batch[0]
        case = answerer.run([question.text])[0]
        readings = tuple(show_reading(one, question.text) for one in case.readings)
        journal.add(question, {"readings": records.encode(readings)})
        taken += goal.takes(len(readings))
        if taken >= goal.questions:
            break
    report(1.0, sum(1 for _ in journal.answered()))


def _choose(
    goal: _Goal, journal: Journal
) -> tuple[list[JudgedQuestion], dict[str, int]]:
    """The questions of the form, and how many of those asked until then got several readings, one, or none."""
    chosen: list[JudgedQuestion] = []
    counts = {"none": 0, "one": 0, "several": 0}
    for question, record in journal.answered():
        if len(chosen) == goal.questions:
            break
        shown = []
        for fields in record["readings"]:
            shown.append(records.decode(ShownReading, fields))
        kind = ("none", "one", "several")[min(len(shown), 2)]
        counts[kind] += 1
        if goal.takes(len(shown)):
            gold = _gold_readings(question)
            judged = JudgedQuestion(question.id, question.text, gold, tuple(shown))
            chosen.append(judged)
    return chosen, counts


def _gold_readings(question: Question) -> tuple[tuple[str, ...], ...]:
    """The answers' names of the first annotation with the most readings; nothing where no answer is known."""
    sets = question.answer_sets
    return max(sets, key=len) if sets else ()


def show_reading(reading: Reading, asked: str) -> ShownReading:
    """A reading of the question that was asked, with the sentence in which its answer stands."""
    title = sentence = ""
    start = end = 0
    if reading.evidence:
        best = reading.evidence[0]
        title = best.passage.title
        sentence, start, end = _cut_sentence(best)
    return ShownReading(
        rewrite=reading.question,
        answer=reading.answer,
        source=reading.told_apart(asked) if reading.question == asked else "",
        title=title,
        sentence=sentence,
        start=start,
        end=end,
        confidence=reading.confidence,
        asked_again=reading.asked_again,
    )


def _cut_sentence(span: Span) -> tuple[str, int, int]:
    """The sentence that holds a span, and where the span stands in it; the whole passage if the answer is its title."""
    text = span.passage.text
    if span.start == span.end:
        return text, 0, 0
    start, end = sentence_at(text, span.start)
    # A span may go on over the end of its sentence.
    end = max(end, span.end)
    return text[start:end], span.start - start, span.end - start
