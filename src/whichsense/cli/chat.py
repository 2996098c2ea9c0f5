"""whichsense chat and clarify: ask back which reading is meant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from whichsense.cli.ask import begin_loading, check_no_option, open_pipeline, print_record
from whichsense.cli.evidence import (
    evidence_options,
    flag_option,
    llm_options,
    path_option,
    repeated_option,
    system_option,
    threads_option,
    threshold_option,
)

# whichsense chat: a conversation in the terminal.


@click.command()
@evidence_options
@system_option("Talk to")
@llm_options
@path_option("--resume", "Go on with a conversation that /save wrote.", "FILE")
@click.option(
    "--ask-back/--no-ask-back",
    default=True,
    help="Ask which reading is meant, or show all readings at once.",
)
@click.option(
    "--history/--no-history",
    default=True,
    help="Keep what was typed for the arrow keys of the next chat.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Give each answer this much time.",
)
@threshold_option
@threads_option()
def command(
    resume: Path | None, ask_back: bool, history: bool, timeout: float | None, **asked: Any
) -> None:
    """Talk: ask a question; where it has several readings, say which one you mean.

    Reply with a number, the arrow keys or your own words. /help lists the commands. Ctrl-C stops an answer; twice at
    the prompt, it leaves. From a pipe, every line is a question or a reply.
    """
    model = begin_loading(asked)
    from whichsense.cli.chat_session import COMMANDS, Pipe, Session, Terminal, history_file
    from whichsense.conversation import AskingPolicy, Conversation
    from whichsense.conversation.turns import load_conversation

    conversation = load_conversation(resume) if resume else Conversation.new()
    pipeline = open_pipeline(model, asked)
    policy = AskingPolicy(enabled=ask_back)
    if not sys.stdin.isatty():
        Session(pipeline, Pipe(), policy, timeout, conversation).run()
        return
    place = history_file() if history else None
    words = [name.partition(" ")[0] for name in COMMANDS]
    with Terminal(place, words).open() as terminal:
        click.echo("Ask a question. /help lists the commands, /quit leaves.")
        session = Session(pipeline, terminal, policy, timeout, conversation)
        session.greet()
        session.run()


# whichsense clarify: the question back, and the answer to a reply.


@click.command(context_settings={"ignore_unknown_options": True})  # "-5 degrees" is a question
@click.argument("question", required=False)
@repeated_option(
    "--reply",
    "replies",
    "TEXT",
    "What you would say: an option, its number, your own words. Several are said one after the other.",
)
@path_option(
    "--conversation",
    "Go on with the conversation in this file if it is there, and save it.",
    "FILE",
    to="path",
)
@evidence_options
@system_option()
@llm_options
@threshold_option
@threads_option()
@flag_option("--json", "Print the conversation as JSON.", to="as_json")
def clarify_command(
    question: str | None, replies: tuple[str, ...], path: Path | None, as_json: bool, **asked: Any
) -> None:
    """Ask back which reading of QUESTION is meant; with --reply, answer the one that is.

    With --conversation FILE, QUESTION may be left out: the replies go on with what is in the file.
    """
    check_no_option(question)
    resumed = path is not None and path.exists()
    if not question and not resumed:
        raise click.UsageError("Give a QUESTION, or --conversation FILE to go on with.")
    model = begin_loading(asked)
    from whichsense.cli.chat_session import format_turn
    from whichsense.conversation import Conversation, ask, reply
    from whichsense.conversation.turns import load_conversation, save

    conversation = Conversation.new()
    if resumed and path:
        conversation = load_conversation(path)
    pipeline = open_pipeline(model, asked)
    if question:
        conversation = ask(pipeline, conversation, question)
    for text in replies:
        conversation = reply(pipeline, conversation, text)
    if path:
        save(conversation, path)
    if as_json:
        print_record(conversation)
    else:
        click.echo(format_turn(conversation))
