"""A chat in the terminal: the session, what it shows, and keys that are typed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Protocol

import click

from whichsense import conversation as talk
from whichsense.cli.ask import format_case
from whichsense.conversation import AskingPolicy, Conversation
from whichsense.conversation.turns import LONGEST_REPLY, save, show_turn
from whichsense.errors import BadInput, MissingStage, WhichsenseError, did_you_mean
from whichsense.jobs.limits import Limits, stop_requested
from whichsense.text.rendering import TERMINAL, show_sources

if TYPE_CHECKING:
    from whichsense.pipeline import Pipeline


def format_turn(conversation: Conversation) -> str:
    """Return what the last turn shows."""
    return TERMINAL.write(show_turn(conversation)) + "\n"


# Lines from a person: from a terminal with history and the options under the arrow keys, or from a
# pipe.

_PROMPT = "› "
_LONGEST_LINE = 4 * LONGEST_REPLY  # bytes; a character has at most four
_LONGEST_HISTORY = 1_000  # lines


class TooLong(Exception):
    """A line that no reply can be."""


def history_file() -> Path:
    """In the folder of the user's state (XDG_STATE_HOME is honoured)."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    return folder / "whichsense" / "chat_history"


def line_editor() -> ModuleType | None:
    """Return Python's readline, where it was built with one."""
    try:
        import readline
    except ImportError:
        return None
    return readline


@dataclass
class Terminal:
    """Prompts for a line. The arrow keys walk through the options first, then through the history; Tab completes
    options and commands."""

    history: Path | None = None
    words: Sequence[str] = ()
    """What Tab completes beside the options."""
    _options: Sequence[str] = field(default=(), init=False)

    @contextlib.contextmanager
    def open(self) -> Iterator[Terminal]:
        editor = line_editor()
        if editor is None:
            yield self
            return
        editor.set_auto_history(False)
        editor.set_completer(self._complete)
        editor.set_completer_delims("")
        is_libedit = "libedit" in (editor.__doc__ or "")
        editor.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        if self.history is not None:
            with contextlib.suppress(OSError):
                editor.read_history_file(self.history)
        try:
            yield self
        finally:
            self._save(editor)

    def read(self, options: Sequence[str]) -> str | None:
        """One line; None at the end of input. `options` are offered by the arrow keys."""
        editor = line_editor()
        self._options = options
        before = editor.get_current_history_length() if editor else 0
        if editor:
            # The first option is the latest of the history: one key up.
            for option in reversed(options):
                editor.add_history(option)
        try:
            line = input(_PROMPT)
        except EOFError:
            return None
        finally:
            if editor:
                for place in range(editor.get_current_history_length(), before, -1):
                    editor.remove_history_item(place - 1)
        if editor and line.strip():
            editor.add_history(line)
        return line

    def _complete(self, text: str, state: int) -> str | None:
        known = [*self._options, *self.words]
        fitting = [word for word in known if word.lower().startswith(text.lower())]
        return fitting[state] if state < len(fitting) else None

    def _save(self, editor: ModuleType) -> None:
        if self.history is None:
            return
        try:
            self.history.parent.mkdir(parents=True, exist_ok=True)
            editor.set_history_length(_LONGEST_HISTORY)
            self.history.touch(mode=0o600)
            editor.write_history_file(self.history)
        except OSError as error:
            click.echo(f"The history was not saved: {error}.", err=True)


@dataclass(frozen=True)
class Pipe:
    """One line of standard input after the other."""

    def read(self, options: Sequence[str]) -> str | None:
        """One line, whatever its encoding; None at the end of input. Raises `TooLong`."""
        stream = sys.stdin.buffer
        line = stream.readline(_LONGEST_LINE)
        if not line:
            return None
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(_LONGEST_LINE)
            raise TooLong
        return line.decode("utf-8", "replace").rstrip("\r\n")


# The loop of a chat: a line, a turn, what it shows; and the commands that begin with a slash.

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


_TO_LEAVE = 2  # Ctrl-C in a row


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
    _interrupts: int = field(default=0, init=False)
    _is_prompting: bool = field(default=False, init=False)

    def greet(self) -> None:
        """Show where a resumed conversation stands."""
        if self.conversation.turns:
            click.echo(f"\n{format_turn(self.conversation)}")

    def run(self) -> None:
        """Talk until /quit, the end of input, or a second Ctrl-C in a row at the prompt, the last that is heeded."""
        before = signal.signal(signal.SIGINT, self._heed)
        while (line := self._next_line()) is not None and line != "/quit":
            self._take(line)
        if self._interrupts < _TO_LEAVE:
            signal.signal(signal.SIGINT, before)

    def _next_line(self) -> str | None:
        """Return the next line; None at the end of input, or where Ctrl-C was pressed twice."""
        self._interrupts = 0
        while True:
            try:
                self._is_prompting = True
                line = self.source.read(self._options())
                self._is_prompting = False
                return line if line is None else line.strip()
            except TooLong:
                self._interrupts = 0
                click.echo(f"error: {self._too_long()}", err=True)
            except KeyboardInterrupt:
                if self._interrupts == _TO_LEAVE:
                    click.echo()
                    return None
                click.echo("\nCtrl-C once more, or /quit, leaves.")

    def _heed(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the prompt, and nothing else: what answers heeds Ctrl-C itself."""
        if self._is_prompting:
            self._is_prompting = False
            self._interrupts += 1
            if self._interrupts == _TO_LEAVE:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # it would cut off the history
            raise KeyboardInterrupt

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
        return talk.reply(self.pipeline, self.conversation, line, policy=self.policy, limits=limits)

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
        sources = show_sources(self.conversation.evident)
        click.echo(f"\n{TERMINAL.write(sources)}\n")

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
