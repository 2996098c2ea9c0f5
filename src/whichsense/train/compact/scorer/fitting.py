"""The last step: the scorer, fitted by what the exported model says of questions that nothing was learnt from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.jobs.progress import Progress, silent
from whichsense.models.compact.scorer.scorer import Scorer
from whichsense.train.compact.data.corpora import (
    Source,
    half_of_the_sample,
    small_corpora,
)
from whichsense.train.compact.data.topics import Topics
from whichsense.train.compact.scorer.impression import fit_impression
from whichsense.train.compact.scorer.judging import Heard, Kind, fitted
from whichsense.train.compact.scorer.questioning import Occasion, Unfitted, questioned
from whichsense.train.compact.scorer.wording import fit_wording

_FEWEST = 10
_ENOUGH = 500  # of each kind: twice as many lower the log loss by two in a thousand, and take twice the time


def fit_scorer(
    folder: Path,
    source: Source,
    progress: Progress = silent,
    *,
    learnt: Sequence[Question] = (),
    topics: Topics | None = None,
    kept: Path | None = None,
) -> Scorer:
    """For a model that has none yet: by questions over their index, over small corpora, the sample and topics.

    What a question alone says of its ambiguity is taken from others, `learnt`, of which there are more. `kept` is where
    a fit that is stopped leaves what it has read; the next one goes on from there.
    """
    if len(source.questions) < _FEWEST:
        raise BadInput(
            f"The scorer needs {_FEWEST} questions that nothing was learnt from; there are {len(source.questions)}. "
            "Lower data.held, which says how many are kept for it, and train again."
        )
    heard = (
        Heard(fit_wording(learnt), fit_impression(Unfitted(folder), learnt, progress))
        if learnt
        else Heard()
    )
    asked = list(_occasions(source, topics))
    with tempfile.TemporaryDirectory() as temporary:
        told = questioned(folder, asked, kept or Path(temporary, "told"), progress)
    found = fitted([one for one in told.read if one.context.answers], heard)
    return replace(found, rewrite=told.judged.net() or found.rewrite)


def _occasions(source: Source, topics: Topics | None) -> Iterator[Occasion]:
    """The same ones in the same order each time."""
    sources: dict[Kind, Iterable[Source]] = {
        Kind.LARGE: [source],
        Kind.SAMPLE: [half_of_the_sample()],
        Kind.SMALL: small_corpora(source),
        Kind.TOPICS: topics.corpora() if topics else [],
    }
    for kind, some in sources.items():
        asked = [
            Occasion(kind, one, question) for one in some for question in one.questions
        ]
        yield from asked[:: max(1, round(len(asked) / _ENOUGH))]
