"""Score clarifications and clarified answers of CAmbigNQ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from whichsense.errors import BadInput
from whichsense.lab.datasets import ClarifiedQuestion, Question
from whichsense.lab.datasets.rows import Row, Rows, read_rows
from whichsense.lab.evaluation.results import (
    GoldInput,
    Interval,
    PredictionInput,
    Result,
    Statistic,
    align,
    as_answers,
    as_text,
    bootstrap_intervals,
    column,
    mean,
    ratio_of,
    read_gold,
    result_name,
)
from whichsense.lab.metrics import cambignq as metrics
from whichsense.lab.metrics.cambignq import (
    Overlap,
    answer_overlap,
    distinct_answers,
    distinct_answers_released,
    parse_released,
    ratio,
)
from whichsense.lab.metrics.exact_match import normal_form
from whichsense.text.overlap import bleu_counts, corpus_bleu
from whichsense.types import frozen

if TYPE_CHECKING:
    from whichsense.lab.evaluation.results import Array


# Micro-averaged precision, recall and F1 of CAmbigNQ's overlaps, with their intervals.


def overlap_metrics(name: str, overlaps: Sequence[Overlap]) -> dict[str, float | None]:
    """Precision, recall and F1 over all questions: {"option_precision": …, "option_recall": …, "option_f1": …}."""
    average = ratio(overlaps)
    return {
        f"{name}_precision": average.precision,
        f"{name}_recall": average.recall,
        f"{name}_f1": average.f1,
    }


def overlap_columns(name: str, overlaps: Sequence[Overlap]) -> dict[str, Sequence[float]]:
    """One column for each part of a ratio: micro averages divide sums, not questions' scores."""
    return {
        f"{name}: precision sum": [overlap.precision_sum for overlap in overlaps],
        f"{name}: recall sum": [overlap.recall_sum for overlap in overlaps],
        f"{name}: predicted": [overlap.predicted for overlap in overlaps],
        f"{name}: gold": [overlap.gold for overlap in overlaps],
    }


