"""The human evaluation of readings: a form is drawn, people fill it in, and their marks become a table."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from itertools import chain, combinations, product, starmap
from operator import add
from pathlib import Path
from typing import Any, Literal, get_args

from whichsense import types
from whichsense.errors import BadInput
from whichsense.files import as_json, read_json, write_atomically
from whichsense.jobs.limits import Progress, silent
from whichsense.lab.datasets import Question
from whichsense.lab.evaluation.prediction import Journal, questions_of
from whichsense.lab.evaluation.results import Interval, Measures
from whichsense.lab.metrics.statistics import area_under_curve, kappa
from whichsense.lab.provenance import provenance
from whichsense.protocols import Answerer
from whichsense.text.answers import same_answer
from whichsense.text.words import sentence_at
from whichsense.types import AskedAgain, Reading, frozen

# The form that people fill in: questions, the readings that were shown for them, and four marks for
# each reading.

_SCHEMA = 2
"""Of a form in JSON. Schema 1 said `several`, true or false, in place of `draw`; other numbers are refused."""

Draw = Literal["several", "all", "ambiguous"]
"""Which questions are in a form: those that got several readings, all, or all that annotators call ambiguous."""

DRAWS: tuple[Draw, ...] = get_args(Draw)

RUBRIC = {
    "answer": "The answer is right for the question as asked, under at least one plausible reading, and the evidence "
    "supports it.",
    "true": "Whoever asks exactly the rewrite would rightly be given exactly this answer: what the rewrite adds (year, "
    "work, place, sport, role) belongs to this answer.",
    "apart": "The rewrite does not equally call for another listed answer.",
    "fluent": "A person could have written the rewrite. A trailing “, according to …” is not fluent; lower-case names "
    "are no fault.",
}
"""When a mark of a reading with a rewrite is yes."""

WITHOUT_REWRITE = {
    "answer": RUBRIC["answer"],
    "true": "Label or source, title and sentence do not mislead about what this is an answer to.",
    "apart": "A reader can tell when this answer applies and the others do not.",
    "fluent": "The label or source reads as a person would write it; yes if there is neither.",
}
"""When a mark of a reading with a label, a source or neither is yes."""


@frozen
class Marks:
    """What one reader says about a reading; None where nothing was said yet."""

    answer: bool | None = None
    true: bool | None = None
    apart: bool | None = None
    fluent: bool | None = None

    @property
    def missing(self) -> list[str]:
        """The marks that were not given."""
        return [mark for mark in RUBRIC if getattr(self, mark) is None]

    def labels(self) -> dict[str, bool]:
        """Return the four marks, and what follows from them.

        >>> Marks(answer=True, true=True, apart=True, fluent=False).labels()["good"]
        False
        """
        labels = {mark: bool(getattr(self, mark)) for mark in RUBRIC}
        correct = labels["answer"] and labels["true"] and labels["apart"]
        labels["correct"] = correct
        labels["good"] = correct and labels["fluent"]
        return labels


LABELS = tuple(Marks().labels())
"""The names of all labels, in the order of the table."""


@frozen
class ShownReading:
    """A reading as a person sees it, with the system's own opinion of it and the person's marks."""

    rewrite: str
    """The question as it was asked, if there is no rewrite."""
    answer: str
    source: str
    """What tells the answer apart, its label or where it comes from, if there is no rewrite."""
    title: str
    sentence: str
    """The sentence of the evidence that holds the answer, or the passage whose title is the answer; empty where there
    is no evidence."""
    start: int
    end: int
    """Where the answer stands in the sentence; the same number twice if it does not."""
    confidence: float
    asked_again: AskedAgain | None
    marks: Marks = Marks()


@frozen
class JudgedQuestion:
    """A question of the form."""

    id: str
    question: str
    gold: tuple[tuple[str, ...], ...]
    """The readings that annotators gave, each as the names of its answer: those of the annotation with the most. The
    page does not show them. In forms of schema 1: the distinct answers of all annotations."""
    readings: tuple[ShownReading, ...]


@frozen
class Form:
    """A form: empty as it is drawn, or filled in by one reader."""

    dataset: str
    seed: int
    draw: str
    """One of `DRAWS`."""
    available: int
    """Questions that could be drawn: those of the dataset, or the ambiguous ones among them."""
    asked: int
    """Questions that were drawn and asked, in the form or not."""
    one_reading: int
    no_reading: int
    """How many of the asked questions got a single reading, and how many none."""
    questions: tuple[JudgedQuestion, ...]
    reader: str = ""
    """Who filled it in."""
    provenance: Mapping[str, Any] = field(default_factory=dict, metadata={"json": False})

    @property
    def shown(self) -> int:
        """How many readings are to be marked."""
        return sum(len(question.readings) for question in self.questions)

    @property
    def gold(self) -> int:
        """How many readings annotators gave to the questions; 0 where the questions were not drawn for counting them.

        Only ambiguous questions that were drawn before they were asked can tell how many readings are missing.
        """
        if self.draw != "ambiguous":
            return 0
        return sum(len(question.gold) for question in self.questions)

    def to_json(self) -> dict[str, Any]:
        """Return the form as JSON values, with the rubric for those who fill it in by hand."""
        fields: dict[str, Any] = {
            "schema": _SCHEMA,
            "reader": self.reader,
            "rubric": {"with a rewrite": RUBRIC, "without one": WITHOUT_REWRITE},
            **types.encode(self),
            "provenance": dict(self.provenance),
        }
        return fields

    @classmethod
    def from_json(cls, value: Any) -> Form:
        """Read what `to_json` wrote. Raises `BadInput` where a field is missing or wrong."""
        schema = value.get("schema") if isinstance(value, Mapping) else None
        if schema not in (1, _SCHEMA):
            raise BadInput(f"This is not a form of schema {_SCHEMA} or 1 (its schema: {schema!r}).")
        fields = dict(value)
        if schema == 1:
            fields["draw"] = "several" if fields.pop("several", None) else "all"
        if fields.get("draw") not in DRAWS:
            raise BadInput(f"'draw' must be one of: {', '.join(DRAWS)}.")
        provenance = fields.pop("provenance", {})
        own = {name: one for name, one in fields.items() if name not in ("schema", "rubric")}
        return replace(types.decode(cls, own), provenance=provenance)


def load_form(path: str | Path) -> Form:
    """Read a form, filled in or not."""
    value = read_json(path)
    try:
        return Form.from_json(value)
    except BadInput as error:
        raise BadInput(
            f"'{path}' is not a form. {error} Draw one with: whichsense evaluate readings --dataset NAME --out {path}; "
            "a mark is true or false."
        ) from None


# Draw questions by a seed, ask them, and write the form for people to fill in.


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
    """Ask questions of a dataset in an order that the seed decides, and write `out`.

    Of the ambiguous questions, or of all, the first are taken, whatever they get; with "several" it goes on until so
    many questions got several readings. Until the form is written the readings lie in `out.partial`, from which a run
    that was killed or stopped resumes. `system` says what answers; resuming with another one is refused.
    """
    out = Path(out)
    if out.suffix != ".json":
        raise BadInput(f"The form is a JSON file; '{out}' is not. Give --out FORM.json")
    if out.exists():
        raise BadInput(f"'{out}' exists and may hold marks. Remove it, or give another --out.")
    every, paths = questions_of(dataset, data_dir)
    if draw == "ambiguous":
        every = [question for question in every if question.is_ambiguous]
        if not every:
            raise BadInput(
                f"'{dataset}' has no question to which all annotators gave several answers. Give --draw all."
            )
    least = 2 if draw == "several" else 0  # readings of a question in the form
    about = {"system": dict(system or {}), "dataset": dataset, "seed": seed}
    with Journal(out, about, draw_questions(every, seed)) as journal:
        _ask_until(questions, least, answerer, journal, progress)
    chosen, counts = _choose(questions, least, journal)
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
    write_atomically(out, as_json(form.to_json(), indent=1))
    journal.finish()
    return form


def draw_questions(questions: list[Question], seed: int) -> list[Question]:
    """Return all questions in an order that the seed alone decides."""
    drawn = list(questions)
    random.Random(seed).shuffle(drawn)
    return drawn


def _ask_until(
    wanted: int, least: int, answerer: Answerer, journal: Journal, progress: Progress
) -> None:
    """Ask question by question until enough of them go into the form, or none is left."""
    taken = len(_choose(wanted, least, journal)[0])

    def report(done: float | None, count: int) -> None:
        # The share of the form, not of the dataset.
        progress(min(1.0, taken / wanted), count)

    if taken >= wanted:
        return
    for (question,) in journal.batches(1, report):
        case = answerer.run([question.text])[0]
        readings = tuple(show_reading(one, question.text) for one in case.readings)
        journal.add(question, {"readings": types.encode(readings)})
        taken += len(readings) >= least
        if taken >= wanted:
            break
    report(1.0, sum(1 for _ in journal.answered()))


def _choose(wanted: int, least: int, journal: Journal) -> tuple[list[JudgedQuestion], Counter[str]]:
    """Take the form's questions; count those asked until then that got several readings, one, or none."""
    chosen: list[JudgedQuestion] = []
    counts: Counter[str] = Counter()
    for question, record in journal.answered():
        if len(chosen) == wanted:
            break
        shown = tuple(types.decode(ShownReading, fields) for fields in record["readings"])
        counts[("none", "one", "several")[min(len(shown), 2)]] += 1
        if len(shown) >= least:
            gold = _gold_readings(question)
            chosen.append(JudgedQuestion(question.id, question.text, gold, shown))
    return chosen, counts


