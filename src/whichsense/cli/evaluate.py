"""whichsense evaluate: measure systems over a dataset, by program and by reading."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import (
    PATH,
    choice_option,
    count_option,
    data_dir_option,
    evidence_options,
    flag_option,
    json_option,
    limit_option,
    number_option,
    open_evidence,
    path_option,
    spread_options,
    system_option,
    use_executor,
    weights_option,
)
from whichsense.errors import BadInput
from whichsense.jobs.limits import show_progress

if TYPE_CHECKING:
    from whichsense.index import Index
    from whichsense.lab.evaluation.components import RetrievalResult, SupportResult
    from whichsense.lab.evaluation.judging import Band, Form, ReadingsResult, Row
    from whichsense.lab.evaluation.leaderboard import Leaderboard
    from whichsense.protocols import Reranker


# whichsense evaluate systems: several systems in one table.

# By benchmark, the metrics that the table shows, and their titles.
_COLUMNS = {
    "ambignq": {
        "f1_ans": "F1ans",
        "f1_ans_multi": "(multi)",
        "f1_bleu4": "F1BLEU",
        "f1_edit": "F1EDIT",
    },
    "ambiguity": {"accuracy": "accuracy", "precision": "precision", "recall": "recall", "f1": "F1"},
    "cambignq": {
        "bleu4": "BLEU-4",
        "category_em": "category",
        "option_f1": "options",
        "options_per_question": "# options",
    },
    "cambignq-answers": {
        "answer_f1": "options F1",
        "end_to_end_f1": "end to end",
        "served_f1": "served",
        "direct_f1": "not asked",
        "distinct_answers": "# answers",
    },
    "asqa": {
        "rouge_l": "ROUGE-L",
        "str_em": "STR-EM",
        "disambig_f1": "Disamb.F1",
        "dr": "DR",
        "citation_recall": "cit. rec.",
        "citation_precision": "cit. prec.",
        "length": "words",
    },
    "ramdocs": {
        "exact_match": "exact",
        "answer_precision": "precision",
        "answer_recall": "recall",
        "answers_per_question": "# answers",
    },
}
# Shown as they are; all others are shares, shown in percent.
_COUNTS = ("options_per_question", "distinct_answers", "length", "answers_per_question")


@click.command()
@click.argument("file", type=PATH, metavar="SYSTEMS.toml")
@data_dir_option
@limit_option
@spread_options
@json_option
def systems(
    file: Path, cluster: str | None, workers: int | None, gpus: float, as_json: bool, **options: Any
) -> None:
    """Compare systems: their scores, each over its 95% interval, and seconds per question.

    The file's `goal` says what they predict: readings, ambiguity, clarification, clarified answers, long answer.
    A system with predictions is not run again; a stopped one resumes.
    """
    from whichsense.lab.evaluation.leaderboard import evaluate_systems

    leaderboard = evaluate_systems(
        file,
        progress=lambda name: show_progress(name, "questions"),
        executor=use_executor(cluster, workers, gpus),
        **options,
    )
    _print(leaderboard, as_json, _print_leaderboard)


def _print(result: Any, as_json: bool, show: Callable[[Any], None]) -> None:
    if as_json:
        print(json.dumps(result.as_dict()))
    else:
        show(result)


def _print_leaderboard(leaderboard: Leaderboard) -> None:
    columns = _COLUMNS[leaderboard.benchmark]
    counts = ", ".join(f"{name} {n:,}" for name, n in leaderboard.counts.items())
    print(f"{leaderboard.dataset}, {leaderboard.goal}: {counts}")
    width = max(6, *(len(system.name) for system in leaderboard.systems))
    _print_row("", width, [*columns.values(), "s each"])
    for system in leaderboard.systems:
        values = []
        intervals = []
        for metric in columns:
            values.append(_show(metric, system.metrics.get(metric)))
            low, high = system.intervals.get(metric, (None, None))
            interval = f"{_show(metric, low)}–{_show(metric, high)}"
            intervals.append("" if low is None else interval)
        seconds = system.seconds_per_question
        values.append("–" if seconds is None else f"{seconds:.3f}")
        _print_row(system.name, width, values)
        _print_row("", width, intervals)
    for setting in ("reader", "judge"):  # models that a metric depends on
        if setting in leaderboard.systems[0].settings:
            print(f"{setting}: {leaderboard.systems[0].settings[setting]}")


def _show(metric: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if metric in _COUNTS else f"{100 * value:.1f}"


def _print_row(name: str, width: int, cells: list[str]) -> None:
    print(f"{name:<{width}}" + "".join(f" {cell:>12}" for cell in cells))


# whichsense evaluate retrieval: how many gold answers a search finds.

# Passages of a hundred that compact reads to the end. With 20, its first layers alone would choose the 20 best.
_KEEP = 40


@click.command()
@click.option(
    "--dataset",
    required=True,
    metavar="NAME",
    help="Name of the dataset, for example ambignq/dev or sample/questions.",
)
@evidence_options
@click.option(
    "--rerank",
    metavar="MODEL",
    help="Rerank the passages: compact, or the folder of a trained reranker.",
)
@count_option("--keep", "With --rerank compact: read N passages to the end. [default: 40]")
@data_dir_option
@limit_option
@path_option("--out", "Write the result to this JSON file, too.", "FILE")
@json_option
def retrieval(
    folder: Path | None,
    method: str | None,
    rerank: str | None,
    keep: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Print how many gold answers are among the first 1, 5, 10, 20 and 100 passages.

    With --out, a stopped run resumes when the same command is given again.
    """
    from whichsense.lab.evaluation.components import evaluate_retrieval

    index, chosen = open_evidence(folder, method)
    if keep and rerank != "compact":
        raise BadInput("--keep is the number of passages that compact reads: add --rerank compact.")
    # What the reranker is goes into the result's provenance.
    reranker: Reranker | None = None
    about: Mapping[str, Any] = {}
    if rerank:
        reranker, about = _reranker(rerank, index, keep or _KEEP)
    with show_progress("searching", "questions") as progress:
        result = evaluate_retrieval(
            index=index, method=chosen, reranker=reranker, about=about, progress=progress, **options
        )
    _print(result, as_json, _print_retrieval)


