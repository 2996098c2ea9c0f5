"""The data of the compact model's recipes: questions to learn from and to measure on, corpora."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from whichsense import sample
from whichsense.errors import BadConfig, BadInput
from whichsense.index import Index
from whichsense.index.search import SavedHits
from whichsense.lab.datasets import (
    Annotation,
    Context,
    GroundedQuestion,
    Question,
    SituatedQuestion,
    find_near_duplicates,
    load_questions,
    locate_questions,
    merge_answers,
)
from whichsense.lab.train.recipes import HOMES
from whichsense.models.bert.inputs import ABOUT
from whichsense.text.words import normalize, words
from whichsense.types import Hit, Method, Passage, frozen

# What the recipes of the compact model say of their data: `[data]` and `[lists]`.

TOPICS_FIX = "Give a folder with both files as recipes/topics has them, or 'topics' or 'documents', which ship."
_TOPIC_FILES = ("passages.jsonl", "questions.jsonl")
REWRITE_FILES = ("rewrites.jsonl", "rewrites.jsonl.xz")
_MORE_TOPIC_FILES = ("relations.jsonl", *REWRITE_FILES, "judged.jsonl", "trust.jsonl")


@frozen
class DataConfig:
    """A recipe's `[data]`: the questions, and the index whose passages they are read with."""

    train: str = "ambignq/train"
    """Questions with rewrites: a dataset by name, or a file in AmbigNQ's form; so is `dev`."""
    more: tuple[str, ...] = ()
    """Other datasets, the preferred ones first: a question that an earlier one has is left out."""
    dev: str = "ambignq/val"
    without: tuple[str, ...] = ()
    """Datasets whose questions and rewrites, and near copies of them, must not be learnt from."""
    held: int = 0
    """Every so many-th question of `train`, by a hash of its id, is held out: the scorer is fitted on them."""
    weights: dict[str, float] = field(default_factory=dict)
    """How often questions are drawn, by a prefix of the dataset's name; 1 for all others. Rewrites that are asked as
    questions have the prefix `rewrites of `."""
    topics: str | tuple[str, ...] = ()
    """Folders with topics whose gold answers are complete (`topics.py`), or names of those that ship with the
    recipes: compact-topics learns from most topics, and the scorer is fitted on the others, too."""
    index: str = ""
    """The folder of an index; empty: the embedded sample."""
    hits: str | tuple[str, ...] = ()
    """In place of an index: a file, or several, with the hits of all questions (`whichsense retrieve`)."""
    method: Method | None = None
    folder: str = ""
    """The folder of the datasets, if it is not where `whichsense data` looks."""
    limit: int = 0
    """Use only so many questions of each dataset, and so many topics; 0: all."""
    dev_limit: int = 0

    def paths(self) -> list[Path]:
        """Return the files whose checksums a run records: the questions, and the hits or the index's manifest."""
        # A dataset may serve twice; its checksum is recorded once.
        names = dict.fromkeys([self.train, *self.more, self.dev])
        files = [locate_questions(name, self.folder or None) for name in names]
        # Hits take the place of an index.
        if self.hit_files:
            return files + self.hit_files
        if self.index:
            return [*files, Path(self.index) / "manifest.json"]
        return [*files, sample.PASSAGES]

    @property
    def topic_folders(self) -> list[Path]:
        """The folders of `topics`. Raise BadConfig for one without passages and questions."""
        names = [self.topics] if isinstance(self.topics, str) else self.topics
        return [_find_topics(name) for name in names if name]

    @property
    def topic_files(self) -> list[Path]:
        """All files of `topics`."""
        files = [
            folder / name
            for folder in self.topic_folders
            for name in (*_TOPIC_FILES, *_MORE_TOPIC_FILES)
            if (folder / name).is_file()
        ]
        return files

    @property
    def hit_files(self) -> list[Path]:
        names = [self.hits] if isinstance(self.hits, str) else self.hits
        return [Path(name) for name in names if name]

    def read(self, name: str) -> list[Question]:
        """Return the questions of a dataset or a file."""
        return load_questions(name, self.folder or None)[0]


