"""Democratic co-training with weak supervision (AmbigQA, algorithm 1, appendix D).

Readers learn from AmbigNQ, then read questions with one known answer (NQ-open) with that answer as the beginning of
their output. Where a majority goes on to the same other answers, these join the known one; where nobody goes on, it
stays the only one. Both kinds join the training data of the next iteration; the rest is left out.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from whichsense.config import from_table
from whichsense.errors import BadConfig
from whichsense.files import read_json, read_jsonl, write_atomically
from whichsense.jobs.limits import unsaid
from whichsense.lab.datasets import Annotation, QAPair, Question, load
from whichsense.lab.metrics.ambignq import best_f1
from whichsense.lab.tasks.generation import (
    AnswerPredictionOptions,
    build_answer_prediction,
    mean,
    read_answers,
)
from whichsense.lab.train.loop import MODEL, train
from whichsense.lab.train.recipes import Recipe, load_recipe
from whichsense.stages.read import SeqReader
from whichsense.text.words import normalize
from whichsense.types import Case, frozen

# Co-training recipes: which readers, how many, and which questions they label.


@frozen
class CoTraining:
    """The settings of a co-training recipe. The defaults are the paper's: six models, two iterations."""

    reader: str
    """The recipe of the readers, relative to this file: an answer-prediction recipe."""
    partial: str = "nq_open/train"
    """Questions of which one answer is known."""
    partial_limit: int = 0
    models: int = 6
    iterations: int = 2
    variants: tuple[str, ...] = ()
    """Changes of the reader's recipe, taken in turn, so that the models differ in more than their seed."""
    agreement: Literal["known", "free"] = "known"
    """When a question counts as having one answer: no model adds one to the known answer; or no model, asked without
    it, gives another (the pseudo-code's line 17)."""
    ensemble: tuple[int, ...] = (4, 5, 6)
    """Sizes of the final ensemble that are tried on the development questions."""
    changes: tuple[str, ...] = ()
    """Changes of the reader's recipe for all models."""
    tiny: bool = False

    def __post_init__(self) -> None:
        if self.models < 1 or self.iterations < 1:
            raise BadConfig("Co-training needs at least one model and one iteration.")


def load_cotraining(path: Path, *, tiny: bool = False) -> CoTraining:
    """Read a co-training recipe; `tiny` takes its `[tiny]` table."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadConfig(f"There is no recipe '{path}'. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' is not valid TOML: {error}") from None
    tiny_changes = table.pop("tiny", {})
    table.pop("about", "")
    if tiny:
        table |= {**tiny_changes, "tiny": True}
    return from_table(CoTraining, table, where=str(path))


def load_reader_recipe(settings: CoTraining, where: Path, number: int) -> Recipe:
    """Return the recipe of one model: the reader's, with its seed and its variant."""
    changes = list(settings.changes)
    if settings.variants:
        changes.append(settings.variants[number % len(settings.variants)])
    changes.append(f"train.seed={number}")
    recipe = load_recipe(where / settings.reader, changes, tiny=settings.tiny)
    if not isinstance(recipe.options, AnswerPredictionOptions):
        raise BadConfig(
            f"'{settings.reader}' trains '{recipe.task}'; co-training needs an answer-prediction recipe."
        )
    return recipe


# Votes of several readers: the answers of a majority, the answers with most votes, and which readers
# vote best.


def majority_answers(known: Sequence[str], predictions: Sequence[Sequence[str]]) -> list[str]:
    """Return the answers besides the known one (any of its aliases) that more than half of the models give.

    >>> majority_answers(["1962"], [["1962", "1964"], ["1962", "1964", "1965"], ["1962"]])
    ['1964']
    """
    known_forms = {"", *map(normalize, known)}
    # Of a model's answers with one form the last is kept: it has one vote for each.
    votes, written = _count_votes(predictions)
    return [
        written[form]
        for form, count in votes.items()
        if form not in known_forms and count > len(predictions) / 2
    ]


