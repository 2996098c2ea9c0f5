"""The writer's prompts as token numbers: what to write, a question, its answer, and windows of the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.encoder.tokens import BEGIN, END

# BERT's unused tokens serve as signs: what to write, and a separator of answers and titles.
REWRITE = 61
ANSWER = 62
RESTORE = 63
SITUATE = 64
BETWEEN = 65
WAYS = {"reading": 66, "open": 67, "exact": 68}
"""Signs for ways of asking a question about a passage: while reading it, without seeing it, and unambiguously."""
SIGNS = 72  # tokens below this number have vectors of the writer's own
# Tokens of prompts, of what is written, and of an answer with its question.
LONGEST = 144
LONGEST_OUTPUT = 28
LONGEST_ASKED = 44
# Kinds of tokens: the question, the rest of the prompt, what is written.
_ASKED = 0
_TOLD = 1
WRITTEN = 2
_STOP = 1012  # the full stop
BAR = 1064  # `|`, between an answer and its question if both are written
_LONGEST_ANSWER = 24
_LONGEST_TITLE = 16
_LONGEST_OTHERS = 36
_WIDTHS = (56, 40)  # tokens of the windows in the prompt of a rewrite
# Tokens of the windows in the prompt of an answer: of a title, and of a text at least and at most.
_NARROW_TITLE = 10
_NARROWEST = 8
_WIDEST = 18


@dataclass(frozen=True, slots=True)
class Window:
    """A passage as tokens, and the answer's span in its text (first, last + 1); (0, 0) if it is elsewhere."""

    title: Sequence[int]
    text: Sequence[int]
    first: int = 0
    end: int = 0

    def cut(self, title: int, width: int) -> list[int]:
        """Truncate the title to `title` tokens and the text to `width`."""
        begin = self._begin(width)
        return [*self.title[:title], BETWEEN, *self.text[begin : begin + width], END]

    def _begin(self, width: int) -> int:
        """The first token of the text: the beginning of a sentence from which the answer still fits, else the place
        that has the answer in the middle."""
        earliest = max(0, self.end - width)
        starts = [0] if earliest == 0 else []
        for place in range(earliest, self.first):
            if self.text[place] == _STOP:
                starts.append(place + 1)
        if not starts:
            centred = (self.first + self.end - width) // 2
            return max(0, min(centred, len(self.text) - width))
        # The answer's own sentence, unless it begins so late that more fits before it.
        if self.end - max(starts) > width // 3:
            return max(starts)
        return min(starts)


@dataclass(frozen=True, slots=True)
class Prompt:
    """`[CLS] sign question [SEP] …`: the tokens, and how many of them are the question's part."""

    ids: list[int]
    asked: int

    @property
    def kinds(self) -> list[int]:
        return [_ASKED] * self.asked + [_TOLD] * (len(self.ids) - self.asked)


def rewriting(
    question: Sequence[int],
    answer: Sequence[int],
    others: Sequence[Sequence[int]],
    windows: Sequence[Window],
    sign: int = REWRITE,
) -> Prompt:
    """`… [SEP] answer [SEP] other | other [SEP] title | text [SEP]`, which the rewritten question continues."""
    ids = [BEGIN, sign, *question, END]
    asked = len(ids)
    ids += [*answer[:_LONGEST_ANSWER], END]
    room = _LONGEST_OTHERS
    for place, other in enumerate(others):
        if len(other) + 1 > room:
            break
        if place:
            ids.append(BETWEEN)
        ids += other
        room -= len(other) + 1
    ids.append(END)
    for window, width in zip(windows, _WIDTHS, strict=False):
        left = LONGEST - len(ids) - min(len(window.title), _LONGEST_TITLE) - 2
        if left >= _NARROWEST:
            ids += window.cut(_LONGEST_TITLE, min(left, width))
    return Prompt(ids[:LONGEST], min(asked, LONGEST))


def answering(question: Sequence[int], windows: Sequence[Window]) -> Prompt:
    """`… [SEP] title | text [SEP] title | text [SEP]`, which an answer continues. All windows have equal room."""
    ids = [BEGIN, ANSWER, *question, END]
    asked = len(ids)
    room = (LONGEST - asked) // max(1, len(windows)) - 2
    for window in windows:
        width = min(_WIDEST, room - min(len(window.title), _NARROW_TITLE))
        if width >= _NARROWEST:
            ids += window.cut(_NARROW_TITLE, width)
    return Prompt(ids[:LONGEST], min(asked, LONGEST))


def asking(way: int, window: Window) -> Prompt:
    """`[CLS] way [SEP] title | text [SEP]`, which an answer from the text, a bar and its question continue."""
    ids = [BEGIN, way, END]
    width = LONGEST - len(ids) - min(len(window.title), _LONGEST_TITLE) - 2
    return Prompt([*ids, *window.cut(_LONGEST_TITLE, width)], len(ids))
