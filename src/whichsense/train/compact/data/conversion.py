"""Datasets as questions to train on: each with its distinct answers and, if there are any, rewrites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from whichsense.datasets import (
    Annotation,
    Context,
    GroundedQuestion,
    Question,
    SituatedQuestion,
    merge_answers,
)

REWRITES = (
    "rewrites of "  # prefix of the source of rewrites that are asked as questions
)
_LABELLED = ("ambignq", "sample")  # annotators said whether there are several readings
_PASSAGE_WORDS = 130  # of a passage that comes with a question: as long as an index's
_NEIGHBOURS = 9  # passages of the same article, beside one that does not answer
_MAX_REWRITES = 6


@dataclass(frozen=True, slots=True)
class GoldRewrite:
    """One reading of a question."""

    rewrites: tuple[str, ...]
    """Equivalent wordings by annotators."""
    answers: tuple[str, ...]
    """Aliases of the reading's answer."""
    others: tuple[str, ...]
    """The answers of the other readings."""


@dataclass(frozen=True, slots=True)
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
    """The questions of a dataset of any kind; `name` becomes their source."""
    situated = []
    grounded = []
    others = []
    for question in questions:
        if isinstance(question, SituatedQuestion):
            situated.append(question)
        elif isinstance(question, GroundedQuestion):
            grounded.append(question)
        else:
            others.append(question)
    yield from _convert_situated(situated, name)
    yield from _convert_grounded(grounded, name)
    for question in others:
        yield convert_ambiguous(question, name)


def convert_ambiguous(question: Question, name: str) -> TrainingQuestion:
    """A question in AmbigNQ's form. One with a single answer is the simplest case."""
    rewritings: list[GoldRewrite] = []
    for annotation in question.annotations:
        rewritings += _gold_rewrites(annotation)
    # Other datasets do not say whether there are more readings.
    label = -1
    if question.annotations and name.startswith(_LABELLED):
        label = int(not all(one.is_single for one in question.annotations))
    return TrainingQuestion(
        question.text, name, question.answers, tuple(rewritings), label
    )


def _gold_rewrites(annotation: Annotation) -> Iterator[GoldRewrite]:
    for pair in annotation.pairs:
        others = []
        for other in annotation.pairs:
            # Prompts name the shortest alias of each other answer.
            if other is not pair and other.answers:
                others.append(min(other.answers, key=len))
        if others and pair.answers and any(pair.questions):
            yield GoldRewrite(pair.questions, pair.answers, tuple(others))


def convert_rewrites(
    questions: Iterable[Question], name: str
) -> Iterator[TrainingQuestion]:
    """The rewrites of ambiguous questions, each asked as a question."""
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
        pairs = []
        for edit in edits:
            if edit.rewrite and edit.answers:
                pairs.append((edit.rewrite, edit.answers[0]))
        pairs = pairs[:_MAX_REWRITES]
        if pairs:
            answers = merge_answers([aliases for _, aliases in pairs])
            yield TrainingQuestion(prompt, name, answers, _situated_rewrites(pairs))
            rewrite, aliases = pairs[0]
            yield TrainingQuestion(rewrite, REWRITES + name, (aliases,))


def _situated_rewrites(
    pairs: Sequence[tuple[str, tuple[str, ...]]],
) -> tuple[GoldRewrite, ...]:
    """A reading needs another one with other answers beside it."""
    rewritings = []
    for rewrite, answers in pairs:
        others = []
        for _, other in pairs:
            if not set(other) & set(answers):
                others.append(min(other, key=len))
        if others:
            rewritings.append(GoldRewrite((rewrite,), answers, tuple(others)))
    return tuple(rewritings)


def _convert_grounded(
    questions: Sequence[GroundedQuestion], name: str
) -> Iterator[TrainingQuestion]:
    """Each with the passage that answers; one without an answer gets passages of its article, and no search."""
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
    passages = []
    for passage in question.passages:
        if passage.gold:
            text = " ".join(passage.text.split()[:_PASSAGE_WORDS])
            passages.append(replace(passage, text=text))
    return passages


def _neighbours(
    passage: Context, articles: dict[str, dict[str, Context]]
) -> list[Context]:
    same_article = articles[passage.title].values()
    others = [one for one in same_article if one.text != passage.text]
    return others[:_NEIGHBOURS]