def _print_retrieval(result: RetrievalResult) -> None:
    counts = f"{result.questions:,} questions, {result.answers:,} answers"
    print(f"{result.dataset}, {result.method}: {counts}")
    print(f"{'top':<18}" + "".join(f"{k:>8}" for k in result.answer_recall))
    for title, recall in (
        ("gold answers", result.answer_recall),
        ("of each annotation", result.annotated_recall),
        ("any answer", result.any_recall),
    ):
        row = "".join(f"{share:>8.3f}" for share in recall.values())
        print(f"{title:<18}{row}")
    milliseconds = 1000 * result.seconds_per_question
    print(f"MRR {result.mrr:.3f}, {milliseconds:.1f} ms a question")


def _reranker(name: str, index: Index, keep: int) -> tuple[Reranker, dict[str, Any]]:
    """Return the reranker, and what decides its order."""
    from whichsense.models.compact.encoder import WEIGHTS
    from whichsense.systems import build_reranker, training_runs

    reranker = build_reranker(name, index, keep)
    if name == "compact":
        return reranker, {"reranker": WEIGHTS.name, "keep": keep}
    return reranker, {"reranker": name, "models": training_runs([name])}


# whichsense evaluate readings: people judge what is shown to people.

_COLUMN = 11  # characters
# As in lab/evaluation/judging.py, which is imported only when the command runs.
DRAWS = ("several", "all", "ambiguous")


