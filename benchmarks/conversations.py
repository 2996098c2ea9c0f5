"""Hold the written conversations over sample, handbook and two folders of documents; print transcripts for a reader.

python benchmarks/conversations.py > transcripts.md
python benchmarks/conversations.py --corpus boatyard --only plover

Each turn says what a right course is; whether a conversation was right to its end is judged by a reader who wrote
neither the conversations nor the code. The last line counts turns that show the expected words: an aid, no verdict.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whichsense import sample
from whichsense.cli.chat_session import format_turn
from whichsense.conversation import Conversation, reply
from whichsense.index import Index
from whichsense.pipeline import Pipeline
from whichsense.systems import load

WRITTEN = Path(__file__).parents[1] / "tests" / "conversation"
CORPORA = ("sample", "handbook", "boatyard", "coldstore")


def conversations(corpus: str, only: str | None) -> list[dict[str, Any]]:
    lines = (WRITTEN / "conversations.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["corpus"] == corpus and only in (None, row["id"])]


def open_pipeline(corpus: str, folder: Path) -> Pipeline:
    if (WRITTEN / corpus).is_dir():
        return load(index=Index.build(WRITTEN / corpus, folder / corpus))
    return load(index=sample.index(corpus))


def hold(pipeline: Pipeline, row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each turn as Markdown, and whether the expected words are among the answers that it shows."""
    conversation = Conversation.new()
    for turn in row["turns"]:
        conversation = reply(pipeline, conversation, turn["say"])
        last = conversation.last
        answers = " | ".join(one.answer for one in last.readings).lower()
        holds = any(word in answers for word in turn.get("answer", "").lower().split("|"))
        yield (
            f"**Person:** {turn['say']}\n\n*Right:* {turn['right']}\n\n"
            f"({last.intent.kind}; asked: {last.intent.question or '–'}; shown: {last.shown})\n\n"
            f"```\n{format_turn(conversation)}```\n",
            holds,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", choices=CORPORA, action="append")
    parser.add_argument("--only", metavar="ID", help="hold this conversation alone")
    arguments = parser.parse_args()
    turns = held = to_the_end = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for corpus in arguments.corpus or CORPORA:
            rows = conversations(corpus, arguments.only)
            pipeline = open_pipeline(corpus, Path(folder)) if rows else None
            for row in rows:
                assert pipeline is not None
                print(f"## {row['id']} ({corpus})\n")
                marks = []
                for text, holds in hold(pipeline, row):
                    marks.append(holds)
                    print(text)
                print(
                    f"Expected words, turn by turn: {' '.join('yes' if m else 'NO' for m in marks)}\n",
                    flush=True,
                )
                count, to_the_end = count + 1, to_the_end + all(marks)
                turns, held = turns + len(marks), held + sum(marks)
    print(
        f"{held} of {turns} turns show the expected words; {to_the_end} of {count} conversations at every turn."
    )


if __name__ == "__main__":
    main()
