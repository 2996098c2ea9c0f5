"""ASQA: long answers by ROUGE-L, STR-EM and, with a reader, Disambig-F1 and DR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from whichsense.datasets.readers_ambiguous import asqa
from whichsense.datasets.records import LongQuestion
from whichsense.errors import BadInput
from whichsense.evaluation.scoring.inputs import (
    aligned,
    as_text,
    by_id,
    named,
    read_predictions,
)
from whichsense.evaluation.scoring.result import (
    Interval,
    Measure,
    Result,
    intervals,
    mean,
    share,
)
from whichsense.metrics import asqa as metrics
from whichsense.metrics.bootstrap import middle
from whichsense.metrics.rouge import rouge_l

Variant = Literal["best", "average"]
_FIX = "Is it an ASQA file?"


class _Gold(NamedTuple):
    question: str
    references: list[str]
    pairs: list[metrics.Disambiguation]


def score_asqa(
    gold: str | Path,
    predicted: str | Path,
    *,
    variant: Variant = "best",
    allow_missing: bool = False,
    reader: metrics.Reader | None = None,
    reader_answers: str | Path | None = None,
    split: str = "dev",
    name: str = "",
) -> Result:
    """Score long answers, `{id: text}`. `reader` answers the disambiguated questions from them; so does a file of
    the official reader's answers, `{id_number: answer}`.
    """
    golds = by_id(_golds(Path(gold), split), gold)
    predictions = aligned(
        golds,
        read_predictions(predicted),
        predicted,
        as_text,
        allow_missing=allow_missing,
    )
    ours = {key: predictions[key] or "" for key in golds}
    questions = {key: _scored(golds[key], ours[key]) for key in golds}
    _add_reader_scores(questions, golds, ours, reader, reader_answers)
    values, found = _summary(questions, variant)
    settings: dict[str, Any] = {"variant": variant}
    notes = []
    if reader_answers is not None:
        settings["reader"] = str(reader_answers)
    elif reader is not None:
        settings["reader"] = str(getattr(reader, "name", "own"))
    else:
        notes.append(
            "disambig_f1 and dr need a reader: --reader PATH of a SQuAD 2.0 model."
        )
    counts = {"n": len(questions)}
    return Result(
        "asqa",
        name or Path(predicted).stem,
        values,
        counts,
        found,
        questions,
        settings,
        notes,
    )


def _golds(path: Path, split: str) -> Iterator[tuple[str, _Gold]]:
    """The questions of a file with their references and disambiguations."""
    for question in asqa(path, split, _FIX):
        assert isinstance(question, LongQuestion)
        pairs = [
            metrics.Disambiguation("|".join(pair.questions), pair.answers)
            for pair in question.annotations[0].pairs
        ]
        yield (
            question.id,
            _Gold(
                question.text, [answer.text for answer in question.long_answers], pairs
            ),
        )


def _scored(gold: _Gold, prediction: str) -> dict[str, Any]:
    by_reference = [rouge_l(reference, prediction) for reference in gold.references]
    return {
        "rouge_l": max(by_reference),
        "rouge_l_by_reference": by_reference,
        "str_em": metrics.str_em([pair.aliases for pair in gold.pairs], prediction),
        "disambig_f1": None,
        "dr": None,
        "length": metrics.length(prediction),
        "question": gold.question,
        "gold": [" / ".join(pair.aliases) for pair in gold.pairs],
        "predicted": [prediction],
    }


def _add_reader_scores(
    questions: Mapping[str, dict[str, Any]],
    golds: Mapping[str, _Gold],
    predictions: Mapping[str, str],
    reader: metrics.Reader | None,
    answers: str | Path | None,
) -> None:
    if answers is not None:
        given = read_predictions(answers)
        wanted = [
            f"{key}_{i}" for key, one in golds.items() for i in range(len(one.pairs))
        ]
        missing = [key for key in wanted if not isinstance(given.get(key), str)]
        if missing:
            raise BadInput(
                f"'{answers}': no answer for {named(missing)}. The key is the question's id, '_', a number."
            )
        replies = iter([given[key] for key in wanted])
        scores = [
            metrics.reader_scores(one.pairs, [next(replies) for _ in one.pairs])
            for one in golds.values()
        ]
    elif reader is not None:
        scores = metrics.read_all(
            [one.pairs for one in golds.values()], list(predictions.values()), reader
        )
    else:
        return
    for one, score in zip(questions.values(), scores, strict=True):
        one |= {
            "disambig_f1": score.disambig_f1,
            "qa_em": score.qa_em,
            "qa_hit": score.qa_hit,
        }
        one["dr"] = metrics.dr(score.disambig_f1, one["rouge_l"])


def _summary(
    questions: Mapping[str, Mapping[str, Any]], variant: Variant
) -> tuple[dict[str, float | None], dict[str, Interval]]:
    rows_of = list(questions.values())
    references = [one["rouge_l_by_reference"] for one in rows_of]
    if variant == "average" and len({len(scores) for scores in references}) > 1:
        raise BadInput(
            "The older rule needs as many references for every question. Use the variant 'best'."
        )
    best = [one["rouge_l"] for one in rows_of]
    rouge = (
        mean(best) if variant == "best" else metrics.rouge_l_better_average(references)
    )
    read = rows_of[0]["disambig_f1"] is not None
    values: dict[str, float | None] = {
        "rouge_l": rouge,
        "rouge_l_middle": middle(best) if variant == "best" else None,
    }
    for metric in ("str_em", "disambig_f1", "qa_em", "qa_hit"):
        values[metric] = (
            mean([one[metric] for one in rows_of])
            if metric == "str_em" or read
            else None
        )
    values["dr"] = (
        metrics.dr(values["disambig_f1"] or 0.0, rouge or 0.0) if read else None
    )
    values["length"] = mean([float(one["length"]) for one in rows_of])
    columns = [
        "str_em",
        "length",
        *(["disambig_f1", "qa_em", "qa_hit"] if read else []),
    ]
    rouges = [[score] for score in best] if variant == "best" else references
    rows = [
        [1.0, *(one[metric] for metric in columns), *r]
        for one, r in zip(rows_of, rouges, strict=True)
    ]
    measures = {metric: share(i, 0) for i, metric in enumerate(columns, 1)}
    measures["rouge_l"] = _highest(range(len(columns) + 1, len(rows[0])))
    if read:
        measures["dr"] = _geometric(measures["disambig_f1"], measures["rouge_l"])
    return values, intervals(rows, measures)


def _highest(columns: Sequence[int]) -> Measure:
    def measure(sums: Any) -> Any:
        return (sums[:, list(columns)] / sums[:, :1]).max(axis=1)

    return measure


def _geometric(one: Measure, other: Measure) -> Measure:
    def measure(sums: Any) -> Any:
        return (one(sums) * other(sums)) ** 0.5

    return measure