@click.command()
@click.argument("forms", nargs=-1, type=PATH, metavar="[FILLED.json…]")
@flag_option("--filled", "Count the marks of filled forms: --filled ann.json ben.json")
@click.option(
    "--dataset",
    metavar="NAME|FILE",
    help="Draw the questions from this dataset, or from a file in AmbigNQ's form.",
)
@evidence_options
@click.option(
    "--seed", default=13, show_default=True, metavar="N", help="Decides which questions are drawn."
)
@number_option("--questions", 60, 1, help="Questions in the form.", metavar="N")
@choice_option(
    "--draw",
    DRAWS,
    "ambiguous",
    "Ask until N questions got several readings; or the first N of all, or of those to which all annotators gave "
    "several answers, whatever they get.",
)
@system_option()
@weights_option
@data_dir_option
@path_option("--out", "The form to write; with --filled, the result.", "FILE.json")
@json_option
def readings(
    forms: tuple[Path, ...],
    filled: bool,
    dataset: str | None,
    folder: Path | None,
    method: str | None,
    system: Path | None,
    weights: Path | None,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Have people judge the readings that whichsense ask shows.

    First, --dataset NAME --out FORM.json draws questions, asks them and writes a form with the rubric, which whichsense
    studio shows to people. A stopped run resumes when the same command is given again. Then, with one form or more
    filled in, --filled prints the table: the share of readings that are right, true, apart, fluent, correct and good,
    with 95% bootstrap intervals over questions; of ambiguous questions precision, recall and judged F; the readers'
    agreement, and how well the confidence predicts a correct reading.
    """
    if filled:
        if dataset:
            raise click.UsageError("Give either --dataset NAME or --filled FORMS.")
        _count_marks(forms, out, as_json)
        return
    if forms or dataset is None or out is None:
        raise click.UsageError(
            "Give --dataset NAME --out FORM.json to draw a form, or --filled FORMS to count its marks."
        )
    from whichsense.lab.evaluation.judging import draw_form
    from whichsense.systems import build, describe, load_settings
    from whichsense.types import FOR_PEOPLE

    index, chosen = open_evidence(folder, method)
    settings = load_settings(system or "compact")
    settings = dataclasses.replace(
        settings,
        method=chosen if method else settings.method or chosen,
        weights=str(weights or settings.weights),
    )
    ready = build(settings, index, FOR_PEOPLE)
    with show_progress("asking", "questions") as progress:
        form = draw_form(
            ready.answerer,
            dataset,
            out,
            system=describe(ready.settings, index),
            progress=progress,
            **options,
        )
    _print_form(form, out, as_json)


def _print_form(form: Form, out: Path, as_json: bool) -> None:
    counts = {
        "draw": form.draw,
        "questions": len(form.questions),
        "readings": form.shown,
        "asked": form.asked,
        "one_reading": form.one_reading,
        "no_reading": form.no_reading,
    }
    if as_json:
        body = {"form": str(out), **counts}
        print(json.dumps(body | {"provenance": form.provenance}))
        return
    print(f"{out}: {len(form.questions):,} questions, {form.shown:,} readings to mark")
    kind = "ambiguous questions" if form.draw == "ambiguous" else "questions"
    print(
        f"Asked {form.asked:,} of {form.available:,} {kind}: {form.one_reading:,} got one reading, "
        f"{form.no_reading:,} none."
    )


def _count_marks(forms: Sequence[Path], out: Path | None, as_json: bool) -> None:
    from whichsense.files import as_json as to_json
    from whichsense.files import write_atomically
    from whichsense.lab.evaluation.judging import evaluate_forms

    if out and out.exists() and any(map(out.samefile, forms)):
        raise click.UsageError(f"'{out}' is a filled form. Give another --out.")
    result = evaluate_forms(forms)
    if out:
        write_atomically(out, to_json(result.as_dict(), indent=2))
    _print(result, as_json, _print_result)


def _print_result(result: ReadingsResult) -> None:
    from whichsense.lab.evaluation.judging import JUDGED_F, LABELS

    drawn = f"{result.questions:,} questions of {result.asked:,} asked"
    counts = f"{result.one_reading:,} got one reading, {result.no_reading:,} none"
    print(f"{result.dataset}, seed {result.seed}: {drawn} ({counts})")
    rows = list(result.readers)
    if len(rows) > 1:
        rows.append(result.mean)
    shares = (*LABELS, "correct_per_question")
    _print_line("", ["shown", *LABELS, "correct/q"])
    for row in rows:
        _readings_print_row(row, shares)
    print("Below each number: its 95% bootstrap interval over questions.")
    print("correct/q: correct readings a question.")
    print()
    if result.gold:
        _print_line("", ["shown", "precision", "recall", "judged F"])
        for row in rows:
            _readings_print_row(row, JUDGED_F)
        print(f"precision: of the {result.shown:,} readings shown, those that are correct.")
        print(
            f"recall: of the {result.gold:,} readings that annotators gave, those with the answer of a correct one."
        )
        print(
            "judged F: twice the correct readings, divided by the readings shown and the annotators' together."
        )
        print()
    _print_line("confidence", ["shown", *LABELS])
    for band in result.bands:
        cells = [f"{band.shown:,}", *_shares(band.metrics)]
        _print_line(_name_band(band), cells)
    if result.agreement:
        print()
        _print_line("agreement", ["", *LABELS])
        pairs = result.agreement.values()
        _print_line("same mark", ["", *(f"{pair.equal:.2f}" for pair in pairs)])
        _print_line("kappa", ["", *(f"{pair.kappa:.2f}" for pair in pairs)])
    _print_areas(result)


def _name_band(band: Band) -> str:
    if band.high is None:
        return f"{band.low:.2f} or more"
    if not band.low:
        return f"below {band.high:.2f}"
    return f"{band.low:.2f} to {band.high:.2f}"


def _print_areas(result: ReadingsResult) -> None:
    print("\nPredicting a correct reading: area under the curve")
    _print_line("by", ["readings", "all", "answer ok"])
    for name, area in result.areas.items():
        if area.readings:
            values = [area.all, area.right_answer]
            cells = ["–" if value is None else f"{value:.2f}" for value in values]
            _print_line(name, [f"{area.readings:,}", *cells])
    print("answer ok: only readings whose answer is right.")


def _readings_print_row(row: Row, names: Sequence[str]) -> None:
    metrics = {name: row.metrics[name] for name in names}
    _print_line(row.name, [f"{row.shown:,}", *_shares(metrics)])
    _print_line("", ["", *(_range(row.intervals[name]) for name in names)])


def _shares(metrics: Mapping[str, float]) -> list[str]:
    return [f"{value:.2f}" for value in metrics.values()]


def _range(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{low:.2f}–{high:.2f}"


def _print_line(name: str, cells: Sequence[str]) -> None:
    """A name of any length, then cells of equal width."""
    print(f"{name:<14}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells))


# whichsense evaluate support: does the judge know which sentences a passage supports?


@click.command()
@click.option(
    "--dataset",
    default="wice/dev",
    show_default=True,
    metavar="NAME",
    help="Name of a dataset of claims.",
)
@weights_option
@data_dir_option
@limit_option
@path_option("--out", "Write the result to this JSON file, too.", "FILE")
@json_option
def support(weights: Path | None, as_json: bool, **options: Any) -> None:
    """Measure the support judge on claims with labels.

    Prints the balanced accuracy of "supported or not" with its 95% bootstrap interval, and the area under the curve;
    beside them those of word overlap. "Tuned" chooses the threshold of each fifth of the claims on the other four.
    """
    from whichsense.lab.evaluation.components import evaluate_support
    from whichsense.models.compact.encoder import WEIGHTS, CompactModel
    from whichsense.models.compact.support_judge import SupportJudge

    folder = weights or WEIGHTS
    with show_progress("judging", "claims") as progress:
        result = evaluate_support(
            judge=SupportJudge(CompactModel(folder)), name=folder.name, progress=progress, **options
        )
    _print(result, as_json, _print_support)


def _print_support(result: SupportResult) -> None:
    print(f"{result.dataset}: {result.claims:,} claims, {result.supported:,} supported")
    print(f"{'':<40}{'balanced accuracy':>20}{'area':>8}")
    name = result.judge
    rows = (
        (f"{name}, threshold a half", result.balanced_accuracy, result.interval),
        (f"{name}, tuned", result.tuned_balanced_accuracy, result.tuned_interval),
        ("word overlap, tuned", result.overlap_balanced_accuracy, result.overlap_interval),
    )
    for (label, value, (low, high)), area in zip(
        rows, (result.area, result.area, result.overlap_area), strict=True
    ):
        accuracy = f"{100 * value:.1f} ({100 * low:.1f}–{100 * high:.1f})"
        print(f"{label:<40}{accuracy:>20}{area:>8.3f}")
    print(
        f"Right at a half: {100 * result.supported_right:.1f}% of the supported claims, "
        f"{100 * result.others_right:.1f}% of the others. Tuned: a claim's threshold is chosen on the other folds."
    )


# whichsense evaluate: measure systems over a dataset, by program and by reading.


class _FileOrCommand(click.Group):
    """`evaluate systems.toml` is short for `evaluate systems systems.toml`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, "systems" if cmd_name.endswith(".toml") else cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0].endswith(".toml"):
            args = ["systems", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_FileOrCommand)
def command() -> None:
    """Measure systems over a dataset.

    whichsense evaluate SYSTEMS.toml compares systems in one table.
    """


for _one in (readings, retrieval, support, systems):
    command.add_command(_one)
