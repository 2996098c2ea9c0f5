"""The same questions through a language model in stages, through one plain prompt, and through the embedded model.

    python benchmarks/llm_readings.py draw OUT --seed 2511
    python benchmarks/llm_readings.py compact OUT
    python benchmarks/llm_readings.py stages OUT --url http://localhost:8080/v1 --model NAME
    python benchmarks/llm_readings.py plain OUT --url http://localhost:8080/v1 --model NAME

`draw` takes ambiguous and other questions of the embedded sample, from topics that nothing was fitted on. Every other
command writes OUT/COMMAND.json: question, readings (rewrite, answer, evidence), to be judged by people. A stopped run
goes on where it was; replies are kept in OUT/cache.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import whichsense as ws
from whichsense import datasets
from whichsense.jobs.limits import Limits
from whichsense.lab.compact.questions import is_trained_on
from whichsense.models.llm.endpoint import Endpoint, Request
from whichsense.models.llm.prompts import LLMSettings
from whichsense.models.llm.talk import parse_object, passage_window
from whichsense.text.words import sentence_at
from whichsense.types import Reading

_AMBIGUOUS, _OTHER = 24, 6
_PASSAGES = 5
_LONG = 1800.0  # seconds for a call on a slow machine
_PLAIN = (
    "The question below may be ambiguous. From the passages, list every answer, and for each one the question "
    'rewritten so that it has only this answer. Reply with JSON: {"readings": [{"question": "...", "answer": "..."}]}'
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "readings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"question": {"type": "string"}, "answer": {"type": "string"}},
                "required": ["question", "answer"],
            },
        }
    },
    "required": ["readings"],
}


def draw(out: Path, seed: int) -> None:
    """Draw the questions: ambiguous ones, and a few that are not."""
    rng = random.Random(seed)
    several: list[str] = []
    single: list[str] = []
    for question in datasets.load("sample/questions"):
        if not is_trained_on(question.id):
            (several if len(question.answers) > 1 else single).append(question.text)
    drawn = rng.sample(several, _AMBIGUOUS) + rng.sample(single, _OTHER)
    rng.shuffle(drawn)
    _write(out / "questions.json", drawn)


def run(out: Path, name: str, answer: Callable[[str], dict[str, Any]], jobs: int) -> None:
    """Answer all questions that OUT/NAME.json does not have yet, some at the same time."""
    path = out / f"{name}.json"
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    known = {row["question"] for row in rows}
    questions = json.loads((out / "questions.json").read_text(encoding="utf-8"))
    left = [question for question in questions if question not in known]

    def timed(question: str) -> dict[str, Any]:
        begun = time.perf_counter()
        row = {"question": question, **answer(question)}
        row["seconds"] = round(time.perf_counter() - begun, 1)
        return row

    with ThreadPoolExecutor(jobs) as pool:
        for row in pool.map(timed, left):
            rows.append(row)
            _write(path, rows)
            print(json.dumps(row, ensure_ascii=False), flush=True)


def through_pipeline(pipeline: ws.Pipeline) -> Callable[[str], dict[str, Any]]:
    def answer(question: str) -> dict[str, Any]:
        case = pipeline.ask(question)
        readings = [_described(reading) for reading in case.readings]
        used = sum(call.tokens_in + call.tokens_out for call in case.calls)
        notes = list(case.notes)
        return {"readings": readings, "notes": notes, "tokens": used}

    return answer


def through_plain_prompt(settings: LLMSettings) -> Callable[[str], dict[str, Any]]:
    """What the model replies when it is asked for everything at once, unchecked."""
    endpoint, evidence = Endpoint(settings), ws.load()

    def answer(question: str) -> dict[str, Any]:
        (case,) = evidence.run([question], "evidence")
        texts = [passage_window(hit.passage, question) for hit in case.hits[:_PASSAGES]]
        user = "\n".join([f"Question: {question}", *texts, f"Question: {question}"])
        request = Request("plain", _PLAIN, user, 400, _SCHEMA)
        reply = endpoint.cached(request)
        if reply is None:
            reply, _ = endpoint.complete(request, time.monotonic() + _LONG, Limits())
            endpoint.keep(request, reply)
        rows = (parse_object(reply.text) or {}).get("readings", [])
        readings = []
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and row.get("answer"):
                rewrite = str(row.get("question", ""))
                readings.append({"rewrite": rewrite, "answer": str(row["answer"])})
        shown = [hit.passage.text for hit in case.hits[:_PASSAGES]]
        return {"readings": readings, "evidence": shown, "reply": reply.text}

    return answer


def _described(reading: Reading) -> dict[str, Any]:
    row: dict[str, Any] = {
        "rewrite": reading.question,
        "answer": reading.answer,
        "confidence": round(reading.confidence, 3),
        "source": reading.source,
    }
    if reading.evidence:
        span = reading.evidence[0]
        start, end = sentence_at(span.passage.text, span.start)
        row["evidence"] = span.passage.text[start:end]
        row["title"] = span.passage.title
    return row


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
    partial.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("command", choices=["draw", "compact", "stages", "plain"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=2511)
    parser.add_argument("--url", default="")
    parser.add_argument("--model", default="")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--parallel", type=int, default=1, help="calls of a question")
    parser.add_argument("--jobs", type=int, default=1, help="questions at a time")
    options = parser.parse_args()
    if options.command == "draw":
        return draw(options.out, options.seed)
    if options.command == "compact":
        return run(options.out, "compact", through_pipeline(ws.load()), options.jobs)
    settings = LLMSettings(
        url=options.url,
        model=options.model,
        timeout=_LONG,
        deadline=0,
        parallel=options.parallel,
        samples=options.samples,
        cache_folder=str(options.out / "cache"),
    )
    if options.command == "plain":
        return run(options.out, "plain", through_plain_prompt(settings), options.jobs)
    pipeline = ws.load("llm", llm=settings)
    return run(options.out, "stages", through_pipeline(pipeline), options.jobs)


if __name__ == "__main__":
    main()
