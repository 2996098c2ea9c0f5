"""Questions to learn from, out of several datasets: each with its distinct answers and, where there are, rewrites."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from whichsense import sample
from whichsense.datasets import (
    Context,
    GroundedQuestion,
    Question,
    SituatedQuestion,
    find_near_duplicates,
    load_questions,
    locate_questions,
    merge_answers,
)
from whichsense.errors import BadConfig, BadInput
from whichsense.text.words import words
from whichsense.train.recipes.files import HOMES
from whichsense.types import Method

_FEWEST_WORDS = 3
_MOST_WORDS = (
    130  # of a passage that comes with a question: as long as those of an index
)
_NEIGHBOURS = 9  # passages of the same article, beside one that does not answer
_MOST_REWRITES = 6
_TOPIC_FILES = ("passages.jsonl", "questions.jsonl")
TOPICS_FIX = "Give a folder with both files as recipes/topics has them, or 'topics', which ships."
REWRITES = "rewrites of "  # the source of rewrites that are asked as questions


@dataclass(frozen=True, slots=True)
class Data:
    """A recipe's `[data]`: which questions, and the index whose passages they are read with."""

    train: str = "ambignq/train"
    """Questions with rewrites: a dataset by name, or a file in AmbigNQ's form; so is `dev`."""
    more: tuple[str, ...] = ()
    """Other datasets, from most to least welcome: what an earlier one has asked is not asked again."""
    dev: str = "ambignq/val"
    without: tuple[str, ...] = ()
    """Datasets whose questions and rewrites, and near copies of them, must not be learnt from."""
    held: int = 0
    """Every so many-th question of `train`, by a hash of its id, is not learnt from: the scorer is fitted on them."""
    weights: dict[str, float] = field(default_factory=dict)
    """How often questions are drawn, by the beginning of the dataset's name; 1 where nothing is said. Rewrites that are
    asked as questions: `rewrites of ` and the name."""
    topics: str = ""
    """A folder with topics all of whose answers are told (`topics.py`), or the name of one that ships with the recipes:
    compact-topics learns from most of them, and the scorer is fitted on the others, too."""
    index: str = ""
    """The folder of an index; empty: the embedded sample."""
    hits: str | tuple[str, ...] = ()
    """In place of an index: a file, or several, with what was found for all questions (`whichsense retrieve`)."""
    method: Method | None = None
    folder: str = ""
    """Where the datasets lie, if not where `whichsense data` looks."""
    limit: int = 0
    """Only so many questions of each dataset, and so many topics; 0: all."""
    dev_limit: int = 0

    def paths(self) -> list[Path]:
        """The files whose checksums a run records: the questions, and the hits or the index's manifest."""
        names = dict.fromkeys([self.train, *self.more, self.dev])
        files = [locate_questions(name, self.folder or None) for name in names]
        searched = Path(self.index) / "manifest.json" if self.index else sample.PASSAGES
        return [*files, *(self.kept or [searched])]

    @property
    def topic_files(self) -> list[Path]:
        """The passages and the questions of `topics`, if it names any."""
        if not self.topics:
            return []
        folders = [Path(self.topics), *(home / self.topics for home in HOMES)]
        found = next(
            (
                folder
                for folder in folders
                if all((folder / name).is_file() for name in _TOPIC_FILES)
            ),
            None,
        )
        if found is None:
            raise BadConfig(
                f"data.topics: '{self.topics}' lacks {' or '.join(_TOPIC_FILES)}. {TOPICS_FIX}"
            )
        return [found / name for name in _TOPIC_FILES]

    @property
    def kept(self) -> list[Path]:
        """The files with hits."""
        return [
            Path(name)
            for name in ([self.hits] if isinstance(self.hits, str) else self.hits)
            if name
        ]

    def read(self, name: str) -> list[Question]:
        return load_questions(name, self.folder or None)[0]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One reading: the rewrites that annotators wrote, its answer's aliases, and the answers of the other readings."""

    rewrites: tuple[str, ...]
    answers: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to learn from."""

    text: str
    source: str
    """The dataset, or `rewrites of ` it."""
    answers: tuple[tuple[str, ...], ...]
    """Distinct ones, with aliases; none where there is no answer to be found."""
    rewritings: tuple[Rewriting, ...] = ()
    ambiguous: int = -1
    """1 or 0 where annotators said so."""
    passages: tuple[Context, ...] = ()
    """That come with it."""
    searched: bool = True
    """Whether an index is searched for more."""
    complete: bool = False
    """Whether every answer is told that its passages give: whatever else stands in them is wrong."""


def training(data: Data) -> list[Asked]:
    """All questions to learn from, each once, without near copies of those that are kept for measuring."""
    found: dict[str, Asked] = {}
    own, kept = _parted(data)
    for one in _all(data, own):
        if len(words(one.text)) >= _FEWEST_WORDS:
            found.setdefault(" ".join(words(one.text)), one)
    return _without_copies(list(found.values()), kept, data.train)


def _parted(data: Data) -> tuple[list[Question], list[Question]]:
    """What may be learnt of `train`, and what is kept: its held-out questions and the datasets of `without`."""
    own = data.read(data.train)
    kept = [question for name in data.without for question in data.read(name)]
    kept += [question for question in own if is_held(question.id, data.held)]
    return [question for question in own if not is_held(question.id, data.held)], kept


def _without_copies(
    asked: Sequence[Asked], kept: Sequence[Question], name: str
) -> list[Asked]:
    repeated = _copies([one.text for one in asked], kept)
    found = [one for number, one in enumerate(asked) if number not in repeated]
    if not found:
        raise BadInput(f"'{name}' has no question that could be learnt from.")
    return found


def _copies(texts: Sequence[str], kept: Sequence[Question]) -> Collection[int]:
    return find_near_duplicates(
        texts, [text for question in kept for text in wordings(question)]
    )


def copies(texts: Sequence[str], data: Data) -> Collection[int]:
    """Which of these questions repeat one that is kept for measuring, or nearly."""
    return _copies(texts, _parted(data)[1])


def development(data: Data) -> list[Asked]:
    found = [
        ambiguous(question, data.dev)
        for question in data.read(data.dev)
        if question.is_answerable
    ]
    return found[: data.dev_limit] if data.dev_limit else found


def held_out(data: Data) -> list[Question]:
    """What the scorer may be fitted on: nothing of it was learnt."""
    return [
        question
        for question in data.read(data.train)
        if is_held(question.id, data.held)
    ]


def labelled(data: Data) -> list[Question]:
    """Those of `train` that are learnt from: their annotators said which are ambiguous."""
    learnt = {one.text for one in training(replace(data, more=()))}
    return [question for question in _parted(data)[0] if question.text in learnt]


def is_held(question_id: str, every: int) -> bool:
    return (
        bool(every)
        and int(
            hashlib.md5(question_id.encode(), usedforsecurity=False).hexdigest(), 16
        )
        % every
        == 0
    )


def is_trained_on(sample_id: str) -> bool:
    """Whether a question of the embedded sample is trained on: half of its topics, by a hash. Results use the others.

    >>> is_trained_on("dune-q1") == is_trained_on("dune-q2")
    True
    """
    topic = sample_id.rpartition("-")[0]
    return is_held(topic, 2)


def wordings(question: Question) -> list[str]:
    """A question and all its rewrites."""
    rewrites = [
        text
        for note in question.annotations
        for pair in note.pairs
        for text in pair.questions
    ]
    return [question.text, *dict.fromkeys(rewrites)]


def _all(data: Data, own: Sequence[Question]) -> Iterator[Asked]:
    """In the order in which they are preferred: rewrites are questions too."""
    some = own[: data.limit or None]
    yield from (ambiguous(question, data.train) for question in some)
    for question in some:
        for note in question.annotations:
            if len(note.pairs) > 1:
                texts = (
                    (text, pair.answers)
                    for pair in note.pairs
                    for text in pair.questions
                    if text
                )
                yield from (
                    Asked(text, REWRITES + data.train, (answers,))
                    for text, answers in texts
                )
    for name in data.more:
        yield from _of_kind(data.read(name)[: data.limit or None], name)


def _of_kind(questions: Sequence[Question], name: str) -> Iterator[Asked]:
    situated = [
        question for question in questions if isinstance(question, SituatedQuestion)
    ]
    grounded = [
        question for question in questions if isinstance(question, GroundedQuestion)
    ]
    rest = [
        question
        for question in questions
        if not isinstance(question, SituatedQuestion | GroundedQuestion)
    ]
    yield from _situated(situated, name)
    yield from _grounded(grounded, name)
    yield from (ambiguous(question, name) for question in rest)


def ambiguous(question: Question, name: str) -> Asked:
    """A question as AmbigNQ has them; one with a single answer is the simplest case."""
    rewritings = []
    for note in question.annotations:
        for pair in note.pairs:
            others = tuple(
                min(other.answers, key=len)
                for other in note.pairs
                if other is not pair and other.answers
            )
            if others and pair.answers and any(pair.questions):
                rewritings.append(Rewriting(pair.questions, pair.answers, others))
    kinds = [note.is_single for note in question.annotations]
    label = int(not all(kinds)) if kinds and name.startswith(_LABELLED) else -1
    return Asked(question.text, name, question.answers, tuple(rewritings), label)


_LABELLED = (
    "ambignq",
    "sample",
)  # whose annotators were asked whether there are several readings


def _situated(questions: Iterable[SituatedQuestion], name: str) -> Iterator[Asked]:
    """Prompts whose readings are dates or places, and for each prompt one of its rewrites as a question."""
    prompts: defaultdict[str, list[SituatedQuestion]] = defaultdict(list)
    for question in questions:
        prompts[question.text].append(question)
    for text, edits in prompts.items():
        pairs = [
            (edit.rewrite, edit.answers[0])
            for edit in edits
            if edit.rewrite and edit.answers
        ][:_MOST_REWRITES]
        rewritings = []
        for rewrite, answers in pairs:
            others = tuple(
                min(other, key=len)
                for _, other in pairs
                if not set(other) & set(answers)
            )
            if others:
                rewritings.append(Rewriting((rewrite,), answers, others))
        if pairs:
            yield Asked(
                text,
                name,
                merge_answers([answers for _, answers in pairs]),
                tuple(rewritings),
            )
            yield Asked(pairs[0][0], REWRITES + name, (pairs[0][1],))


def _grounded(questions: Iterable[GroundedQuestion], name: str) -> Iterator[Asked]:
    """With the passage that answers; or, where it does not, with others of its article, and no search."""
    articles: defaultdict[str, dict[str, Context]] = defaultdict(dict)
    kept = [
        (question, [_short(one) for one in question.passages if one.gold])
        for question in questions
    ]
    for _, passages in kept:
        for one in passages:
            articles[one.title][one.text] = one
    for question, passages in kept:
        if question.answers:
            yield Asked(
                question.text, name, question.answers, passages=tuple(passages[:1])
            )
        elif passages:
            first = passages[0]
            near = [
                one for one in articles[first.title].values() if one.text != first.text
            ]
            yield Asked(
                question.text,
                name,
                (),
                passages=(first, *near[:_NEIGHBOURS]),
                searched=False,
            )


def _short(passage: Context) -> Context:
    return replace(passage, text=" ".join(passage.text.split()[:_MOST_WORDS]))
