"""Speed of scoring: our commands, start-up included, beside the official parts that are available, in one run.

    python benchmarks/scoring.py                          # synthetic questions and answers
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

Jobs = dict[str, Callable[[], object]]
"""What is timed, by the name that is printed."""

WORDS = (
    "who wrote made the play film in when did open first second season of king song "
    "river team won 1953 2012"
).split()


def synthetic_questions(count: int, seed: int = 7) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Questions with two gold readings each, and predictions that are half right."""
    rng = random.Random(seed)

    def question() -> str:
        words = " ".join(rng.choices(WORDS, k=9)).capitalize()
        extra = rng.choice(["", " (the 2nd)", " in the U.S.", ", Ann's one", " don't"])
        return f"{words} {rng.random():.6f}{extra}?"

    gold = []
    predictions = {}
    for number in range(count):
        pairs = []
        for i in range(2):
            aliases = [f"answer {number} {i}", f"name {i}"]
            pairs.append({"question": question(), "answer": aliases})
        annotation: dict[str, Any] = {"type": "multipleQAs", "qaPairs": pairs}
        if number % 2:
            annotation = {"type": "singleAnswer", "answer": [f"answer {number} 0"]}
        record = {"id": str(number), "question": question()}
        gold.append({**record, "annotations": [annotation]})
        second = rng.choice([f"answer {number} 1", "wrong"])
        predictions[str(number)] = [
            {"question": question(), "answer": f"answer {number} 0"},
            {"question": question(), "answer": second},
        ]
    return gold, predictions


def repeat_questions(
    records: list[dict[str, Any]], predictions: dict[str, Any], count: int
) -> tuple[Any, Any]:
    """As many questions as wanted, from a smaller set: copies get their own id and their own words."""
    gold = []
    repeated = {}
    for number in range(count):
        record = records[number % len(records)]
        turn = number // len(records)
        key = record["id"]
        prediction = predictions[key]
        if turn:
            # Other words, so that no cache of the first turn helps.
            record = _with_words(record, turn)
            prediction = _with_words(prediction, turn)
            key = f"{key}-{turn}"
        gold.append({**record, "id": key})
        repeated[key] = prediction
    return gold, repeated


def _with_words(value: Any, turn: int) -> Any:
    return json.loads(json.dumps(value).replace("?", f" {turn}?"))


def best_times(jobs: Jobs, repeat: int) -> dict[str, float]:
    """The best time of each job, run in turns."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeat):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def call(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def command_jobs(options: argparse.Namespace, folder: Path) -> Jobs:
    records, predictions = synthetic_questions(options.questions)
    if options.gold:
        from whichsense.files import read_json

        given, predicted = read_json(options.gold), read_json(options.pred)
        records, predictions = repeat_questions(given, predicted, options.questions)
    gold, pred = folder / "gold.json", folder / "pred.json"
    gold.write_text(json.dumps(records), encoding="utf-8")
    pred.write_text(json.dumps(predictions), encoding="utf-8")
    whichsense = [sys.executable, "-m", "whichsense"]
    score = [*whichsense, "score", "ambignq", str(gold), str(pred)]
    jobs: Jobs = {
        "whichsense --help": lambda: call(*whichsense, "--help"),
        f"whichsense score ambignq, {len(records):,} questions": lambda: call(*score),
    }
    if options.official:
        script = [sys.executable, str(options.official)]
        script += ["--reference_path", str(gold), "--prediction_path", str(pred)]
        jobs["official script, Java included"] = lambda: call(*script)
    if options.jar:
        lines = folder / "questions.txt"
        texts = question_texts(records, predictions)
        lines.write_text("\n".join(texts), encoding="utf-8")
        java = ["java", "-cp", str(options.jar)]
        java += ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines"]
        jobs["Java tokenizer alone"] = lambda: call(*java, "-lowerCase", str(lines))
    return jobs


def question_texts(records: list[Any], predictions: dict[str, Any]) -> list[str]:
    """Every text that the official script tokenizes, but for the gold rewrites."""
    texts = [record["question"] for record in records]
    for prediction in predictions.values():
        for pair in prediction:
            if isinstance(pair, dict):
                texts.append(pair["question"])
    return texts


def rouge_jobs(count: int) -> Jobs:
    from whichsense.lab.metrics import asqa
    from whichsense.lab.metrics.asqa import sentences

    rng = random.Random(3)
    texts = []
    for _ in range(2 * count):
        parts = [" ".join(rng.choices(WORDS, k=15)) for _ in range(4)]
        texts.append(". ".join(parts) + ".")
    pairs = list(zip(texts[:count], texts[count:], strict=True))

    def ours() -> list[float]:
        asqa._stemmed_sentences.cache_clear()
        return [asqa.rouge_l(*pair) for pair in pairs]

    jobs: Jobs = {f"ROUGE-L, {count:,} pairs": ours}
    if importlib.util.find_spec("rouge_score"):
        from rouge_score import rouge_scorer

        scorer = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=True)

        def theirs() -> list[float]:
            scores = []
            for reference, prediction in pairs:
                # The package takes one sentence a line.
                gold = "\n".join(sentences(reference))
                predicted = "\n".join(sentences(prediction))
                scores.append(scorer.score(gold, predicted)["rougeLsum"].fmeasure)
            return scores

        worst = max(abs(a - b) for a, b in zip(ours(), theirs(), strict=True))
        difference = f"largest difference from rouge-score over {count:,} pairs"
        print(f"ROUGE-L: {difference}: {worst:.1e}")
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
            times = best_times(jobs, options.repeat)
            first = times[next(name for name in times if "--help" not in name)]
            for name, seconds in times.items():
                print(f"{name:<46}{seconds:>8.2f} s{seconds / first:>8.2f} ×")


if __name__ == "__main__":
    main()
