"""whichsense score: predictions against gold, and two systems compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whichsense.cli.evidence import choice_option, flag_option, json_option

if TYPE_CHECKING:
    from whichsense.lab.evaluation.scoring import Comparison, Result


# whichsense score: predictions against gold, exactly as the official scripts do.

_FILE = click.Path(path_type=Path)
_COMPARE_HEAD = (
    f"{'':<18}{'A':>8}{'B':>8}{'B - A':>9}   {'95% interval':<18}{'p':>7}  {'B wins/loses':<14}"
)
_COMPARE_NOTE = (
    "Paired: 95% bootstrap interval of the difference, p of a sign-flip permutation test"
    " (10,000 samples)."
)


@click.group()
def command() -> None:
    """Score predictions exactly as the official scripts do.

    Files may be .json or .jsonl, plain or compressed (.gz, .xz, .zst).
    """


def _require_json(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Refuse --per-question without --json at once, before anything is scored."""
    if value and not context.params.get("as_json"):
        raise click.UsageError("--per-question needs --json.", context)
    return value


# Innermost first: click lists options in the order in which decorators stand.
_COMMON = (
    click.option(
        "--name",
        default="",
        metavar="TEXT",
        help="Name of the system in the result. [default: the file name of PRED]",
    ),
    flag_option(
        "--allow-missing", "Score missing and empty predictions as zero instead of stopping."
    ),
    click.option(
        "--per-question",
        is_flag=True,
        callback=_require_json,
        help="With --json: add the scores of every question.",
    ),
    click.option(
        "--json", "as_json", is_flag=True, is_eager=True, help="Print the result as JSON."
    ),
    click.argument("pred", type=_FILE),
    click.argument("gold", type=_FILE),
)


