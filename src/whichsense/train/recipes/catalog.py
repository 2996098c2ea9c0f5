"""Tasks by the name that a recipe gives. A module loads when a recipe asks for it.

Each module has `SPEC`: the dataclass of the task's options, and what builds the task from them.
"""

from __future__ import annotations

import importlib
from typing import Any

from whichsense.errors import BadConfig, did_you_mean
from whichsense.train.loop.task import TaskSpec

# name → module under whichsense.train
TASKS = {
    "dual-encoder": "tasks.encoders.dual_encoder",
    "reranker": "tasks.encoders.reranker",
    "joint-reranker": "tasks.encoders.joint_reranker",
    "extractive-reader": "tasks.encoders.extractive_reader",
    "ambiguity-detector": "tasks.encoders.ambiguity_detector",
    "answer-prediction": "tasks.seq2seq.answer_prediction",
    "question-disambiguation": "tasks.seq2seq.question_disambiguation",
    "verification": "tasks.seq2seq.verification",
    "disambiguate-first": "tasks.seq2seq.disambiguate_first",
    "clarification": "tasks.seq2seq.clarifier",
    "clarified-reader": "tasks.seq2seq.option_reader",
    "long-answer": "tasks.seq2seq.long_answer",
    "static": "tasks.encoders.static",
    "compact-teacher": "compact.encoder.teacher",
    "compact-encoder": "compact.encoder.encoder",
    "compact-writer": "compact.writer.writer",
    "compact-asker": "compact.writer.asker",
    "compact-verifier": "compact.verifier.task",
    "compact-support": "compact.support.task",
    "compact-label": "compact.label.task",
    "compact": "compact.writer.compact",
}


def task_spec(name: str) -> TaskSpec[Any]:
    """Load the spec of a task; an unknown name is an error that suggests one."""
    if name not in TASKS:
        raise BadConfig(f"No task named '{name}'. {did_you_mean(name, TASKS)}")
    module = importlib.import_module(f"whichsense.train.{TASKS[name]}")
    spec: TaskSpec[Any] = module.SPEC
    return spec
