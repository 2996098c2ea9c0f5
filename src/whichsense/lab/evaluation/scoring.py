"""Scoring: predictions against gold, as the official scripts do, with intervals and comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput, did_you_mean
from whichsense.lab.datasets import Annotation, ConflictQuestion, Question
from whichsense.lab.datasets.readers import read_ambignq, read_ramdocs, trivia_answers
from whichsense.lab.datasets.rows import Row, Rows, single_answer
from whichsense.lab.evaluation.results import (
    Comparison,
    GoldInput,
    Interval,
    PredictionInput,
    Result,
    Statistic,
    align,
    as_answers,
    bootstrap_intervals,
    column,
    compare,
    input_name,
    load_result,
    mean,
    mean_intervals,
    ratio_of,
    read_gold,
    result_name,
)
from whichsense.lab.evaluation.scoring_clarified import score_cambignq, score_clarified
from whichsense.lab.evaluation.scoring_long import score_asqa
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

_Scores = Mapping[str, Any]  # one question's scores, and what the report shows of it


def score_ambignq(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    variant: metrics.Variant = "released",
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """Score `{id: [answer…]}` or `{id: [{question, answer}…]}` against AmbigNQ's questions."""
    golds = read_gold(gold, read_ambignq, Question, _AMBIGNQ_FIX)
    aligned = align(golds, predictions, _parse_prediction, allow_missing=allow_missing)
    has_questions = _check_questions(aligned, input_name(predictions, "predictions"))
    questions: dict[str, _Scores] = {}
    answers = 0
    for key, question in golds.items():
        prediction = aligned[key]
        answers += len(prediction.answers) if prediction else 0
        questions[key] = _score_question_ambignq(question, prediction, variant, has_questions)
    multi = sum(scores["multi"] for scores in questions.values())
    values = _means(questions, has_questions)
    values["answers_per_question"] = answers / len(golds)
    return Result(
        dataset="ambignq",
        name=result_name(name, predictions),
        metrics=values,
        counts={"n": len(questions), "n_multi": multi},
        intervals=_ambignq_intervals(questions, has_questions and multi > 0, multi > 0),
        questions=questions,
        settings={"variant": variant},
        notes=() if has_questions else (_NO_QUESTIONS,),
    )


def _check_questions(predictions: Mapping[str, metrics.Prediction | None], where: str) -> bool:
    """Whether the predictions have questions: all must, or none."""
    # Without missing ones.
    given = {bool(one.questions) for one in predictions.values() if one}
    if len(given) > 1:
        raise BadInput(
            f"'{where}': some predictions have questions and some do not. All must, or none."
        )
    return given.pop()


def _score_question_ambignq(
    question: Question,
    prediction: metrics.Prediction | None,
    variant: metrics.Variant,
    has_questions: bool,
) -> _Scores:
    if not question.annotations:
        raise BadInput(
            f"Gold question '{question.id}' has no annotation to score against. Leave it out."
        )
    names = metrics.METRICS if has_questions else metrics.METRICS[:1]
    annotations = list(map(_convert_annotation, question.annotations))
    scores = dict.fromkeys(names, 0.0)
    if prediction:
        scores = metrics.score_question(question.text, annotations, prediction, variant)
    multi = question.is_ambiguous
    return {
        "f1_ans": scores["f1_ans"],
        "f1_ans_multi": scores["f1_ans"] if multi else None,
        **scores,
        "multi": multi,
        "question": question.text,
        "gold": _show_gold(annotations),
        "predicted": _show_prediction(prediction),
    }


def _show_gold(annotations: Sequence[metrics.Annotation]) -> list[str]:
    answers = [own for annotation in annotations for own in annotation.answers]
    return list(dict.fromkeys(map(" / ".join, answers)))


def _show_prediction(prediction: metrics.Prediction | None) -> list[str]:
    if prediction is None:
        return []
    if not prediction.questions:
        return list(prediction.answers)
    return [
        f"{question} → {answer}"
        for question, answer in zip(prediction.questions, prediction.answers, strict=True)
    ]


def _means(questions: Mapping[str, _Scores], has_questions: bool) -> dict[str, float | None]:
    every = list(questions.values())
    multi = [scores for scores in every if scores["multi"]]
    values: dict[str, float | None] = {
        "f1_ans": mean(column(every, "f1_ans")),
        "f1_ans_multi": mean(column(multi, "f1_ans")),
    }
    # The question metrics leave out questions with a single answer, as in the paper.
    for metric in metrics.QUESTION_METRICS:
        values[metric] = mean(column(multi, metric)) if has_questions else None
    # Comb., by which the AmbigQA leaderboard ranks systems (REFUEL).
    f1_ans, f1_edit = values["f1_ans"], values["f1_edit"]
    values["comb"] = None
    if f1_ans is not None and f1_edit is not None:
        values["comb"] = f1_ans + f1_edit
    return values


