"""Scoring: predictions against gold, as the official scripts do, with intervals and comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput, did_you_mean
from whichsense.lab.datasets import ConflictQuestion, Question
from whichsense.lab.datasets.readers import read_ambignq, read_ramdocs, trivia_answers
from whichsense.lab.datasets.rows import Row, Rows, single_answer
from whichsense.lab.evaluation.results import (
    Benchmark,
    Comparison,
    GoldInput,
    Measures,
    PredictionInput,
    Result,
    Scores,
    as_answers,
    column,
    compare,
    input_name,
    load_result,
    ratio_of,
)
from whichsense.lab.evaluation.scoring_clarified import CAMBIGNQ, CAMBIGNQ_ANSWERS
from whichsense.lab.evaluation.scoring_long import ASQA
from whichsense.lab.metrics import ambignq as metrics
from whichsense.lab.metrics.exact_match import (
    contains_answer,
    exact_match,
    exact_match_first,
    oracle_exact_match,
    set_scores,
)
from whichsense.lab.metrics.statistics import detection

if TYPE_CHECKING:
    from whichsense.lab.evaluation.results import Array

__all__ = ["Comparison", "Result", "compare", "load_result", "score"]


# AmbigNQ: F1 over answers, and over answers with their questions.

_AMBIGNQ_FIX = "Is it AmbigNQ's file, light or full?"
_NO_QUESTIONS = "The predictions hold no questions: BLEU and EDIT-F1 are left out."


def _score_ambignq(
    golds: Mapping[str, Question],
    predictions: Mapping[str, metrics.Prediction | None],
    *,
    variant: metrics.Variant = "released",
) -> Result:
    given = {bool(one.questions) for one in predictions.values() if one}
    if len(given) > 1:
        raise BadInput("Some predictions have questions and some do not. All must, or none.")
    (has_questions,) = given
    names = metrics.METRICS if has_questions else metrics.METRICS[:1]
    questions = {
        key: _score_pairs(question, predictions[key], variant, names)
        for key, question in golds.items()
    }
    rows = list(questions.values())
    measures = _measure_pairs(rows, names)
    answers = sum(len(one.answers) for one in predictions.values() if one)
    measures.put("answers_per_question", answers / len(golds))
    notes = () if has_questions else (_NO_QUESTIONS,)
    n_multi = sum(column(rows, "multi"))
    return measures.result(questions, {"variant": variant}, notes, n_multi=int(n_multi))


def _measure_pairs(rows: Sequence[Scores], names: Sequence[str]) -> Measures:
    measures = Measures(rows, n_multi=column(rows, "multi"), f1_ans=column(rows, "f1_ans"))
    measures.ratio("f1_ans")
    # Over the questions of which no annotator gave a single answer, as in the paper.
    for metric in metrics.METRICS:
        own = f"{metric} of multi"
        if metric in names:
            measures.columns[own] = [row[metric] * row["multi"] for row in rows]
        measures.ratio("f1_ans_multi" if metric == "f1_ans" else metric, own, "n_multi")
    # Comb., by which the AmbigQA leaderboard ranks systems (REFUEL).
    f1_ans, f1_edit = measures.metrics["f1_ans"] or 0.0, measures.metrics["f1_edit"]
    measures.put("comb", None if f1_edit is None else f1_ans + f1_edit)
    return measures


def _score_pairs(
    question: Question,
    prediction: metrics.Prediction | None,
    variant: metrics.Variant,
    names: Sequence[str],
) -> Scores:
    if not question.annotations:
        raise BadInput(
            f"Gold question '{question.id}' has no annotation to score against. Leave it out."
        )
    annotations = annotations_of(question)
    scores = dict.fromkeys(names, 0.0)
    shown: Sequence[str] = ()
    if prediction:
        scores = metrics.score_question(question.text, annotations, prediction, variant)
        shown = list(map(" → ".join, zip(prediction.questions, prediction.answers, strict=False)))
    gold = [" / ".join(own) for annotation in annotations for own in annotation.answers]
    multi = question.is_ambiguous
    return {
        "f1_ans": scores["f1_ans"],
        "f1_ans_multi": scores["f1_ans"] if multi else None,
        **scores,
        "multi": multi,
        "question": question.text,
        "gold": list(dict.fromkeys(gold)),
        "predicted": list(shown or (prediction.answers if prediction else ())),
    }


def annotations_of(question: Question) -> list[metrics.Annotation]:
    """Give a question's annotations to the metric, which takes all wordings of a rewrite in one text."""
    return [
        metrics.Annotation(
            one.answers,
            () if one.is_single else tuple("|".join(pair.questions) for pair in one.pairs),
        )
        for one in question.annotations
    ]