def _gold_readings(question: Question) -> tuple[tuple[str, ...], ...]:
    """Return the answers' names of the first annotation with the most readings; nothing where no answer is known."""
    sets = question.answer_sets
    return max(sets, key=len) if sets else ()


def show_reading(reading: Reading, asked: str) -> ShownReading:
    """Show a reading of the question that was asked, with the sentence of the evidence that holds its answer."""
    title = sentence = ""
    start = end = 0
    if reading.evidence:
        span = reading.evidence[0]
        title, sentence = span.passage.title, span.passage.text
        # An answer that is the title has no place in the text: the whole passage is shown.
        if span.start != span.end:
            first, last = sentence_at(sentence, span.start)
            # A span may go on over the end of its sentence.
            sentence = sentence[first : max(last, span.end)]
            start, end = span.start - first, span.end - first
    source = reading.told_apart(asked) if reading.question == asked else ""
    return ShownReading(
        reading.question,
        reading.answer,
        source,
        title,
        sentence,
        start,
        end,
        reading.confidence,
        reading.asked_again,
    )


# Filled forms of several readers, checked: the same form, and every mark given.

Labels = dict[str, bool]
"""Of one reader about one reading: by the name of the label."""


@frozen
class Judged:
    """One form with the labels of every reader."""

    form: Form
    readers: tuple[str, ...]
    labels: tuple[tuple[tuple[Labels, ...], ...], ...]
    """By reader, question and reading, in the order of the form."""


