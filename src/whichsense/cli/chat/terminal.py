"""Lines from a person: from a terminal with history and the options under the arrow keys, or from a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import click

from whichsense.conversation.records import LONGEST_REPLY

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
    """Python's readline, where it was built with one."""
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