def _parse_prediction(value: Any) -> metrics.Prediction:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return metrics.Prediction(as_answers(value))
    try:
        answers, questions = (
            as_answers([pair[key] for pair in value]) for key in ("answer", "question")
        )
    except (KeyError, TypeError):
        raise TypeError("Each pair needs a 'question' and an 'answer', both texts.") from None
    return metrics.Prediction(answers, questions)


# Ambiguity detection: does a question have several answers?


def _score_ambiguity(
    golds: Mapping[str, Question], predictions: Mapping[str, bool | None]
) -> Result:
    """Score decisions. A question is ambiguous where no annotator gave a single answer; a missing decision counts as
    "not ambiguous"."""
    questions: dict[str, Scores] = {}
    for key, question in golds.items():
        truth, decision = question.is_ambiguous, bool(predictions[key])
        questions[key] = {
            "correct": float(truth == decision),
            "ambiguous": float(truth),
            "predicted_ambiguous": float(decision),
            "both": float(truth and decision),
            "question": question.text,
            "gold": [str(truth)],
            "predicted": [str(decision)],
        }
    rows = list(questions.values())
    measures = Measures(rows, "correct", "ambiguous", "predicted_ambiguous", "both")
    truths = list(map(bool, column(rows, "ambiguous")))
    found = detection(truths, list(map(bool, column(rows, "predicted_ambiguous"))))
    statistics = (
        ratio_of("correct", "n"),
        ratio_of("both", "predicted_ambiguous"),
        ratio_of("both", "ambiguous"),
        _f1,
    )
    for (metric, value), statistic in zip(asdict(found).items(), statistics, strict=True):
        measures.put(metric, value, statistic)
    return measures.result(questions, n_ambiguous=sum(truths))


def _as_decision(value: Any) -> bool:
    decision = value.get("ambiguous") if isinstance(value, Mapping) else value
    if not isinstance(decision, bool):
        raise TypeError("true or false is needed, or an object with 'ambiguous'.")
    return decision


def _f1(sums: Mapping[str, Array]) -> Array:
    import numpy as np

    total = sums["ambiguous"] + sums["predicted_ambiguous"]
    f1: Array = 2 * sums["both"] / np.maximum(total, 1e-12)
    return f1


# NQ-open, TriviaQA, WebQuestions and similar datasets: exact match.


def _score_nq(
    golds: Mapping[str, Question], predictions: Mapping[str, tuple[str, ...] | None]
) -> Result:
    """Return EM by any alias and by the first one, of the first prediction; oracle EM of all predictions."""
    questions: dict[str, Scores] = {}
    for key, question in golds.items():
        aliases = [
            alias for answers in question.answer_sets for names in answers for alias in names
        ]
        predicted = predictions[key] or ()
        # The first prediction counts; oracle EM takes the best of all.
        first = predicted[0] if predicted else None
        questions[key] = {
            "em": 0.0 if first is None else exact_match(first, aliases),
            "em_first": 0.0 if first is None else exact_match_first(first, aliases),
            "em_oracle": oracle_exact_match(predicted, aliases),
            "question": question.text,
            "gold": aliases,
            "predicted": list(predicted),
        }
    return _means(questions, 3)


def _means(questions: Mapping[str, Scores], count: int) -> Result:
    """Return the means of each question's first `count` scores."""
    rows = list(questions.values())
    names = list(rows[0])[:count]
    measures = Measures(rows, *names)
    for name in names:
        measures.ratio(name)
    return measures.result(questions)


def _read_official_nq(rows: Rows) -> Iterator[Question]:
    for row in rows.under("Data"):
        # Records without an id go by their question.
        key = row.text("id", "QuestionId", "question", "Question")
        answers = _answers(row)
        if not answers:
            raise row.bad("the list of answers is empty")
        text = row.text("question", "Question", default=key)
        yield Question(key, text, single_answer(answers))


