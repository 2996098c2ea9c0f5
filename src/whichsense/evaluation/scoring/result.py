"""Result: the scores of one system with their intervals, and each question's own scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput
from whichsense.files import read_json

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

Interval = tuple[float, float]

BY_MODEL = {
    "disambig_f1": "reader",
    "qa_em": "reader",
    "qa_hit": "reader",
    "dr": "reader",
    "bert_score": "bert",
    "citation_recall": "judge",
    "citation_precision": "judge",
}
"""Metrics that depend on a model, and the setting that names the model."""

_NOT_SETTINGS = ("dataset", "name", "intervals", "notes")


@dataclass(frozen=True, slots=True)
class Result:
    """Scores of one system on one dataset."""

    dataset: str
    name: str
    metrics: Mapping[str, float | None]
    counts: Mapping[str, int]
    intervals: Mapping[str, Interval]
    questions: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def label(self, metric: str) -> str:
        """A metric's name with the model that it depends on: "disambig_f1 (reader: models/roberta)"."""
        setting = BY_MODEL.get(metric, "")  # "" is never a setting
        if setting not in self.settings:
            return metric
        return f"{metric} ({setting}: {self.settings[setting]})"

    def as_dict(self, per_question: bool = False) -> dict[str, Any]:
        """The JSON form: metrics and counts by name, then intervals, settings and notes."""
        table: dict[str, Any] = {"dataset": self.dataset, "name": self.name}
        table |= self.settings
        table |= self.metrics
        table |= self.counts
        # JSON has lists, not tuples.
        table["intervals"] = {}
        for name, interval in self.intervals.items():
            table["intervals"][name] = list(interval)
        table["notes"] = list(self.notes)
        if per_question:
            table["questions"] = {}
            for key, scores in self.questions.items():
                table["questions"][key] = dict(scores)
        return table


def load_result(path: str | Path) -> Result:
    """Read a result that `score … --json` printed."""
    table = read_json(path)
    try:
        return _parse_result(table, Path(path).stem)
    except (AttributeError, KeyError, TypeError, ValueError):
        advice = f"Make one with: whichsense score … --json --per-question > {path}"
        raise BadInput(f"'{path}' is not a result. {advice}") from None


def _parse_result(table: dict[str, Any], stem: str) -> Result:
    metrics: dict[str, float | None] = {}
    counts: dict[str, int] = {}
    settings: dict[str, Any] = {}
    questions = table.get("questions", {})
    for key, value in table.items():
        if key in _NOT_SETTINGS or key == "questions":
            continue
        # The JSON form is flat: a value's type says what it is.
        if value is None or isinstance(value, float):
            metrics[key] = value
        elif isinstance(value, int) and not isinstance(value, bool):
            counts[key] = value
        else:
            settings[key] = value
    intervals: dict[str, Interval] = {}
    for name, (low, high) in table["intervals"].items():
        intervals[name] = (float(low), float(high))
    for question in questions.values():
        if not isinstance(question, dict):
            raise TypeError("questions must be objects")
    return Result(
        dataset=str(table.get("dataset", "?")),
        name=str(table.get("name") or stem),
        metrics=metrics,
        counts=counts,
        intervals=intervals,
        questions=questions,
        settings=settings,
        notes=table.get("notes", ()),
    )


Statistic = Callable[[Mapping[str, "Array"]], "Array"]
"""From sums of named columns, one sum per resample, to one value per resample."""


def ratio_of(numerator: str, denominator: str) -> Statistic:
    """The ratio of two columns' sums; 0 where there is nothing to divide by."""

    def statistic(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        # Every numerator is 0 where its denominator is.
        return sums[numerator] / np.maximum(sums[denominator], 1e-12)

    return statistic


def bootstrap_intervals(
    columns: Mapping[str, Sequence[float]], statistics: Mapping[str, Statistic]
) -> dict[str, Interval]:
    """95% bootstrap intervals of several statistics over the same resamples of the questions.

    Each column holds one number per question. A statistic sees the columns' sums over each resample.
    """
    import numpy as np

    from whichsense.metrics.bootstrap import quantile, resampled_sums

    by_column = np.array(list(columns.values()), dtype=np.float64)
    # Shape (questions, columns). The sums' last bit depends on the memory layout.
    table = np.ascontiguousarray(by_column.T)
    sums = resampled_sums(table)  # (resamples, columns)
    by_name = dict(zip(columns, sums.T, strict=True))
    intervals: dict[str, Interval] = {}
    for name, statistic in statistics.items():
        values = statistic(by_name)
        intervals[name] = (quantile(values, 0.025), quantile(values, 0.975))
    return intervals


def column(rows: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """One number of each question."""
    return [row[name] for row in rows]


def mean(values: Sequence[float]) -> float | None:
    """The mean; None where there are no values."""
    return sum(values) / len(values) if values else None