def load_judged(paths: Sequence[Path]) -> Judged:
    """Read the filled forms. Raises `BadInput` where they are of different forms or a mark is missing."""
    if not paths:
        raise BadInput("Give at least one filled form.")
    forms = [load_form(path) for path in paths]
    for path, form in zip(paths, forms, strict=True):
        _refuse_another_form(forms[0], paths[0], form, path)
        _refuse_missing_marks(form, path)
    labels = tuple(
        tuple(
            tuple(reading.marks.labels() for reading in question.readings)
            for question in form.questions
        )
        for form in forms
    )
    return Judged(forms[0], _name_readers(forms, paths), labels)


def _refuse_another_form(first: Form, first_path: Path, form: Form, path: Path) -> None:
    expected = _without_marks(first)
    given = _without_marks(form)
    if given == expected:
        return
    advice = "Give only forms that were filled in from the same FORM.json."
    for number, (one, other) in enumerate(zip(expected, given, strict=False), 1):
        if one != other:
            raise BadInput(
                f"'{path}' is not the form of '{first_path}': question {number} ('{other.question}') or its readings "
                f"differ. {advice}"
            )
    raise BadInput(
        f"'{path}' is not the form of '{first_path}': it has {len(given):,} questions, not {len(expected):,}. {advice}"
    )


def _without_marks(form: Form) -> list[JudgedQuestion]:
    """Return the questions and readings that were to be judged."""
    return [
        replace(
            question,
            readings=tuple([replace(reading, marks=Marks()) for reading in question.readings]),
        )
        for question in form.questions
    ]


