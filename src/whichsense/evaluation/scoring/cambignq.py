"""CAmbigNQ: clarification questions by BLEU, category and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from whichsense.datasets import ClarifiedQuestion, Question
from whichsense.datasets.rows import ParsedJson, read_rows
from whichsense.evaluation.scoring.inputs import (
    GoldInput,
    PredictionInput,
    align,
    as_text,
    input_name,
    read_gold,
    read_predictions,
    result_name,
)
from whichsense.evaluation.scoring.result import (
    Interval,
    Result,
    Statistic,
    bootstrap_intervals,
    mean,
    ratio_of,
)
from whichsense.metrics import cambignq as metrics
from whichsense.metrics.cambignq import parse_released
from whichsense.text.bleu import bleu_counts, corpus_bleu

if TYPE_CHECKING:
    from whichsense.evaluation.scoring.result import Array

Variant = Literal["released", "paper"]

_FIX = "Is it CAmbigNQ's file, or one of the form {id: text}?"
_NO_BERT = "bert_score needs a model: --bert PATH."
_ORDER = 4  # of BLEU over whole clarification questions


@dataclass(frozen=True, slots=True)
class _Compared:
    """A gold clarification question beside the predicted one ("" where it is missing)."""

    gold: str
    predicted: str
    gold_category: str
    predicted_category: str
    overlap: metrics.Overlap
    scores: dict[str, Any]


def score_cambignq(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    variant: Variant = "released",
    allow_missing: bool = False,
    bert: str | Path | None = None,
    name: str = "",
) -> Result:
    """Score clarification questions, `{id: text}`, against CAmbigNQ's records or a plain `{id: text}`."""
    golds = read_gold(gold, _read_official, ClarifiedQuestion)
    aligned = align(
        golds,
        read_predictions(predictions, list(golds)),
        input_name(predictions, "predictions"),
        as_text,
        allow_missing=allow_missing,
    )
    compared = {}
    for key, question in golds.items():
        compared[key] = _compare(question, aligned[key], variant)
    rows = list(compared.values())
    values = _corpus_scores(rows)
    settings: dict[str, Any] = {"variant": variant}
    if bert:
        settings["bert"] = str(bert)
        values["bert_score"] = _add_bert_scores(rows, bert)
    return Result(
        dataset="cambignq",
        name=result_name(name, predictions),
        metrics=values,
        counts={"n": len(rows)},
        intervals=_intervals(rows),
        questions={key: one.scores for key, one in compared.items()},
        settings=settings,
        notes=[] if bert else [_NO_BERT],
    )


def _compare(
    question: ClarifiedQuestion, prediction: str | None, variant: Variant
) -> _Compared:
    gold = question.clarification
    predicted = prediction or ""
    gold_category, gold_options = parse_released(gold)
    predicted_category, options = parse_released(predicted)
    category_em = metrics.category_exact_match(gold, predicted)
    if prediction is None:  # a missing question has no category and no options
        options = []
        category_em = 0.0
    one_assignment = variant == "paper"
    overlap = metrics.option_overlap(gold_options, options, one_assignment)
    alone = metrics.ratio([overlap])
    scores = {
        "category_em": category_em,
        "option_precision": alone.precision,
        "option_recall": alone.recall,
        "option_f1": alone.f1,
        "options": len(options),
        "question": question.text,
        "gold": [gold],
        "predicted": [predicted],
    }
    return _Compared(
        gold, predicted, gold_category, predicted_category, overlap, scores
    )


def _corpus_scores(rows: Sequence[_Compared]) -> dict[str, float | None]:
    golds = [row.gold for row in rows]
    predictions = [row.predicted for row in rows]
    gold_categories = [row.gold_category for row in rows]
    categories = [row.predicted_category for row in rows]
    options = metrics.ratio([row.overlap for row in rows])
    return {
        "bleu4": corpus_bleu(golds, predictions, _ORDER),
        "bert_score": None,
        "category_em": mean([row.scores["category_em"] for row in rows]),
        "category_bleu1": corpus_bleu(gold_categories, categories, order=1),
        "option_precision": options.precision,
        "option_recall": options.recall,
        "option_f1": options.f1,
        "options_per_question": mean([float(row.scores["options"]) for row in rows]),
    }


