"""whichsense score: predictions against gold, exactly as the official scripts do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from whichsense.evaluation.scoring import Result

_FILE = click.Path(path_type=Path)


@click.group()
def command() -> None:
    """Score predictions exactly as the official scripts do.

    Files may be .json or .jsonl, as they are or compressed (.gz, .xz, .zst).
    """


def _with_json(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Refused at once: nobody waits for a score to hear that an option is missing."""
    if value and not context.params.get("as_json"):
        raise click.UsageError("--per-question needs --json.", context)
    return value


def _scored(function: Callable[..., None]) -> Callable[..., None]:
    """The arguments and options that every dataset has."""
    for decorate in (
        click.option(
            "--name",
            default="",
            metavar="TEXT",
            help="What to call the system. [default: PRED's file name]",
        ),
        click.option(
            "--allow-missing",
            is_flag=True,
            help="Score missing and empty predictions as zero.",
        ),
        click.option(
            "--per-question",
            is_flag=True,
            callback=_with_json,
            help="Add every question's own scores (with --json).",
        ),
        click.option(
            "--json", "as_json", is_flag=True, is_eager=True, help="Print JSON."
        ),
        click.argument("pred", type=_FILE),
        click.argument("gold", type=_FILE),
    ):
        function = decorate(function)
    return function


@command.command()
@_scored
@click.option(
    "--variant",
    type=click.Choice(["released", "paper", "in_order"]),
    default="released",
    show_default=True,
    help="The official script; the paper's formula (no 1:1 matching); REFUEL's wording.",
)
def ambignq(
    gold: Path, pred: Path, as_json: bool, per_question: bool, **options: Any
) -> None:
    """F1 over answers; with questions, F1 by BLEU and EDIT-F1.

    PRED is {id: [answer…]} or {id: [{question, answer}…]}.
    """
    from whichsense.evaluation.scoring import score

    _show(score("ambignq", gold, pred, **options), as_json, per_question)


@command.command()
@_scored
def nq(
    gold: Path, pred: Path, as_json: bool, per_question: bool, **options: Any
) -> None:
    """Exact match, for NQ-open, TriviaQA and their like.

    GOLD is NQ-open's JSON lines, TriviaQA's official JSON, or records with question and answer. PRED is {id or
    question: answer or [answer…]}, or a list in the order of GOLD.
    """
    from whichsense.evaluation.scoring import score

    _show(score("nq", gold, pred, **options), as_json, per_question)


@command.command()
@_scored
@click.option(
    "--variant",
    type=click.Choice(["released", "paper"]),
    default="released",
    show_default=True,
    help="Two assignments of options, as released, or the paper's single one.",
)
@click.option("--bert", type=_FILE, metavar="DIR", help="A local model, for BERTScore.")
def cambignq(
    gold: Path, pred: Path, as_json: bool, per_question: bool, **options: Any
) -> None:
    """Clarification questions: BLEU, category and options.

    PRED is {id: text of the clarification question}.
    """
    from whichsense.evaluation.scoring import score

    _show(score("cambignq", gold, pred, **options), as_json, per_question)


@command.command()
@_scored
@click.option(
    "--variant",
    type=click.Choice(["best", "average"]),
    default="best",
    show_default=True,
    help="ROUGE-L by the better reference of each question, or (until 2022) by the better average.",
)
@click.option(
    "--split",
    default="dev",
    show_default=True,
    metavar="NAME",
    help="Of an ASQA.json with several.",
)
@click.option(
    "--reader",
    type=_FILE,
    metavar="DIR",
    help="A local SQuAD 2.0 model, for Disambig-F1 and DR.",
)
@click.option(
    "--reader-answers",
    type=_FILE,
    metavar="FILE",
    help="The official reader's answers, in its place.",
)
def asqa(
    gold: Path,
    pred: Path,
    as_json: bool,
    per_question: bool,
    reader: Path | None,
    reader_answers: Path | None,
    **options: Any,
) -> None:
    """Long answers: ROUGE-L, STR-EM and, with a reader, Disambig-F1 and DR.

    PRED is {id: text}.
    """
    from whichsense.evaluation.scoring import score

    if reader and reader_answers:
        raise click.UsageError("--reader and --reader-answers exclude each other.")
    model = None
    if reader:
        from whichsense.models.squad_reader import SquadReader

        model = SquadReader(reader)
    result = score(
        "asqa", gold, pred, reader=model, reader_answers=reader_answers, **options
    )
    _show(result, as_json, per_question)


@command.command()
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(a: Path, b: Path, as_json: bool) -> None:
    """Is B better than A, or is it luck?

    A and B are results: whichsense score … --json --per-question > a.json
    """
    from whichsense.evaluation.scoring import compare as run
    from whichsense.evaluation.scoring import load_result

    found = run(load_result(a), load_result(b))
    if as_json:
        print(json.dumps(found.as_dict()))
        return
    print(f"A = {found.a}, B = {found.b}: {found.dataset}, {found.n:,} questions")
    print(
        f"{'':<18}{'A':>8}{'B':>8}{'B - A':>9}   {'95% interval':<18}{'p':>7}  {'B wins/loses':<14}"
    )
    for name, test in found.tests.items():
        mine, theirs = found.means[name]
        span = f"[{test.low:+.4f}, {test.high:+.4f}]"
        wins = f"{test.better:,}/{test.worse:,}"
        row = f"{name:<18}{mine:>8.4f}{theirs:>8.4f}{test.difference:>+9.4f}   {span:<18}{test.p_permutation:>7.4f}"
        print(f"{row}  {wins:<14}{found.verdict(name)}")
    print(
        "Paired: 95% bootstrap interval of the difference, p of a sign-flip permutation test (10,000 samples)."
    )


def _show(result: Result, as_json: bool, per_question: bool) -> None:
    if as_json:
        print(json.dumps(result.as_dict(per_question), ensure_ascii=False))
        return
    variant = f" ({result.settings['variant']})" if "variant" in result.settings else ""
    counts = ", ".join(f"{name} {count:,}" for name, count in result.counts.items())
    print(f"{result.dataset}{variant}: {result.name}, {counts}")
    width = max(22, *(len(result.label(name)) for name in result.metrics))
    for name, value in result.metrics.items():
        low_high = result.intervals.get(name)
        span = (
            f"   [{low_high[0]:.4f}, {low_high[1]:.4f}]"
            if low_high and value is not None
            else ""
        )
        print(
            f"{result.label(name):<{width}}{'–' if value is None else f'{value:.4f}':>8}{span}"
        )
    print("In brackets: 95% bootstrap intervals.")
    for note in result.notes:
        print(note)