def _refuse_missing_marks(form: Form, path: Path) -> None:
    if not form.shown:
        raise BadInput(f"'{path}' shows no reading: there is nothing to count.")
    places = [
        f"'{mark}' of question {number}, reading {rank}"
        for number, question in enumerate(form.questions, 1)
        for rank, reading in enumerate(question.readings, 1)
        for mark in reading.marks.missing
    ]
    if places:
        total = len(RUBRIC) * form.shown
        raise BadInput(
            f"'{path}': {len(places):,} of {total:,} marks are not given, first {places[0]}. Give each true or false."
        )


def _name_readers(forms: Sequence[Form], paths: Sequence[Path]) -> tuple[str, ...]:
    """Return each reader's name, or the file's; with a number where two are the same."""
    names: list[str] = []
    for form, path in zip(forms, paths, strict=True):
        name = form.reader or path.stem
        while name in names:
            name = f"{name} ({len(names) + 1})"
        names.append(name)
    return tuple(names)


# From the readers' marks to numbers: shares with intervals, agreement, and how well scores predict
# the marks.

_BANDS = (0.5, 0.3, 0.15, 0.0)
"""The lowest confidence of each band."""

JUDGED_F = ("precision", "recall", "judged_f")
"""Counted where the form has gold readings to find."""

Columns = dict[str, list[float]]
"""Numbers to sum, one for each question."""


@frozen
class Row:
    """The share of the shown readings that have each label, by one reader or by the mean of all."""

    name: str
    shown: int
    metrics: Mapping[str, Any]
    """By label; the correct readings of a question; and those of `JUDGED_F`."""
    intervals: Mapping[str, Interval]


@frozen
class Agreement:
    """Of two readers; of more, the mean over every two."""

    equal: float
    """The share of readings with the same label."""
    kappa: float


@frozen
class Area:
    """How well a score predicts that a reading is correct: areas under the curve over all readers' marks."""

    readings: int
    """Readings that have the score."""
    all: float | None
    right_answer: float | None
    """Only where the reader finds the answer right."""


@frozen
class Band:
    """The readings whose confidence lies between two bounds; shares are the mean over readers."""

    low: float
    high: float | None
    shown: int
    metrics: Mapping[str, float]


@frozen
class ReadingsResult:
    """The table of a human evaluation."""

    dataset: str
    seed: int
    draw: str
    questions: int
    shown: int
    gold: int
    """Readings that annotators gave; 0 where judged F is not counted."""
    asked: int
    one_reading: int
    no_reading: int
    readers: tuple[Row, ...]
    mean: Row
    agreement: Mapping[str, Agreement]
    """By label; empty with a single reader."""
    areas: Mapping[str, Area]
    """By score: confidence; asked_again, the own answer's probability when the rewrite is asked."""
    bands: tuple[Band, ...]
    provenance: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_forms(paths: Sequence[str | Path]) -> ReadingsResult:
    """Return the table of one or several readers' filled forms of the same form."""
    files = [Path(path) for path in paths]
    judged = load_judged(files)
    form = judged.form
    by_reader = [_columns(form, labels) for labels in judged.labels]
    means = {
        name: [
            sum(own) / len(by_reader) for own in zip(*(one[name] for one in by_reader), strict=True)
        ]
        for name in by_reader[0]
    }
    return ReadingsResult(
        dataset=form.dataset,
        seed=form.seed,
        draw=form.draw,
        questions=len(form.questions),
        shown=form.shown,
        gold=form.gold,
        asked=form.asked,
        one_reading=form.one_reading,
        no_reading=form.no_reading,
        readers=tuple(map(_make_row, judged.readers, by_reader)),
        mean=_make_row("mean", means),
        agreement=_agreement(judged),
        areas=_areas(judged),
        bands=tuple(_bands(judged)),
        provenance=provenance(files, form.seed) | {"form": dict(form.provenance)},
    )


