"""Score long answers of ASQA and their citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any, Literal

from whichsense.errors import BadInput
from whichsense.lab.datasets import LongQuestion
from whichsense.lab.datasets.readers import read_asqa
from whichsense.lab.evaluation.results import (
    GoldInput,
    Interval,
    PredictionInput,
    Result,
    Statistic,
    align,
    as_text,
    bootstrap_intervals,
    column,
    describe_ids,
    input_name,
    mean,
    mean_intervals,
    ratio_of,
    read_gold,
    read_predictions,
    result_name,
)
from whichsense.lab.metrics import asqa as metrics
from whichsense.lab.metrics.asqa import (
    CitedDocument,
    Judge,
    citation_scores,
    rouge_l,
    with_citations,
)
from whichsense.lab.metrics.statistics import middle
from whichsense.types import frozen

if TYPE_CHECKING:
    from whichsense.lab.evaluation.results import Array


# The citations of long answers: ALCE's recall and precision over a dataset.

_METRICS = ("citation_recall", "citation_precision", "sentences_cited")
_Scores = dict[str, Any]


@frozen
class CitedText:
    """A long answer; where its system cites, each sentence with the numbers of its documents, from 1."""

    text: str
    sentences: tuple[tuple[str, tuple[int, ...]], ...] = ()
    documents: tuple[CitedDocument, ...] = ()

    @property
    def marked(self) -> str:
        """The text with its citations in brackets."""
        if not self.sentences:
            return self.text
        return " ".join(starmap(with_citations, self.sentences))


def as_cited_text(value: Any) -> CitedText:
    """Check a prediction that is a text, with or without citations."""
    if not isinstance(value, Mapping):
        return CitedText(as_text(value))
    try:
        documents = [
            CitedDocument(document["title"], document["text"])
            for document in value.get("documents", ())
        ]
        sentences = []
        for item in value.get("sentences", ()):
            numbers = tuple(map(int, item["citations"]))
            sentences.append((as_text(item["sentence"]), numbers))
        return CitedText(as_text(value["text"]), tuple(sentences), tuple(documents))
    except (KeyError, ValueError) as error:
        raise TypeError(
            "A long answer needs 'text', 'sentences' with 'sentence' and 'citations', and 'documents' with "
            f"'title' and 'text'; this is wrong: {error}."
        ) from None


def add_citation_scores(
    rows: Sequence[_Scores], answers: Sequence[CitedText], judge: Judge
) -> list[_Scores]:
    """Add citation recall and precision to the questions' scores; returns those that have them. As in ALCE, an answer
    without a sentence has none."""
    scored = []
    for row, answer in zip(rows, answers, strict=True):
        scores = citation_scores(answer.marked, answer.documents, judge)
        if scores is None:
            continue
        cited = [bool(numbers) for _, numbers in answer.sentences]
        row["citation_recall"] = scores.recall
        row["citation_precision"] = scores.precision
        row["sentences_cited"] = mean(cited) or 0.0
        scored.append(row)
    return scored


def citation_means(rows: Sequence[_Scores]) -> dict[str, float | None]:
    """The means over answers; nothing where no judge was asked."""
    return {metric: mean(column(rows, metric)) for metric in _METRICS if rows}


def citation_intervals(rows: Sequence[_Scores]) -> dict[str, Interval]:
    return mean_intervals(rows, _METRICS) if rows else {}


# ASQA: long answers by ROUGE-L, STR-EM and, with a reader, Disambig-F1 and DR.

_Variant = Literal["best", "average"]

_FIX = "Is it an ASQA file?"
_NO_READER = "disambig_f1 and dr need a reader: --reader PATH of a SQuAD 2.0 model."
# What a reader's answers from the long answer give, in the order of the result.
_READER_METRICS = ("disambig_f1", "qa_em", "qa_hit")

# one question's scores, and what the report shows of it
_Pairs = list[metrics.Disambiguation]


def score_asqa(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    variant: _Variant = "best",
    allow_missing: bool = False,
    reader: metrics.Reader | None = None,
    reader_answers: PredictionInput | None = None,
    judge: Judge | None = None,
    split: str = "dev",
    name: str = "",
) -> Result:
    """Score long answers, `{id: text}` or `{id: {"text", "sentences": [{"sentence", "citations"}…], "documents"}}`.

    `reader` answers the disambiguated questions from them; in its place `reader_answers` are the official reader's
    answers, `{id_number: answer}`. `judge` decides whether cited documents support a sentence. `split` chooses among
    several in one file.
    """
    golds = read_gold(gold, read_asqa, LongQuestion, _FIX, split)
    aligned = align(golds, predictions, as_cited_text, allow_missing=allow_missing)
    questions: dict[str, _Scores] = {}
    pairs: dict[str, _Pairs] = {}
    answers = []
    for key, question in golds.items():
        pairs[key] = _disambiguations(question)
        # A missing answer scores as an empty one.
        answers.append(aligned[key] or CitedText(""))
        questions[key] = _score_question(question, pairs[key], answers[-1].text)
    rows = list(questions.values())
    texts = [answer.text for answer in answers]
    settings: dict[str, Any] = {"variant": variant}
    if reader_answers is not None:
        settings["reader"] = input_name(reader_answers, "own")
        _add_reader_scores(rows, _score_answers(pairs, reader_answers))
    elif reader is not None:
        settings["reader"] = str(getattr(reader, "name", "own"))
        _add_reader_scores(rows, metrics.read_all(list(pairs.values()), texts, reader))
    cited: list[_Scores] = []
    if judge is not None:
        settings["judge"] = str(getattr(judge, "name", "own"))
        cited = add_citation_scores(rows, answers, judge)
    has_reader = "reader" in settings
    references = _references(rows, variant)
    return Result(
        dataset="asqa",
        name=result_name(name, predictions),
        metrics=_means(rows, references, variant, has_reader) | citation_means(cited),
        counts={"n": len(questions)},
        intervals=_intervals(rows, references, has_reader) | citation_intervals(cited),
        questions=questions,
        settings=settings,
        notes=[] if has_reader else [_NO_READER],
    )


def _disambiguations(question: LongQuestion) -> _Pairs:
    return [
        metrics.Disambiguation("|".join(pair.questions), pair.answers)
        for pair in question.annotations[0].pairs
    ]


def _score_question(question: LongQuestion, pairs: _Pairs, prediction: str) -> _Scores:
    by_reference = [rouge_l(reference.text, prediction) for reference in question.long_answers]
    return {
        "rouge_l": max(by_reference),
        "rouge_l_by_reference": by_reference,
        "str_em": metrics.str_em([pair.aliases for pair in pairs], prediction),
        "disambig_f1": None,  # until a reader gives them
        "dr": None,
        "length": metrics.length(prediction),
        "question": question.text,
        "gold": [" / ".join(pair.aliases) for pair in pairs],
        "predicted": [prediction],
    }


def _score_answers(
    pairs: Mapping[str, _Pairs], reader_answers: PredictionInput
) -> list[metrics.ReaderScores]:
    """Score the official reader's answers, keyed by the question's id, "_", and a number."""
    given = read_predictions(reader_answers)
    missing = []
    scores = []
    for key, group in pairs.items():
        answers = []
        for number in range(len(group)):
            answer = given.get(f"{key}_{number}")
            if isinstance(answer, str):
                answers.append(answer)
            else:
                missing.append(f"{key}_{number}")
        if not missing:
            scores.append(metrics.reader_scores(group, answers))
    if missing:
        where = input_name(reader_answers, "reader_answers")
        raise BadInput(
            f"'{where}': no answer for {describe_ids(missing)}. The key is the question's id, '_', a number."
        )
    return scores


def _add_reader_scores(
    questions: Sequence[_Scores], scores: Sequence[metrics.ReaderScores]
) -> None:
    for question, score in zip(questions, scores, strict=True):
        question["disambig_f1"] = score.disambig_f1
        question["qa_em"] = score.qa_em
        question["qa_hit"] = score.qa_hit
        question["dr"] = metrics.dr(score.disambig_f1, question["rouge_l"])


def _references(rows: Sequence[_Scores], variant: _Variant) -> list[list[float]]:
    """ROUGE-L columns, one list per question: the best reference, or every reference (the older rule)."""
    if variant == "best":
        return [[row["rouge_l"]] for row in rows]
    references = [row["rouge_l_by_reference"] for row in rows]
    if len(set(map(len, references))) > 1:
        raise BadInput(
            "The older rule needs as many references for every question. Use the variant 'best'."
        )
    return references


def _means(
    rows: Sequence[_Scores], references: list[list[float]], variant: _Variant, has_reader: bool
) -> dict[str, float | None]:
    best = column(rows, "rouge_l")
    values: dict[str, float | None] = {
        "rouge_l": mean(best),
        "rouge_l_middle": middle(best) if variant == "best" else None,
        "str_em": mean(column(rows, "str_em")),
    }
    if variant == "average":
        values["rouge_l"] = metrics.rouge_l_better_average(references)
    for metric in _READER_METRICS:
        values[metric] = mean(column(rows, metric)) if has_reader else None
    values["dr"] = None
    # DR combines the averages, not each question's.
    if has_reader:
        disambig_f1, rouge = values["disambig_f1"], values["rouge_l"]
        values["dr"] = metrics.dr(disambig_f1 or 0.0, rouge or 0.0)
    values["length"] = mean(column(rows, "length"))
    return values


def _intervals(
    rows: Sequence[_Scores], references: list[list[float]], has_reader: bool
) -> dict[str, Interval]:
    names = ["str_em", "length"]
    if has_reader:
        names += _READER_METRICS
    columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
    statistics: dict[str, Statistic] = {}
    for name in names:
        columns[name] = column(rows, name)
        statistics[name] = ratio_of(name, "n")
    # One column with the variant "best", one per reference with "average".
    rouge_columns = []
    for number, scores in enumerate(zip(*references, strict=True)):
        rouge_columns.append(f"rouge_l of reference {number}")
        columns[rouge_columns[-1]] = scores
    statistics["rouge_l"] = _highest_mean(rouge_columns)
    if has_reader:
        statistics["dr"] = _geometric_mean(statistics["disambig_f1"], statistics["rouge_l"])
    return bootstrap_intervals(columns, statistics)


def _highest_mean(names: Sequence[str]) -> Statistic:
    """The highest of several columns' means."""

    def statistic(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        means = [sums[name] / sums["n"] for name in names]
        highest: Array = np.stack(means).max(axis=0)  # over the references
        return highest

    return statistic


def _geometric_mean(one: Statistic, other: Statistic) -> Statistic:
    def statistic(sums: Mapping[str, Array]) -> Array:
        product: Array = one(sums) * other(sums)
        root: Array = product**0.5
        return root

    return statistic
