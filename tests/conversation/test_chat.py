"""The chat as people and programs use it: in a terminal of its own, behind a pipe, with hostile input."""

from __future__ import annotations

import codecs
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patience import LONGEST, wait_for

HERE = Path(__file__).parent
_NOTICED = 8  # seconds after which a Ctrl-C counts as lost, where a program's state cannot be seen
SCRIPT = HERE / "fake_chat.py"
UP = "\x1b[A"


class Screen:
    """A program in a terminal: keys go in, text comes out."""

    def __init__(self, arguments: list[str]) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=HERE,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(slave)
        self.seen = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def interrupt(self, happens: Callable[[], bool]) -> None:
        """Press Ctrl-C until something happens: readline heeds none between its prompt and its first look at the keys.
        It is pressed again once the program sleeps, which has then done what it does about the last one."""
        while not happens():
            self.process.send_signal(signal.SIGINT)
            wait_for(lambda: self._is_asleep() or happens())

    def _is_asleep(self) -> bool:
        """Whether the program waits for keys, or has ended; where the system does not say, after a while."""
        status = Path(f"/proc/{self.process.pid}/stat")
        if not status.exists():
            time.sleep(_NOTICED)
            return True
        return status.read_text().rpartition(")")[2].split()[0] in "SZ"

    def shows(self, text: str) -> bool:
        """Whether a text is on the screen by now; it is gone then."""
        while select.select([self.master], [], [], 0)[0]:
            try:
                self.seen += self.decoder.decode(os.read(self.master, 65536))
            except OSError:  # the program has ended
                break
        if text not in self.seen:
            return False
        self.seen = self.seen.partition(text)[2]
        return True

    def wait_for(self, text: str) -> str:
        """Everything up to this text, which is then gone."""
        end = time.monotonic() + LONGEST
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} did not appear in {self.seen!r}"
            if not select.select([self.master], [], [], left)[0]:
                continue
            try:
                self.seen += self.decoder.decode(os.read(self.master, 65536))
            except OSError:  # the program has ended
                assert text in self.seen, f"ended: {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LONGEST)
        os.close(self.master)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    opened = Screen([sys.executable, str(SCRIPT), str(tmp_path / "state" / "history")])
    try:
        opened.wait_for("› ")
        yield opened
    finally:
        opened.close()


def test_numbers_and_words(screen: Screen) -> None:
    screen.press("Who wrote Harbour?\r")
    asked = screen.wait_for("› ")
    assert "Which version?" in asked and "3. the 2008 film" in asked
    screen.press("the newer film\r")
    assert "Cy Day" in screen.wait_for("› ")
    screen.press("1\r")
    assert "Ann Lee" in screen.wait_for("› ")
    screen.press("/quit\r")
    assert screen.process.wait(LONGEST) == 0


def test_arrows_walk_through_the_options(screen: Screen) -> None:
    screen.press("Who wrote Harbour?\r")
    screen.wait_for("› ")
    screen.press(UP + UP + "\r")
    assert "Bob Ray" in screen.wait_for("\n› ")


def test_tab_completes_options_and_commands(screen: Screen) -> None:
    screen.press("/sour\t\r")
    screen.wait_for("no evidence")
    screen.press("Who wrote Harbour?\r")
    screen.wait_for("An empty line")
    screen.press("the 2\t\r")
    screen.wait_for("Cy Day")


def test_history_is_kept(screen: Screen, tmp_path: Path) -> None:
    screen.press("Who wrote Harbour?\r")
    screen.wait_for("An empty line")
    screen.press("the novel\r")
    screen.wait_for("Ann Lee")
    screen.press("/quit\r")
    screen.process.wait(LONGEST)
    history = tmp_path / "state" / "history"
    lines = history.read_text("utf-8").splitlines()
    assert lines[-3:] == ["Who wrote Harbour?", "the novel", "/quit"]
    assert "the 1988 film" not in lines  # options are offered, not kept
    assert history.stat().st_mode & 0o077 == 0


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(screen: Screen) -> None:
    screen.press("Who wrote the slow Harbour?\r")
    screen.wait_for("reading")
    screen.process.send_signal(signal.SIGINT)
    screen.wait_for("Stopped.")
    screen.press("Who wrote Harbour?\r")
    screen.wait_for("Which version?")


def test_ctrl_c_at_the_prompt_leaves_the_second_time(screen: Screen) -> None:
    screen.interrupt(asks_once_more(screen))
    screen.press("/help\r")
    screen.wait_for("/save FILE")
    screen.interrupt(asks_once_more(screen))
    assert screen.process.poll() is None
    screen.interrupt(lambda: screen.process.poll() is not None)
    assert screen.process.wait(LONGEST) == 0


def asks_once_more(screen: Screen) -> Callable[[], bool]:
    """Whether it has said how to leave; asked again, it remembers."""
    said: list[bool] = []

    def happens() -> bool:
        if screen.shows("once more"):
            said.append(True)
        return bool(said)

    return happens


def test_the_end_of_input_leaves(screen: Screen) -> None:
    screen.press("\x04")
    assert screen.process.wait(LONGEST) == 0


def piped(data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(SCRIPT)],
        input=data,
        capture_output=True,
        check=True,
        cwd=HERE,
        timeout=LONGEST,
    )


def test_each_line_of_a_pipe_is_a_reply(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    lines = f"Who wrote Harbour?\n2\n/save {path}\n/explain\n/all\n/readings\n"
    done = piped(lines.encode())
    text = done.stdout.decode()
    assert "Which version?" in text and f"Saved: {path}" in text and path.exists()
    assert text.index("Bob Ray") < text.index("Saved")
    assert "[1] Harbour (1956 novel)" in text
    assert "›" not in text and not done.stderr


def test_an_empty_line_skips_a_clarification_and_nothing_else() -> None:
    text = piped(b"\n\nWho wrote Harbour?\n\n\n").stdout.decode()
    assert text.count("Which version?") == 1 and text.count("Ann Lee") == 2


def test_mistakes_are_told_and_the_chat_goes_on() -> None:
    done = piped(b"/nonsense\n/save\n/readings\nWho wrote Harbour?\n")
    errors = done.stderr.decode().splitlines()
    assert len(errors) == 3 and all(line.startswith("error: ") for line in errors)
    assert "Which version?" in done.stdout.decode()


def test_hostile_lines() -> None:
    """Ten megabytes, broken encodings, control characters: told or passed over, never echoed raw."""
    data = b"Who wrote Harbour?\n" + b"x" * 10_000_000 + b"\n"
    data += b"\xff\xfe\x00\n" + b"\x1b]0;title\x07\x1b[2J\n" + b"the novel\r\n"
    done = piped(data)
    text = done.stdout.decode()
    assert done.stderr.decode().count("at most") == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    assert "Ann Lee" in text
