"""Score clarifications and clarified answers of CAmbigNQ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from whichsense.errors import BadInput
from whichsense.lab.datasets import ClarifiedQuestion, Question
from whichsense.lab.datasets.rows import Row, Rows, read_rows
from whichsense.lab.evaluation.results import (
    Benchmark,
    Measures,
    Result,
    Statistic,
    as_answers,
    as_text,
    column,
    ratio_of,
)
from whichsense.lab.metrics import cambignq as metrics
from whichsense.lab.metrics.cambignq import Overlap, parse_released
from whichsense.lab.metrics.exact_match import normal_form
from whichsense.text.overlap import bleu_counts, corpus_bleu
from whichsense.types import frozen

if TYPE_CHECKING:
    from whichsense.lab.evaluation.results import Array

_Variant = Literal["released", "paper"]
"""The released script assigns options twice, for precision and for recall; the paper once."""
_Texts = tuple[Sequence[str], Sequence[str]]
"""Gold and predicted, side by side."""


# Micro-averaged precision, recall and F1 of overlaps, with their intervals.


def _take_overlaps(measures: Measures, name: str, overlaps: Sequence[Overlap]) -> None:
    """Add a column for each part of a ratio: micro averages divide sums, not questions' scores."""
    measures.columns |= {
        f"{name}: precision sum": [overlap.precision_sum for overlap in overlaps],
        f"{name}: recall sum": [overlap.recall_sum for overlap in overlaps],
        f"{name}: predicted": [overlap.predicted for overlap in overlaps],
        f"{name}: gold": [overlap.gold for overlap in overlaps],
    }


