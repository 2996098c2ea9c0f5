"""What `ask` shows, at every threshold: F1 of the shown answers, several where ambiguous, declined, calibration.

python benchmarks/shown.py sample                                  # the embedded sample
python benchmarks/shown.py handbook
python benchmarks/shown.py recipes/firms --every 2                 # held-out firms, each a corpus of its own
python benchmarks/shown.py ambignq/val --index wiki --every 10
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from whichsense import sample
from whichsense.files import as_json, write_atomically
from whichsense.index import Index
from whichsense.lab.datasets import Question, load_questions
from whichsense.lab.metrics.ambignq import f1_answers
from whichsense.lab.provenance import provenance
from whichsense.pipeline import Pipeline
from whichsense.systems import load
from whichsense.types import Case

_STEPS = [round(step / 20, 2) for step in range(3, 17)]
_BINS = 10


@dataclass(frozen=True)
class Asked:
    """A question, its gold answers, and what was found, best first."""

    question: str
    golds: tuple[tuple[tuple[str, ...], ...], ...]
    ambiguous: bool
    found: tuple[tuple[str, float], ...]
    seconds: float

    def shown(self, threshold: float) -> list[str]:
        """The answers that `ask` shows: the best one in any case."""
        over = [answer for answer, chance in self.found if chance >= threshold]
        return over or [answer for answer, _ in self.found[:1]]


def ask(pipeline: Pipeline, questions: Sequence[Question]) -> Iterator[Asked]:
    for question in questions:
        case = pipeline.ask(question.text)
        golds = tuple(tuple(map(tuple, gold)) for gold in question.answer_sets)
        yield Asked(question.text, golds, question.is_ambiguous, _found(case), case.seconds)


def _found(case: Case) -> tuple[tuple[str, float], ...]:
    chances: dict[str, float] = {}
    for reading in (*case.readings, *case.possible):
        chances.setdefault(reading.answer, reading.confidence)
    return tuple(sorted(chances.items(), key=lambda pair: -pair[1]))


def figures(asked: Sequence[Asked], threshold: float) -> dict[str, float]:
    """The table's figures for one threshold."""
    answered = [one for one in asked if one.golds]
    several = [one for one in answered if one.ambiguous]
    single = [one for one in answered if not one.ambiguous]
    none = [one for one in asked if not one.golds]
    right = shown = 0
    chances, hits = [], []
    for one in answered:
        for answer in one.shown(threshold):
            is_right = any(f1_answers([names], [answer]) for gold in one.golds for names in gold)
            right += is_right
            shown += 1
            chances.append(dict(one.found)[answer])
            hits.append(is_right)
    return {
        "threshold": threshold,
        "f1": _mean(_f1(one, threshold) for one in answered),
        "f1 ambiguous": _mean(_f1(one, threshold) for one in several),
        "shown answers right": right / max(1, shown),
        "several where ambiguous": _mean(len(one.shown(threshold)) > 1 for one in several),
        "several where not": _mean(len(one.shown(threshold)) > 1 for one in single),
        "declined": _mean(not one.found for one in none),
        "calibration error": calibration_error(chances, hits),
    }


def _f1(one: Asked, threshold: float) -> float:
    shown = one.shown(threshold)
    return max(f1_answers(gold, shown) for gold in one.golds) if shown else 0.0


def _mean(values: Iterator[float] | Iterator[bool]) -> float:
    listed = list(values)
    return float(np.mean(listed)) if listed else float("nan")


def calibration_error(chances: Sequence[float], hits: Sequence[bool]) -> float:
    """The mean distance between probability and share of right answers, over ten bins."""
    bins = np.minimum((np.array(chances) * _BINS).astype(int), _BINS - 1)
    error = 0.0
    for number in range(_BINS):
        inside = bins == number
        if inside.any():
            own = np.array(chances)[inside].mean() - np.array(hits)[inside].mean()
            error += abs(own) * inside.mean()
    return float(error)


def _sources(options: argparse.Namespace) -> Iterator[tuple[Pipeline, list[Question]]]:
    """Pipelines with the questions for them."""
    name = options.source
    if name in ("sample", "handbook"):
        questions = []
        for part in ("questions", "unanswerable"):
            questions += load_questions(f"{name}/{part}")[0]
        yield (
            load(index=sample.index(name), threads=options.threads, weights=options.weights),
            questions,
        )
        return
    if Path(name).is_dir():
        from whichsense.lab.compact.marked_answers import read_firm_corpora

        for passages, questions in read_firm_corpora(Path(name), held_out=True):
            records = [{"id": one.id, "title": one.title, "text": one.text} for one in passages]
            yield (
                load(index=Index.of(records), threads=options.threads, weights=options.weights),
                questions,
            )
        return
    pipeline = load(index=options.index, threads=options.threads, weights=options.weights)
    yield pipeline, load_questions(name)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--index")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--weights", help="another weights folder")
    parser.add_argument("--out", type=Path, help="JSON with every answer")
    options = parser.parse_args()
    asked: list[Asked] = []
    for pipeline, questions in _sources(options):
        asked += ask(pipeline, questions[:: options.every])
        print(f"{len(asked)} questions", flush=True)
    table = [figures(asked, threshold) for threshold in _STEPS]
    for row in table:
        print("  ".join(f"{name} {value:.3f}" for name, value in row.items()))
    seconds = sorted(one.seconds for one in asked)
    print(f"p50 {seconds[len(seconds) // 2]:.2f} s, p95 {seconds[len(seconds) * 19 // 20]:.2f} s")
    if options.out:
        paths = sorted(Path(options.source).glob("**/*.jsonl"))
        body = {
            "provenance": provenance(paths),
            "figures": table,
            "asked": [asdict(one) for one in asked],
        }
        write_atomically(options.out, as_json(body, indent=None))


if __name__ == "__main__":
    main()
