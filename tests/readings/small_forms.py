"""A small dataset and an answerer without weights, for the tests of forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from whichsense.types import AskedAgain, Case, Passage, Reading, Span

HOSTILE = "</script><script>alert('1')</script> & \"<b>\" \ud800"


def write_dataset(path: Path, count: int) -> Path:
    """Questions q0, q1, … in AmbigNQ's form."""
    rows = []
    for number in range(count):
        annotation = {"type": "singleAnswer", "answer": [f"a{number}"]}
        row = {
            "id": f"q{number}",
            "question": f"Who {number}?",
            "annotations": [annotation],
        }
        rows.append(row)
    path.write_text(json.dumps(rows))
    return path


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
