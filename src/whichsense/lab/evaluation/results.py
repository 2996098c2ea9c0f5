"""Results of scoring: inputs, predictions in every form, intervals, comparison, models that metrics need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput
from whichsense.files import read_json
from whichsense.lab.datasets import Question
from whichsense.lab.datasets.rows import ParsedJson, Rows
from whichsense.lab.metrics.ambignq import QUESTION_METRICS
from whichsense.lab.metrics.statistics import PairedTest, paired_tests
from whichsense.protocols import Support
from whichsense.stages.providers import COMPACT
from whichsense.types import frozen

if TYPE_CHECKING:
    import numpy as np

    from whichsense.lab.metrics.asqa import Judge, Reader


# Result: the scores of one system with their intervals, and each question's own scores.

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[np.float64]]


Interval = tuple[float, float]
Scores = Mapping[str, Any]
"""One question's scores, and what a report shows of it."""

BY_MODEL = {
    "disambig_f1": "reader",
    "qa_em": "reader",
    "qa_hit": "reader",
    "dr": "reader",
    "bert_score": "bert",
    "citation_recall": "judge",
    "citation_precision": "judge",
}
"""Metrics that depend on a model, and the setting that names the model."""

_NOT_SETTINGS = ("dataset", "name", "intervals", "notes", "questions")


@frozen
class Result:
    """Scores of one system on one dataset."""

    dataset: str
    name: str
    metrics: Mapping[str, float | None]
    counts: Mapping[str, int]
    intervals: Mapping[str, Interval]
    questions: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def label(self, metric: str) -> str:
        """Return a metric's name with the model that it depends on: "disambig_f1 (reader: models/roberta)"."""
        setting = BY_MODEL.get(metric, "")  # "" is never a setting
        if setting not in self.settings:
            return metric
        return f"{metric} ({setting}: {self.settings[setting]})"

    def as_dict(self, per_question: bool = False) -> dict[str, Any]:
        """Return the JSON form: metrics and counts by name, then intervals, settings and notes."""
        table = {
            "dataset": self.dataset,
            "name": self.name,
            **self.settings,
            **self.metrics,
            **self.counts,
            # JSON has lists, not tuples.
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
            "notes": list(self.notes),
        }
        if per_question:
            table["questions"] = {key: dict(scores) for key, scores in self.questions.items()}
        return table


def load_result(path: str | Path) -> Result:
    """Read a result that `score … --json` printed."""
    table = read_json(path)
    try:
        return _parse_result(table, Path(path).stem)
    except (AttributeError, KeyError, TypeError, ValueError):
        advice = f"Make one with: whichsense score … --json --per-question > {path}"
        raise BadInput(f"'{path}' is not a result. {advice}") from None


def _parse_result(table: dict[str, Any], stem: str) -> Result:
    metrics: dict[str, float | None] = {}
    counts: dict[str, int] = {}
    settings: dict[str, Any] = {}
    questions = table.get("questions", {})
    # The JSON form is flat: a value's type says what it is.
    kinds: dict[type, Any] = {type(None): metrics, float: metrics, int: counts}
    for key, value in table.items():
        if key not in _NOT_SETTINGS:
            kinds.get(type(value), settings)[key] = value
    intervals = {
        name: (float(low), float(high)) for name, (low, high) in table["intervals"].items()
    }
    if not all(isinstance(question, dict) for question in questions.values()):
        raise TypeError("questions must be objects")
    return Result(
        dataset=str(table.get("dataset", "?")),
        name=str(table.get("name") or stem),
        metrics=metrics,
        counts=counts,
        intervals=intervals,
        questions=questions,
        settings=settings,
        notes=table.get("notes", ()),
    )


Statistic = Callable[[Mapping[str, "Array"]], "Array"]
"""From sums of named columns, one sum per resample, to one value per resample."""


