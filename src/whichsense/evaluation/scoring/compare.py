"""Compare two systems on the same questions: is one better, or may the difference be chance?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from whichsense.errors import BadInput
from whichsense.evaluation.scoring.inputs import describe_ids
from whichsense.evaluation.scoring.result import BY_MODEL, Result
from whichsense.metrics.ambignq import QUESTION_METRICS
from whichsense.metrics.bootstrap import PairedTest, paired_tests

_ALPHA = 0.05  # level of significance
_NOT_SCORES = {"multi", "options", "length"}  # numbers, but neither good nor bad


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired test for each metric that both systems have for every question."""

    a: str
    b: str
    dataset: str
    n: int
    tests: Mapping[str, PairedTest]
    means: Mapping[str, tuple[float, float]]

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        metrics = {}
        for name, test in self.tests.items():
            a_mean, b_mean = self.means[name]
            row = {"a": a_mean, "b": b_mean, **asdict(test)}
            metrics[name] = row | {"verdict": self.verdict(name)}
        return {
            "a": self.a,
            "b": self.b,
            "dataset": self.dataset,
            "n": self.n,
            "metrics": metrics,
        }

    def verdict(self, metric: str) -> str:
        """Which system is better by a metric; neither, if chance may explain the difference."""
        test = self.tests[metric]
        if test.p_permutation >= _ALPHA:
            return "may be luck"
        return f"{self.b if test.difference > 0 else self.a} is better"


def compare(a: Result, b: Result) -> Comparison:
    """Test B against A. Both results must hold the same questions of the same dataset."""
    _refuse_different_questions(a, b)
    tests: dict[str, PairedTest] = {}
    means: dict[str, tuple[float, float]] = {}
    for keys, metrics in _group_metrics(a, b).items():
        a_scores = {}
        b_scores = {}
        for metric in metrics:
            a_scores[metric] = _scores(a, metric, keys)
            b_scores[metric] = _scores(b, metric, keys)
            a_mean = sum(a_scores[metric]) / len(keys)
            b_mean = sum(b_scores[metric]) / len(keys)
            means[metric] = (a_mean, b_mean)
        # Metrics over the same questions share their resamples.
        tests |= paired_tests(a_scores, b_scores)
    if not tests:
        raise BadInput(f"'{a.name}' and '{b.name}' have no metric in common.")
    a_name, b_name = a.name, b.name
    if a_name == b_name:
        a_name, b_name = f"{a_name} (A)", f"{b_name} (B)"
    return Comparison(a_name, b_name, a.dataset, len(a.questions), tests, means)


def _scores(result: Result, metric: str, keys: Iterable[str]) -> list[float]:
    return [float(result.questions[key][metric]) for key in keys]


def _refuse_different_questions(a: Result, b: Result) -> None:
    for result in (a, b):
        if not result.questions:
            raise BadInput(
                f"The result '{result.name}' holds no questions. Score it again with --json --per-question."
            )
    if a.dataset != b.dataset:
        raise BadInput(
            f"'{a.name}' is scored on {a.dataset} and '{b.name}' on {b.dataset}: nothing to compare."
        )
    only_a = [key for key in a.questions if key not in b.questions]
    only_b = [key for key in b.questions if key not in a.questions]
    if only_a or only_b:
        ids = describe_ids(only_a + only_b)
        raise BadInput(
            f"The two results have different questions; only one of them has {ids}."
        )


def _group_metrics(a: Result, b: Result) -> dict[tuple[str, ...], list[str]]:
    """The metrics that both results have numbers for, by the ids of the questions that have them."""
    first = next(iter(a.questions.values()))
    groups: dict[tuple[str, ...], list[str]] = {}
    for metric, value in first.items():
        # Texts and lists are shown in reports; they are not scores.
        is_score = metric not in _NOT_SCORES and not isinstance(value, str | list)
        if not is_score or not _same_model(a, b, metric):
            continue
        keys = _scored_ids(a, metric, a.questions)
        if keys and keys == _scored_ids(b, metric, a.questions):
            groups.setdefault(keys, []).append(metric)
    return groups


def _same_model(a: Result, b: Result, metric: str) -> bool:
    """Numbers by two different readers cannot be compared."""
    setting = BY_MODEL.get(metric, "")
    return a.settings.get(setting) == b.settings.get(setting)


def _scored_ids(result: Result, metric: str, ids: Iterable[str]) -> tuple[str, ...]:
    """The questions over which a metric is reported: AmbigQA's question metrics leave single answers out."""
    multi_only = metric in QUESTION_METRICS
    scored = []
    for key in ids:
        question = result.questions[key]
        if multi_only and not question.get("multi"):
            continue
        if isinstance(question.get(metric), int | float):
            scored.append(key)
    return tuple(scored)
