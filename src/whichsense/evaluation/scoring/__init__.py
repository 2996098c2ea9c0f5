"""Scoring: prediction files against gold files, with intervals, comparison and a report page."""

from whichsense.evaluation.scoring.compare import Comparison, compare
from whichsense.evaluation.scoring.result import Result, load_result

__all__ = ["Comparison", "Result", "compare", "load_result"]
