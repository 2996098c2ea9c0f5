"""Fits the trust in answers and rewrites: what readers judged, against what the exported model says of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput
from whichsense.jobs.limits import Progress, silent
from whichsense.lab.compact.questions import (
    DEPTH,
    CorpusQuestions,
    DataConfig,
    training_half_of_sample,
)
from whichsense.lab.compact.scorer_fitting import fit
from whichsense.lab.compact.topics import Topics, topic_of
from whichsense.lab.datasets import Question
from whichsense.lab.train.recipes import HOMES
from whichsense.models.compact import people
from whichsense.models.compact.people import Panel, judge_fluency
from whichsense.models.compact.rewrite_support import locate, support
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer import IN_SMALL, Net, Trust
from whichsense.text.words import normalize
from whichsense.types import FOR_PEOPLE, Candidate

MARKS = "trust.jsonl"
_FEWEST = 20  # rows that a net is fitted on
_Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class MarkedRewrite:
    """A rewrite that was proposed for an answer, and a reader's marks."""

    answer: str
    rewrite: str
    right: bool
    true: bool
    apart: bool
    fluent: bool


def read_marks(path: Path) -> dict[str, list[MarkedRewrite]]:
    """The lines of a file by the id of their question."""
    marked: defaultdict[str, list[MarkedRewrite]] = defaultdict(list)
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                marked[row["id"]].append(_parse_marks(row))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"'{path}' cannot be read ({error!r}). Each line needs an id, an answer, a rewrite, and the "
            "marks right, true, apart and fluent."
        ) from None
    return dict(marked)


def _parse_marks(row: Mapping[str, Any]) -> MarkedRewrite:
    marks = [bool(row[name]) for name in ("right", "true", "apart", "fluent")]
    return MarkedRewrite(row["answer"], row["rewrite"], *marks)


@dataclass
class TrustData:
    """Rows of features with their labels."""

    answers: dict[bool, list[tuple[_Row, float]]] = field(
        default_factory=lambda: {True: [], False: []}
    )
    """Candidates, by whether the corpus is small."""
    best: list[tuple[_Row, float]] = field(default_factory=list)
    """The best candidate of each question, and whether there is an answer at all."""
    true: list[tuple[_Row, float]] = field(default_factory=list)
    fluent: list[tuple[_Row, float]] = field(default_factory=list)

    def add_answers(self, scene: Scene, question: Question) -> None:
        """The candidates of a question, labelled by its gold answers."""
        found = people.find_candidates(scene)
        if not found:
            return
        rows = people.answer_features(scene, found)
        labels = [float(_is_right(one, question)) for one in found]
        self.answers[scene.is_small] += zip(rows, labels, strict=True)
        best = max(rows, key=lambda row: (row["mark"], row["probability"]))
        self.best.append((best, max(labels)))

    def add_rewrites(self, scene: Scene, marked: Sequence[MarkedRewrite]) -> None:
        """The judged rewrites of a question's answers, each asked again beside the others."""
        by_answer: defaultdict[str, list[MarkedRewrite]] = defaultdict(list)
        for one in marked:
            by_answer[one.answer].append(one)
        targets = []
        for answer in by_answer:
            targets.append(locate(scene, Candidate(answer, 1.0), told=True))
        supports = [support(scene, target, policy=FOR_PEOPLE) for target in targets]
        question = scene.evidence.question
        texts = [one.rewrite for own in by_answer.values() for one in own]
        before, *asked = Panel.of(scene, targets).ask([question, *texts])
        results = zip(asked, judge_fluency(scene, texts), strict=True)
        for number, own in enumerate(by_answer.values()):
            for one in own:
                outcome, fluency = next(results)
                row = people.RewriteView(
                    question, one.rewrite, number, outcome, before, fluency, supports
                ).features
                self.fluent.append((row, float(one.fluent)))
                if one.right:
                    self.true.append((row, float(one.true and one.apart)))


def _is_right(candidate: Candidate, question: Question) -> bool:
    """Whether a candidate, in any of its forms, is a gold answer by the official comparison."""
    gold = {normalize(name) for names in question.answers for name in names}
    forms = {span.passage.text[span.start : span.end] for span in candidate.spans}
    return any(normalize(form) in gold for form in {candidate.answer, *forms})


