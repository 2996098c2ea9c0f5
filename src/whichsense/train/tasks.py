"""Tasks by the name that a recipe gives. A module loads when a recipe asks for it.

Each module has `Options`, a frozen dataclass for what the recipe says besides `[train]`, and `make(options) -> Task`.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from whichsense.errors import BadConfig, did_you_mean

# name → module under whichsense.train
TASKS = {
    "dual-encoder": "dual_encoder",
    "reranker": "reranker",
    "joint-reranker": "joint_reranker",
    "extractive-reader": "extractive_reader",
    "ambiguity-detector": "ambiguity_detector",
    "answer-prediction": "answer_prediction",
    "question-disambiguation": "question_disambiguation",
    "verification": "verification",
    "disambiguate-first": "disambiguate_first",
    "clarification": "clarification_question",
    "clarified-reader": "clarified_reader",
    "long-answer": "long_answer",
    "static": "static",
    "compact-teacher": "compact.teacher",
    "compact-reader": "compact.reader",
    "compact-encoder": "compact.int8",
    "compact-topics": "compact.topical",
    "compact-writer": "compact.writer",
    "compact-asker": "compact.asker",
    "compact": "compact.whole",
}


def task_module(name: str) -> ModuleType:
    """The module of a task; an unknown name is an error that helps."""
    if name not in TASKS:
        raise BadConfig(f"No task named '{name}'. {did_you_mean(name, TASKS)}")
    return importlib.import_module(f"whichsense.train.{TASKS[name]}")