def _add_bert_scores(rows: Sequence[_Compared], model: str | Path) -> float:
    from whichsense.metrics.bertscore import bert_score
    from whichsense.models.token_vectors import TokenVectors

    golds = [row.gold for row in rows]
    predictions = [row.predicted for row in rows]
    scores = bert_score(golds, predictions, TokenVectors(model))
    for row, score in zip(rows, scores, strict=True):
        row.scores["bert_score"] = score
    return sum(scores) / len(scores)


def _intervals(rows: Sequence[_Compared]) -> dict[str, Interval]:
    columns: dict[str, Sequence[float]] = {
        "n": [1.0] * len(rows),
        "category_em": [row.scores["category_em"] for row in rows],
        "options": [float(row.scores["options"]) for row in rows],
        "precision_sum": [row.overlap.precision_sum for row in rows],
        "recall_sum": [row.overlap.recall_sum for row in rows],
        "predicted": [row.overlap.predicted for row in rows],
        "gold": [row.overlap.gold for row in rows],
    }
    whole = [bleu_counts(row.gold, row.predicted, _ORDER) for row in rows]
    categories = []
    for row in rows:
        counts = bleu_counts(row.gold_category, row.predicted_category, order=1)
        categories.append(counts)
    for text, order, counted in (
        ("question", _ORDER, whole),
        ("category", 1, categories),
    ):
        names = _bleu_columns(text, order)
        columns.update(zip(names, zip(*counted, strict=True), strict=True))
    statistics = {
        "bleu4": _corpus_bleu("question", _ORDER),
        "category_em": ratio_of("category_em", "n"),
        "category_bleu1": _corpus_bleu("category", 1),
        "option_precision": ratio_of("precision_sum", "predicted"),
        "option_recall": ratio_of("recall_sum", "gold"),
        "option_f1": _option_f1,
        "options_per_question": ratio_of("options", "n"),
    }
    return bootstrap_intervals(columns, statistics)


def _option_f1(sums: Mapping[str, Array]) -> Array:
    import numpy as np

    precision = ratio_of("precision_sum", "predicted")(sums)
    recall = ratio_of("recall_sum", "gold")(sums)
    f1: Array = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return f1


def _bleu_columns(text: str, order: int) -> list[str]:
    """Names for what `bleu_counts` counts, in its order."""
    sizes = range(1, order + 1)
    matches = [f"{text}: matching {n}-grams" for n in sizes]
    guesses = [f"{text}: predicted {n}-grams" for n in sizes]
    lengths = [f"{text}: predicted length", f"{text}: gold length"]
    return matches + guesses + lengths


def _corpus_bleu(text: str, order: int) -> Statistic:
    """Corpus BLEU from the sums of `bleu_counts`' columns."""
    names = _bleu_columns(text, order)

    def statistic(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        # Arrays of shape (resamples, order).
        matches = np.stack([sums[name] for name in names[:order]], axis=1)
        guesses = np.stack([sums[name] for name in names[order : 2 * order]], axis=1)
        predicted, gold = sums[names[-2]], sums[names[-1]]
        precisions = np.maximum(matches, 1e-300) / np.maximum(guesses, 1)
        precision = np.exp(np.log(precisions).mean(axis=1))
        penalty = np.exp(np.minimum(0.0, 1 - gold / np.maximum(predicted, 1)))
        has_all = (matches > 0).all(axis=1)
        return np.where(has_all, precision * penalty, 0.0)

    return statistic


def _read_official(source: Path | ParsedJson) -> Iterator[Question]:
    for row in read_rows(source, _FIX, plain="clarification_question"):
        clarification = row.text("clarification_question")
        if not clarification.strip():
            raise row.bad("'clarification_question' is empty")
        question = row.text("question", default="")
        yield ClarifiedQuestion(row.text("id"), question, clarification=clarification)
