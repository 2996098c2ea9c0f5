"""Ambiguity detection: does a question have several answers?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.datasets import Question
from whichsense.datasets.readers.ambiguous import read_ambignq
from whichsense.datasets.rows import ParsedJson
from whichsense.evaluation.scoring.inputs import (
    GoldInput,
    PredictionInput,
    read_gold,
    result_name,
)
from whichsense.evaluation.scoring.predictions import align
from whichsense.evaluation.scoring.result import (
    Result,
    Statistic,
    bootstrap_intervals,
    column,
    ratio_of,
)
from whichsense.metrics.detection import detection

if TYPE_CHECKING:
    from whichsense.evaluation.scoring.result import Array

_FIX = "Is it AmbigNQ's file?"


def score_ambiguity(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """Score decisions, `{id: true}` or `{id: {"ambiguous": true}}`, against AmbigNQ's annotations.

    A question is ambiguous where no annotator gave a single answer. A missing decision counts as "not ambiguous".
    """
    golds = read_gold(gold, _read_official, Question)
    aligned = align(golds, predictions, _as_decision, allow_missing=allow_missing)
    questions: dict[str, dict[str, Any]] = {}
    for key, question in golds.items():
        truth, decision = question.is_ambiguous, bool(aligned[key])
        questions[key] = {
            "correct": float(truth == decision),
            "ambiguous": float(truth),
            "predicted_ambiguous": float(decision),
            "both": float(truth and decision),
            "question": question.text,
            "gold": [str(truth)],
            "predicted": [str(decision)],
        }
    rows = list(questions.values())
    truths = [bool(row["ambiguous"]) for row in rows]
    decisions = [bool(row["predicted_ambiguous"]) for row in rows]
    return Result(
        dataset="ambiguity",
        name=result_name(name, predictions),
        metrics=asdict(detection(truths, decisions)),
        counts={"n": len(rows), "n_ambiguous": sum(truths)},
        intervals=_intervals(rows),
        questions=questions,
    )


def _as_decision(value: Any) -> bool:
    decision = value.get("ambiguous") if isinstance(value, Mapping) else value
    if not isinstance(decision, bool):
        raise TypeError("true or false is needed, or an object with 'ambiguous'.")
    return decision


def _intervals(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
    for name in ("correct", "ambiguous", "predicted_ambiguous", "both"):
        columns[name] = column(rows, name)
    statistics: dict[str, Statistic] = {
        "accuracy": ratio_of("correct", "n"),
        "precision": ratio_of("both", "predicted_ambiguous"),
        "recall": ratio_of("both", "ambiguous"),
        "f1": _f1,
    }
    return bootstrap_intervals(columns, statistics)


def _f1(sums: Mapping[str, Array]) -> Array:
    import numpy as np

    total = sums["ambiguous"] + sums["predicted_ambiguous"]
    f1: Array = 2 * sums["both"] / np.maximum(total, 1e-12)
    return f1


def _read_official(source: Path | ParsedJson) -> Iterator[Question]:
    return read_ambignq(source, "", _FIX)
