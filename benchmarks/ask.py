"""One question end to end on this machine: how long, how much memory, how soon after starting, how much encoding.

    python benchmarks/ask.py --index DIR --dataset ambignq/val [--questions 100] [--threads 2] [--out results.json]

Without --dataset the embedded sample's questions are asked, without --index of the embedded sample. Memory is measured
in a process of its own: what asking adds to the open, searched index.

Encoding is counted, beside what REFUEL's loop would encode with the same model and the same K passages for the same
readings: every passage for reranking, then K for the first answers, K for each rewrite, K to ask each rewrite again and
K to verify it. A passage that goes through a part of the layers counts as that part. It is counted as asked, where a
question may be declined, and as predicted: REFUEL's loop declines none.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any


def questions(options: argparse.Namespace, count: int) -> list[str]:
    from whichsense.lab.datasets import load

    return [question.text for question in islice(load(options.dataset), count)]


def pipeline(options: argparse.Namespace, *, careful: bool = True) -> Any:
    from whichsense.systems import load
    from whichsense.types import FOR_BENCHMARKS, FOR_PEOPLE

    sizes = {"depth": options.depth, "keep": options.keep, "threads": options.threads}
    policy = FOR_PEOPLE if careful else FOR_BENCHMARKS
    weights = options.weights
    return load("compact", options.index, weights=weights, policy=policy, **sizes)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def latency(options: argparse.Namespace) -> dict[str, Any]:
    """Questions one by one, as a person asks them."""
    made, asked = pipeline(options), questions(options, options.questions + 2)
    made.run(asked[-2:])  # loads the weights, with questions that are not timed
    asked = asked[:-2]
    work = Encoded(made, options.keep)
    seconds, stages = [], list[dict[str, float]]()
    for question in asked:
        begun = time.perf_counter()
        case = made.ask(question)
        seconds.append(time.perf_counter() - begun)
        spent = {name: cost.seconds for name, cost in case.spent.items()}
        stages.append(spent | {"total": case.seconds})
        work.readings.append(len(case.readings))
    return {
        "questions": len(asked),
        "p50_s": statistics.median(seconds),
        "p95_s": sorted(seconds)[int(0.95 * (len(seconds) - 1))],
        "mean_s": statistics.mean(seconds),
        "stages_mean_s": {
            name: statistics.mean(one.get(name, 0.0) for one in stages) for name in stages[0]
        },
        "readings_mean": statistics.mean(work.readings),
        "encoding": work.beside_refuel(),
    }


def predicting(options: argparse.Namespace) -> dict[str, Any]:
    """The same questions as `whichsense predict` answers them: none is declined."""
    made = pipeline(options, careful=False)
    work = Encoded(made, options.keep)
    for case in made.run(questions(options, options.questions)):
        work.readings.append(len(case.readings))
    return {
        "predicted_readings_mean": statistics.mean(work.readings),
        "predicted_encoding": work.beside_refuel(),
    }


class Encoded:
    """Passages that are encoded from now on, beside those that REFUEL's loop would encode for as many `readings`."""

    def __init__(self, made: Any, keep: int) -> None:
        self.model, self.keep, self.readings = (made.reader.compact.model, keep, list[int]())
        self.pairs, self.layers = self.model.work.pairs, self.model.work.layers

    def beside_refuel(self) -> dict[str, float]:
        """The loop reads the same `keep` passages to the end (the strict count), or all that were searched for, as
        REFUEL does: to leave most of them after four layers is part of what is measured."""
        count = len(self.readings)
        depth = (
            self.model.work.pairs - self.pairs
        ) / count - 1  # the question without a passage is a pair, too
        ours = (self.model.work.layers - self.layers) / self.model.config["shape"]["layers"] / count
        times = [1 + (3 * own if own > 1 else 0) for own in self.readings]
        loop, whole = (depth + passages * statistics.mean(times) for passages in (self.keep, depth))
        found = {"ours": ours, "loop": loop, "ratio": ours / loop}
        found |= {"loop_over_all": whole, "ratio_over_all": ours / whole}
        if several := [own for own in times if own > 1]:
            found["ratio_of_ambiguous"] = ours / (depth + self.keep * statistics.mean(several))
        return found


def memory(options: argparse.Namespace) -> dict[str, Any]:
    """What asking adds to an index that is open and was searched."""
    from whichsense.types import Case

    made, asked = pipeline(options), questions(options, min(options.questions, 20))
    for question in asked:
        made.retriever.retrieve([Case(question)], options.depth)
    before = peak_mb()
    made.run(asked)
    return {"index_mb": before, "peak_mb": peak_mb(), "beside_index_mb": peak_mb() - before}


