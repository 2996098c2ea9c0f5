"""Two systems on the same questions: which is better, and is it luck?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from whichsense.errors import BadInput
from whichsense.metrics.bootstrap import PairedTest, paired_test
from whichsense.scoring.inputs import named
from whichsense.scoring.result import Result

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
            name: {"a": self.means[name][0], "b": self.means[name][1], **asdict(test), "verdict": self.verdict(name)}
            for name, test in self.tests.items()
        }
        return {"a": self.a, "b": self.b, "dataset": self.dataset, "n": self.n, "metrics": metrics}

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
            raise BadInput(f"The result '{one.name}' holds no questions. Score it again with --json --per-question.")
    if a.dataset != b.dataset:
        raise BadInput(f"'{a.name}' is scored on {a.dataset} and '{b.name}' on {b.dataset}: nothing to compare.")
    only = [key for key in a.questions if key not in b.questions] + [
        key for key in b.questions if key not in a.questions
    ]
    if only:
        raise BadInput(f"The two results have different questions; only one of them has {named(only)}.")
    tests, means = {}, {}
    for metric in _metrics(a, b):
        keys = [key for key in a.questions if a.questions[key][metric] is not None]
        ours, theirs = ([float(one.questions[key][metric]) for key in keys] for one in (a, b))
        tests[metric] = paired_test(ours, theirs)
        means[metric] = sum(ours) / len(ours), sum(theirs) / len(theirs)
    if not tests:
        raise BadInput(f"'{a.name}' and '{b.name}' have no metric in common.")
    names = (a.name, b.name) if a.name != b.name else (f"{a.name} (A)", f"{b.name} (B)")
    return Comparison(*names, a.dataset, len(a.questions), tests, means)


def _metrics(a: Result, b: Result) -> list[str]:
    """The metrics that both have a number for on the same questions."""

    def scores(result: Result, metric: str) -> list[bool]:
        return [isinstance(result.questions[key].get(metric), int | float) for key in a.questions]

    first = next(iter(a.questions.values()))
    candidates = [
        name for name, value in first.items() if name not in _NOT_SCORES and not isinstance(value, str | list)
    ]
    return [name for name in candidates if any(scores(a, name)) and scores(a, name) == scores(b, name)]
