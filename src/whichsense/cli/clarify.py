"""whichsense clarify: the question back, and the answer to a reply."""

from __future__ import annotations

import json
from pathlib import Path

import click

from whichsense.cli.ask import begin_loading
from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.cli.llm import choose_system, llm_options
from whichsense.cli.search import utf8
from whichsense.cli.system import system_option, threads_option, threshold_option


@click.command(
    context_settings={"ignore_unknown_options": True}
)  # "-5 degrees" is a question
@click.argument("question", required=False)
@click.option(
    "--reply",
    "replies",
    multiple=True,
    metavar="TEXT",
    help="What you would say: an option, its number, your own words. Several are said one after the other.",
)
@click.option(
    "--conversation",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Go on with the conversation in this file if it is there, and save it.",
)
@evidence_options
@system_option()
@llm_options
@threshold_option
@threads_option()
@click.option("--json", "as_json", is_flag=True, help="Print the conversation as JSON.")
def command(
    question: str | None,
    replies: tuple[str, ...],
    path: Path | None,
    folder: Path | None,
    method: str | None,
    system: Path | None,
    llm_url: str | None,
    llm_model: str | None,
    threshold: float | None,
    threads: int,
    as_json: bool,
) -> None:
    """Ask back which reading of QUESTION is meant; with --reply, answer the one that is.

    With --conversation FILE, QUESTION may be left out: the replies go on with what is in the file.
    """
    if question and question.startswith("--") and len(question.split()) == 1:
        raise click.NoSuchOption(question)
    resumed = path is not None and path.exists()
    if not question and not resumed:
        raise click.UsageError("Give a QUESTION, or --conversation FILE to go on with.")
    model = None if system else begin_loading(None, threads)
    from whichsense.cli.chat.screen import format_turn
    from whichsense.conversation import Conversation, ask, reply
    from whichsense.conversation.files import load_conversation, save
    from whichsense.systems.build import load

    conversation = Conversation.new()
    if resumed and path:
        conversation = load_conversation(path)
    index, chosen = open_evidence(folder, method)
    asked_system, llm = choose_system(system, llm_url, llm_model)
    pipeline = load(
        asked_system,
        index,
        method=chosen,
        threshold=threshold,
        threads=threads,
        model=model,
        llm=llm,
    )
    if question:
        conversation = ask(pipeline, conversation, question)
    for text in replies:
        conversation = reply(pipeline, conversation, text)
    if path:
        save(conversation, path)
    if as_json:
        click.echo(json.dumps(conversation.to_json(), ensure_ascii=not utf8()))
    else:
        click.echo(format_turn(conversation))