def _find_topics(name: str) -> Path:
    # A folder of one's own comes first, then those of the recipes.
    for home in (Path(), *HOMES):
        folder = home / name
        if all((folder / file).is_file() for file in _TOPIC_FILES):
            return folder
    raise BadConfig(f"data.topics: '{name}' lacks {' or '.join(_TOPIC_FILES)}. {TOPICS_FIX}")


@frozen
class ListConfig:
    """A recipe's `[lists]`: the passages of each question."""

    folder: str = ""
    """Where lists are stored, for all recipes that learn from them; empty: nowhere."""
    depth: int = 64
    """Hits that passages are chosen from."""
    passages: int = 20
    """Passages of a list to train on."""
    measured: int = 24
    """Passages of a list to evaluate on: the first hits."""
    processes: int = 16
    """Processes that build lists which are stored in a folder: at most one a core, on Linux."""
    part: int = 1000
    """Questions in one file of the folder: what a stop loses at most."""


# Datasets as questions to train on: each with its distinct answers and, if there are any, rewrites.

REWRITES = "rewrites of "  # prefix of the source of rewrites that are asked as questions
_LABELLED = ("ambignq", "sample")  # annotators said whether there are several readings
_PASSAGE_WORDS = 130  # of a passage that comes with a question: as long as an index's
_NEIGHBOURS = 9  # passages of the same article, beside one that does not answer
_MAX_REWRITES = 6


@frozen
class GoldRewrite:
    """One reading of a question."""

    rewrites: tuple[str, ...]
    """Equivalent wordings by annotators."""
    answers: tuple[str, ...]
    """Aliases of the reading's answer."""
    others: tuple[str, ...]
    """The answers of the other readings."""


@frozen
class TrainingQuestion:
    """A question to train on."""

    text: str
    source: str
    """The dataset, or `rewrites of ` it."""
    answers: tuple[tuple[str, ...], ...]
    """Distinct answers, each with its aliases; none if there is no answer to be found."""
    rewritings: tuple[GoldRewrite, ...] = ()
    ambiguous: int = -1
    """1 or 0 by annotators; -1 without a label."""
    passages: tuple[Context, ...] = ()
    """Passages that come with the question."""
    searched: bool = True
    """Whether an index is searched for more passages."""
    complete: bool = False
    """Whether the answers are all that the passages give: any other string in them is wrong."""
    refuted: bool = False
    """Whether the answers are wrong: what the question adds is not true of them. It may have other answers or none."""


def convert(questions: Sequence[Question], name: str) -> Iterator[TrainingQuestion]:
    """Yield the questions of a dataset of any kind; `name` becomes their source."""
    situated = [one for one in questions if isinstance(one, SituatedQuestion)]
    grounded = [one for one in questions if isinstance(one, GroundedQuestion)]
    yield from _convert_situated(situated, name)
    yield from _convert_grounded(grounded, name)
    for question in questions:
        if not isinstance(question, SituatedQuestion | GroundedQuestion):
            yield convert_ambiguous(question, name)


def convert_ambiguous(question: Question, name: str) -> TrainingQuestion:
    """Return a question in AmbigNQ's form. One with a single answer is the simplest case."""
    rewritings: list[GoldRewrite] = []
    for annotation in question.annotations:
        rewritings += _gold_rewrites(annotation)
    # Other datasets do not say whether there are more readings.
    label = -1
    if question.annotations and name.startswith(_LABELLED):
        label = int(not all(one.is_single for one in question.annotations))
    return TrainingQuestion(question.text, name, question.answers, tuple(rewritings), label)


def _gold_rewrites(annotation: Annotation) -> Iterator[GoldRewrite]:
    for pair in annotation.pairs:
        # Prompts name the shortest alias of each other answer.
        others = [
            min(other.answers, key=len)
            for other in annotation.pairs
            if other is not pair and other.answers
        ]
        if others and pair.answers and any(pair.questions):
            yield GoldRewrite(pair.questions, pair.answers, tuple(others))


