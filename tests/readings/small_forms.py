"""A small dataset and an answerer without weights, for the tests of forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whichsense.types import AskedAgain, Case, Passage, Reading, Span

HOSTILE = "</script><script>alert('1')</script> & \"<b>\" \ud800"


def write_dataset(path: Path, count: int) -> Path:
    """Questions q0, q1, … in AmbigNQ's form; every third is ambiguous to all annotators, every fourth to one of two."""
    rows = []
    for number in range(count):
        single = {"type": "singleAnswer", "answer": [f"a{number}"]}
        annotations = [single]
        if number % 3 == 0:
            annotations = [several(number, 2), several(number, 3), several(-number, 3)]
        elif number % 4 == 0:
            annotations = [several(number, 2), single]
        row = {"id": f"q{number}", "question": f"Who {number}?", "annotations": annotations}
        rows.append(row)
    path.write_text(json.dumps(rows))
    return path


def several(number: int, pairs: int) -> dict[str, Any]:
    """An annotation with so many answers, each with a rewrite and an alias."""
    rows = []
    for rank in range(pairs):
        answers = [f"a{number}-{rank}", f"alias {rank}"]
        rows.append({"question": f"Who {number} of {rank}?", "answer": answers})
    return {"type": "multipleQAs", "qaPairs": rows}


@dataclass
class Numbered:
    """Gives "Who 7?" as many readings as 7 has left when divided by 4; fails after some questions."""

    fails_after: int = 1000
    asked: list[str] = field(default_factory=list)

    def run(self, questions: Sequence[str]) -> list[Case]:
        cases = []
        for question in questions:
            if len(self.asked) == self.fails_after:
                raise RuntimeError("broken")
            self.asked.append(question)
            number = int(question.removeprefix("Who ").removesuffix("?"))
            readings = tuple(map(reading, range(number % 4)))
            cases.append(Case(question, readings=readings))
        return cases


def reading(number: int) -> Reading:
    answer = f"Ann {number}"
    text = f"First {HOSTILE}. It was {answer} who came. Last."
    passage = Passage("p", f"Title {number} <i>", text)
    start = text.index(answer)
    span = Span(passage, start, start + len(answer))
    asked_again = AskedAgain(own=0.9, other=0.1, fluent=0.5) if number else None
    rewrite = f"Who came {number}, {HOSTILE}?"
    return Reading(rewrite, answer, (span,), 0.123456, asked_again=asked_again)
