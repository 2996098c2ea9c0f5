"""Scoring: predictions against gold, as the official scripts do, with intervals and comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whichsense.errors import BadInput, did_you_mean
from whichsense.evaluation.scoring.ambignq import score_ambignq
from whichsense.evaluation.scoring.ambiguity import score_ambiguity
from whichsense.evaluation.scoring.asqa import score_asqa
from whichsense.evaluation.scoring.cambignq import score_cambignq
from whichsense.evaluation.scoring.clarified import score_clarified
from whichsense.evaluation.scoring.compare import Comparison, compare
from whichsense.evaluation.scoring.inputs import GoldInput, PredictionInput
from whichsense.evaluation.scoring.nq import score_nq
from whichsense.evaluation.scoring.ramdocs import score_ramdocs
from whichsense.evaluation.scoring.result import Result, load_result

__all__ = ["Comparison", "Result", "compare", "load_result", "score"]

# A benchmark's scorer: (gold, predictions, **options) → Result.
_BENCHMARKS: dict[str, Callable[..., Result]] = {
    "ambignq": score_ambignq,
    "ambiguity": score_ambiguity,
    "asqa": score_asqa,
    "cambignq": score_cambignq,
    "cambignq-answers": score_clarified,
    "nq": score_nq,
    "ramdocs": score_ramdocs,
}


def score(
    benchmark: str, gold: GoldInput, predictions: PredictionInput, **options: Any
) -> Result:
    """Score predictions as a benchmark's official script does.

    `gold` is a file in the official form, its parsed JSON, or a dataset's records. `predictions` is a file, a mapping
    {id: prediction}, or a list of cases in the order of `gold`; a prediction is the official JSON, a case, or a list of
    readings. Every benchmark takes `allow_missing` (missing predictions score zero) and `name`; `variant`, `reader`,
    `reader_answers`, `split` and `bert` are those of `whichsense score BENCHMARK --help`.

    >>> gold = [{"id": "1", "question": "Who wrote it?", "answer": ["Ann Lee", "Lee"]}]
    >>> score("nq", gold, {"1": ["lee", "Bo"]}).metrics
    {'em': 1.0, 'em_first': 0.0, 'em_oracle': 1.0}
    """
    if benchmark not in _BENCHMARKS:
        advice = did_you_mean(benchmark, _BENCHMARKS)
        raise BadInput(f"No benchmark '{benchmark}'. {advice}")
    return _BENCHMARKS[benchmark](gold, predictions, **options)