def convert_rewrites(questions: Iterable[Question], name: str) -> Iterator[TrainingQuestion]:
    """Yield the rewrites of ambiguous questions, each asked as a question."""
    for question in questions:
        for annotation in question.annotations:
            # The rewrite of a single reading adds nothing to the question.
            if len(annotation.pairs) < 2:
                continue
            for pair in annotation.pairs:
                for text in filter(None, pair.questions):
                    yield TrainingQuestion(text, REWRITES + name, (pair.answers,))


def _convert_situated(
    questions: Iterable[SituatedQuestion], name: str
) -> Iterator[TrainingQuestion]:
    """Prompts whose readings are dates or places, and for each prompt one of its rewrites as a question."""
    by_prompt: defaultdict[str, list[SituatedQuestion]] = defaultdict(list)
    for question in questions:
        by_prompt[question.text].append(question)
    # SituatedQA has a record for each edit of a prompt.
    for prompt, edits in by_prompt.items():
        pairs = [(edit.rewrite, edit.answers[0]) for edit in edits if edit.rewrite and edit.answers]
        pairs = pairs[:_MAX_REWRITES]
        if pairs:
            answers = merge_answers([aliases for _, aliases in pairs])
            yield TrainingQuestion(prompt, name, answers, _situated_rewrites(pairs))
            rewrite, aliases = pairs[0]
            yield TrainingQuestion(rewrite, REWRITES + name, (aliases,))