def _columns(form: Form, labels: Sequence[Sequence[Labels]]) -> Columns:
    """Count for each question the readings shown and those with each label; with gold, what judged F is made of."""
    columns = {"shown": [float(len(readings)) for readings in labels]}
    for name in LABELS:
        columns[name] = [float(sum(reading[name] for reading in own)) for own in labels]
    if form.gold:
        columns["gold"] = [float(len(question.gold)) for question in form.questions]
        columns["covered"] = [
            float(_covered(question, own))
            for question, own in zip(form.questions, labels, strict=True)
        ]
        columns["twice"] = [2 * count for count in columns["correct"]]
        columns["together"] = list(map(add, columns["shown"], columns["gold"]))
    return columns


def _covered(question: JudgedQuestion, labels: Sequence[Labels]) -> int:
    """Count the gold readings one of whose names means the same as a correct answer."""
    readings = zip(question.readings, labels, strict=True)
    correct = [reading.answer for reading, given in readings if given["correct"]]
    return sum(any(starmap(same_answer, product(correct, names))) for names in question.gold)


def _make_row(name: str, columns: Columns) -> Row:
    measures = Measures(columns["shown"], **columns)
    for label in LABELS:
        measures.ratio(label, denominator="shown")
    measures.ratio("correct_per_question", "correct")
    if "gold" in columns:
        measures.ratio("precision", "correct", "shown")
        measures.ratio("recall", "covered", "gold")
        measures.ratio("judged_f", "twice", "together")
    return Row(name, int(sum(columns["shown"])), measures.metrics, measures.intervals)


def _flatten(judged: Judged) -> list[list[Labels]]:
    """Return the labels on all readings of the form, one after the other, by reader."""
    return [list(chain.from_iterable(labels)) for labels in judged.labels]


def _agreement(judged: Judged) -> dict[str, Agreement]:
    pairs = list(combinations(_flatten(judged), 2))
    table = {}
    for name in LABELS if pairs else ():
        both = [
            ([labels[name] for labels in one], [labels[name] for labels in other])
            for one, other in pairs
        ]
        equal = [sum(map(bool.__eq__, *own)) / len(own[0]) for own in both]
        kappas = [kappa(*own) for own in both]
        table[name] = Agreement(sum(equal) / len(pairs), sum(kappas) / len(pairs))
    return table


def _areas(judged: Judged) -> dict[str, Area]:
    scores: dict[str, Callable[[ShownReading], float | None]] = {
        "confidence": lambda reading: reading.confidence,
        "asked_again": lambda reading: reading.asked_again.own if reading.asked_again else None,
    }
    readings, flat = _shown_readings(judged), _flatten(judged)
    return {name: _area(list(map(of, readings)), flat) for name, of in scores.items()}


def _area(scores: Sequence[float | None], flat: Sequence[Sequence[Labels]]) -> Area:
    """Return the areas of one score over the readings that have it, each once for every reader."""
    judged = [
        (labels, score)
        for reader in flat
        for labels, score in zip(reader, scores, strict=True)
        if score is not None
    ]

    def area(own: Sequence[tuple[Labels, float]]) -> float | None:
        return area_under_curve(
            [labels["correct"] for labels, _ in own], [score for _, score in own]
        )

    right = [(labels, score) for labels, score in judged if labels["answer"]]
    return Area(len(judged) // len(flat), area(judged), area(right))


def _shown_readings(judged: Judged) -> list[ShownReading]:
    return [one for question in judged.form.questions for one in question.readings]


def _bands(judged: Judged) -> list[Band]:
    """Return bands of confidence that hold a reading, the surest first."""
    readings = _shown_readings(judged)
    flat = _flatten(judged)
    bands = []
    # The lowest band has no lower bound: some verifiers score by log probabilities.
    for low, high in zip(_BANDS, (None, *_BANDS), strict=False):
        inside = [
            place
            for place, reading in enumerate(readings)
            if (high is None or reading.confidence < high)
            and (reading.confidence >= low or low == _BANDS[-1])
        ]
        if inside:
            bands.append(Band(low, high, len(inside), _mean_shares(flat, inside)))
    return bands


def _mean_shares(flat: Sequence[Sequence[Labels]], places: Sequence[int]) -> dict[str, float]:
    """Return the share of these readings with each label, over all readers."""
    own = [labels[place] for labels in flat for place in places]
    return {name: sum(one[name] for one in own) / len(own) for name in LABELS}
