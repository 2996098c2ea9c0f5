"""Democratic co-training with weak supervision (AmbigQA, algorithm 1, appendix D).

Readers learn from AmbigNQ, then read questions with one known answer (NQ-open) with that answer as the beginning of
their output. Where a majority goes on to the same other answers, these join the known one; where nobody goes on, it
stays the only one. Both kinds join the training data of the next iteration; the rest is left out.

Everything is a file of the run's folder, written whole or not at all: the same call goes on where a stopped one was.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from whichsense.config import from_table
from whichsense.datasets import Annotation, QAPair, Question, load
from whichsense.errors import BadConfig
from whichsense.files import read_json, read_jsonl, write_atomically
from whichsense.jobs.progress import unsaid
from whichsense.metrics.ambignq import f1_answers
from whichsense.stages.read import SeqReader
from whichsense.text.words import normalize
from whichsense.train.loop.checkpoint import MODEL
from whichsense.train.loop.run import train
from whichsense.train.recipes.recipe import Recipe, load_recipe
from whichsense.train.tasks.seq2seq.answer_prediction import (
    AnswerPredictionOptions,
    build_task,
)
from whichsense.train.tasks.seq2seq.generation import mean
from whichsense.types import Case


@dataclass(frozen=True, slots=True)
class CoTraining:
    """What a co-training recipe says. The defaults are the paper's: six models, two iterations."""

    reader: str
    """The recipe of the readers, beside this file: an answer-prediction recipe."""
    partial: str = "nq_open/train"
    """Questions of which one answer is known."""
    partial_limit: int = 0
    models: int = 6
    iterations: int = 2
    variants: tuple[str, ...] = ()
    """Changes of the reader's recipe, taken in turn, so that the models differ in more than their seed."""
    agreement: Literal["known", "free"] = "known"
    """When a question counts as having one answer: nobody adds one to the known answer; or nobody, asked without it,
    gives another (the pseudo-code's line 17)."""
    ensemble: tuple[int, ...] = (4, 5, 6)
    """Sizes of the final ensemble that are tried on the development questions."""
    changes: tuple[str, ...] = ()
    """Changes of the reader's recipe for all models."""
    tiny: bool = False

    def __post_init__(self) -> None:
        if self.models < 1 or self.iterations < 1:
            raise BadConfig("Co-training needs at least one model and one iteration.")


@dataclass(frozen=True, slots=True)
class CoTrained:
    """The models that vote together, and how well they do it on the development questions."""

    models: tuple[Path, ...]
    f1_ans: float
    silver: tuple[int, int]
    """Questions that were added in the last iteration: with several answers, with one."""


def cotrain(
    settings: CoTraining, where: Path, folder: Path, say: Callable[[str], None] = unsaid
) -> CoTrained:
    """Run all iterations, or those that are missing. `where`: the folder that the reader's recipe is named from."""
    _same_as_before(settings, folder)
    recipes = [_recipe(settings, where, number) for number in range(settings.models)]
    added: list[Question] = []
    files: list[Path] = []
    models: list[Path] = []
    for iteration in range(1, settings.iterations + 1):
        place = folder / f"iteration-{iteration}"
        silver = place / "silver.jsonl"
        models = [
            place / f"model-{number}" / MODEL
            for number in range(1, settings.models + 1)
        ]
        if (
            not silver.exists()
        ):  # it is written last: where it is, the models are trained
            for number, (recipe, model) in enumerate(
                zip(recipes, models, strict=True), 1
            ):
                say(f"iteration {iteration}, model {number} of {settings.models}")
                train(
                    build_task(recipe.options, added, files),
                    recipe.train,
                    model.parent,
                    recipe=recipe.table,
                )
            _write_silver(silver, settings, recipes[0].options, models)
        added, files = list(_read_silver(silver)), [silver]
        say(f"iteration {iteration}: {len(added):,} questions added")
    several = sum(question.is_ambiguous for question in added)
    chosen, score = _best_ensemble(settings, recipes[0].options, models)
    return CoTrained(
        tuple(models[place] for place in chosen), score, (several, len(added) - several)
    )


def _same_as_before(settings: CoTraining, folder: Path) -> None:
    """What was begun must go on as it was begun."""
    folder.mkdir(parents=True, exist_ok=True)
    path, now = folder / "cotraining.json", json.loads(json.dumps(asdict(settings)))
    if path.exists() and read_json(path) != now:
        raise BadConfig(
            f"'{folder}' holds a run with other settings. Take those of {path}, or another --out."
        )
    write_atomically(path, json.dumps(now, indent=2) + "\n")


