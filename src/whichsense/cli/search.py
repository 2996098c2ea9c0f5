"""whichsense search: the passages that may answer a question."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from pathlib import Path
from typing import cast

import click

from whichsense.types import Hit


@click.command()
@click.argument("question")
@click.option("--index", "folder", type=click.Path(path_type=Path), metavar="DIR", help="[default: embedded sample]")
@click.option("--k", default=100, show_default=True, type=click.IntRange(1, 10_000), help="How many passages.")
@click.option("--method", type=click.Choice(["bm25", "dense", "hybrid"]), help="[default: hybrid if there are vectors]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: {question, method, hits: [...]}.")
def command(question: str, folder: Path | None, k: int, method: str | None, as_json: bool) -> None:
    """Find the passages that may answer QUESTION, best first. A '-' reads the question from standard input."""
    from whichsense import sample
    from whichsense.index import Index
    from whichsense.types import Method

    if question == "-":
        question = click.get_text_stream("stdin").read().strip()
    index = Index.open(folder) if folder else sample.index()
    chosen = cast("Method | None", method)
    hits = index.search(question, k, chosen)
    if as_json:
        found = [dataclasses.asdict(hit.passage) | {"score": hit.score} for hit in hits]
        print(json.dumps({"question": question, "method": index.method(chosen), "hits": found}, ensure_ascii=False))
        return
    for rank, hit in enumerate(hits, 1):
        print(_shown(rank, hit))
    if not hits:
        click.echo("No passage matches. Try other words.", err=True)


def _shown(rank: int, hit: Hit) -> str:
    passage = hit.passage
    section = f" › {passage.section}" if passage.section else ""
    head = f"{rank:>3}. {passage.title}{section}  [{passage.id}]  {hit.score:.2f}"
    body = textwrap.fill(" ".join(passage.text.split()), 100, initial_indent="     ", subsequent_indent="     ")
    return f"{head}\n{body}\n"
