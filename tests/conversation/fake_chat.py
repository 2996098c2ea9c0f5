"""A chat over a pipeline without weights, for tests that drive it through a terminal of their own."""

from __future__ import annotations

import sys
from pathlib import Path

from scenes import SlowReader, harbour

from whichsense.cli.chat_session import COMMANDS, Pipe, Session, Terminal
from whichsense.conversation import AskingPolicy

if __name__ == "__main__":
    pipeline = harbour(reader=SlowReader())
    if sys.stdin.isatty():
        with Terminal(Path(sys.argv[1]), list(COMMANDS)).open() as terminal:
            Session(pipeline, terminal, AskingPolicy()).run()
    else:
        Session(pipeline, Pipe(), AskingPolicy()).run()