def load_cotraining(path: Path, *, tiny: bool = False) -> CoTraining:
    """Read a co-training recipe; `tiny` takes its `[tiny]` table."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadConfig(f"There is no recipe '{path}'. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' is not valid TOML: {error}") from None
    small = table.pop("tiny", {})
    table.pop("about", "")
    return from_table(
        CoTraining, table | ({**small, "tiny": True} if tiny else {}), where=str(path)
    )


def _recipe(settings: CoTraining, where: Path, number: int) -> Recipe:
    variant = (
        [settings.variants[number % len(settings.variants)]]
        if settings.variants
        else []
    )
    changes = [*settings.changes, *variant, f"train.seed={number}"]
    recipe = load_recipe(where / settings.reader, changes, tiny=settings.tiny)
    if not isinstance(recipe.options, AnswerPredictionOptions):
        raise BadConfig(
            f"'{settings.reader}' trains '{recipe.task}'; co-training needs an answer-prediction recipe."
        )
    return recipe


def agreed(known: Sequence[str], predictions: Sequence[Sequence[str]]) -> list[str]:
    """The answers besides the known one (any of its aliases) that more than half of the models give.

    >>> agreed(["1962"], [["1962", "1964"], ["1962", "1964", "1965"], ["1962"]])
    ['1964']
    """
    names = {normalize(alias) for alias in known}
    votes: Counter[str] = Counter()
    written: dict[str, str] = {}
    for answers in predictions:
        for form, answer in {normalize(answer): answer for answer in answers}.items():
            if form and form not in names:
                votes[form] += 1
                written.setdefault(form, answer)
    return [
        written[form] for form, count in votes.items() if count > len(predictions) / 2
    ]


def _write_silver(
    path: Path,
    settings: CoTraining,
    options: AnswerPredictionOptions,
    models: Sequence[Path],
) -> None:
    """What the models agree on, as lines of AmbigNQ's kind."""
    data = options.data
    partial = [
        question
        for question in load(settings.partial, data_dir=data.folder or None)
        if question.answers
    ]
    partial = partial[: settings.partial_limit or None]
    evidence = data.evidence(options.form.passages)
    texts = [question.text for question in partial]
    evidence.search(texts)
    cases = [Case(text, tuple(evidence.hits(text))) for text in texts]
    known = [question.answers[0][0] for question in partial]
    found: list[list[list[str]]] = [[] for _ in partial]
    alone = [True] * len(partial)
    for model in models:
        reader = SeqReader(model, beams=options.model.beams)
        read = reader.read_after(cases, known)
        free = reader.read(cases) if settings.agreement == "free" else read
        for place, case in enumerate(read):
            found[place].append([one.answer for one in case.answers])
            alone[place] &= not agreed(
                known[place : place + 1], [[one.answer for one in free[place].answers]]
            )
    rows = []
    for question, answer, predictions, single in zip(
        partial, known, found, alone, strict=True
    ):
        if more := agreed(question.answers[0], predictions):
            rows.append(
                {
                    "id": question.id,
                    "question": question.text,
                    "answers": [[answer], *([one] for one in more)],
                }
            )
        elif single:
            rows.append(
                {
                    "id": question.id,
                    "question": question.text,
                    "answers": [list(question.answers[0])],
                }
            )
    write_atomically(
        path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    )


def _read_silver(path: Path) -> Iterator[Question]:
    for _, row in read_jsonl(path):
        pairs = tuple(QAPair(tuple(aliases)) for aliases in row["answers"])
        kind: Literal["singleAnswer", "multipleQAs"] = (
            "singleAnswer" if len(pairs) == 1 else "multipleQAs"
        )
        yield Question(
            f"silver-{row['id']}", row["question"], (Annotation(kind, pairs),)
        )


def _best_ensemble(
    settings: CoTraining, options: AnswerPredictionOptions, models: Sequence[Path]
) -> tuple[tuple[int, ...], float]:
    """The combination of models whose vote scores best on the development questions (appendix D)."""
    questions = options.data.development()
    evidence = options.data.evidence(options.form.passages)
    texts = [question.text for question in questions]
    evidence.search(texts)
    cases = [Case(text, tuple(evidence.hits(text))) for text in texts]
    found = []
    for model in models:
        read = SeqReader(model, beams=options.model.beams).read(cases)
        found.append([[one.answer for one in case.answers] for case in read])
    sizes = [size for size in settings.ensemble if size <= len(models)] or [len(models)]
    scored = [
        (_voted_f1([found[place] for place in some], questions), some)
        for size in sizes
        for some in combinations(range(len(models)), size)
    ]
    score, chosen = max(scored, key=lambda pair: pair[0])
    return chosen, score


def _voted_f1(
    found: Sequence[Sequence[Sequence[str]]], questions: Sequence[Question]
) -> float:
    return mean(
        [
            max(
                f1_answers(gold, voted([own[place] for own in found]) or [""])
                for gold in question.answer_sets
            )
            for place, question in enumerate(questions)
        ]
    )


def voted(predictions: Sequence[Sequence[str]]) -> list[str]:
    """The answers that the highest number of models gives, in the order in which they first come up.

    >>> voted([["a", "b"], ["b"], ["B", "c"]])
    ['b']
    """
    votes: Counter[str] = Counter()
    written: dict[str, str] = {}
    for answers in predictions:
        for form, answer in {
            normalize(answer): answer for answer in reversed(answers)
        }.items():
            votes[form] += 1
            written.setdefault(form, answer)
    most = max(votes.values(), default=0)
    return [written[form] for form in written if votes[form] == most]