def _count_votes(predictions: Iterable[Sequence[str]]) -> tuple[Counter[str], dict[str, str]]:
    """Return for each normal form how many models give it, and the answer as it was written first."""
    votes: Counter[str] = Counter()
    written: dict[str, str] = {}
    for answers in predictions:
        own = {normalize(answer): answer for answer in answers}
        votes.update(own.keys())
        for form, answer in own.items():
            written.setdefault(form, answer)
    return votes, written


def _voted_answers(predictions: Sequence[Sequence[str]]) -> list[str]:
    """Return the answers that the highest number of models gives, in the order in which they first come up.

    >>> _voted_answers([["a", "b"], ["b"], ["B", "c"]])
    ['b']
    """
    # Of a model's answers with one form the first is kept.
    votes, written = _count_votes(answers[::-1] for answers in predictions)
    most = max(votes.values(), default=0)
    return [answer for form, answer in written.items() if votes[form] == most]


def best_ensemble(
    sizes: Sequence[int], options: AnswerPredictionOptions, models: Sequence[Path]
) -> tuple[tuple[int, ...], float]:
    """The combination of models whose vote scores best on the development questions (appendix D), and its F1ans."""
    questions = options.data.development()
    evidence = options.data.evidence(options.form.passages)
    texts = [question.text for question in questions]
    evidence.search(texts)
    predictions = []  # by model, then by question
    for model in models:
        reader = SeqReader(model, beams=options.model.beams)
        predictions.append(read_answers(reader, texts, evidence))
    possible = [size for size in sizes if size <= len(models)]
    best: tuple[int, ...] = ()
    best_score = -1.0
    for size in possible or [len(models)]:
        for members in combinations(range(len(models)), size):
            score = _voted_f1([predictions[member] for member in members], questions)
            # Of equally good ones the first.
            if score > best_score:
                best, best_score = members, score
    return best, best_score


def _voted_f1(
    predictions: Sequence[Sequence[Sequence[str]]], questions: Sequence[Question]
) -> float:
    return mean(
        [
            best_f1(question.answer_sets, _voted_answers([own[at] for own in predictions]))
            for at, question in enumerate(questions)
        ]
    )


# Silver data: questions with one known answer, and the answers that the models agree on.


@frozen
class QuestionVotes:
    """The answers of each model to a question with a known answer."""

    question: Question
    continued: list[list[str]] = field(default_factory=list)
    """What each model writes after the known answer, with it."""
    single: list[list[str]] = field(default_factory=list)
    """What decides whether the known answer is the only one."""

    @property
    def known(self) -> str:
        return self.question.answers[0][0]


def write_silver(
    path: Path, settings: CoTraining, options: AnswerPredictionOptions, models: Sequence[Path]
) -> None:
    """Label the partial questions by the models' votes; one JSON line for each that they agree on."""
    lines = []
    for votes in _collect_votes(settings, options, models):
        answers = _decide(votes)
        if answers is not None:
            question = votes.question
            row = {"id": question.id, "question": question.text, "answers": answers}
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    write_atomically(path, "".join(lines))


def read_silver(path: Path) -> Iterator[Question]:
    for _, row in read_jsonl(path):
        pairs = tuple(QAPair(tuple(aliases)) for aliases in row["answers"])
        kind: Literal["singleAnswer", "multipleQAs"] = "multipleQAs"
        if len(pairs) == 1:
            kind = "singleAnswer"
        annotation = Annotation(kind, pairs)
        yield Question(f"silver-{row['id']}", row["question"], (annotation,))


