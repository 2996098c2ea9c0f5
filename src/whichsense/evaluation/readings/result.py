"""From the readers' marks to numbers: shares with intervals, agreement, and how well scores predict the marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from whichsense.evaluation.readings.form import LABELS, JudgedQuestion, ShownReading
from whichsense.evaluation.readings.marks import Judged, Labels, load_judged
from whichsense.evaluation.scoring.result import Interval, bootstrap_intervals, ratio_of
from whichsense.metrics.agreement import kappa
from whichsense.metrics.detection import area_under_curve
from whichsense.provenance import provenance
from whichsense.text.answers import same_answer

_BANDS = (0.5, 0.3, 0.15, 0.0)
"""The lowest confidence of each band."""

JUDGED_F = ("precision", "recall", "judged_f")
"""Counted where the form has gold readings to find."""

Columns = dict[str, list[float]]
"""Numbers to sum, one for each question."""


@dataclass(frozen=True, slots=True)
class Row:
    """The share of the shown readings that have each label, by one reader or by the mean of all."""

    name: str
    shown: int
    metrics: Mapping[str, float]
    """By label; the correct readings of a question; and those of `JUDGED_F`."""
    intervals: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two readers; of more, the mean over every two."""

    equal: float
    """The share of readings with the same label."""
    kappa: float


@dataclass(frozen=True, slots=True)
class Area:
    """How well a score predicts that a reading is correct: areas under the curve over all readers' marks."""

    readings: int
    """Readings that have the score."""
    all: float | None
    right_answer: float | None
    """Only where the reader finds the answer right."""


@dataclass(frozen=True, slots=True)
class Band:
    """The readings whose confidence lies between two bounds; shares are the mean over readers."""

    low: float
    high: float | None
    shown: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
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
    """The table of one or several readers' filled forms of the same form."""
    files = [Path(path) for path in paths]
    judged = load_judged(files)
    form = judged.form
    by_reader = []
    rows = []
    for name, labels in zip(judged.readers, judged.labels, strict=True):
        columns = _sum_by_question(labels)
        if form.gold:
            columns |= _compare_with_gold(form.questions, labels)
        by_reader.append(columns)
        rows.append(_make_row(name, columns))
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
        readers=tuple(rows),
        mean=_make_row("mean", _mean_columns(by_reader)),
        agreement=_agreement(judged),
        areas=_areas(judged),
        bands=tuple(_bands(judged)),
        provenance=provenance(files, form.seed) | {"form": dict(form.provenance)},
    )


def _sum_by_question(labels: Sequence[Sequence[Labels]]) -> Columns:
    """For each question how many readings have each label, and how many were shown."""
    columns: Columns = {"questions": [], "shown": []}
    for name in LABELS:
        columns[name] = []
    for readings in labels:
        columns["questions"].append(1.0)
        columns["shown"].append(float(len(readings)))
        for name in LABELS:
            count = sum(reading[name] for reading in readings)
            columns[name].append(float(count))
    return columns


def _compare_with_gold(
    questions: Sequence[JudgedQuestion], labels: Sequence[Sequence[Labels]]
) -> Columns:
    """For each question the sums of recall and of judged F."""
    columns: Columns = {"gold": [], "covered": [], "twice": [], "together": []}
    for question, own in zip(questions, labels, strict=True):
        correct = []
        for reading, given in zip(question.readings, own, strict=True):
            if given["correct"]:
                correct.append(reading.answer)
        covered = [names for names in question.gold if _covers(correct, names)]
        columns["gold"].append(float(len(question.gold)))
        columns["covered"].append(float(len(covered)))
        columns["twice"].append(2.0 * len(correct))
        together = len(question.readings) + len(question.gold)
        columns["together"].append(float(together))
    return columns


