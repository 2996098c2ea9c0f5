"""Score long answers of ASQA and their citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, Literal

from whichsense.errors import BadInput
from whichsense.lab.datasets import LongQuestion
from whichsense.lab.datasets.readers import read_asqa
from whichsense.lab.evaluation.results import (
    Benchmark,
    Measures,
    PredictionInput,
    Result,
    Statistic,
    as_text,
    column,
    describe_ids,
    input_name,
    ratio_of,
    read_predictions,
)
from whichsense.lab.metrics import asqa as metrics
from whichsense.lab.metrics.asqa import CitedDocument, Judge
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
        return " ".join(starmap(metrics.with_citations, self.sentences))


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


def _score_citations(
    rows: Sequence[_Scores], answers: Sequence[CitedText], judge: Judge
) -> Measures:
    """Add citation recall and precision to the questions' scores. As in ALCE, an answer without a sentence has none."""
    scored = []
    for row, answer in zip(rows, answers, strict=True):
        scores = metrics.citation_scores(answer.marked, answer.documents, judge)
        if scores is None:
            continue
        cited = [bool(numbers) for _, numbers in answer.sentences]
        row["citation_recall"] = scores.recall
        row["citation_precision"] = scores.precision
        row["sentences_cited"] = sum(cited) / len(cited) if cited else 0.0
        scored.append(row)
    measures = Measures(scored, *_METRICS)
    for metric in _METRICS if scored else ():
        measures.ratio(metric)
    return measures


# ASQA: long answers by ROUGE-L, STR-EM and, with a reader, Disambig-F1 and DR.

_Variant = Literal["best", "average"]

_NO_READER = "disambig_f1 and dr need a reader: --reader PATH of a SQuAD 2.0 model."
# What a reader's answers from the long answer give, in the order of the result.
_READER_METRICS = ("disambig_f1", "qa_em", "qa_hit")

_Pairs = list[metrics.Disambiguation]


def _score_asqa(
    golds: Mapping[str, LongQuestion],
    predictions: Mapping[str, CitedText | None],
    *,
    variant: _Variant = "best",
    reader: metrics.Reader | None = None,
    reader_answers: PredictionInput | None = None,
    judge: Judge | None = None,
) -> Result:
    """Score long answers. `reader` answers the disambiguated questions from them; in its place `reader_answers` are the
    official reader's, `{id_number: answer}`. `judge` decides whether cited documents support a sentence."""
    pairs = {key: _disambiguations(question) for key, question in golds.items()}
    # A missing answer scores as an empty one.
    answers = [predictions[key] or CitedText("") for key in golds]
    questions = {
        key: _score_question(question, pairs[key], answer.text)
        for (key, question), answer in zip(golds.items(), answers, strict=True)
    }
    rows = list(questions.values())
    settings: dict[str, Any] = {"variant": variant}
    if reader_answers is not None:
        settings["reader"] = input_name(reader_answers, "own")
        _add_reader_scores(rows, _score_answers(pairs, reader_answers))
    elif reader is not None:
        settings["reader"] = str(getattr(reader, "name", "own"))
        texts = [answer.text for answer in answers]
        _add_reader_scores(rows, metrics.read_all(list(pairs.values()), texts, reader))
    measures = _measure(rows, variant, "reader" in settings)
    notes = [] if "reader" in settings else [_NO_READER]
    if judge is None:
        return measures.result(questions, settings, notes)
    settings["judge"] = str(getattr(judge, "name", "own"))
    cited = _score_citations(rows, answers, judge)
    result = measures.result(questions, settings, notes)
    return replace(
        result,
        metrics=measures.metrics | cited.metrics,
        intervals={**result.intervals, **cited.intervals},
    )


def _disambiguations(question: LongQuestion) -> _Pairs:
    return [
        metrics.Disambiguation("|".join(pair.questions), pair.answers)
        for pair in question.annotations[0].pairs
    ]


def _score_question(question: LongQuestion, pairs: _Pairs, prediction: str) -> _Scores:
    by_reference = [
        metrics.rouge_l(reference.text, prediction) for reference in question.long_answers
    ]
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
    keys = {key: [f"{key}_{number}" for number in range(len(own))] for key, own in pairs.items()}
    wanted = chain.from_iterable(keys.values())
    missing = [key for key in wanted if not isinstance(given.get(key), str)]
    if missing:
        where = input_name(reader_answers, "reader_answers")
        raise BadInput(
            f"'{where}': no answer for {describe_ids(missing)}. The key is the question's id, '_', a number."
        )
    return [
        metrics.reader_scores(group, [given[one] for one in keys[key]])
        for key, group in pairs.items()
    ]


def _add_reader_scores(
    questions: Sequence[_Scores], scores: Sequence[metrics.ReaderScores]
) -> None:
    for question, score in zip(questions, scores, strict=True):
        question.update(asdict(score))
        question["dr"] = metrics.dr(score.disambig_f1, question["rouge_l"])


def _references(rows: Sequence[_Scores], variant: _Variant) -> list[list[float]]:
    """Return ROUGE-L columns, one list per question: the best reference, or every reference (the older rule)."""
    if variant == "best":
        return [[row["rouge_l"]] for row in rows]
    references = [row["rouge_l_by_reference"] for row in rows]
    if len(set(map(len, references))) > 1:
        raise BadInput(
            "The older rule needs as many references for every question. Use the variant 'best'."
        )
    return references


def _measure(rows: Sequence[_Scores], variant: _Variant, has_reader: bool) -> Measures:
    names = _READER_METRICS if has_reader else ()
    measures = Measures(rows, "str_em", "length", *names)
    references = _references(rows, variant)
    # One column with the variant "best", one per reference with "average".
    of_reference = [f"rouge_l of reference {number}" for number in range(len(references[0]))]
    measures.columns |= dict(zip(of_reference, zip(*references, strict=True), strict=True))
    best = column(rows, "rouge_l")
    rouge = sum(best) / len(best)
    if variant == "average":
        rouge = metrics.rouge_l_better_average(references)
    highest = _highest_mean(of_reference)
    measures.put("rouge_l", rouge, highest)
    measures.put("rouge_l_middle", middle(best) if variant == "best" else None)
    for metric in ("str_em", *_READER_METRICS):
        measures.ratio(metric)
    # DR combines the averages, not each question's.
    disambig_f1 = measures.metrics["disambig_f1"]
    both = None if disambig_f1 is None else metrics.dr(disambig_f1, rouge)
    measures.put("dr", both, _geometric_mean(ratio_of("disambig_f1", "n"), highest))
    measures.ratio("length")
    return measures


def _highest_mean(names: Sequence[str]) -> Statistic:
    """Return the highest of several columns' means."""

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


ASQA = Benchmark(
    LongQuestion, read_asqa, "Is it an ASQA file?", as_cited_text, _score_asqa, inside="dev"
)