def fit_answers(
    folder: Path, corpora: Iterable[CorpusQuestions], progress: Progress = silent
) -> Trust:
    """The trust of the model in `folder`, of which what small corpora's answers need is fitted anew."""
    compact = Compact(folder)
    data = TrustData()
    every = [(corpus, question) for corpus in corpora for question in corpus.questions]
    for done, (corpus, question) in enumerate(every, 1):
        hits = corpus.index.search(question.text, DEPTH, corpus.method)
        scene = compact.over(len(corpus.index)).read_search(question.text, hits)
        data.add_answers(scene, question)
        progress(done / len(every), done)
    known = compact.trust
    answer = _fit(data.answers[True], Trust().in_small.answer, people.IN_SMALL_BY)
    return replace(
        known,
        in_small=replace(IN_SMALL, answer=answer),
        answerable=_fit(data.best, Trust().answerable, people.IN_SMALL_BY),
    )


def fit_trust(
    folder: Path,
    judged: Iterable[tuple[CorpusQuestions, Mapping[str, Sequence[MarkedRewrite]]]],
    progress: Progress = silent,
) -> Trust:
    """The trust of the model in `folder`, fitted on questions over their corpora and on judged rewrites of some."""
    compact = Compact(folder)
    data = TrustData()
    every = list(_pair_up(judged))
    for done, (corpus, question, marked) in enumerate(every, 1):
        hits = corpus.index.search(question.text, DEPTH, corpus.method)
        scene = compact.over(len(corpus.index)).read_search(question.text, hits)
        data.add_answers(scene, question)
        if marked:
            data.add_rewrites(scene, marked)
        progress(done / len(every), done)
    return build_trust(data, has_marks=compact.tagger is not None)


def judged_corpora(
    data: DataConfig,
) -> Iterator[tuple[CorpusQuestions, dict[str, list[MarkedRewrite]]]]:
    """Corpora with judged rewrites: the topics of each folder that has them, and half of the embedded sample."""
    for folder in data.topic_folders:
        if not (folder / MARKS).exists():
            continue
        marks = read_marks(folder / MARKS)
        topics = Topics.read([folder])
        names = {topic_of(name) for name in marks}
        for corpus in topics.only(names).corpora():
            yield corpus, marks
    sample_marks: dict[str, list[MarkedRewrite]] = {}
    for home in HOMES:
        if (home / "sample" / MARKS).exists():
            sample_marks |= read_marks(home / "sample" / MARKS)
    yield training_half_of_sample(), sample_marks


def _pair_up(
    judged: Iterable[tuple[CorpusQuestions, Mapping[str, Sequence[MarkedRewrite]]]],
) -> Iterator[tuple[CorpusQuestions, Question, Sequence[MarkedRewrite]]]:
    for corpus, marks in judged:
        for question in corpus.questions:
            yield corpus, question, marks.get(question.id, ())


def build_trust(data: TrustData, *, has_marks: bool) -> Trust:
    """Nets over the rows; the defaults where there are too few."""
    default = Trust()
    by_size = (people.IN_LARGE_BY, people.IN_SMALL_BY)
    large_by, small_by = by_size if has_marks else (people.WITHOUT_MARKS_BY,) * 2
    in_large = _fit(data.answers[False], default.in_large.answer, large_by)
    in_small = _fit(data.answers[True], default.in_small.answer, small_by)
    return Trust(
        replace(default.in_large, answer=in_large),
        replace(default.in_small, answer=in_small),
        _fit(data.best, default.answerable, small_by),
        _fit(data.true, default.true),
        _fit(data.fluent, default.fluent),
    )


def _fit(labelled: Sequence[tuple[_Row, float]], default: Net, names: Sequence[str] = ()) -> Net:
    """A net over the features of these names, or over all; the default where there are too few rows."""
    labels = [label for _, label in labelled]
    if len(labels) < _FEWEST or not 0 < sum(labels) < len(labels):
        return default
    rows = []
    for row, _ in labelled:
        rows.append({name: row[name] for name in names or row})
    return fit(rows, labels)