def _covers(answers: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of the answers means the same as one of the names."""
    for answer in answers:
        if any(same_answer(answer, name) for name in names):
            return True
    return False


def _mean_columns(by_reader: Sequence[Columns]) -> Columns:
    columns: Columns = {}
    for name in by_reader[0]:
        numbers = zip(*(reader[name] for reader in by_reader), strict=True)
        columns[name] = [sum(own) / len(by_reader) for own in numbers]
    return columns


def _make_row(name: str, columns: Columns) -> Row:
    ratios = {label: (label, "shown") for label in LABELS}
    ratios["correct_per_question"] = ("correct", "questions")
    if "gold" in columns:
        ratios["precision"] = ("correct", "shown")
        ratios["recall"] = ("covered", "gold")
        ratios["judged_f"] = ("twice", "together")
    metrics = {}
    statistics = {}
    for metric, (numerator, denominator) in ratios.items():
        metrics[metric] = sum(columns[numerator]) / sum(columns[denominator])
        statistics[metric] = ratio_of(numerator, denominator)
    intervals = bootstrap_intervals(columns, statistics)
    return Row(name, int(sum(columns["shown"])), metrics, intervals)


def _flatten(judged: Judged) -> list[list[Labels]]:
    """By reader, the labels on all readings of the form, one after the other."""
    flat = []
    for labels in judged.labels:
        own: list[Labels] = []
        for readings in labels:
            own.extend(readings)
        flat.append(own)
    return flat


def _agreement(judged: Judged) -> dict[str, Agreement]:
    pairs = list(combinations(_flatten(judged), 2))
    if not pairs:
        return {}
    table = {}
    for name in LABELS:
        shares = []
        kappas = []
        for first, second in pairs:
            ones = [labels[name] for labels in first]
            others = [labels[name] for labels in second]
            equal = sum(map(bool.__eq__, ones, others))
            shares.append(equal / len(ones))
            kappas.append(kappa(ones, others))
        mean_share = sum(shares) / len(pairs)
        table[name] = Agreement(mean_share, sum(kappas) / len(pairs))
    return table


def _areas(judged: Judged) -> dict[str, Area]:
    scores: dict[str, Callable[[ShownReading], float | None]] = {
        "confidence": lambda reading: reading.confidence,
        "asked_again": lambda reading: (
            reading.asked_again.own if reading.asked_again else None
        ),
    }
    readings = _shown_readings(judged)
    areas = {}
    for name, score_of in scores.items():
        own = list(map(score_of, readings))
        areas[name] = _area(own, _flatten(judged))
    return areas


def _area(scores: Sequence[float | None], flat: Sequence[Sequence[Labels]]) -> Area:
    """The areas of one score over the readings that have it, each once for every reader."""
    is_correct: list[bool] = []
    values: list[float] = []
    # The same where the answer is right.
    right_is_correct: list[bool] = []
    right_values: list[float] = []
    for reader in flat:
        for labels, score in zip(reader, scores, strict=True):
            if score is None:
                continue
            is_correct.append(labels["correct"])
            values.append(score)
            if labels["answer"]:
                right_is_correct.append(labels["correct"])
                right_values.append(score)
    return Area(
        readings=len(values) // len(flat),
        all=area_under_curve(is_correct, values),
        right_answer=area_under_curve(right_is_correct, right_values),
    )


def _shown_readings(judged: Judged) -> list[ShownReading]:
    readings: list[ShownReading] = []
    for question in judged.form.questions:
        readings.extend(question.readings)
    return readings


def _bands(judged: Judged) -> list[Band]:
    """Bands of confidence that hold a reading, the surest first."""
    readings = _shown_readings(judged)
    flat = _flatten(judged)
    bands = []
    high: float | None = None
    for low in _BANDS:
        inside = []
        for place, reading in enumerate(readings):
            is_below = high is None or reading.confidence < high
            # The lowest band has no lower bound: some verifiers score by log probabilities.
            is_above = reading.confidence >= low or low == _BANDS[-1]
            if is_below and is_above:
                inside.append(place)
        if inside:
            bands.append(Band(low, high, len(inside), _mean_shares(flat, inside)))
        high = low
    return bands


def _mean_shares(
    flat: Sequence[Sequence[Labels]], places: Sequence[int]
) -> dict[str, float]:
    """The share of these readings with each label, over all readers."""
    shares = {}
    for name in LABELS:
        count = 0
        for labels in flat:
            count += sum(labels[place][name] for place in places)
        shares[name] = count / (len(places) * len(flat))
    return shares
