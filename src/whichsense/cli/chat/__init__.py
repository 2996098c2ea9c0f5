"""whichsense chat: a conversation in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from whichsense.cli.ask import begin_loading
from whichsense.cli.evidence import evidence_options, open_evidence
from whichsense.cli.llm import choose_system, llm_options
from whichsense.cli.system import system_option, threads_option, threshold_option


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
    from whichsense.cli.chat.session import COMMANDS, Session
    from whichsense.cli.chat.terminal import Pipe, Terminal, history_file
    from whichsense.conversation import AskingPolicy, Conversation
    from whichsense.conversation.files import load_conversation
    from whichsense.systems.build import load

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