def _ambignq_intervals(
    questions: Mapping[str, _Scores], with_pairs: bool, has_multi: bool
) -> dict[str, Interval]:
    rows = list(questions.values())
    columns: dict[str, list[float]] = {
        "n": [1.0] * len(rows),
        "n_multi": column(rows, "multi"),
        "f1_ans": column(rows, "f1_ans"),
    }
    statistics: dict[str, Statistic] = {"f1_ans": ratio_of("f1_ans", "n")}
    over_multi = ["f1_ans"]
    if with_pairs:
        over_multi += metrics.QUESTION_METRICS
    for metric in over_multi:
        # Over the questions of which no annotator gave a single answer; 0 elsewhere.
        name = "f1_ans_multi" if metric == "f1_ans" else metric
        columns[f"{metric} of multi"] = [row[metric] * row["multi"] for row in rows]
        if has_multi:
            statistics[name] = ratio_of(f"{metric} of multi", "n_multi")
    return bootstrap_intervals(columns, statistics)


def _convert_annotation(annotation: Annotation) -> metrics.Annotation:
    if annotation.is_single:
        return metrics.Annotation(annotation.answers)
    # The metric takes all wordings of a rewrite in one text, as the official file has them.
    questions = ["|".join(pair.questions) for pair in annotation.pairs]
    return metrics.Annotation(annotation.answers, tuple(questions))


def _parse_prediction(value: Any) -> metrics.Prediction:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return metrics.Prediction(as_answers(value))
    if not all(map(_is_pair, value)):
        raise TypeError("Each pair needs a 'question' and an 'answer', both texts.")
    return metrics.Prediction(
        tuple(pair["answer"] for pair in value), tuple(pair["question"] for pair in value)
    )


