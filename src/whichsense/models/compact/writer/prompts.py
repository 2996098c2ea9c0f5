"""What the writer is given, as token numbers: what to do, a question, its answer, and windows of the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.encoder.tokens import BEGIN, END

# BERT's unused tokens serve as signs: what is to be written, and what parts answers and titles.
REWRITE, ANSWER, RESTORE, SITUATE, BETWEEN = 61, 62, 63, 64, 65
WAYS = {"reading": 66, "open": 67, "exact": 68}
"""Signs for ways of asking: of one who has the passage before them, of one who has not, and leaving no reading open."""
SIGNS = 72  # tokens below this number have vectors of the writer's own
LONGEST, LONGEST_OUTPUT, LONGEST_ASKED = (
    144,
    28,
    44,
)  # of prompts; of what is written; of an answer with its question
ASKED, TOLD, WRITTEN = (
    0,
    1,
    2,
)  # kinds of tokens: the question, what stands beside it, what is written
_STOP = 1012  # the full stop, behind which a sentence begins
BAR = 1064  # `|`, which parts an answer from its question where both are written
_LONGEST_ANSWER, _LONGEST_TITLE, _OTHERS = 24, 16, 36
_WIDTHS = (
    56,
    40,
)  # tokens of the windows that a rewrite is told: of the best passage, of the next
_NARROW_TITLE, _NARROWEST, _WIDEST = (
    10,
    8,
    18,
)  # of the windows that answers are looked for in


@dataclass(frozen=True, slots=True)
class Window:
    """A passage, as tokens, and where in its text the answer stands (first, last + 1); (0, 0) if nowhere or in the
    title."""

    title: Sequence[int]
    text: Sequence[int]
    first: int = 0
    end: int = 0

    def cut(self, title: int, width: int) -> list[int]:
        """Title and text up to a width: from the beginning of the answer's sentence, where the answer then still fits,
        else with the answer in the middle."""
        begin = max(
            0, min((self.first + self.end - width) // 2, len(self.text) - width)
        )
        earliest = max(0, self.end - width)
        starts = [
            at + 1 for at in range(earliest, self.first) if self.text[at] == _STOP
        ]
        if earliest == 0:
            starts.append(0)
        if starts:
            begin = (
                max(start for start in starts)
                if self.end - max(starts) > width // 3
                else min(starts)
            )
        return [*self.title[:title], BETWEEN, *self.text[begin : begin + width], END]


@dataclass(frozen=True, slots=True)
class Prompt:
    """`[CLS] sign question [SEP] …`: tokens, and of how many the question's part consists."""

    ids: list[int]
    asked: int

    @property
    def kinds(self) -> list[int]:
        return [ASKED] * self.asked + [TOLD] * (len(self.ids) - self.asked)


def rewriting(
    question: Sequence[int],
    answer: Sequence[int],
    others: Sequence[Sequence[int]],
    windows: Sequence[Window],
    sign: int = REWRITE,
) -> Prompt:
    """`… [SEP] answer [SEP] other | other [SEP] title | text [SEP]`: to be continued by the question, rewritten."""
    ids = [BEGIN, sign, *question, END]
    asked = len(ids)
    ids += [*answer[:_LONGEST_ANSWER], END]
    room = _OTHERS
    for place, other in enumerate(others):
        if len(other) + 1 > room:
            break
        ids += ([BETWEEN] if place else []) + list(other)
        room -= len(other) + 1
    ids.append(END)
    for window, width in zip(windows, _WIDTHS, strict=False):
        left = LONGEST - len(ids) - min(len(window.title), _LONGEST_TITLE) - 2
        if left >= _NARROWEST:
            ids += window.cut(_LONGEST_TITLE, min(left, width))
    return Prompt(ids[:LONGEST], min(asked, LONGEST))


def answering(question: Sequence[int], windows: Sequence[Window]) -> Prompt:
    """`… [SEP] title | text [SEP] title | text [SEP]`, each window with as much room as the others: to be continued by
    an answer."""
    ids = [BEGIN, ANSWER, *question, END]
    asked = len(ids)
    room = (LONGEST - asked) // max(1, len(windows)) - 2
    for window in windows:
        width = min(_WIDEST, room - min(len(window.title), _NARROW_TITLE))
        if width >= _NARROWEST:
            ids += window.cut(_NARROW_TITLE, width)
    return Prompt(ids[:LONGEST], min(asked, LONGEST))


def asking(way: int, window: Window) -> Prompt:
    """`[CLS] way [SEP] title | text [SEP]`: to be continued by an answer that stands there, a bar and its question."""
    ids = [BEGIN, way, END]
    width = LONGEST - len(ids) - min(len(window.title), _LONGEST_TITLE) - 2
    return Prompt([*ids, *window.cut(_LONGEST_TITLE, width)], len(ids))
