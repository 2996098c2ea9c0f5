"""Frames: ways to put an answer's label at the end of its question.

The reader chooses the frame, and asks the rewrite again. "how long is the warranty" with the label "Skerry 12" and the
frame "of the" becomes "how long is the warranty of the Skerry 12".
"""

from __future__ import annotations

import re

from whichsense.text.function_words import SMALL_WORDS

FRAMES = (
    "",  # the label has a preposition of its own: "in Malta"
    "in",
    "in the",
    "at",
    "at the",
    "for",
    "for a",
    "for the",
    "of",
    "of the",
    "on",
    "on the",
    "with",
    "with a",
    "from",
    "to",
    "to the",
    "by",
    "under",
    "under the",
    "as",
    "since",
    "until",
    "when",
)
NO_FRAME = len(FRAMES)
"""The class of labels with which nothing reads well."""


def put_into(question: str, label: str, frame: int) -> str:
    """The question with its label at the end. A search query in lower case stays one, and so does a small word that
    began a sentence.

    >>> put_into("How heavy is it?", "The Skerry 12", FRAMES.index("for")), put_into("when", "in Malta", 0)
    ('How heavy is it for the Skerry 12?', 'when in malta')
    """
    body = question.strip().rstrip("? ")
    first, space, rest = label.partition(" ")
    if first.lower() in SMALL_WORDS:
        label = first.lower() + space + rest
    if body == body.lower():
        label = label.lower()
    mark = "?" if question.strip().endswith("?") else ""
    return f"{body} {FRAMES[frame]} {label}".replace("  ", " ") + mark


def frame_between(question: str, rewrite: str, label: str) -> int:
    """The frame of a rewrite that someone wrote; -1 where it is no question with the label in a frame.

    >>> FRAMES[frame_between("how long is it", "how long is it of the skerry 12", "Skerry 12")]
    'of the'
    """
    asked, written = _plain(question), _plain(rewrite)
    ending = _plain(label)
    if not ending or not written.startswith(asked) or not written.endswith(ending):
        return -1
    between = written[len(asked) : len(written) - len(ending)].strip()
    return FRAMES.index(between) if between in FRAMES else -1


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.strip().rstrip("?").strip()).casefold()
