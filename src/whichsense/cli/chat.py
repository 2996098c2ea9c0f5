"""whichsense chat and clarify: ask back which reading is meant."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from whichsense.cli.ask import begin_loading, utf8
from whichsense.cli.evidence import (
    choose_system,
    evidence_options,
    llm_options,
    open_evidence,
    system_option,
    threads_option,
    threshold_option,
)

# whichsense chat: a conversation in the terminal.


@click.command()
@evidence_options
@system_option("Talk to")
@llm_options
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Go on with a conversation that /save wrote.",
)
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
    folder: Path | None,
    method: str | None,
    system: Path | None,
    llm_url: str | None,
    llm_model: str | None,
    resume: Path | None,
    ask_back: bool,
    history: bool,
    timeout: float | None,
    threshold: float | None,
    threads: int,
) -> None:
    """Talk: ask a question; where it has several readings, say which one you mean.

    Reply with a number, the arrow keys or your own words. /help lists the commands. Ctrl-C stops an answer; twice at
    the prompt, it leaves. From a pipe, every line is a question or a reply.
    """
    model = None if system else begin_loading(None, threads)
    from whichsense.cli.chat_session import (
        COMMANDS,
        Pipe,
        Session,
        Terminal,
        history_file,
    )
    from whichsense.conversation import AskingPolicy, Conversation
    from whichsense.conversation.turns import load_conversation
    from whichsense.systems import load

    conversation = load_conversation(resume) if resume else Conversation.new()
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
def clarify_command(
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
    from whichsense.cli.chat_session import format_turn
    from whichsense.conversation import Conversation, ask, reply
    from whichsense.conversation.turns import load_conversation, save
    from whichsense.systems import load

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
