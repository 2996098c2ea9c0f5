"""Record what the package answers, and compare a later state with it: for changes that must change no behaviour.

    python scripts/gate.py record FOLDER     # before
    python scripts/gate.py compare FOLDER    # after: prints what differs, and exits with 1 if anything does

Recorded are the answers to every eighth question of the sample and the handbook (unanswerable ones, too), as JSON and
as the terminal shows them, what is asked back, long answers, predictions, the hits of all three methods with shards
and without, the OpenAPI description, the tools of MCP and all help pages. Seconds are left out. The folder holds one
text file for each; two runs of one state are equal to the byte on one machine.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
from whichsense.cli import command
from whichsense.files import read_jsonl
from whichsense.sample import HANDBOOK, PASSAGES, QUESTIONS, UNANSWERABLE

_EVERY = 8
_TIMES = {"spent", "seconds"}
_FILES = {
    "sample": (QUESTIONS, UNANSWERABLE),
    "handbook": (HANDBOOK / "questions.jsonl", HANDBOOK / "unanswerable.jsonl"),
}


def _questions(corpus: str, every: int = _EVERY) -> list[str]:
    """Return every eighth question (or as given) over an embedded corpus, unanswerable ones last."""
    chosen = []
    for path in _FILES[corpus]:
        chosen += [row["question"] for _, row in read_jsonl(path)][::every]
    return chosen


def _printed(*words: str) -> str:
    """Run a command and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        command.main(list(words), prog_name="whichsense", standalone_mode=False)
    return out.getvalue()


def _timeless(value: Any) -> Any:
    """Drop seconds from a JSON value."""
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in _TIMES}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _lines(text: str) -> str:
    """Return JSON lines without seconds, indented so that a difference is seen."""
    rows = [_timeless(json.loads(line)) for line in text.splitlines()]
    return "\n".join(json.dumps(row, indent=1, ensure_ascii=False) for row in rows)


def _asked(corpus: str, *options: str, every: int = _EVERY) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(_questions(corpus, every)))
        file.flush()
        return _printed("ask", "--file", file.name, "--index", corpus, *options)


def _each(verb: str, *options: str) -> str:
    asked = _questions("sample", 10 * _EVERY)
    return "\n".join(_printed(verb, question, *options) for question in asked)


def _hits() -> str:
    from whichsense.index import Index, Spread
    from whichsense.models.static import load_encoder

    asked = _questions("sample", 2)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, spread in (("one", None), ("three", Spread(3))):
            index = Index.build(
                PASSAGES, Path(folder) / name, encoder=load_encoder("static"), shards=spread
            )
            for method in ("bm25", "dense", "hybrid"):
                for hits in index.search_many(asked, 30, method):
                    row = [f"{hit.passage.id} {hit.score:.9g}" for hit in hits]
                    rows.append(f"{name} {method}: {'; '.join(row)}")
    return "\n".join(rows)


def _predictions() -> str:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = ["--provider", "compact", "--dataset", str(QUESTIONS)]
        _printed("predict", *words, "--limit", "10", "--out", str(out))
        return json.dumps(json.loads(out.read_text()), indent=1, ensure_ascii=False)


def _openapi() -> str:
    from whichsense.serve.app import create_app
    from whichsense.serve.settings import ServiceSettings

    return json.dumps(create_app(ServiceSettings()).openapi(), indent=1)


def _tools() -> str:
    from whichsense.serve.mcp_tools import definitions

    tools = definitions(tuple(_FILES), with_apps=True)
    return "\n".join(tool.model_dump_json(indent=1, by_alias=True) for tool in tools)


PARTS: dict[str, Callable[[], str]] = {
    "help": commands.page,
    "tools": _tools,
    "openapi": _openapi,
    "hits": _hits,
    "predictions": _predictions,
    "sample": lambda: _lines(_asked("sample", "--json")),
    "handbook": lambda: _lines(_asked("handbook", "--json")),
    "screen": lambda: _asked("sample", "--all", every=5 * _EVERY),
    "clarify": lambda: _each("clarify"),
    "explain": lambda: _each("explain"),
}


def _differences(name: str, before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{name}, recorded", f"{name}, now", "", "", 1
    )
    return list(lines)


def main() -> int:
    """Record or compare; return 1 where something differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["record", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", action="append", choices=PARTS, help="only these; all by default")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    different = False
    for name in given.part or PARTS:
        path = given.folder / f"{name}.txt"
        began = time.perf_counter()
        text = PARTS[name]()
        seconds = time.perf_counter() - began
        if given.verb == "record":
            path.write_text(text, encoding="utf-8")
            said = f"{len(text):,} characters"
        else:
            lines = _differences(name, path.read_text(encoding="utf-8"), text)
            different |= bool(lines)
            said = "\n".join(lines) or "equal"
        print(f"{name} ({seconds:.0f} s): {said}", flush=True)  # noqa: T201
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
