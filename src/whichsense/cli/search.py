"""whichsense search: the passages that may answer a question."""

from __future__ import annotations

import dataclasses
import json
import sys
import textwrap
from pathlib import Path

import click

from whichsense.cli.evidence import cluster_option, evidence_options, open_evidence
from whichsense.types import Hit


@click.command(
    context_settings={"ignore_unknown_options": True}
)  # "-5 degrees" is a question
@click.argument("question")
@evidence_options
@cluster_option
@click.option(
    "--k",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Passages to retrieve.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON: {question, method, hits: [...], coverage}.",
)
def command(
    question: str,
    folder: Path | None,
    method: str | None,
    cluster: str | None,
    k: int,
    as_json: bool,
) -> None:
    """Find the passages that may answer QUESTION, best first. A '-' reads the question from standard input."""
    from whichsense.index.shards.gather import coverage_of, missing_note

    if question == "-":
        question = sys.stdin.read().strip()
    index, chosen = open_evidence(folder, method, cluster)
    hits = index.search(question, k, chosen)
    missing = missing_note(hits)
    if as_json:
        rows = []
        for hit in hits:
            rows.append(dataclasses.asdict(hit.passage) | {"score": hit.score})
        table = {
            "question": question,
            "method": chosen,
            "hits": rows,
            "coverage": coverage_of(hits),
        }
        print(json.dumps(table, ensure_ascii=not utf8()))
        return
    for rank, hit in enumerate(hits, 1):
        print(_format(rank, hit))
    if missing:
        click.echo(missing, err=True)
    if not hits:
        click.echo("No passage matches. Try other words.", err=True)


def utf8() -> bool:
    """Whether standard output can show every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _format(rank: int, hit: Hit) -> str:
    passage = hit.passage
    section = f" › {passage.section}" if passage.section else ""
    title = printable(passage.title + section)
    head = f"{rank:>3}. {title}  [{printable(passage.id)}]  {hit.score:.2f}"
    body = printable(" ".join(passage.text.split()))
    indent = " " * 5
    lines = textwrap.fill(body, 100, initial_indent=indent, subsequent_indent=indent)
    return f"{head}\n{lines}\n"


def printable(text: str) -> str:
    """Remove control characters, which could control the terminal; white space among them becomes a space.

    >>> printable("Who\\tsang\\nit\\x1b[0m?")
    'Who sang it[0m?'
    """
    characters = []
    for character in text:
        if character.isprintable():
            characters.append(character)
        elif character.isspace():
            characters.append(" ")
    return "".join(characters)
