"""CAmbigNQ: clarification questions by BLEU, category and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from whichsense.datasets.rows import records as rows_of
from whichsense.evaluation.scoring.inputs import (
    aligned,
    as_text,
    by_id,
    read_predictions,
)
from whichsense.evaluation.scoring.result import Measure, Result, intervals, mean, share
from whichsense.metrics import cambignq as metrics
from whichsense.metrics.cambignq import parse_released
from whichsense.text.bleu import bleu_counts, corpus_bleu

Variant = Literal["released", "paper"]
_FIX = "Is it CAmbigNQ's file, or one of the form {id: text}?"


def score_cambignq(
    gold: str | Path,
    predicted: str | Path,
    *,
    variant: Variant = "released",
    allow_missing: bool = False,
    bert: str | Path | None = None,
    name: str = "",
) -> Result:
    """Score clarification questions, `{id: text}`, against CAmbigNQ's file or a plain `{id: text}` one."""
    records = by_id(_golds(Path(gold)), gold)
    golds = {key: clarification for key, (_, clarification) in records.items()}
    predictions = aligned(
        golds,
        read_predictions(predicted),
        predicted,
        as_text,
        allow_missing=allow_missing,
    )
    ours = {key: predictions[key] or "" for key in golds}
    questions = {
        key: _scored(golds[key], predictions[key], records[key][0], variant)
        for key in golds
    }
    pairs = list(golds.values()), list(ours.values())
    categories = [[parse_released(text)[0] for text in side] for side in pairs]
    overlaps = [one.pop("overlap") for one in questions.values()]
    options = metrics.ratio(overlaps)
    values: dict[str, float | None] = {
        "bleu4": corpus_bleu(*pairs),
        "bert_score": None,
        "category_em": mean([one["category_em"] for one in questions.values()]),
        "category_bleu1": corpus_bleu(categories[0], categories[1], order=1),
        "option_precision": options.precision,
        "option_recall": options.recall,
        "option_f1": options.f1,
        "options_per_question": mean(
            [float(one["options"]) for one in questions.values()]
        ),
    }
    notes = [] if bert else ["bert_score needs a model: --bert PATH."]
    if bert:
        values["bert_score"] = _bert_score(questions, pairs, bert)
    found = _intervals(questions, overlaps, pairs, categories)
    counts = {"n": len(questions)}
    settings = {"variant": variant, **({"bert": str(bert)} if bert else {})}
    return Result(
        "cambignq",
        name or Path(predicted).stem,
        values,
        counts,
        found,
        questions,
        settings,
        notes,
    )


def _scored(
    gold: str, prediction: str | None, question: str, variant: Variant
) -> dict[str, Any]:
    ours = prediction or ""
    options = parse_released(ours)[1] if prediction is not None else []
    overlap = metrics.option_overlap(
        parse_released(gold)[1], options, one_assignment=variant == "paper"
    )
    alone = metrics.ratio([overlap])
    return {
        "category_em": 0.0
        if prediction is None
        else metrics.category_exact_match(gold, ours),
        "option_precision": alone.precision,
        "option_recall": alone.recall,
        "option_f1": alone.f1,
        "options": len(options),
        "question": question,
        "gold": [gold],
        "predicted": [ours],
        "overlap": overlap,
    }


def _bert_score(
    questions: Mapping[str, dict[str, Any]],
    pairs: tuple[list[str], list[str]],
    model: str | Path,
) -> float:
    from whichsense.metrics.bertscore import bert_score
    from whichsense.models.token_vectors import TokenVectors

    scores = bert_score(*pairs, TokenVectors(model))
    for one, score in zip(questions.values(), scores, strict=True):
        one["bert_score"] = score
    return sum(scores) / len(scores)


def _intervals(
    questions: Mapping[str, Mapping[str, Any]],
    overlaps: Sequence[metrics.Overlap],
    pairs: tuple[list[str], list[str]],
    categories: Sequence[Sequence[str]],
) -> dict[str, tuple[float, float]]:
    rows = []
    whole = zip(*pairs, strict=True)
    heads = zip(*categories, strict=True)
    for one, o, texts, names in zip(
        questions.values(), overlaps, whole, heads, strict=True
    ):
        base = [
            1.0,
            one["category_em"],
            float(one["options"]),
            o.precision_sum,
            o.recall_sum,
            o.predicted,
            o.gold,
        ]
        rows.append(
            [
                *base,
                *bleu_counts(texts[0], texts[1]),
                *bleu_counts(names[0], names[1], order=1),
            ]
        )
    measures = {
        "bleu4": _bleu(7, 4),
        "category_em": share(1, 0),
        "category_bleu1": _bleu(17, 1),
        "option_precision": share(3, 5),
        "option_recall": share(4, 6),
        "option_f1": _f1,
        "options_per_question": share(2, 0),
    }
    return intervals(rows, measures)


def _f1(sums: Any) -> Any:
    import numpy as np

    precision, recall = share(3, 5)(sums), share(4, 6)(sums)
    return 2 * precision * recall / np.maximum(precision + recall, 1e-12)


def _bleu(first: int, order: int) -> Measure:
    """Corpus BLEU from columns of sums: matches and guesses for each n, then both lengths."""

    def measure(sums: Any) -> Any:
        import numpy as np

        correct, guesses = (
            sums[:, first + part * order : first + (part + 1) * order]
            for part in (0, 1)
        )
        ours, theirs = sums[:, first + 2 * order], sums[:, first + 2 * order + 1]
        logs = np.log(np.maximum(correct, 1e-300) / np.maximum(guesses, 1)).mean(axis=1)
        penalty = np.exp(np.minimum(0.0, 1 - theirs / np.maximum(ours, 1)))
        return np.where((correct > 0).all(axis=1), np.exp(logs) * penalty, 0.0)

    return measure


def _golds(path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each id with the ambiguous question, where the file has it, and the one that asks back."""
    for row in rows_of(path, _FIX, plain="clarification_question"):
        clarification = row.text("clarification_question")
        if not clarification.strip():
            raise row.bad("'clarification_question' is empty")
        yield row.text("id"), (row.text("question", default=""), clarification)
