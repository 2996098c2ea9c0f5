"""How fast is scoring? Our commands, start-up included, beside the official parts that can be had, in one run.

    python benchmarks/scoring.py                          # made-up questions and answers
    python benchmarks/scoring.py --gold dev.json --pred pred.json --questions 2002
    python benchmarks/scoring.py --official ambigqa_evaluate_script.py --jar stanford-corenlp-3.4.1.jar

`--official` runs AmbigQA's own script (it needs Java and pycocoevalcap in this Python); `--jar` runs the Java
tokenizer alone over the same questions, which is a part of the official script's work. ROUGE-L is timed beside the
`rouge-score` package where it is installed. Runs alternate; the best of `--repeat` counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = (
    "who wrote made the play film in when did open first second season of king song "
    "river team won 1953 2012"
).split()


def made_up(count: int, seed: int = 7) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Questions with two gold readings each, and predictions that are half right."""
    generator = random.Random(seed)

    def question() -> str:
        extra = generator.choice(
            ["", " (the 2nd)", " in the U.S.", ", Ann's one", " don't"]
        )
        return (
            " ".join(generator.choices(WORDS, k=9)).capitalize()
            + f" {generator.random():.6f}{extra}?"
        )

    gold, predictions = [], {}
    for number in range(count):
        pairs = [
            {"question": question(), "answer": [f"answer {number} {i}", f"name {i}"]}
            for i in range(2)
        ]
        annotations = [{"type": "multipleQAs", "qaPairs": pairs}]
        if number % 2:
            annotations = [{"type": "singleAnswer", "answer": [f"answer {number} 0"]}]
        gold.append(
            {"id": str(number), "question": question(), "annotations": annotations}
        )
        answers = [
            f"answer {number} 0",
            generator.choice([f"answer {number} 1", "wrong"]),
        ]
        predictions[str(number)] = [
            {"question": question(), "answer": answer} for answer in answers
        ]
    return gold, predictions


def repeated(
    records: list[dict[str, Any]], predictions: dict[str, Any], count: int
) -> tuple[Any, Any]:
    """As many questions as wanted, from a smaller set: copies get their own id and their own words."""
    gold, ours = [], {}
    for number in range(count):
        record, turn = records[number % len(records)], number // len(records)
        text = json.dumps(record)
        copy = (
            json.loads(text) if not turn else json.loads(text.replace("?", f" {turn}?"))
        )
        key = record["id"] if not turn else f"{record['id']}-{turn}"
        gold.append({**copy, "id": key})
        given = json.dumps(predictions[record["id"]])
        ours[key] = json.loads(given if not turn else given.replace("?", f" {turn}?"))
    return gold, ours


def alternated(jobs: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """The best time of each job, run in turns."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeat):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def call(*command: str) -> None:
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def command_jobs(
    options: argparse.Namespace, folder: Path
) -> dict[str, Callable[[], object]]:
    records, predictions = made_up(options.questions)
    if options.gold:
        from whichsense.files import read_json

        records, predictions = repeated(
            read_json(options.gold), read_json(options.pred), options.questions
        )
    gold, pred = folder / "gold.json", folder / "pred.json"
    gold.write_text(json.dumps(records), encoding="utf-8")
    pred.write_text(json.dumps(predictions), encoding="utf-8")
    ours = [sys.executable, "-m", "whichsense"]
    jobs: dict[str, Callable[[], object]] = {
        "whichsense --help": lambda: call(*ours, "--help"),
        f"whichsense score ambignq, {len(records):,} questions": lambda: call(
            *ours, "score", "ambignq", str(gold), str(pred)
        ),
    }
    if options.official:
        script = [
            sys.executable,
            str(options.official),
            "--reference_path",
            str(gold),
            "--prediction_path",
            str(pred),
        ]
        jobs["official script, Java included"] = lambda: call(*script)
    if options.jar:
        lines = folder / "questions.txt"
        pairs = [
            pair["question"]
            for given in predictions.values()
            for pair in given
            if isinstance(pair, dict)
        ]
        lines.write_text(
            "\n".join([record["question"] for record in records] + pairs),
            encoding="utf-8",
        )
        java = [
            "java",
            "-cp",
            str(options.jar),
            "edu.stanford.nlp.process.PTBTokenizer",
            "-preserveLines",
            "-lowerCase",
        ]
        jobs["Java tokenizer alone"] = lambda: call(*java, str(lines))
    return jobs


def rouge_jobs(count: int) -> dict[str, Callable[[], object]]:
    from whichsense.metrics import rouge
    from whichsense.metrics.punkt import sentences

    generator = random.Random(3)
    texts = [
        ". ".join(" ".join(generator.choices(WORDS, k=15)) for _ in range(4)) + "."
        for _ in range(2 * count)
    ]
    pairs = list(zip(texts[:count], texts[count:], strict=True))

    def ours() -> list[float]:
        rouge._stemmed_sentences.cache_clear()
        return [rouge.rouge_l(*pair) for pair in pairs]

    jobs: dict[str, Callable[[], object]] = {f"ROUGE-L, {count:,} pairs": ours}
    if importlib.util.find_spec("rouge_score"):
        from rouge_score import rouge_scorer

        scorer = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=True)

        def theirs() -> list[float]:
            split = [
                tuple("\n".join(sentences(text)) for text in pair) for pair in pairs
            ]
            return [scorer.score(*pair)["rougeLsum"].fmeasure for pair in split]

        worst = max(abs(a - b) for a, b in zip(ours(), theirs(), strict=True))
        print(
            f"ROUGE-L: largest difference from rouge-score over {count:,} pairs: {worst:.1e}"
        )
        jobs["rouge-score package"] = theirs
    return jobs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--pred", type=Path)
    parser.add_argument("--official", type=Path)
    parser.add_argument("--jar", type=Path)
    parser.add_argument("--questions", type=int, default=2002)
    parser.add_argument(
        "--answers", type=int, default=948, help="pairs of long answers for ROUGE-L"
    )
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (command_jobs(options, Path(folder)), rouge_jobs(options.answers)):
            times = alternated(jobs, options.repeat)
            first = times[next(name for name in times if "--help" not in name)]
            for name, seconds in times.items():
                print(f"{name:<46}{seconds:>8.2f} s{seconds / first:>8.2f} ×")


if __name__ == "__main__":
    main()