def _collect_votes(
    settings: CoTraining, options: AnswerPredictionOptions, models: Sequence[Path]
) -> list[QuestionVotes]:
    data = options.data
    questions = [
        question
        for question in load(settings.partial, data_dir=data.folder or None)
        if question.answers
    ]
    questions = questions[: settings.partial_limit or None]
    evidence = data.evidence(options.form.passages)
    evidence.search([question.text for question in questions])
    cases = []
    all_votes = []
    known = []
    for question in questions:
        hits = tuple(evidence.hits(question.text))
        votes = QuestionVotes(question)
        cases.append(Case(question.text, hits))
        all_votes.append(votes)
        known.append(votes.known)
    for model in models:
        reader = SeqReader(model, beams=options.model.beams)
        continued = reader.read_after(cases, known)
        single = continued
        if settings.agreement == "free":
            single = reader.read(cases)
        for place, votes in enumerate(all_votes):
            votes.continued.append(_answers(continued[place]))
            votes.single.append(_answers(single[place]))
    return all_votes


def _answers(case: Case) -> list[str]:
    return [candidate.answer for candidate in case.answers]


def _decide(votes: QuestionVotes) -> list[list[str]] | None:
    """Return the aliases of each answer that the models agree on; None where they do not."""
    aliases = votes.question.answers[0]
    more = majority_answers(aliases, votes.continued)
    if more:
        agreed = [[votes.known]]
        agreed.extend([answer] for answer in more)
        return agreed
    for answers in votes.single:
        # One model that gives another answer is enough to leave the question out.
        if majority_answers([votes.known], [answers]):
            return None
    return [list(aliases)]


# Run co-training: train the readers, let them label, and repeat.
#
# Everything is a file of the run's folder, written whole or not at all: the same call resumes a
# stopped run.


@frozen
class CoTrained:
    """The models that vote together, and how well they do it on the development questions."""

    models: tuple[Path, ...]
    f1_ans: float
    silver: tuple[int, int]
    """Questions that were added in the last iteration: with several answers, with one."""


def cotrain(
    settings: CoTraining,
    where: Path,
    folder: Path,
    say: Callable[[str], None] = unsaid,
    *,
    train_model: Callable[..., Any] = train,
) -> CoTrained:
    """Run all iterations, or those that are missing. `where`: the folder that the reader's recipe is named from."""
    _check_settings(settings, folder)
    recipes = [load_reader_recipe(settings, where, number) for number in range(settings.models)]
    added: list[Question] = []
    files: list[Path] = []
    models: list[Path] = []
    for iteration in range(1, settings.iterations + 1):
        place = folder / f"iteration-{iteration}"
        silver = place / "silver.jsonl"
        folders = [place / f"model-{number + 1}" for number in range(settings.models)]
        models = [model / MODEL for model in folders]
        # The silver data is written last: where it is, the models are trained.
        if not silver.exists():
            for number, (recipe, model) in enumerate(zip(recipes, folders, strict=True)):
                say(f"iteration {iteration}, model {number + 1} of {settings.models}")
                _train_reader(train_model, recipe, model, added, files)
            write_silver(silver, settings, recipes[0].options, models)
        added = list(read_silver(silver))
        files = [silver]
        say(f"iteration {iteration}: {len(added):,} questions added")
    several = sum(question.is_ambiguous for question in added)
    members, score = best_ensemble(settings.ensemble, recipes[0].options, models)
    chosen = tuple(models[member] for member in members)
    return CoTrained(chosen, score, (several, len(added) - several))


def _train_reader(
    train_model: Callable[..., Any],
    recipe: Recipe,
    folder: Path,
    added: Sequence[Question],
    files: Sequence[Path],
) -> None:
    task = build_answer_prediction(recipe.options, added, files)
    train_model(task, recipe.train, folder, recipe=recipe.table)


def _check_settings(settings: CoTraining, folder: Path) -> None:
    """Write the settings; a run that was begun with others is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cotraining.json"
    body = json.loads(json.dumps(asdict(settings)))
    if path.exists() and read_json(path) != body:
        raise BadConfig(
            f"'{folder}' holds a run with other settings. Take those of {path}, or another --out."
        )
    write_atomically(path, json.dumps(body, indent=2) + "\n")