def overlap_statistics(name: str) -> dict[str, Statistic]:
    """The metrics of `overlap_metrics` from the sums of `overlap_columns`."""
    precision = ratio_of(f"{name}: precision sum", f"{name}: predicted")
    recall = ratio_of(f"{name}: recall sum", f"{name}: gold")

    def f1(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        p, r = precision(sums), recall(sums)
        mean: Array = 2 * p * r / np.maximum(p + r, 1e-12)
        return mean

    return {f"{name}_precision": precision, f"{name}_recall": recall, f"{name}_f1": f1}


# CAmbigNQ: clarification questions by BLEU, category and options.

_Variant = Literal["released", "paper"]

_CAMBIGNQ_FIX = "Is it CAmbigNQ's file, or one of the form {id: text}?"
_NO_BERT = "bert_score needs a model: --bert PATH."
_ORDER = 4  # of BLEU over whole clarification questions

_Scores = dict[str, Any]  # one question's scores, and what the report shows of it


@frozen
class _Corpus:
    """Gold and predicted questions side by side, one item per question; "" where a prediction is missing."""

    golds: list[str] = field(default_factory=list)
    predictions: list[str] = field(default_factory=list)
    gold_categories: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    overlaps: list[metrics.Overlap] = field(default_factory=list)


def score_cambignq(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    variant: _Variant = "released",
    allow_missing: bool = False,
    bert: str | Path | None = None,
    name: str = "",
) -> Result:
    """Score clarification questions, `{id: text}`, against CAmbigNQ's records or a plain `{id: text}`."""
    golds = read_gold(gold, _read_official_cambignq, ClarifiedQuestion, _CAMBIGNQ_FIX)
    aligned = align(
        golds,
        predictions,
        as_text,
        allow_missing=allow_missing,
        is_empty=lambda text: text == "",  # a system that does not ask
    )
    corpus = _Corpus()
    questions: dict[str, _Scores] = {
        key: _score_question_cambignq(question, aligned[key], variant, corpus)
        for key, question in golds.items()
    }
    rows = list(questions.values())
    values = _corpus_scores(rows, corpus)
    settings: dict[str, Any] = {"variant": variant}
    if bert:
        settings["bert"] = str(bert)
        values["bert_score"] = _add_bert_scores(rows, corpus, bert)
    return Result(
        dataset="cambignq",
        name=result_name(name, predictions),
        metrics=values,
        counts={"n": len(rows)},
        intervals=_cambignq_intervals(rows, corpus),
        questions=questions,
        settings=settings,
        notes=[] if bert else [_NO_BERT],
    )


def _score_question_cambignq(
    question: ClarifiedQuestion, prediction: str | None, variant: _Variant, corpus: _Corpus
) -> _Scores:
    """Score one question by itself, and add it to the corpus."""
    gold = question.clarification
    predicted = prediction or ""
    gold_category, gold_options = parse_released(gold)
    category, options = parse_released(predicted)
    category_em = metrics.category_exact_match(gold, predicted)
    if prediction is None:  # a missing question has no category and no options
        options = []
        category_em = 0.0
    # The released script assigns options twice, for precision and for recall.
    one_assignment = variant == "paper"
    overlap = metrics.option_overlap(gold_options, options, one_assignment)
    corpus.golds.append(gold)
    corpus.predictions.append(predicted)
    corpus.gold_categories.append(gold_category)
    corpus.categories.append(category)
    corpus.overlaps.append(overlap)
    alone = metrics.ratio([overlap])
    return {
        "category_em": category_em,
        "option_precision": alone.precision,
        "option_recall": alone.recall,
        "option_f1": alone.f1,
        "options": len(options),
        "question": question.text,
        "gold": [gold],
        "predicted": [predicted],
    }


def _corpus_scores(rows: Sequence[_Scores], corpus: _Corpus) -> dict[str, float | None]:
    category_bleu = corpus_bleu(corpus.gold_categories, corpus.categories, order=1)
    return {
        "bleu4": corpus_bleu(corpus.golds, corpus.predictions, _ORDER),
        "bert_score": None,
        "category_em": mean(column(rows, "category_em")),
        "category_bleu1": category_bleu,
        **overlap_metrics("option", corpus.overlaps),
        "options_per_question": mean(column(rows, "options")),
    }


def _add_bert_scores(rows: Sequence[_Scores], corpus: _Corpus, model: str | Path) -> float:
    from whichsense.lab.evaluation.metric_models import TokenVectors
    from whichsense.lab.metrics.cambignq import bert_score

    scores = bert_score(corpus.golds, corpus.predictions, TokenVectors(model))
    for row, score in zip(rows, scores, strict=True):
        row["bert_score"] = score
    return sum(scores) / len(scores)


def _cambignq_intervals(rows: Sequence[_Scores], corpus: _Corpus) -> dict[str, Interval]:
    columns: dict[str, Sequence[float]] = {
        "n": [1.0] * len(rows),
        "category_em": column(rows, "category_em"),
        "options": column(rows, "options"),
    }
    columns |= overlap_columns("option", corpus.overlaps)
    columns |= _bleu_columns("question", _ORDER, corpus.golds, corpus.predictions)
    columns |= _bleu_columns("category", 1, corpus.gold_categories, corpus.categories)
    statistics = {
        "bleu4": _corpus_bleu("question", _ORDER),
        "category_em": ratio_of("category_em", "n"),
        "category_bleu1": _corpus_bleu("category", 1),
        **overlap_statistics("option"),
        "options_per_question": ratio_of("options", "n"),
    }
    return bootstrap_intervals(columns, statistics)


def _bleu_columns(
    text: str, order: int, golds: Sequence[str], predictions: Sequence[str]
) -> dict[str, Sequence[float]]:
    """What `bleu_counts` counts in each pair, a column for each count."""
    counts = [
        bleu_counts(gold, predicted, order)
        for gold, predicted in zip(golds, predictions, strict=True)
    ]
    return dict(zip(_bleu_names(text, order), zip(*counts, strict=True), strict=True))


def _bleu_names(text: str, order: int) -> list[str]:
    """Names for what `bleu_counts` counts, in its order: matches and guesses for each n, then both lengths."""
    names = [
        f"{text}: {kind} {n}-grams"
        for kind in ("matching", "predicted")
        for n in range(1, order + 1)
    ]
    return [*names, f"{text}: predicted length", f"{text}: gold length"]


def _corpus_bleu(text: str, order: int) -> Statistic:
    """Corpus BLEU from the sums of `bleu_counts`' columns."""
    names = _bleu_names(text, order)

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


# CAmbigNQ's clarification-based QA: an answer for each option, end to end, and beside answering
# without asking.

_CLARIFIED_FIX = "Is it CAmbigNQ's file, with 'clarification_answers'?"
# The answers that are compared with the gold ones, in four ways.
_GROUPS = ("answer", "end_to_end", "served", "direct")
_PER_QUESTION = ("options", "distinct_answers", "words_per_answer")
# one question's scores, and what the report shows of it


@frozen
class _Prediction:
    """What a system says of one question."""

    options: tuple[str, ...] = ()
    """The answer of each option, empty where none was found."""
    direct: tuple[str, ...] = ()
    """The answers that it would give without asking."""
    asks: bool = False
    """Whether it would ask at all."""


def score_clarified(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    variant: _Variant = "released",
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """Score the answers of a clarification question's options against CAmbigNQ's records.

    A prediction is `{"options": [{"option", "answer"}…], "answers": [answer…], "asked": true}`, or a list with one
    answer for each option. Questions whose options have no known answers are left out.
    """
    every = read_gold(gold, _read_official_clarified, ClarifiedQuestion, _CLARIFIED_FIX)
    aligned = align(every, predictions, _as_prediction, allow_missing=allow_missing)
    golds = {key: one for key, one in every.items() if one.clarified_answers}
    if not golds:
        raise BadInput("No question has answers for the options of its clarification.")
    overlaps: dict[str, list[Overlap]] = {group: [] for group in _GROUPS}
    questions: dict[str, _Scores] = {}
    options = []
    for key, question in golds.items():
        prediction = aligned[key] or _Prediction()
        options.append(prediction.options)
        own = _overlaps(question, prediction, variant)
        for group, overlap in own.items():
            overlaps[group].append(overlap)
        questions[key] = _score_question_clarified(question, prediction, own)
    rows = list(questions.values())
    left_out = len(every) - len(golds)
    notes = [f"Left out, without known answers: {left_out}."] if left_out else []
    return Result(
        dataset="cambignq-answers",
        name=result_name(name, predictions),
        metrics=_metrics(rows, overlaps, options),
        counts={"n": len(rows)},
        intervals=_clarified_intervals(rows, overlaps),
        questions=questions,
        settings={"variant": variant},
        notes=notes,
    )


def _as_prediction(value: Any) -> _Prediction:
    if isinstance(value, list):
        return _Prediction(as_answers(value), asks=len(value) > 1)
    if not isinstance(value, Mapping) or not isinstance(value.get("options"), list):
        raise TypeError("An object with 'options', or a list of answers, is needed.")
    options = []
    for option in value["options"]:
        if not isinstance(option, Mapping) or "answer" not in option:
            raise TypeError("Each of 'options' needs an 'answer'.")
        options.append(option["answer"])
    return _Prediction(
        as_answers(options),
        as_answers(value.get("answers", [])),
        bool(value.get("asked", len(options) > 1)),
    )


def _overlaps(
    question: ClarifiedQuestion, prediction: _Prediction, variant: _Variant
) -> dict[str, Overlap]:
    """The question's overlap in each of the four ways."""
    options = prediction.options
    compared = {
        "answer": options,
        # Who is not asked chooses no option.
        "end_to_end": options if prediction.asks else (),
        # … and is told all answers at once.
        "served": options if prediction.asks and options else prediction.direct,
        "direct": prediction.direct,
    }
    one_assignment = variant == "paper"
    return {
        group: answer_overlap(question.clarified_answers, answers, one_assignment)
        for group, answers in compared.items()
    }


def _score_question_clarified(
    question: ClarifiedQuestion, prediction: _Prediction, overlaps: dict[str, Overlap]
) -> _Scores:
    scores: _Scores = {f"{group}_f1": ratio([overlap]).f1 for group, overlap in overlaps.items()}
    answers = prediction.options
    hits = _included(question.clarified_answers, answers)
    lengths = [len(answer.split()) for answer in answers]
    return scores | {
        "included": sum(hits),
        "included_of": len(question.clarified_answers),
        "options": len(answers),
        "distinct_answers": distinct_answers(answers),
        "words_per_answer": mean(lengths) or 0.0,
        "asked": float(prediction.asks and bool(answers)),
        "question": question.text,
        "gold": [" / ".join(aliases) for aliases in question.clarified_answers],
        "predicted": list(answers),
    }


def _included(gold: Sequence[Sequence[str]], answers: Sequence[str]) -> list[bool]:
    """Appendix E's accuracy: whether an option's answer holds a name of its own gold answer, option by option."""
    hits = []
    for aliases, answer in zip(gold, answers, strict=False):
        text = normal_form(answer)
        hits.append(any(normal_form(alias) in text for alias in aliases))
    return hits


def _metrics(
    rows: Sequence[_Scores],
    overlaps: Mapping[str, Sequence[Overlap]],
    options: Sequence[Sequence[str]],
) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for group in _GROUPS:
        values |= overlap_metrics(group, overlaps[group])
    total = sum(column(rows, "included_of"))
    values["accuracy"] = sum(column(rows, "included")) / total
    values["asked"] = mean(column(rows, "asked"))
    for name in _PER_QUESTION:
        values[name] = mean(column(rows, name))
    values["distinct_answers_released"] = distinct_answers_released(options)
    return values


def _clarified_intervals(
    rows: Sequence[_Scores], overlaps: Mapping[str, Sequence[Overlap]]
) -> dict[str, Interval]:
    columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
    statistics: dict[str, Statistic] = {"accuracy": ratio_of("included", "included_of")}
    for group in _GROUPS:
        columns |= overlap_columns(group, overlaps[group])
        statistics |= overlap_statistics(group)
    for name in (*_PER_QUESTION, "asked", "included", "included_of"):
        columns[name] = column(rows, name)
    for name in (*_PER_QUESTION, "asked"):
        statistics[name] = ratio_of(name, "n")
    return bootstrap_intervals(columns, statistics)


def _read_official_clarified(rows: Rows) -> Iterator[Question]:
    for row in rows:
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            clarification=row.text("clarification_question"),
            clarified_answers=_gold_answers(row),
        )


def _gold_answers(row: Row) -> tuple[tuple[str, ...], ...]:
    """The aliases of each option's answer: a list of lists, or of objects with `answer`."""
    value = row.value.get("clarification_answers")
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return tuple(item.texts("answer") for item in row.rows("clarification_answers"))
    return row.text_lists("clarification_answers")