def _answers(row: Row) -> tuple[str, ...]:
    if row.has("Answer"):
        # TriviaQA's script compares with the normalized aliases.
        return trivia_answers(row, "NormalizedAliases", "HumanAnswers")
    return row.texts("answer", "answers", "golden_answers")


# RAMDocs: all right answers and no false one, from documents of which some are wrong or irrelevant.


def _score_ramdocs(
    golds: Mapping[str, ConflictQuestion], predictions: Mapping[str, tuple[str, ...] | None]
) -> Result:
    """Score answers. One counts where it is a gold one, or one of the two holds all words of the other in a row."""
    questions: dict[str, Scores] = {}
    for key, question in golds.items():
        gold = [aliases[0] for aliases in question.annotations[0].answers]
        predicted = predictions[key] or ()
        scores = set_scores(gold, predicted)
        gives_wrong = any(
            contains_answer(answer, wrong)
            for wrong in question.wrong_answers
            for answer in predicted
        )
        questions[key] = {
            "exact_match": scores.exact,
            # The paper's count: an answer that is neither right nor listed as wrong does no harm.
            "exact_match_listed": float(scores.recall == 1.0 and not gives_wrong),
            "exact_match_strict": set_scores(gold, predicted, strict=True).exact,
            "answer_precision": scores.precision,
            "answer_recall": scores.recall,
            "wrong_answer": float(gives_wrong),
            "answers_per_question": float(len(predicted)),
            "question": question.text,
            "gold": gold,
            "predicted": list(predicted),
        }
    return _means(questions, 7)


def _as_answers(value: Any) -> tuple[str, ...]:
    """Check a list of answers, or of readings with an answer each."""
    if isinstance(value, list):
        value = [
            one["answer"] if isinstance(one, Mapping) and "answer" in one else one for one in value
        ]
    return as_answers(value)


_BENCHMARKS = {
    "ambignq": Benchmark(Question, read_ambignq, _AMBIGNQ_FIX, _parse_prediction, _score_ambignq),
    "ambiguity": Benchmark(Question, read_ambignq, _AMBIGNQ_FIX, _as_decision, _score_ambiguity),
    "asqa": ASQA,
    "cambignq": CAMBIGNQ,
    "cambignq-answers": CAMBIGNQ_ANSWERS,
    "nq": Benchmark(
        Question,
        _read_official_nq,
        "Is it NQ-open's or TriviaQA's file, or one of their form?",
        as_answers,
        _score_nq,
        answers_only=True,
        no_text=True,
    ),
    "ramdocs": Benchmark(
        ConflictQuestion, read_ramdocs, "Is it RAMDocs' file?", _as_answers, _score_ramdocs
    ),
}


def score(
    benchmark: str,
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    allow_missing: bool = False,
    name: str = "",
    split: str = "",
    **options: Any,
) -> Result:
    """Score predictions as a benchmark's official script does.

    `gold` is a file in the official form, its parsed JSON, or a dataset's records. `predictions` is a file, a mapping
    {id: prediction}, or a list of cases in the order of `gold`; a prediction is the official JSON, a case, or a list of
    readings. Every benchmark takes `allow_missing` (missing predictions score zero) and `name`; `variant`, `reader`,
    `reader_answers`, `split` and `bert` are those of `whichsense score BENCHMARK --help`.

    >>> gold = [{"id": "1", "question": "Who wrote it?", "answer": ["Ann Lee", "Lee"]}]
    >>> score("nq", gold, {"1": ["lee", "Bo"]}).metrics
    {'em': 1.0, 'em_first': 0.0, 'em_oracle': 1.0}
    """
    if benchmark not in _BENCHMARKS:
        raise BadInput(f"No benchmark '{benchmark}'. {did_you_mean(benchmark, _BENCHMARKS)}")
    own = _BENCHMARKS[benchmark]
    golds = own.read_gold(gold, split)
    aligned = own.align(golds, predictions, allow_missing)
    where = input_name(predictions, "predictions")
    return replace(
        own.score(golds, aligned, **options), dataset=benchmark, name=name or Path(where).stem
    )
