"""Two systems on the same questions: which is better, and is it luck?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from whichsense.errors import BadInput
from whichsense.evaluation.scoring.inputs import describe_ids
from whichsense.evaluation.scoring.result import BY_MODEL, Result
from whichsense.metrics.ambignq import QUESTION_METRICS
from whichsense.metrics.bootstrap import PairedTest, paired_tests

ALPHA = 0.05
_NOT_SCORES = {"multi", "options", "length"}


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
        metrics = {
            name: {
                "a": self.means[name][0],
                "b": self.means[name][1],
                **asdict(test),
                "verdict": self.verdict(name),
            }
            for name, test in self.tests.items()
        }
        return {
            "a": self.a,
            "b": self.b,
            "dataset": self.dataset,
            "n": self.n,
            "metrics": metrics,
        }

    def verdict(self, metric: str) -> str:
        """Who is better by a metric, in words; nobody, if chance explains the difference."""
        test = self.tests[metric]
        if test.p_permutation >= ALPHA:
            return "may be luck"
        return f"{self.b if test.difference > 0 else self.a} is better"


def compare(a: Result, b: Result) -> Comparison:
    """Test B against A. Both results must hold the same questions of the same dataset."""
    for one in (a, b):
        if not one.questions:
            raise BadInput(
                f"The result '{one.name}' holds no questions. Score it again with --json --per-question."
            )
    if a.dataset != b.dataset:
        raise BadInput(
            f"'{a.name}' is scored on {a.dataset} and '{b.name}' on {b.dataset}: nothing to compare."
        )
    only = [key for key in a.questions if key not in b.questions] + [
        key for key in b.questions if key not in a.questions
    ]
    if only:
        raise BadInput(
            f"The two results have different questions; only one of them has {describe_ids(only)}."
        )
    tests: dict[str, PairedTest] = {}
    means: dict[str, tuple[float, float]] = {}
    for keys, metrics in _groups(a, b).items():
        ours, theirs = (
            {m: [float(one.questions[key][m]) for key in keys] for m in metrics}
            for one in (a, b)
        )
        tests |= paired_tests(ours, theirs)
        means |= {
            m: (sum(ours[m]) / len(keys), sum(theirs[m]) / len(keys)) for m in metrics
        }
    if not tests:
        raise BadInput(f"'{a.name}' and '{b.name}' have no metric in common.")
    names = (a.name, b.name) if a.name != b.name else (f"{a.name} (A)", f"{b.name} (B)")
    return Comparison(*names, a.dataset, len(a.questions), tests, means)


def _groups(a: Result, b: Result) -> dict[tuple[str, ...], list[str]]:
    """The metrics that both have a number for, by the questions that they have it for."""
    first = next(iter(a.questions.values()))
    groups: dict[tuple[str, ...], list[str]] = {}
    for metric, value in first.items():
        if (
            metric in _NOT_SCORES
            or isinstance(value, str | list)
            or not _same_model(a, b, metric)
        ):
            continue
        mine, theirs = (_scored(one, metric, list(a.questions)) for one in (a, b))
        if mine and mine == theirs:
            groups.setdefault(mine, []).append(metric)
    return groups


def _same_model(a: Result, b: Result, metric: str) -> bool:
    """Two numbers that two readers gave cannot be compared."""
    setting = BY_MODEL.get(metric, "")
    return a.settings.get(setting) == b.settings.get(setting)


def _scored(result: Result, metric: str, keys: Sequence[str]) -> tuple[str, ...]:
    """The questions over which a metric is reported: AmbigQA's question metrics leave single answers out."""
    multi_only = metric in QUESTION_METRICS
    return tuple(
        key
        for key in keys
        if isinstance(result.questions[key].get(metric), int | float)
        and not (multi_only and not result.questions[key].get("multi"))
    )