def ratio_of(numerator: str, denominator: str) -> Statistic:
    """Return the ratio of two columns' sums; 0 where there is nothing to divide by."""

    def statistic(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        # Every numerator is 0 where its denominator is.
        return sums[numerator] / np.maximum(sums[denominator], 1e-12)

    return statistic


def bootstrap_intervals(
    columns: Mapping[str, Sequence[float]], statistics: Mapping[str, Statistic]
) -> dict[str, Interval]:
    """Return 95% bootstrap intervals of several statistics over the same resamples of the questions.

    Each column holds one number per question. A statistic sees the columns' sums over each resample.
    """
    import numpy as np

    from whichsense.lab.metrics.statistics import quantile, resampled_sums

    by_column = np.array(list(columns.values()), dtype=np.float64)
    # Shape (questions, columns). The sums' last bit depends on the memory layout.
    table = np.ascontiguousarray(by_column.T)
    sums = resampled_sums(table)  # (resamples, columns)
    by_name = dict(zip(columns, sums.T, strict=True))
    intervals: dict[str, Interval] = {}
    for name, statistic in statistics.items():
        values = statistic(by_name)
        intervals[name] = (quantile(values, 0.025), quantile(values, 0.975))
    return intervals


class Measures:
    """Metrics made of sums over the questions, each with its interval."""

    def __init__(self, rows: Sequence[Any], *names: str, **columns: Sequence[float]) -> None:
        """Take a column from the rows for each name."""
        self.columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
        self.columns |= {name: column(rows, name) for name in names} | columns
        self.metrics: dict[str, float | None] = {}
        self._statistics: dict[str, Statistic] = {}

    def put(self, metric: str, value: float | None, statistic: Statistic | None = None) -> None:
        """Add a metric; without a statistic of the columns' sums it has no interval."""
        self.metrics[metric] = value
        if statistic and value is not None:
            self._statistics[metric] = statistic

    def ratio(self, metric: str, numerator: str = "", denominator: str = "n") -> None:
        """Add the ratio of two columns' sums: by default the mean of the column of its name.

        It is None where a column is missing, or there is nothing to divide by.
        """
        over = self.columns.get(numerator or metric)
        total = sum(self.columns[denominator])
        value = sum(over) / total if over is not None and total else None
        self.put(metric, value, ratio_of(numerator or metric, denominator))

    @property
    def intervals(self) -> dict[str, Interval]:
        if not self._statistics:
            return {}
        return bootstrap_intervals(self.columns, self._statistics)

    def result(
        self,
        questions: Mapping[str, Scores],
        settings: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        **counts: int,
    ) -> Result:
        """Make a result of these questions, whose dataset and name are to be filled in."""
        counts = {"n": len(questions), **counts}
        return Result(
            "", "", self.metrics, counts, self.intervals, questions, settings or {}, notes
        )


def column(rows: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """Return one number of each question."""
    return [row[name] for row in rows]


# Read gold questions from files or objects, and reject what cannot be scored.

GoldInput = str | Path | Mapping[str, Any] | Iterable[Any]
"""A file in the official form, its parsed JSON, or a dataset's records."""

PredictionInput = str | Path | Mapping[str, Any] | Sequence[Any]
"""A file, a mapping {id: prediction}, a list of records with an id, or one case per gold question in their order."""

_SHOWN = 3  # ids named in an error message


def describe_ids(ids: Iterable[str]) -> str:
    """Name the first few of many ids, and say how many there are.

    >>> describe_ids(["a", "b", "c", "d", "e"])
    "5 ('a', 'b', 'c', …)"
    """
    names = list(ids)
    shown = ", ".join(map(repr, names[:_SHOWN]))
    more = ", …" if len(names) > _SHOWN else ""
    return f"{len(names)} ({shown}{more})"


def input_name(source: object, otherwise: str) -> str:
    """Return the path of a file, as messages show it; `otherwise` for objects."""
    return str(source) if isinstance(source, str | Path) else otherwise


@frozen
class Benchmark:
    """How a benchmark's gold questions and predictions are read and scored."""

    kind: type[Question]
    """The records that it needs."""
    read: Callable[[Rows], Iterator[Question]]
    """From the official form, whose errors end with `fix`."""
    fix: str
    parse: Callable[[Any], Any]
    """Check and convert a prediction. Raises TypeError."""
    score: Callable[..., Result]
    """From questions and predictions by id, None where one is missing, and options."""
    inside: str = ""
    """The split to score where a file holds several."""
    answers_only: bool = False
    """Whether a list of answers in the order of the questions is a prediction, as in NQ's form."""
    no_text: bool = False
    """Whether an empty text counts as a missing prediction, as an empty list does."""

    def read_gold(self, gold: GoldInput, split: str = "") -> dict[str, Any]:
        """Read the gold questions by id; records of the right kind are taken as they are."""
        where = input_name(gold, "gold")
        table: dict[str, Question] = {}
        repeated = []
        for question in self._questions(gold, split or self.inside):
            if not isinstance(question, self.kind):
                name = type(question).__name__
                raise BadInput(
                    f"'{where}' must hold {self.kind.__name__} records, not {name}. Is it the right dataset?"
                )
            if question.id in table:
                repeated.append(question.id)
            table[question.id] = question
        if repeated:
            raise BadInput(
                f"'{where}': ids that occur more than once: {describe_ids(repeated)}. Each question needs its own."
            )
        if not table:
            raise BadInput(
                f"'{where}' holds no questions: a list of records, or an object keyed by id, is needed."
            )
        return table

    def _questions(self, gold: GoldInput, split: str) -> Iterable[Question]:
        source: Path | ParsedJson
        if isinstance(gold, str | Path):
            source = Path(gold)
        else:
            items = gold if isinstance(gold, Mapping) else list(gold)
            # A dataset's records.
            if isinstance(items, list) and items and isinstance(items[0], Question):
                return items
            source = ParsedJson(items, "gold")
        return self.read(Rows(source, self.fix, split))

    def align(
        self, gold: Mapping[str, Any], predictions: PredictionInput, allow_missing: bool
    ) -> dict[str, Any]:
        """Give each gold id its prediction; None where it is missing or empty and that is allowed."""
        where = input_name(predictions, "predictions")
        table = read_predictions(predictions, list(gold), answers_only=self.answers_only)
        unknown = list(filterfalse(gold.__contains__, table))
        if unknown:
            raise BadInput(
                f"'{where}': ids that are not in the gold file: {describe_ids(unknown)}. Is it the right gold file?"
            )
        missing = list(filterfalse(table.__contains__, gold))
        empty = [key for key in gold if table.get(key, 0) in self._absent]
        if not allow_missing:
            _refuse_gaps(where, {"missing ids": missing, "empty predictions": empty})
        gaps = {*missing, *empty}
        parsed = self._parse_all({key: table[key] for key in gold if key not in gaps}, where)
        if not parsed:
            raise BadInput(f"'{where}': not one of the {len(gold)} questions has a prediction.")
        return dict.fromkeys(gold) | parsed

    @property
    def _absent(self) -> list[Any]:
        return [[], ""] if self.no_text else [[]]

    def _parse_all(self, predictions: Mapping[str, Any], where: str) -> dict[str, Any]:
        parsed = {}
        problems: dict[str, str] = {}
        for key, value in predictions.items():
            try:
                parsed[key] = self.parse(value)
            except TypeError as error:  # collected, so that the message counts them
                problems[key] = str(error)
        if problems:
            first = next(iter(problems.values()))
            raise BadInput(f"'{where}': wrong type: {describe_ids(problems)}. {first}")
        return parsed


def _refuse_gaps(where: str, gaps: Mapping[str, Sequence[str]]) -> None:
    for problem, keys in gaps.items():
        if keys:
            raise BadInput(
                f"'{where}': {problem}: {describe_ids(keys)}. "
                "Add --allow-missing (in Python allow_missing=True) to score them as zero."
            )


# Compare two systems on the same questions: is one better, or may the difference be chance?

_ALPHA = 0.05  # level of significance
_NOT_SCORES = {"multi", "options", "length"}  # numbers, but neither good nor bad


@frozen
class Comparison:
    """A paired test for each metric that both systems have for every question."""

    a: str
    b: str
    dataset: str
    n: int
    tests: Mapping[str, PairedTest]
    means: Mapping[str, tuple[float, float]]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        metrics = {
            name: {
                **dict(zip("ab", self.means[name], strict=True)),
                **asdict(test),
                "verdict": self.verdict(name),
            }
            for name, test in self.tests.items()
        }
        return {"a": self.a, "b": self.b, "dataset": self.dataset, "n": self.n, "metrics": metrics}

    def verdict(self, metric: str) -> str:
        """Say which system is better by a metric; neither, if chance may explain the difference."""
        test = self.tests[metric]
        if test.p_permutation >= _ALPHA:
            return "may be luck"
        return f"{self.b if test.difference > 0 else self.a} is better"


def compare(a: Result, b: Result) -> Comparison:
    """Test B against A. Both results must hold the same questions of the same dataset."""
    _refuse_different_questions(a, b)
    tests: dict[str, PairedTest] = {}
    means: dict[str, tuple[float, float]] = {}
    for keys, metrics in _group_metrics(a, b).items():
        a_scores, b_scores = (
            {name: [float(one.questions[key][name]) for key in keys] for name in metrics}
            for one in (a, b)
        )
        for name in metrics:
            means[name] = (sum(a_scores[name]) / len(keys), sum(b_scores[name]) / len(keys))
        # Metrics over the same questions share their resamples.
        tests |= paired_tests(a_scores, b_scores)
    if not tests:
        raise BadInput(f"'{a.name}' and '{b.name}' have no metric in common.")
    a_name, b_name = a.name, b.name
    if a_name == b_name:
        a_name, b_name = f"{a_name} (A)", f"{b_name} (B)"
    return Comparison(a_name, b_name, a.dataset, len(a.questions), tests, means)


def _refuse_different_questions(a: Result, b: Result) -> None:
    for result in (a, b):
        if not result.questions:
            raise BadInput(
                f"The result '{result.name}' holds no questions. Score it again with --json --per-question."
            )
    if a.dataset != b.dataset:
        raise BadInput(
            f"'{a.name}' is scored on {a.dataset} and '{b.name}' on {b.dataset}: nothing to compare."
        )
    alone = [key for key in a.questions if key not in b.questions]
    alone += [key for key in b.questions if key not in a.questions]
    if alone:
        raise BadInput(
            f"The two results have different questions; only one of them has {describe_ids(alone)}."
        )


def _group_metrics(a: Result, b: Result) -> dict[tuple[str, ...], list[str]]:
    """Return the metrics that both results have numbers for, by the ids of the questions that have them."""
    first = next(iter(a.questions.values()))
    groups: dict[tuple[str, ...], list[str]] = {}
    for metric, value in first.items():
        # Texts and lists are shown in reports; they are not scores.
        is_score = metric not in _NOT_SCORES and not isinstance(value, str | list)
        if not is_score or not _same_model(a, b, metric):
            continue
        keys = _scored_ids(a, metric, a.questions)
        if keys and keys == _scored_ids(b, metric, a.questions):
            groups.setdefault(keys, []).append(metric)
    return groups


def _same_model(a: Result, b: Result, metric: str) -> bool:
    """Numbers by two different readers cannot be compared."""
    setting = BY_MODEL.get(metric, "")
    return a.settings.get(setting) == b.settings.get(setting)


def _scored_ids(result: Result, metric: str, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the questions over which a metric is reported: AmbigQA's question metrics leave single answers out."""
    multi_only = metric in QUESTION_METRICS
    return tuple(
        key
        for key in ids
        if isinstance((question := result.questions[key]).get(metric), int | float)
        and (question.get("multi") or not multi_only)
    )


# Read predictions from files or objects, and give each gold question its own.

_PREDICTION_KEYS = (
    "prediction",
    "predictions",
    "answers",
    "answer",
    "text",
    "clarification_question",
)
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    type(None): "null",
}


def read_predictions(
    predictions: PredictionInput, gold_ids: Sequence[str] = (), *, answers_only: bool = False
) -> dict[str, Any]:
    """Return predictions by id, in the official JSON form.

    A file or object is a mapping, or a list or JSON lines of objects with `id` and `prediction`. A list of cases
    follows the order of `gold_ids`; with `answers_only` (NQ's form) so does a list of answers. Cases and readings
    become question-answer pairs, with `answers_only` answers.
    """
    where = input_name(predictions, "predictions")
    body: Any = predictions
    if isinstance(predictions, str | Path):
        body = read_json(predictions)
    if isinstance(body, Mapping):
        # JSON has texts for keys; a mapping from Python may have numbers.
        table = {str(key): value for key, value in body.items()}
    elif not isinstance(body, list | tuple):
        raise BadInput(
            f"'{where}' must hold an object of the form {{id: prediction}}, not {_kind(body)}."
        )
    elif _follows_gold(body, answers_only):
        if len(body) != len(gold_ids):
            raise BadInput(
                f"'{where}' holds {len(body)} predictions for {len(gold_ids)} questions."
            )
        table = dict(zip(gold_ids, body, strict=True))
    else:
        table = _table_of_records(body, where)
    if isinstance(predictions, str | Path):  # JSON already
        return table
    return {key: _as_json(value, answers_only) for key, value in table.items()}


def _follows_gold(body: Sequence[Any], answers_only: bool) -> bool:
    """Tell whether a list has one prediction per gold question, in their order."""
    if not body or any(isinstance(item, dict) for item in body):
        return False
    return answers_only or hasattr(body[0], "readings")


def _as_json(prediction: Any, answers_only: bool) -> Any:
    """Return the official form of a case (anything with `readings`) or of a list of readings; JSON stays as it is."""
    readings = getattr(prediction, "readings", prediction)
    if not isinstance(readings, list | tuple):
        return prediction
    converted: list[Any] = []
    for reading in readings:
        if not hasattr(reading, "answer"):
            converted.append(reading)
        elif answers_only:
            converted.append(reading.answer)
        else:
            converted.append({"question": reading.question, "answer": reading.answer})
    return converted


def _table_of_records(body: Sequence[Any], where: str) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for number, record in enumerate(body, 1):
        for key, value in _entries(record, where, number):
            if key in table:
                raise BadInput(f"'{where}', record {number}: id '{key}' occurs a second time.")
            table[key] = value
    return table


def _entries(record: Any, where: str, number: int) -> list[tuple[str, Any]]:
    """Return the ids and predictions of one record."""
    if not isinstance(record, dict):
        raise BadInput(
            f"'{where}', record {number}: an object with 'id' and 'prediction' is needed, not {_kind(record)}."
        )
    identity = record.get("id", record.get("sample_id"))
    if identity is None and "question" not in record:
        # {id: prediction} on each line
        return [(str(key), value) for key, value in record.items()]
    if identity is None:  # datasets without ids go by the question
        identity = record["question"]
    for key in _PREDICTION_KEYS:
        if key in record:
            return [(str(identity), record[key])]
    fields = ", ".join(record)
    raise BadInput(f"'{where}', record {number}: no 'prediction'. It has: {fields}.")


def _kind(value: Any) -> str:
    """Return the JSON type of a value, for messages."""
    return _KINDS.get(type(value), "a number")


def as_text(value: Any) -> str:
    """Check a prediction that is one text."""
    if not isinstance(value, str):
        raise TypeError(f"A text is needed, not {_kind(value)}.")
    return value


def as_answers(value: Any) -> tuple[str, ...]:
    """Check a prediction that is one answer or several."""
    answers = [value] if isinstance(value, str) else value
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise TypeError(
            f"An answer or a list of answers is needed, not {_kind(value)} of something else."
        )
    return tuple(answers)


# The models that some metrics depend on, by name: a reader for Disambig-F1, a judge for citations.


def load_reader(name: str) -> Reader:
    """ "compact", the embedded model, or the folder of a SQuAD 2.0 model."""
    if name == COMPACT:
        from whichsense.models.compact.text_reader import CompactTextReader

        return CompactTextReader()
    from whichsense.lab.evaluation.metric_models import SquadReader

    return SquadReader(name)


def load_judge(name: str) -> Judge:
    """ "compact", the embedded support judge."""
    if name != COMPACT:
        raise BadInput(f"There is no judge '{name}'. There is one: {COMPACT}.")
    from whichsense.models.compact.encoder import CompactModel
    from whichsense.models.compact.support_judge import NETWORK, SupportJudge

    model = CompactModel()
    kind = "words" if model.lacks(NETWORK) else "network"
    return CitationJudge(SupportJudge(model), f"{model.folder.name}, by {kind}")


@dataclass(frozen=True)
class CitationJudge:
    """A support judge as ALCE's function: is it more probable than not that the passage says the sentence?"""

    support: Support
    name: str

    def __call__(self, passage: str, sentence: str) -> bool:
        (probability,) = self.support.supports([(sentence, passage)])
        return probability > 0.5