def _benchmark_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments and options that every benchmark has."""
    for decorate in _COMMON:
        function = decorate(function)
    return function


@command.command()
@_benchmark_options
@choice_option(
    "--variant",
    ["released", "paper", "in_order"],
    "released",
    "released: the official script. paper: the paper's formula, without 1:1 matching. "
    "in_order: matching in the order of the predictions, as REFUEL describes it.",
)
def ambignq(**options: Any) -> None:
    """F1 over answers; with questions, F1 by BLEU and EDIT-F1.

    PRED is {id: [answer…]} or {id: [{question, answer}…]}.
    """
    _score("ambignq", **options)


@command.command()
@_benchmark_options
def nq(**options: Any) -> None:
    """Exact match, for NQ-open, TriviaQA and similar datasets.

    GOLD is NQ-open's JSON lines, TriviaQA's official JSON, or records with question and answer. PRED is {id or
    question: answer or [answer…]}, or a list in the order of GOLD.
    """
    _score("nq", **options)


@command.command()
@_benchmark_options
@choice_option(
    "--variant",
    ["released", "paper"],
    "released",
    "released: one assignment of options for precision and one for recall. paper: a single assignment.",
)
@click.option(
    "--bert", type=_FILE, metavar="DIR", help="Folder of a local BERT model; adds BERTScore."
)
def cambignq(**options: Any) -> None:
    """Clarification questions: BLEU, category and options.

    PRED is {id: text of the clarification question}.
    """
    _score("cambignq", **options)


@command.command("cambignq-answers")
@_benchmark_options
@choice_option(
    "--variant",
    ["released", "paper"],
    "released",
    "released: one assignment of answers for precision and one for recall. paper: a single assignment.",
)
def cambignq_answers(**options: Any) -> None:
    """Answers for the options of clarification questions: F1, end to end, without asking; collapse.

    PRED is {id: [answer of each option…]}, or what whichsense predict --goal "clarified answers" wrote.
    """
    _score("cambignq-answers", **options)


@command.command()
@_benchmark_options
def ambiguity(**options: Any) -> None:
    """Is a question ambiguous? Accuracy, precision, recall, F1.

    GOLD is AmbigNQ's file. PRED is {id: true or false}, or what whichsense predict --goal ambiguity wrote.
    """
    _score("ambiguity", **options)


@command.command()
@_benchmark_options
def ramdocs(**options: Any) -> None:
    """All right answers and no false one, from documents that disagree.

    PRED is {id: [answer…]} or {id: [{question, answer}…]}.
    """
    _score("ramdocs", **options)


@command.command()
@_benchmark_options
@choice_option(
    "--variant",
    ["best", "average"],
    "best",
    "ROUGE-L by the better reference of each question (best) or, as until 2022, by the reference with the "
    "better average (average).",
)
@click.option(
    "--split",
    default="dev",
    show_default=True,
    metavar="NAME",
    help="The split to score, where GOLD holds several.",
)
@click.option(
    "--reader",
    metavar="DIR|compact",
    help="Folder of a local SQuAD 2.0 model, or compact, the embedded one; adds Disambig-F1 and DR.",
)
@click.option(
    "--judge",
    metavar="compact",
    help="The embedded support judge; adds citation recall and precision.",
)
@click.option(
    "--reader-answers",
    type=_FILE,
    metavar="FILE",
    help="Answers of the official reader, in place of --reader.",
)
def asqa(
    reader: str | None, judge: str | None, reader_answers: Path | None, **options: Any
) -> None:
    """Long answers: ROUGE-L, STR-EM and, with a reader, Disambig-F1 and DR.

    PRED is {id: text}, or what whichsense predict --goal "long answer" wrote.
    """
    if reader and reader_answers:
        raise click.UsageError("--reader and --reader-answers exclude each other.")
    from whichsense.lab.evaluation.results import load_judge, load_reader

    options["reader"] = load_reader(reader) if reader else None
    options["judge"] = load_judge(judge) if judge else None
    options["reader_answers"] = reader_answers
    _score("asqa", **options)


@command.command()
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@json_option
def compare(a: Path, b: Path, as_json: bool) -> None:
    """Test whether B is better than A or the difference may be chance.

    A and B are results: whichsense score … --json --per-question > a.json
    """
    from whichsense.lab.evaluation.scoring import compare as compare_results
    from whichsense.lab.evaluation.scoring import load_result

    comparison = compare_results(load_result(a), load_result(b))
    if as_json:
        print(json.dumps(comparison.as_dict()))
    else:
        _print_comparison(comparison)


def _print_comparison(comparison: Comparison) -> None:
    heading = f"A = {comparison.a}, B = {comparison.b}: {comparison.dataset}"
    print(f"{heading}, {comparison.n:,} questions")
    print(_COMPARE_HEAD)
    for name, test in comparison.tests.items():
        a_mean, b_mean = comparison.means[name]
        interval = f"[{test.low:+.4f}, {test.high:+.4f}]"
        wins = f"{test.better:,}/{test.worse:,}"
        means = f"{name:<18}{a_mean:>8.4f}{b_mean:>8.4f}"
        difference = f"{test.difference:>+9.4f}   {interval:<18}"
        verdict = comparison.verdict(name)
        print(f"{means}{difference}{test.p_permutation:>7.4f}  {wins:<14}{verdict}")
    print(_COMPARE_NOTE)


def _score(
    benchmark: str, *, as_json: bool, per_question: bool, gold: Path, pred: Path, **options: Any
) -> None:
    from whichsense.lab.evaluation.scoring import score

    result = score(benchmark, gold, pred, **options)
    if as_json:
        print(json.dumps(result.as_dict(per_question), ensure_ascii=False))
    else:
        _print_result(result)


def _print_result(result: Result) -> None:
    variant = f" ({result.settings['variant']})" if "variant" in result.settings else ""
    counts = ", ".join(f"{name} {count:,}" for name, count in result.counts.items())
    print(f"{result.dataset}{variant}: {result.name}, {counts}")
    # At least as wide as the longest metric without a model's name.
    width = max(22, *(len(result.label(name)) for name in result.metrics))
    for name, value in result.metrics.items():
        label = f"{result.label(name):<{width}}"
        if value is None:
            print(f"{label}{'–':>8}")
            continue
        interval = ""
        if name in result.intervals:
            low, high = result.intervals[name]
            interval = f"   [{low:.4f}, {high:.4f}]"
        print(f"{label}{value:>8.4f}{interval}")
    print("In brackets: 95% bootstrap intervals.")
    for note in result.notes:
        print(note)
