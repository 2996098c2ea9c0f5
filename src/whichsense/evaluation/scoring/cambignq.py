"""CAmbigNQ: clarification questions by BLEU, category and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from whichsense.datasets import ClarifiedQuestion, Question
from whichsense.datasets.rows import ParsedJson, read_rows
from whichsense.evaluation.scoring.inputs import (
    GoldInput,
    PredictionInput,
    read_gold,
    result_name,
)
from whichsense.evaluation.scoring.overlaps import (
    overlap_columns,
    overlap_metrics,
    overlap_statistics,
)
from whichsense.evaluation.scoring.predictions import align, as_text
from whichsense.evaluation.scoring.result import (
    Interval,
    Result,
    Statistic,
    bootstrap_intervals,
    column,
    mean,
    ratio_of,
)
from whichsense.metrics import cambignq as metrics
from whichsense.metrics.cambignq import parse_released
from whichsense.text.bleu import bleu_counts, corpus_bleu

if TYPE_CHECKING:
    from whichsense.evaluation.scoring.result import Array

_Variant = Literal["released", "paper"]

_FIX = "Is it CAmbigNQ's file, or one of the form {id: text}?"
_NO_BERT = "bert_score needs a model: --bert PATH."
_ORDER = 4  # of BLEU over whole clarification questions

_Scores = dict[str, Any]  # one question's scores, and what the report shows of it


@dataclass(frozen=True, slots=True)
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
    golds = read_gold(gold, _read_official, ClarifiedQuestion)
    aligned = align(
        golds,
        predictions,
        as_text,
        allow_missing=allow_missing,
        is_empty=lambda text: text == "",  # a system that does not ask
    )
    corpus = _Corpus()
    questions: dict[str, _Scores] = {}
    for key, question in golds.items():
        questions[key] = _score_question(question, aligned[key], variant, corpus)
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
        intervals=_intervals(rows, corpus),
        questions=questions,
        settings=settings,
        notes=[] if bert else [_NO_BERT],
    )


def _score_question(
    question: ClarifiedQuestion,
    prediction: str | None,
    variant: _Variant,
    corpus: _Corpus,
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


def _add_bert_scores(
    rows: Sequence[_Scores], corpus: _Corpus, model: str | Path
) -> float:
    from whichsense.metrics.bertscore import bert_score
    from whichsense.models.token_vectors import TokenVectors

    scores = bert_score(corpus.golds, corpus.predictions, TokenVectors(model))
    for row, score in zip(rows, scores, strict=True):
        row["bert_score"] = score
    return sum(scores) / len(scores)


def _intervals(rows: Sequence[_Scores], corpus: _Corpus) -> dict[str, Interval]:
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
    counts = []
    for gold, predicted in zip(golds, predictions, strict=True):
        counts.append(bleu_counts(gold, predicted, order))
    names = _bleu_names(text, order)
    return dict(zip(names, zip(*counts, strict=True), strict=True))


def _bleu_names(text: str, order: int) -> list[str]:
    """Names for what `bleu_counts` counts, in its order: matches and guesses for each n, then both lengths."""
    names = []
    for kind in ("matching", "predicted"):
        for n in range(1, order + 1):
            names.append(f"{text}: {kind} {n}-grams")
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