def _is_pair(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    question, answer = value.get("question"), value.get("answer")
    return isinstance(question, str) and isinstance(answer, str)


# Ambiguity detection: does a question have several answers?


def score_ambiguity(
    gold: GoldInput, predictions: PredictionInput, *, allow_missing: bool = False, name: str = ""
) -> Result:
    """Score decisions, `{id: true}` or `{id: {"ambiguous": true}}`, against AmbigNQ's annotations.

    A question is ambiguous where no annotator gave a single answer. A missing decision counts as "not ambiguous".
    """
    golds = read_gold(gold, read_ambignq, Question, _AMBIGNQ_FIX)
    aligned = align(golds, predictions, _as_decision, allow_missing=allow_missing)
    questions: dict[str, dict[str, Any]] = {}
    for key, question in golds.items():
        truth, decision = question.is_ambiguous, bool(aligned[key])
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
    truths = [bool(row["ambiguous"]) for row in rows]
    decisions = [bool(row["predicted_ambiguous"]) for row in rows]
    return Result(
        dataset="ambiguity",
        name=result_name(name, predictions),
        metrics=asdict(detection(truths, decisions)),
        counts={"n": len(rows), "n_ambiguous": sum(truths)},
        intervals=_ambiguity_intervals(rows),
        questions=questions,
    )


def _as_decision(value: Any) -> bool:
    decision = value.get("ambiguous") if isinstance(value, Mapping) else value
    if not isinstance(decision, bool):
        raise TypeError("true or false is needed, or an object with 'ambiguous'.")
    return decision


def _ambiguity_intervals(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
    for name in ("correct", "ambiguous", "predicted_ambiguous", "both"):
        columns[name] = column(rows, name)
    statistics: dict[str, Statistic] = {
        "accuracy": ratio_of("correct", "n"),
        "precision": ratio_of("both", "predicted_ambiguous"),
        "recall": ratio_of("both", "ambiguous"),
        "f1": _f1,
    }
    return bootstrap_intervals(columns, statistics)


def _f1(sums: Mapping[str, Array]) -> Array:
    import numpy as np

    total = sums["ambiguous"] + sums["predicted_ambiguous"]
    f1: Array = 2 * sums["both"] / np.maximum(total, 1e-12)
    return f1


# NQ-open, TriviaQA, WebQuestions and similar datasets: exact match.

_NQ_METRICS = ("em", "em_first", "em_oracle")
_NQ_FIX = "Is it NQ-open's or TriviaQA's file, or one of their form?"


def score_nq(
    gold: GoldInput, predictions: PredictionInput, *, allow_missing: bool = False, name: str = ""
) -> Result:
    """EM by any alias and by the first one, of the first prediction; oracle EM of all predictions.

    A gold record without an id has its question as id.
    """
    golds = read_gold(gold, _read_official_nq, Question, _NQ_FIX)
    aligned = align(
        golds,
        predictions,
        as_answers,
        allow_missing=allow_missing,
        answers_only=True,
        is_empty=_is_empty,
    )
    questions = {
        key: _score_question_nq(question, aligned[key] or ()) for key, question in golds.items()
    }
    return _mean_result("nq", result_name(name, predictions), questions, _NQ_METRICS)


def _mean_result(
    dataset: str, name: str, questions: Mapping[str, _Scores], metrics: Sequence[str]
) -> Result:
    """The means of metrics over all questions."""
    rows = list(questions.values())
    return Result(
        dataset=dataset,
        name=name,
        metrics={metric: mean(column(rows, metric)) for metric in metrics},
        counts={"n": len(rows)},
        intervals=mean_intervals(rows, metrics),
        questions=questions,
    )


def _is_empty(prediction: Any) -> bool:
    # A prediction may be one answer as a plain text: an empty text is a missing answer.
    return prediction in ([], "")


def _score_question_nq(question: Question, predicted: tuple[str, ...]) -> dict[str, Any]:
    aliases = [alias for answers in question.answer_sets for names in answers for alias in names]
    scores: dict[str, Any] = dict.fromkeys(_NQ_METRICS, 0.0)
    if predicted:
        # The first prediction counts; oracle EM takes the best of all.
        scores["em"] = exact_match(predicted[0], aliases)
        scores["em_first"] = exact_match_first(predicted[0], aliases)
        scores["em_oracle"] = oracle_exact_match(predicted, aliases)
    scores["question"] = question.text
    scores["gold"] = aliases
    scores["predicted"] = list(predicted)
    return scores


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

_RAMDOCS_FIX = "Is it RAMDocs' file?"
_RAMDOCS_METRICS = (
    "exact_match",
    "exact_match_listed",
    "exact_match_strict",
    "answer_precision",
    "answer_recall",
    "wrong_answer",
    "answers_per_question",
)


def score_ramdocs(
    gold: GoldInput, predictions: PredictionInput, *, allow_missing: bool = False, name: str = ""
) -> Result:
    """Score answers, `{id: [answer…]}` or `{id: [{question, answer}…]}`. An answer counts where it is a gold one, or
    one of the two holds all words of the other in a row."""
    golds = read_gold(gold, read_ramdocs, ConflictQuestion, _RAMDOCS_FIX)
    aligned = align(golds, predictions, _as_answers, allow_missing=allow_missing)
    questions = {
        key: _score_question_ramdocs(question, aligned[key] or ())
        for key, question in golds.items()
    }
    name = result_name(name, predictions)
    return _mean_result("ramdocs", name, questions, _RAMDOCS_METRICS)


def _as_answers(value: Any) -> tuple[str, ...]:
    """Check a list of answers, or of readings with an answer each."""
    if isinstance(value, list):
        value = [one["answer"] if _is_reading(one) else one for one in value]
    return as_answers(value)


def _is_reading(value: Any) -> bool:
    return isinstance(value, Mapping) and "answer" in value


def _score_question_ramdocs(
    question: ConflictQuestion, predicted: tuple[str, ...]
) -> dict[str, Any]:
    gold = [aliases[0] for aliases in question.annotations[0].answers]
    scores = set_scores(gold, predicted)
    gives_wrong = any(
        contains_answer(answer, wrong) for wrong in question.wrong_answers for answer in predicted
    )
    return {
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


# A benchmark's scorer: (gold, predictions, **options) → Result.
_BENCHMARKS: dict[str, Callable[..., Result]] = {
    "ambignq": score_ambignq,
    "ambiguity": score_ambiguity,
    "asqa": score_asqa,
    "cambignq": score_cambignq,
    "cambignq-answers": score_clarified,
    "nq": score_nq,
    "ramdocs": score_ramdocs,
}


def score(benchmark: str, gold: GoldInput, predictions: PredictionInput, **options: Any) -> Result:
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
        advice = did_you_mean(benchmark, _BENCHMARKS)
        raise BadInput(f"No benchmark '{benchmark}'. {advice}")
    return _BENCHMARKS[benchmark](gold, predictions, **options)