def _situated_rewrites(pairs: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[GoldRewrite, ...]:
    """Return the rewrites of readings that have others with other answers beside them."""
    rewritings = []
    for rewrite, answers in pairs:
        others = [min(other, key=len) for _, other in pairs if not set(other) & set(answers)]
        if others:
            rewritings.append(GoldRewrite((rewrite,), answers, tuple(others)))
    return tuple(rewritings)


def _convert_grounded(
    questions: Sequence[GroundedQuestion], name: str
) -> Iterator[TrainingQuestion]:
    """Yield each question with the passage that answers it; one without an answer gets passages of its article, and no
    search."""
    gold = [_gold_passages(question) for question in questions]
    articles: defaultdict[str, dict[str, Context]] = defaultdict(dict)
    for passages in gold:
        for passage in passages:
            articles[passage.title][passage.text] = passage
    for question, passages in zip(questions, gold, strict=True):
        text = question.text
        answers = question.answers
        if answers:
            own = tuple(passages[:1])
            yield TrainingQuestion(text, name, answers, passages=own)
        elif passages:
            own = (passages[0], *_neighbours(passages[0], articles))
            yield TrainingQuestion(text, name, (), passages=own, searched=False)


def _gold_passages(question: GroundedQuestion) -> list[Context]:
    """Cut to the length of an index's passages."""
    return [
        replace(passage, text=" ".join(passage.text.split()[:_PASSAGE_WORDS]))
        for passage in question.passages
        if passage.gold
    ]


def _neighbours(passage: Context, articles: dict[str, dict[str, Context]]) -> list[Context]:
    same_article = articles[passage.title].values()
    return [one for one in same_article if one.text != passage.text][:_NEIGHBOURS]


# Which questions are trained on, which are for evaluation, and which are held out for the scorer.

_FEWEST_WORDS = 3


def training_questions(data: DataConfig) -> list[TrainingQuestion]:
    """Return all questions to train on, each once, without near copies of those that are reserved for measuring."""
    learnable, reserved = _split_train(data)
    by_words: dict[str, TrainingQuestion] = {}
    for question in _convert_all(data, learnable):
        question_words = words(question.text)
        # One or two words are not a question.
        if len(question_words) >= _FEWEST_WORDS:
            # The first dataset that asks a question keeps it.
            by_words.setdefault(" ".join(question_words), question)
    unique = list(by_words.values())
    copies = _find_copies([one.text for one in unique], reserved)
    usable = [question for number, question in enumerate(unique) if number not in copies]
    if not usable:
        raise BadInput(f"'{data.train}' has no question that could be learnt from.")
    return usable


def _convert_all(data: DataConfig, learnable: Sequence[Question]) -> Iterator[TrainingQuestion]:
    """Yield all questions, the preferred datasets first; rewrites are questions too."""
    train = learnable[: data.limit or None]
    for question in train:
        yield convert_ambiguous(question, data.train)
    yield from convert_rewrites(train, data.train)
    for name in data.more:
        yield from convert(data.read(name)[: data.limit or None], name)


def _split_train(data: DataConfig) -> tuple[list[Question], list[Question]]:
    """Return what of `train` may be learnt, and what is reserved: held-out questions and the datasets of `without`."""
    reserved = []
    for name in data.without:
        reserved += data.read(name)
    # `train` is read whole: which questions are held out depends on their ids alone.
    learnable = []
    for question in data.read(data.train):
        if is_held_out(question.id, data.held):
            reserved.append(question)
        else:
            learnable.append(question)
    return learnable, reserved


def _find_copies(texts: Sequence[str], reserved: Sequence[Question]) -> Collection[int]:
    reserved_texts = []
    for question in reserved:
        reserved_texts += wordings(question)
    return find_near_duplicates(texts, reserved_texts)


def find_copies(texts: Sequence[str], data: DataConfig) -> Collection[int]:
    """Return which of these texts repeat, or nearly repeat, a question that is reserved for measuring."""
    return _find_copies(texts, _split_train(data)[1])


def dev_questions(data: DataConfig) -> list[TrainingQuestion]:
    """Return the answerable questions of `dev`."""
    questions = [
        convert_ambiguous(question, data.dev)
        for question in data.read(data.dev)
        if question.is_answerable
    ]
    return questions[: data.dev_limit or None]


def held_out_questions(data: DataConfig) -> list[Question]:
    """Return those of `train` that nothing was learnt from: the scorer is fitted on them."""
    return [question for question in data.read(data.train) if is_held_out(question.id, data.held)]


def labelled_questions(data: DataConfig) -> list[Question]:
    """Return those of `train` that are learnt from: annotators labelled which of them are ambiguous."""
    used = training_questions(replace(data, more=()))
    texts = {question.text for question in used}
    learnable, _ = _split_train(data)
    return [question for question in learnable if question.text in texts]


def is_held_out(name: str, every: int) -> bool:
    """Return whether a hash of the name falls on one in `every`; never for 0."""
    if not every:
        return False
    # A hash of the id is stable when a dataset gets more questions.
    digest = hashlib.md5(name.encode(), usedforsecurity=False)
    return int(digest.hexdigest(), 16) % every == 0


def is_trained_on(sample_id: str) -> bool:
    """Return whether a question of the embedded sample is trained on: half of its topics, by a hash. Results use the
    others.

    >>> is_trained_on("dune-q1") == is_trained_on("dune-q2")
    True
    """
    return is_held_out(sample_id.rpartition("-")[0], 2)


def wordings(question: Question) -> list[str]:
    """Return a question and all its rewrites."""
    rewrites: dict[str, None] = {}
    for annotation in question.annotations:
        for pair in annotation.pairs:
            rewrites.update(dict.fromkeys(pair.questions))
    return [question.text, *rewrites]


# Where the passages of lists are searched: saved hits, an index, or the embedded sample.


class PassageSearch(Protocol):
    def search_many(
        self, questions: Sequence[str], k: int, method: Method | None
    ) -> list[list[Hit]]: ...


@dataclass(frozen=True)
class _HitFiles:
    """Several files with hits as one: a question's hits are those of the first file that has it."""

    files: tuple[SavedHits, ...]

    def search_many(
        self, questions: Sequence[str], k: int, method: Method | None
    ) -> list[list[Hit]]:
        hits = []
        for question in questions:
            hits += self._file_of(question).search_many([question], k, method)
        return hits

    def _file_of(self, question: str) -> SavedHits:
        for file in self.files:
            if question in file:
                return file
        return self.files[-1]  # whose error says that the question is missing


def open_search(data: DataConfig) -> PassageSearch:
    if data.hit_files:
        return _HitFiles(tuple(_open_hits(path) for path in data.hit_files))
    if data.index:
        return Index.open(Path(data.index))
    return sample.index()


@cache
def _open_hits(path: Path) -> SavedHits:
    """Opened once: questions to train on and to evaluate on share a file."""
    return SavedHits.open(path)


def can_fork(search: object) -> bool:
    """Return whether forked processes may search. Torch, which a DPR index is searched with, does not run in them."""
    # The folder of a DPR's question encoder has bert.json; other encoders run without torch.
    encoder = search.manifest.encoder if isinstance(search, Index) else None
    return not encoder or not (Path(encoder) / ABOUT).is_file()


# Corpora that the scorer is fitted on: an index, small corpora cut out of it, half of the embedded
# sample.
#
# Answers are likelier in a few clear documents than in a large corpus, and a question without an
# answer looks different. A scorer that has seen only one kind is wrong about the other.

DEPTH = 40  # hits of a question, as when it is asked
_QUESTIONS = 90  # of a small corpus
_UNANSWERED = 0.15  # how often a question's answers are left out of a small corpus
_OTHER_PASSAGES = 4  # of a question, at most
_ANSWERS = 6


@dataclass(frozen=True)
class CorpusQuestions:
    """Questions, and the corpus that they are asked over."""

    index: Index
    questions: Sequence[Question]
    method: Method | None = None

    def search(self, text: str, depth: int) -> list[Passage]:
        hits = self.index.search(text, depth, self.method)
        return [hit.passage for hit in hits]


def training_half_of_sample() -> CorpusQuestions:
    """Return the topics of the embedded sample that may be learnt from; figures are reported on the others."""
    questions = [
        question
        for name in ("questions", "unanswerable")
        for question in load_questions(f"sample/{name}")[0]
        if is_trained_on(question.id)
    ]
    return CorpusQuestions(sample.index(), questions)


def small_corpora(large: CorpusQuestions, seed: int = 7) -> Iterator[CorpusQuestions]:
    """Yield the same questions over small corpora: a few passages of each question, some without its answers."""
    rng = random.Random(seed)
    chosen = []
    for question in rng.sample(large.questions, len(large.questions)):
        passages = _choose_passages(question, large, rng)
        if passages:
            chosen.append((question, passages))
    for start in range(0, len(chosen), _QUESTIONS):
        part = chosen[start : start + _QUESTIONS]
        corpus = {passage.id: passage for _, passages in part for passage in passages}
        questions = [_restrict_answers(*one) for one in part]
        yield CorpusQuestions(build_corpus(corpus.values()), questions)


def build_corpus(passages: Iterable[Passage]) -> Index:
    """Return a small index of these passages, in memory."""
    records = [
        {"id": passage.id, "title": passage.title, "text": passage.text} for passage in passages
    ]
    return Index.of(records)


def _choose_passages(
    question: Question, large: CorpusQuestions, rng: random.Random
) -> list[Passage]:
    """Return passages with the question's answers and a few others; sometimes only others. None if no answer is
    found."""
    passages = large.search(question.text, DEPTH)
    by_answer = []
    positive_ids: set[str] = set()
    for names in question.answers:
        holding = []
        for passage in passages:
            if contains_answer(passage, names):
                holding.append(passage)
                positive_ids.add(passage.id)
        if holding:
            by_answer.append(holding)
    if not by_answer:
        return []
    if rng.random() < _UNANSWERED:
        return [one for one in passages if one.id not in positive_ids][:_OTHER_PASSAGES]
    chosen = passages[: rng.randint(1, _OTHER_PASSAGES)]
    for holding in by_answer[:_ANSWERS]:
        chosen += holding[: rng.randint(1, 2)]
    return chosen


def _restrict_answers(question: Question, passages: Sequence[Passage]) -> Question:
    """Return the question with only those answers that the passages hold."""
    annotations = []
    for annotation in question.annotations:
        pairs = [
            pair
            for pair in annotation.pairs
            if any(contains_answer(one, pair.answers) for one in passages)
        ]
        if pairs:
            kind = annotation.kind if len(pairs) > 1 else "singleAnswer"
            annotations.append(Annotation(kind, tuple(pairs)))
    return replace(question, annotations=tuple(annotations))


def contains_answer(passage: Passage, names: Sequence[str]) -> bool:
    """Return whether a passage holds an answer, by one of its names."""
    text = f" {normalize(f'{passage.title} {passage.text}')} "
    return any(name and f" {name} " in text for name in map(normalize, names))
