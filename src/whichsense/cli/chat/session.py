"""The loop of a chat: a line, a turn, what it shows; and the commands that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from whichsense import conversation as talk
from whichsense.cli.ask.screen import format_case
from whichsense.cli.chat.screen import format_sources, format_turn
from whichsense.cli.chat.terminal import TooLong
from whichsense.conversation import AskingPolicy, Conversation
from whichsense.conversation.files import save
from whichsense.conversation.records import LONGEST_REPLY
from whichsense.errors import BadInput, MissingStage, WhichsenseError, did_you_mean
from whichsense.jobs.limits import Limits
from whichsense.jobs.stopping import stop_requested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whichsense.pipeline import Pipeline

COMMANDS = {
    "/readings": "every reading of the question that is shown",
    "/all": "those that are merely possible, too",
    "/sources": "the passages behind what was shown last",
    "/explain": "the whole story in one paragraph, with sources",
    "/new": "forget the conversation and begin anew",
    "/save FILE": "save the conversation; --resume FILE goes on with it",
    "/help": "this list",
    "/quit": "leave",
}


class Input(Protocol):
    """Where lines come from."""

    def read(self, options: Sequence[str]) -> str | None: ...


@dataclass
class Session:
    """A conversation with a person at a terminal or behind a pipe."""

    pipeline: Pipeline
    source: Input
    policy: AskingPolicy
    timeout: float | None = None
    conversation: Conversation = field(default_factory=Conversation.new)

    def greet(self) -> None:
        """Show where a resumed conversation stands."""
        if self.conversation.turns:
            click.echo(f"\n{format_turn(self.conversation)}")

    def run(self) -> None:
        """Until /quit, the end of input, or a second Ctrl-C in a row at the prompt."""
        interrupted = False
        while True:
            try:
                line = self.source.read(self._options())
            except TooLong:
                click.echo(f"error: {self._too_long()}", err=True)
                continue
            except KeyboardInterrupt:
                if interrupted:
                    click.echo()
                    return
                interrupted = True
                click.echo("\nCtrl-C once more, or /quit, leaves.")
                continue
            interrupted = False
            if line is None or line.strip() == "/quit":
                return
            self._take(line.strip())

    def _take(self, line: str) -> None:
        """One line. What goes wrong is told, and the conversation stays as it was."""
        try:
            if line.startswith("/"):
                self._obey(line)
            elif line or self._is_pending():
                self._advance(lambda limits: self._reply(line, limits))
        except KeyboardInterrupt:
            click.echo("\nStopped.")
        except WhichsenseError as error:
            click.echo(f"error: {error}", err=True)

    def _reply(self, line: str, limits: Limits) -> Conversation:
        return talk.reply(
            self.pipeline, self.conversation, line, policy=self.policy, limits=limits
        )

    def _advance(self, verb: Callable[[Limits], Conversation]) -> None:
        """The next turn, which Ctrl-C stops."""
        with stop_requested() as is_stopped:
            advanced = verb(Limits.of(self.timeout, is_stopped))
            stopped = is_stopped()
        if stopped:
            click.echo("Stopped.")
            return
        self.conversation = advanced
        click.echo(f"\n{format_turn(advanced)}")

    def _obey(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        verbs: dict[str, Callable[[], None]] = {
            "/readings": self._show_readings,
            "/all": self._show_all,
            "/sources": self._show_sources,
            "/explain": self._explain,
            "/new": self._start_anew,
            "/save": lambda: self._save(argument.strip()),
            "/help": self._help,
        }
        if name not in verbs:
            raise BadInput(f"No command '{name[:40]}'. {did_you_mean(name, verbs)}")
        verbs[name]()

    def _show_readings(self) -> None:
        self._advance(lambda limits: talk.show_readings(self.conversation))

    def _show_all(self) -> None:
        if self.conversation.case is None:
            raise BadInput("Nothing was asked yet. Begin with a question.")
        click.echo(f"\n{format_case(self.conversation.case, show_possible=True)}")

    def _show_sources(self) -> None:
        click.echo(f"\n{format_sources(self.conversation.evident)}")

    def _explain(self) -> None:
        try:
            self._advance(lambda limits: talk.explain(self.pipeline, self.conversation))
        except MissingStage:
            raise MissingStage(
                "There is no summarizer here, so nothing can be explained. Try /readings."
            ) from None

    def _start_anew(self) -> None:
        self.conversation = Conversation.new()
        click.echo("A new conversation.\n")

    def _save(self, path: str) -> None:
        if not path:
            raise BadInput("Where to? Write /save FILE.")
        save(self.conversation, Path(path).expanduser())
        click.echo(f"Saved: {path}\n")

    def _help(self) -> None:
        width = max(map(len, COMMANDS))
        lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
        click.echo("\n".join(["", *lines, ""]))

    def _options(self) -> list[str]:
        clarification = self.conversation.clarification
        if clarification is None or not self._is_pending():
            return []
        return [option.label for option in clarification.options]

    def _is_pending(self) -> bool:
        return bool(self.conversation.turns) and self.conversation.last.pending

    @staticmethod
    def _too_long() -> str:
        return f"A reply may have at most {LONGEST_REPLY:,} characters."
