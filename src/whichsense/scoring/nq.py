"""NQ-open, TriviaQA, WebQuestions and their like: exact match."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput
from whichsense.metrics.answers import exact_match, exact_match_first, oracle_exact_match
from whichsense.scoring.inputs import aliases, aligned, as_answers, by_id, read_gold, read_predictions
from whichsense.scoring.result import Result, intervals, mean, share

METRICS = ("em", "em_first", "em_oracle")
_ANSWER_KEYS = ("answer", "answers", "golden_answers")


def score_nq(gold: str | Path, predicted: str | Path, *, allow_missing: bool = False, name: str = "") -> Result:
    """EM by any alias and by the first one, of the first prediction; oracle EM of all predictions.

    Gold records without an id go by their question.
    """
    records = by_id(read_gold(gold), gold, ("id", "question"))
    answers = {key: aliases(_answer(record, gold, key), gold, key) for key, record in records.items()}
    given = read_predictions(predicted, list(records))
    predictions = aligned(
        records, given, predicted, as_answers, allow_missing=allow_missing, empty=lambda value: value in ([], "")
    )
    questions = {}
    for key, record in records.items():
        ours = predictions[key] or ()
        scores = dict.fromkeys(METRICS, 0.0)
        if ours:
            scores["em"] = exact_match(ours[0], answers[key])
            scores["em_first"] = exact_match_first(ours[0], answers[key])
            scores["em_oracle"] = oracle_exact_match(ours, answers[key])
        shown = {"question": record.get("question", key), "gold": list(answers[key]), "predicted": list(ours)}
        questions[key] = {**scores, **shown}
    values = {metric: mean([one[metric] for one in questions.values()]) for metric in METRICS}
    rows = [[1.0, *(one[metric] for metric in METRICS)] for one in questions.values()]
    measures = {metric: share(i, 0) for i, metric in enumerate(METRICS, 1)}
    counts = {"n": len(questions)}
    return Result("nq", name or Path(predicted).stem, values, counts, intervals(rows, measures), questions)


def _answer(record: Mapping[str, Any], where: str | Path, key: str) -> Any:
    found = next((record[name] for name in _ANSWER_KEYS if name in record), None)
    if found is None:
        raise BadInput(f"'{where}': '{key}' has no 'answer'.")
    return found
