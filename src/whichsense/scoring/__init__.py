"""Scoring: prediction files against gold files, with intervals, comparison and a report page."""

from whichsense.scoring.compare import Comparison, compare
from whichsense.scoring.result import Result, load_result

__all__ = ["Comparison", "Result", "compare", "load_result"]
