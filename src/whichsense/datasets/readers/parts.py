"""What several readers need: ids for questions without one, and AmbigNQ's form of annotations."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from whichsense.datasets.records import Annotation, QAPair, Record
from whichsense.datasets.rows import Row

Reader = Callable[[Path, str, str], Iterator[Record]]
"""(file, the split's name inside a file that holds several, the advice in an error) → records."""


class IdMaker:
    """Ids for datasets without any: a hash of the text, so that they do not depend on the order of the records."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def from_text(self, text: str) -> str:
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return self.make_unique(digest[:16])

    def make_unique(self, key: str) -> str:
        """The key itself the first time, then `key#2`, `key#3` …"""
        self._seen[key] += 1
        count = self._seen[key]
        return key if count == 1 else f"{key}#{count}"


def single_answer(answers: tuple[str, ...]) -> tuple[Annotation, ...]:
    """The annotations of a question with one answer; none where there is no answer."""
    if not answers:
        return ()
    return (Annotation("singleAnswer", (QAPair(answers),)),)


def several_answers(pairs: tuple[QAPair, ...]) -> tuple[Annotation, ...]:
    """The annotations of a question with these answers, however many."""
    if not pairs:
        return ()
    if len(pairs) > 1:
        return (Annotation("multipleQAs", pairs),)
    return (Annotation("singleAnswer", pairs),)


def split_references(question: str) -> tuple[str, ...]:
    """The wordings that AmbigNQ accepts for a rewrite.

    >>> split_references("Who sang it in 1990?|Who was the 1990 singer?")
    ('Who sang it in 1990?', 'Who was the 1990 singer?')
    """
    parts = map(str.strip, question.split("|"))
    return tuple(filter(None, parts))


def parse_annotations(row: Row) -> tuple[Annotation, ...]:
    """The annotations of a row in AmbigNQ's form."""
    annotations = tuple(map(_parse_annotation, row.rows("annotations")))
    if not annotations:
        raise row.bad("'annotations' is empty")
    return annotations


def _parse_annotation(row: Row) -> Annotation:
    kind = row.text("type")
    if kind == "singleAnswer":
        answers = _required_texts(row, "answer")
        pair = QAPair(answers, evidence=row.texts("evidence", optional=True))
        return Annotation("singleAnswer", (pair,))
    if kind == "multipleQAs":
        pairs = tuple(map(_parse_pair, row.rows("qaPairs")))
        if not pairs:
            raise row.bad("'qaPairs' is empty")
        return Annotation("multipleQAs", pairs)
    raise row.bad(f"'type' must be 'singleAnswer' or 'multipleQAs', not '{kind}'")


def _parse_pair(row: Row) -> QAPair:
    question = row.text("question")
    answers = _required_texts(row, "answer")
    evidence = row.texts("evidence", optional=True)
    return QAPair(answers, split_references(question), evidence)


def _required_texts(row: Row, key: str) -> tuple[str, ...]:
    texts = row.texts(key)
    if not texts:
        raise row.bad(f"'{key}' is empty")
    return texts