def _put_overlaps(measures: Measures, name: str, overlaps: Sequence[Overlap]) -> None:
    """Add precision, recall and F1 over all questions: option_precision, option_recall, option_f1."""
    average = metrics.ratio(overlaps)
    precision = ratio_of(f"{name}: precision sum", f"{name}: predicted")
    recall = ratio_of(f"{name}: recall sum", f"{name}: gold")

    def f1(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        p, r = precision(sums), recall(sums)
        mean: Array = 2 * p * r / np.maximum(p + r, 1e-12)
        return mean

    measures.put(f"{name}_precision", average.precision, precision)
    measures.put(f"{name}_recall", average.recall, recall)
    measures.put(f"{name}_f1", average.f1, f1)


# Clarification questions by BLEU, category and options.

_ORDER = 4  # of BLEU over whole clarification questions


def _score_clarifications(
    golds: Mapping[str, ClarifiedQuestion],
    predictions: Mapping[str, str | None],
    *,
    variant: _Variant = "released",
    bert: str | Path | None = None,
) -> Result:
    questions: dict[str, dict[str, Any]] = {}
    overlaps = []
    for key, question in golds.items():
        overlap, questions[key] = _score_clarification(question, predictions[key], variant)
        overlaps.append(overlap)
    rows = list(questions.values())
    texts = [row["gold"][0] for row in rows], [row["predicted"][0] for row in rows]
    wanted, given = ([parse_released(text)[0] for text in some] for some in texts)
    categories = wanted, given
    measures = Measures(rows, "category_em", "options")
    _take_overlaps(measures, "option", overlaps)
    bleu4 = _take_bleu(measures, "question", _ORDER, texts)
    category_bleu1 = _take_bleu(measures, "category", 1, categories)
    measures.put("bleu4", corpus_bleu(*texts, _ORDER), bleu4)
    measures.put("bert_score", _add_bert_scores(questions, texts, bert) if bert else None)
    measures.ratio("category_em")
    measures.put("category_bleu1", corpus_bleu(*categories, 1), category_bleu1)
    _put_overlaps(measures, "option", overlaps)
    measures.ratio("options_per_question", "options")
    settings: dict[str, Any] = {"variant": variant}
    if bert:
        return measures.result(questions, settings | {"bert": str(bert)})
    return measures.result(questions, settings, ["bert_score needs a model: --bert PATH."])


def _score_clarification(
    question: ClarifiedQuestion, prediction: str | None, variant: _Variant
) -> tuple[Overlap, dict[str, Any]]:
    gold = question.clarification
    predicted = prediction or ""
    # A missing question has no category and no options.
    options = [] if prediction is None else parse_released(predicted)[1]
    is_same = prediction is not None and metrics.category_exact_match(gold, predicted)
    overlap = metrics.option_overlap(parse_released(gold)[1], options, variant == "paper")
    alone = metrics.ratio([overlap])
    return overlap, {
        "category_em": float(is_same),
        "option_precision": alone.precision,
        "option_recall": alone.recall,
        "option_f1": alone.f1,
        "options": len(options),
        "question": question.text,
        "gold": [gold],
        "predicted": [predicted],
    }


def _add_bert_scores(
    questions: Mapping[str, dict[str, Any]], texts: _Texts, model: str | Path
) -> float:
    from whichsense.lab.evaluation.metric_models import TokenVectors

    scores = metrics.bert_score(*texts, TokenVectors(model))
    for row, score in zip(questions.values(), scores, strict=True):
        row["bert_score"] = score
    return sum(scores) / len(scores)


def _take_bleu(measures: Measures, text: str, order: int, texts: _Texts) -> Statistic:
    """Add a column for each count of `bleu_counts`; return corpus BLEU from the columns' sums."""
    each = [bleu_counts(gold, own, order) for gold, own in zip(*texts, strict=True)]
    counts = list(zip(*each, strict=True))
    # In its order: matches and guesses for each n, then the lengths of prediction and gold.
    names = [f"{text}: count {number} of BLEU" for number in range(len(counts))]
    measures.columns |= dict(zip(names, counts, strict=True))

    def statistic(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        counts = np.stack([sums[name] for name in names], axis=1)
        matches = counts[:, :order]  # (resamples, order)
        guesses = counts[:, order : 2 * order]
        predicted = counts[:, -2]  # lengths
        gold = counts[:, -1]
        precisions = np.maximum(matches, 1e-300) / np.maximum(guesses, 1)
        precision = np.exp(np.log(precisions).mean(axis=1))
        penalty = np.exp(np.minimum(0.0, 1 - gold / np.maximum(predicted, 1)))
        # Unsmoothed: BLEU is 0 where an order has no match.
        return np.where((matches > 0).all(axis=1), precision * penalty, 0.0)

    return statistic


def _read_official_cambignq(rows: Rows) -> Iterator[Question]:
    for row in read_rows(rows.source, rows.fix, plain="clarification_question"):
        clarification = row.text("clarification_question")
        if not clarification.strip():
            raise row.bad("'clarification_question' is empty")
        question = row.text("question", default="")
        yield ClarifiedQuestion(row.text("id"), question, clarification=clarification)


CAMBIGNQ = Benchmark(
    ClarifiedQuestion,
    _read_official_cambignq,
    "Is it CAmbigNQ's file, or one of the form {id: text}?",
    as_text,
    _score_clarifications,
    no_text=True,  # a system that does not ask
)


# Clarification-based QA: an answer for each option, end to end, and beside answering without asking.

# The answers that are compared with the gold ones, in four ways.
_GROUPS = ("answer", "end_to_end", "served", "direct")
_PER_QUESTION = ("options", "distinct_answers", "words_per_answer")


@frozen
class _Prediction:
    """What a system says of one question."""

    options: tuple[str, ...] = ()
    """The answer of each option, empty where none was found."""
    direct: tuple[str, ...] = ()
    """The answers that it would give without asking."""
    asks: bool = False
    """Whether it would ask at all."""


def _as_prediction(value: Any) -> _Prediction:
    if isinstance(value, list):
        return _Prediction(as_answers(value), asks=len(value) > 1)
    if not isinstance(value, Mapping) or not isinstance(value.get("options"), list):
        raise TypeError("An object with 'options', or a list of answers, is needed.")
    try:
        options = [option["answer"] for option in value["options"]]
    except (KeyError, TypeError):
        raise TypeError("Each of 'options' needs an 'answer'.") from None
    return _Prediction(
        as_answers(options),
        as_answers(value.get("answers", [])),
        bool(value.get("asked", len(options) > 1)),
    )


def _score_answers(
    every: Mapping[str, ClarifiedQuestion],
    predictions: Mapping[str, _Prediction | None],
    *,
    variant: _Variant = "released",
) -> Result:
    """Score the answers of options. Questions whose options have no known answers are left out."""
    golds = {key: one for key, one in every.items() if one.clarified_answers}
    if not golds:
        raise BadInput("No question has answers for the options of its clarification.")
    given = {key: predictions[key] or _Prediction() for key in golds}
    overlaps = [_overlaps(one, given[key], variant) for key, one in golds.items()]
    questions = {
        key: _score_options(one, given[key], own)
        for (key, one), own in zip(golds.items(), overlaps, strict=True)
    }
    measures = _measure_answers(list(questions.values()), overlaps)
    answers = [one.options for one in given.values()]
    measures.put("distinct_answers_released", metrics.distinct_answers_released(answers))
    left_out = len(every) - len(golds)
    notes = [f"Left out, without known answers: {left_out}."] if left_out else []
    return measures.result(questions, {"variant": variant}, notes)


def _measure_answers(
    rows: Sequence[dict[str, Any]], overlaps: Sequence[tuple[Overlap, ...]]
) -> Measures:
    by_group = dict(zip(_GROUPS, zip(*overlaps, strict=True), strict=True))
    measures = Measures(rows)
    for group, own in by_group.items():
        _take_overlaps(measures, group, own)
    for name in (*_PER_QUESTION, "asked", "included", "included_of"):
        measures.columns[name] = column(rows, name)
    for group, own in by_group.items():
        _put_overlaps(measures, group, own)
    measures.ratio("accuracy", "included", "included_of")
    for name in ("asked", *_PER_QUESTION):
        measures.ratio(name)
    return measures


def _overlaps(
    question: ClarifiedQuestion, prediction: _Prediction, variant: _Variant
) -> tuple[Overlap, ...]:
    """Compare the answers in each of the four ways."""
    options = prediction.options
    compared = (
        options,
        # Who is not asked chooses no option.
        options if prediction.asks else (),
        # … and is told all answers at once.
        options if prediction.asks and options else prediction.direct,
        prediction.direct,
    )
    return tuple(
        metrics.answer_overlap(question.clarified_answers, answers, variant == "paper")
        for answers in compared
    )


def _score_options(
    question: ClarifiedQuestion, prediction: _Prediction, overlaps: Sequence[Overlap]
) -> dict[str, Any]:
    scores = {
        f"{group}_f1": metrics.ratio([overlap]).f1
        for group, overlap in zip(_GROUPS, overlaps, strict=True)
    }
    answers = prediction.options
    words = sum(len(answer.split()) for answer in answers)
    # Appendix E's accuracy: an option's answer holds a name of its own gold answer.
    hits = [
        any(normal_form(alias) in normal_form(answer) for alias in aliases)
        for aliases, answer in zip(question.clarified_answers, answers, strict=False)
    ]
    return scores | {
        "included": sum(hits),
        "included_of": len(question.clarified_answers),
        "options": len(answers),
        "distinct_answers": metrics.distinct_answers(answers),
        "words_per_answer": words / len(answers) if answers else 0.0,
        "asked": float(prediction.asks and bool(answers)),
        "question": question.text,
        "gold": [" / ".join(aliases) for aliases in question.clarified_answers],
        "predicted": list(answers),
    }


def _read_official_clarified(rows: Rows) -> Iterator[Question]:
    for row in rows:
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            clarification=row.text("clarification_question"),
            clarified_answers=_gold_answers(row),
        )


def _gold_answers(row: Row) -> tuple[tuple[str, ...], ...]:
    """Return the aliases of each option's answer: a list of lists, or of objects with `answer`."""
    value = row.value.get("clarification_answers")
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return tuple(item.texts("answer") for item in row.rows("clarification_answers"))
    return row.text_lists("clarification_answers")


CAMBIGNQ_ANSWERS = Benchmark(
    ClarifiedQuestion,
    _read_official_clarified,
    "Is it CAmbigNQ's file, with 'clarification_answers'?",
    _as_prediction,
    _score_answers,
)
