"""The citations of long answers: ALCE's recall and precision over a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whichsense.evaluation.scoring.predictions import as_text
from whichsense.evaluation.scoring.result import (
    Interval,
    Statistic,
    bootstrap_intervals,
    column,
    mean,
    ratio_of,
)
from whichsense.metrics.citations import (
    CitedDocument,
    Judge,
    citation_scores,
    with_citations,
)

_METRICS = ("citation_recall", "citation_precision", "sentences_cited")
_Scores = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CitedText:
    """A long answer; where its system cites, each sentence with the numbers of its documents, from 1."""

    text: str
    sentences: tuple[tuple[str, tuple[int, ...]], ...] = ()
    documents: tuple[CitedDocument, ...] = ()

    @property
    def marked(self) -> str:
        """The text with its citations in brackets."""
        if not self.sentences:
            return self.text
        return " ".join(with_citations(*sentence) for sentence in self.sentences)


def as_cited_text(value: Any) -> CitedText:
    """Check a prediction that is a text, with or without citations."""
    if not isinstance(value, Mapping):
        return CitedText(as_text(value))
    try:
        documents = []
        for document in value.get("documents", ()):
            documents.append(CitedDocument(document["title"], document["text"]))
        sentences = []
        for item in value.get("sentences", ()):
            numbers = tuple(map(int, item["citations"]))
            sentences.append((as_text(item["sentence"]), numbers))
        return CitedText(as_text(value["text"]), tuple(sentences), tuple(documents))
    except (KeyError, ValueError) as error:
        raise TypeError(
            "A long answer needs 'text', 'sentences' with 'sentence' and 'citations', and 'documents' with "
            f"'title' and 'text'; this is wrong: {error}."
        ) from None


def add_citation_scores(
    rows: Sequence[_Scores], answers: Sequence[CitedText], judge: Judge
) -> list[_Scores]:
    """Add citation recall and precision to the questions' scores; returns those that have them. As in ALCE, an answer
    without a sentence has none."""
    scored = []
    for row, answer in zip(rows, answers, strict=True):
        scores = citation_scores(answer.marked, answer.documents, judge)
        if scores is None:
            continue
        cited = [bool(numbers) for _, numbers in answer.sentences]
        row["citation_recall"] = scores.recall
        row["citation_precision"] = scores.precision
        row["sentences_cited"] = mean(cited) or 0.0
        scored.append(row)
    return scored


def citation_means(rows: Sequence[_Scores]) -> dict[str, float | None]:
    """The means over answers; nothing where no judge was asked."""
    return {metric: mean(column(rows, metric)) for metric in _METRICS if rows}


def citation_intervals(rows: Sequence[_Scores]) -> dict[str, Interval]:
    if not rows:
        return {}
    columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
    statistics: dict[str, Statistic] = {}
    for metric in _METRICS:
        columns[metric] = column(rows, metric)
        statistics[metric] = ratio_of(metric, "n")
    return bootstrap_intervals(columns, statistics)
