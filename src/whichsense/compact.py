"""The embedded default: a pipeline over the compact model, which ships with the package and needs two CPU cores.

`load(index)` assembles it; `ask(pipeline, questions)` gives what `whichsense ask` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput
from whichsense.index import Index
from whichsense.models.compact.encoder.runtime import WEIGHTS
from whichsense.models.compact.scene import Compact, Settings
from whichsense.pipeline import Pipeline
from whichsense.stages.disambiguate import CompactDisambiguator
from whichsense.stages.read import CompactReader
from whichsense.stages.rerank import CompactReranker
from whichsense.stages.retrieve import IndexRetriever
from whichsense.stages.verify import CompactVerifier
from whichsense.types import Hit, Method, Reading, Span

DEPTH, KEEP = 40, Settings().keep
_NEAREST = 3


def load(
    index: Index | str | Path | None = None,
    *,
    method: Method | None = None,
    depth: int = DEPTH,
    keep: int = KEEP,
    threshold: float | None = None,
    cautious: bool = True,
    threads: int = 2,
    weights: str | Path | None = None,
    model: Compact | None = None,
) -> Pipeline:
    """A pipeline over an index (the embedded sample without one). Weights are loaded with the first question.

    `depth` passages are searched for, the best `keep` are read to the end. With a `threshold` every answer that is at
    least that probable is given, and the best one, instead of the set with the highest expected F1. A question for
    which there is no more than a guess gets no reading, one that is hardly ambiguous a single one, and where a rewrite
    is not well put it gives way to the question's own words or to a title, unless `cautious` is False. `weights` is the
    folder of another model than the one that is shipped; a `model` that is there already brings its own weights and
    threads.
    """
    from whichsense import sample

    _refuse(threshold, depth=depth, keep=keep, threads=threads)
    opened = (
        index
        if isinstance(index, Index)
        else sample.index()
        if index is None
        else Index.open(index)
    )
    own = model or Compact(Path(weights or WEIGHTS), threads)
    compact = replace(own, settings=replace(own.settings, keep=keep)).over(len(opened))
    return Pipeline(
        IndexRetriever(opened, method),
        CompactReranker(compact),
        CompactReader(compact, threshold, cautious),
        CompactDisambiguator(compact, cautious=cautious),
        CompactVerifier(compact, threshold, cautious=cautious),
        depth=depth,
        keep=keep,
    )


def _refuse(threshold: float | None, **counts: int) -> None:
    if threshold is not None and not 0 <= threshold <= 1:
        raise BadInput(
            f"A threshold is a probability, between 0 and 1; this is {threshold}."
        )
    for name, count in counts.items():
        if count < 1:
            raise BadInput(f"'{name}' must be at least 1; it is {count}.")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its readings, best first; without any, the nearest passages."""

    question: str
    ambiguous: bool
    confidence: float
    """The probability that the first reading's answer is right; without readings, that there is an answer at all."""
    readings: tuple[Reading, ...]
    nearest: tuple[Hit, ...]
    timings: Mapping[str, float]

    def first(self, k: int | None) -> Asked:
        """With at most k readings."""
        return self if k is None else replace(self, readings=self.readings[:k])

    def to_json(self) -> dict[str, Any]:
        """{question, ambiguous, confidence, readings, timings}, and where nothing was found, the nearest passages."""
        found: dict[str, Any] = {
            "question": self.question,
            "ambiguous": self.ambiguous,
            "confidence": round(self.confidence, 4),
            "readings": [_reading(reading) for reading in self.readings],
            "timings": {
                stage: round(seconds, 4) for stage, seconds in self.timings.items()
            },
        }
        if not self.readings:
            found["nearest"] = [
                _span(Span(hit.passage, 0, 0, hit.score)) for hit in self.nearest
            ]
        return found


def ask(pipeline: Pipeline, questions: Sequence[str]) -> Iterator[Asked]:
    """What the pipeline finds for each question, as soon as it is found."""
    for trace in pipeline.traces(questions):
        readings = trace.readings
        ambiguous, confidence = (
            len(readings) > 1,
            readings[0].confidence if readings else 0.0,
        )
        if isinstance(pipeline.reader, CompactReader):
            scene = pipeline.reader.compact.scene(trace.question, trace.hits)
            ambiguous = ambiguous or (bool(readings) and scene.is_ambiguous)
            confidence = confidence if readings else scene.answerable
        nearest = () if readings else trace.hits[:_NEAREST]
        timings = {**trace.timings, "total": sum(trace.timings.values())}
        yield Asked(trace.question, ambiguous, confidence, readings, nearest, timings)


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "question": reading.question,
        "answer": reading.answer,
        "confidence": round(reading.confidence, 4),
        "evidence": [_span(span) for span in reading.evidence],
    }


def _span(span: Span) -> dict[str, Any]:
    passage = span.passage
    return {
        "id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "start": span.start,
        "end": span.end,
        "score": round(span.score, 6),
    }
