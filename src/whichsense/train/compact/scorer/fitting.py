"""The last step: fit the scorer on what the exported model reads of questions that nothing was learnt from."""

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
    CorpusQuestions,
    small_corpora,
    training_half_of_sample,
)
from whichsense.train.compact.data.topics import Topics
from whichsense.train.compact.scorer.ambiguity_probes import (
    AmbiguityProbes,
    fit_ngram_probe,
    fit_state_probe,
)
from whichsense.train.compact.scorer.nets import CorpusKind, fit_nets
from whichsense.train.compact.scorer.read_questions import (
    QuestionReader,
    ScorerQuestion,
    UnfittedCompact,
    read_questions,
)

_FEWEST = 10
_ENOUGH = 500  # of each kind: twice as many lower the log loss by two in a thousand, and take twice the time


def fit_scorer(
    folder: Path,
    held_out: CorpusQuestions,
    progress: Progress = silent,
    *,
    labelled: Sequence[Question] = (),
    topics: Topics | None = None,
    parts_folder: Path | None = None,
) -> Scorer:
    """The scorer of the model in `folder`, which has none yet.

    It is fitted on questions over their index, over small corpora, the sample and topics. The probes of ambiguity are
    fitted on `labelled`, of which there are more. `parts_folder` is where a fit that is stopped leaves what it has
    read; the next one resumes from there.
    """
    # Five folds need more than a handful of questions.
    if len(held_out.questions) < _FEWEST:
        raise BadInput(
            f"The scorer needs {_FEWEST} questions that nothing was learnt from; there are "
            f"{len(held_out.questions)}. Lower data.held, which says how many are kept for it, and train again."
        )
    probes = AmbiguityProbes()
    if labelled:
        probes = AmbiguityProbes(
            fit_ngram_probe(labelled),
            fit_state_probe(UnfittedCompact(folder), labelled, progress),
        )
    questions = list(scorer_questions(held_out, topics))
    with tempfile.TemporaryDirectory() as temporary:
        parts = parts_folder or Path(temporary)
        data = read_questions(QuestionReader(folder), questions, parts, progress)
    # A question without a candidate has no features.
    with_candidates = [one for one in data.read if one.context.answers]
    scorer = fit_nets(with_candidates, probes)
    return replace(scorer, rewrite=data.rewrites.fit() or scorer.rewrite)


def scorer_questions(
    held_out: CorpusQuestions, topics: Topics | None, enough: int = _ENOUGH
) -> Iterator[ScorerQuestion]:
    """The questions that the scorer is fitted on, about `enough` of each kind; the same in each run."""
    by_kind: dict[CorpusKind, Iterable[CorpusQuestions]] = {
        CorpusKind.LARGE: [held_out],
        CorpusKind.SAMPLE: [training_half_of_sample()],
        CorpusKind.SMALL: small_corpora(held_out),
        CorpusKind.TOPICS: topics.corpora() if topics else [],
    }
    for kind, sources in by_kind.items():
        questions = []
        for source in sources:
            for question in source.questions:
                questions.append(ScorerQuestion(kind, source, question))
        # Every so many-th, so that all corpora of a kind take part.
        step = max(1, round(len(questions) / enough))
        yield from questions[::step]
