"""What scoring gives back: numbers with their intervals, and, if wanted, each question's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput
from whichsense.files import read_json

Interval = tuple[float, float]

BY_MODEL = {
    "disambig_f1": "reader",
    "qa_em": "reader",
    "qa_hit": "reader",
    "dr": "reader",
    "bert_score": "bert",
}
"""Metrics that say nothing without the model behind them, and the setting that names it."""


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
        """A metric's name for people, with the model that it depends on: "disambig_f1 (reader: models/roberta)"."""
        setting = BY_MODEL.get(metric, "")
        return (
            f"{metric} ({setting}: {self.settings[setting]})"
            if setting in self.settings
            else metric
        )

    def as_dict(self, per_question: bool = False) -> dict[str, Any]:
        """The JSON form: metrics and counts by name, then intervals, settings and notes."""
        table: dict[str, Any] = {
            "dataset": self.dataset,
            "name": self.name,
            **self.settings,
        }
        table |= {**self.metrics, **self.counts}
        table["intervals"] = {name: list(pair) for name, pair in self.intervals.items()}
        table["notes"] = list(self.notes)
        if per_question:
            table["questions"] = {
                key: dict(scores) for key, scores in self.questions.items()
            }
        return table


def load_result(path: str | Path) -> Result:
    """Read what `score … --json` wrote."""
    table = read_json(path)
    try:
        return _result(table, Path(path).stem)
    except (AttributeError, KeyError, TypeError, ValueError):
        advice = f"Make one with: whichsense score … --json --per-question > {path}"
        raise BadInput(f"'{path}' is no result. {advice}") from None


def _result(table: dict[str, Any], stem: str) -> Result:
    rest = {
        key: value
        for key, value in table.items()
        if key not in ("dataset", "name", "intervals", "notes")
    }
    questions = rest.pop("questions", {})
    metrics = {k: v for k, v in rest.items() if v is None or isinstance(v, float)}
    counts = {
        k: v for k, v in rest.items() if isinstance(v, int) and not isinstance(v, bool)
    }
    settings = {k: v for k, v in rest.items() if k not in metrics and k not in counts}
    intervals = {
        name: (float(low), float(high))
        for name, (low, high) in table["intervals"].items()
    }
    if not all(isinstance(question, dict) for question in questions.values()):
        raise TypeError("questions must be objects")
    name, dataset = str(table.get("name") or stem), str(table.get("dataset", "?"))
    return Result(
        dataset,
        name,
        metrics,
        counts,
        intervals,
        questions,
        settings,
        table.get("notes", ()),
    )


Measure = Callable[[Any], Any]
"""A statistic from a table of sums: columns in, one value for each row out."""


def share(top: int, bottom: int) -> Measure:
    """The ratio of two columns of sums; 0 where there is nothing to divide by."""

    def measure(sums: Any) -> Any:
        import numpy as np

        return sums[:, top] / np.maximum(sums[:, bottom], 1e-12)

    return measure


def intervals(
    rows: Sequence[Sequence[float]], measures: Mapping[str, Measure]
) -> dict[str, Interval]:
    """95% bootstrap intervals of several statistics over the same resamples of the questions."""
    import numpy as np

    from whichsense.metrics.bootstrap import quantile, resampled_sums

    if not rows:
        return {}
    sums = resampled_sums(np.asarray(rows, dtype=np.float64))
    found = {}
    for name, measure in measures.items():
        values = measure(sums)
        found[name] = (quantile(values, 0.025), quantile(values, 0.975))
    return found


def mean(values: Sequence[float]) -> float | None:
    """The mean; nothing where there are no values."""
    return sum(values) / len(values) if values else None