def first_answer(options: argparse.Namespace) -> dict[str, Any]:
    """From the command's start to its end: Python, index, weights, answer. The best of three."""
    call = [sys.executable, "-m", "whichsense", "ask", questions(options, 1)[0], "--json"]
    call += [
        "--threads",
        str(options.threads),
        "--depth",
        str(options.depth),
        "--keep",
        str(options.keep),
    ]
    call += ["--index", str(options.index)] if options.index else []
    call += ["--weights", str(options.weights)] if options.weights else []
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        subprocess.run(call, check=True, capture_output=True)
        seconds.append(time.perf_counter() - begun)
    return {"first_answer_s": min(seconds)}


def at_once(options: argparse.Namespace) -> dict[str, Any]:
    """Questions from as many threads through one pipeline: the same cases as one by one, no passage encoded twice, and
    every case equal after a round trip through JSON."""
    from concurrent.futures import ThreadPoolExecutor
    from dataclasses import replace

    from whichsense.types import Case

    asked = questions(options, options.at_once)
    shared, alone = pipeline(options), pipeline(options)
    with ThreadPoolExecutor(options.at_once) as threads:
        begun = time.perf_counter()
        together = list(threads.map(shared.ask, asked))
        seconds = time.perf_counter() - begun
    same = json_equal = 0
    for question, case in zip(asked, together, strict=True):
        other = alone.ask(question)
        same += replace(case, spent={}) == replace(other, spent={})
        json_equal += Case.from_json(json.loads(json.dumps(case.to_json()))) == case
    work, other_work = (one.reader.compact.model.work for one in (shared, alone))
    return {
        "at_once": len(asked),
        "at_once_s": seconds,
        "at_once_equal": same,
        "json_equal": json_equal,
        "pairs_at_once": work.pairs,
        "pairs_one_by_one": other_work.pairs,
    }


PARTS = {
    "latency": latency,
    "at_once": at_once,
    "predicting": predicting,
    "memory": memory,
    "first_answer": first_answer,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path)
    parser.add_argument("--dataset", default="sample/questions")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--depth", type=int, default=40)
    parser.add_argument("--keep", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=32, metavar="N")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", choices=PARTS, help="used by itself")
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part](options)))
        return
    found: dict[str, Any] = {}
    for part in PARTS:  # each in a process of its own, so that memory is its own
        done = subprocess.run(
            [sys.executable, *sys.argv, "--part", part], check=True, capture_output=True, text=True
        )
        found |= json.loads(done.stdout.splitlines()[-1])
    show(found)
    if options.out:
        from whichsense.lab.provenance import provenance
        from whichsense.models.compact.encoder import WEIGHTS

        folder = options.weights or WEIGHTS
        settings = ("dataset", "questions", "depth", "keep", "threads")
        found["settings"] = {name: getattr(options, name) for name in settings}
        options.out.write_text(
            json.dumps(found | provenance(sorted(folder.glob("*.onnx"))), indent=1) + "\n"
        )


def show(found: dict[str, Any]) -> None:
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in found["stages_mean_s"].items())
    print(
        f"{found['questions']} questions: p50 {found['p50_s']:.2f} s, p95 {found['p95_s']:.2f} s ({stages})"
    )
    print(
        f"memory beside the index: {found['beside_index_mb']:.0f} MB; first answer {found['first_answer_s']:.2f} s"
    )
    print(
        f"{found['at_once']} questions from as many threads: {found['at_once_equal']} cases as one by one, "
        f"{found['json_equal']} equal after JSON; pairs encoded {found['pairs_at_once']}, "
        f"one by one {found['pairs_one_by_one']}"
    )
    for how, work in (("asked", found["encoding"]), ("predicted", found["predicted_encoding"])):
        print(f"passages encoded a question, as {how}: {work['ours']:.1f}; REFUEL's loop", end=" ")
        print(f"{work['loop']:.1f}: {work['ratio']:.3f}; over all passages", end=" ")
        print(f"{work['loop_over_all']:.1f}: {work['ratio_over_all']:.3f}")
        if "ratio_of_ambiguous" in work:
            print(f"  of questions with several readings: {work['ratio_of_ambiguous']:.3f}")


if __name__ == "__main__":
    main()
