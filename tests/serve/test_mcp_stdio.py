"""The protocol over stdio: the real client starts the program."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra 'serve'")

from fake_service import QUESTION
from mcp import Client, StdioServerParameters
from mcp_clients import MODES, User, accepts, answers, call, refuses, talk, text_of

from patience import LONGEST

SCRIPT = str(Path(__file__).with_name("fake_service.py"))
ASK = {"question": QUESTION}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


def arguments(index_folder: str, state: Path) -> list[str]:
    # Whoever waited for what is under way would wait for longer than a test does.
    given = {"index": index_folder, "state": str(state), "grace": 2 * LONGEST}
    return [SCRIPT, json.dumps(given), "stdio"]


@pytest.fixture
def program(index_folder: str, tmp_path: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=arguments(index_folder, tmp_path), env=dict(os.environ)
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_user_is_asked_by_a_form(program: StdioServerParameters, mode: str) -> None:
    both = ["Jack Nicholson", "Heath Ledger"]
    said: list[tuple[User, list[str]]] = [
        (accepts(which="1"), ["Jack Nicholson"]),
        (accepts(which="all"), both),
        (accepts(words="the dark knight"), ["Heath Ledger"]),
        (refuses("decline"), both),
        (refuses("cancel"), both),
    ]
    user = User([one.replies[0] for one, _ in said])

    async def conversation(client: Client) -> None:
        for _, expected in said:
            assert answers(await client.call_tool("ask", ASK)) == expected

    talk(program, conversation, mode=mode, user=user)
    assert len(user.asked) == len(said)


@pytest.mark.parametrize("mode", MODES)
def test_numbered_options_progress_and_errors(program: StdioServerParameters, mode: str) -> None:
    seen: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async def conversation(client: Client) -> None:
        assert client.server_info and client.server_info.name == "whichsense"
        asked = await client.call_tool("ask", ASK, progress_callback=progress)
        given = {"conversation": asked.structured_content["conversation"], "text": "2"}
        assert answers(await client.call_tool("reply", given)) == ["Heath Ledger"]
        wrong = await client.call_tool("ask", {"question": " "})
        assert wrong.is_error and "question" in text_of(wrong)
        assert "Found 2 passages" in seen

    talk(program, conversation, mode=mode)


def start(index_folder: str, state: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments(index_folder, state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def send(process: subprocess.Popen[bytes], *lines: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(line + b"\n" for line in lines))
    process.stdin.flush()


@pytest.mark.parametrize("ending", ["end of input", signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_and_writes_nothing_but_the_protocol(
    index_folder: str, tmp_path: Path, ending: Any
) -> None:
    process = start(index_folder, tmp_path)
    send(process, b"no json", b"\xff\xfe", b"[]", json.dumps(HELLO).encode())
    assert process.stdout is not None
    while json.loads(process.stdout.readline()).get("id") != 1:
        pass
    if ending != "end of input":
        while process.poll() is None:  # one may come before it is heeded
            process.send_signal(ending)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
    out, error = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, error
    for line in out.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert b"Traceback" not in error, error


def receive(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
def test_programs_of_still_older_versions(index_folder: str, tmp_path: Path, version: str) -> None:
    """By hand: the client does not speak them any more."""
    process = start(index_folder, tmp_path)
    has_forms = version == "2025-06-18"
    given = {"elicitation": {}} if has_forms else {}
    params = {"protocolVersion": version, "capabilities": given}
    hello = HELLO | {"params": HELLO["params"] | params}  # type: ignore[operator]
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    asked = {"name": "ask", "arguments": ASK}
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
    send(process, *(json.dumps(one).encode() for one in (hello, begun, ask)))
    assert receive(process)["result"]["protocolVersion"] == version
    if has_forms:
        form = receive(process)
        which = form["params"]["requestedSchema"]["properties"]["which"]
        assert which["enum"] == ["1", "2", "all"] and len(which["enumNames"]) == 3
        filled = {"action": "accept", "content": {"which": "2"}}
        reply = {"jsonrpc": "2.0", "id": form["id"], "result": filled}
        send(process, json.dumps(reply).encode())
    result = receive(process)["result"]
    text = result["content"][0]["text"]
    if has_forms:
        assert text.startswith("Heath Ledger")
    else:
        assert "`reply`" in text and len(result["content"]) == 1
    process.communicate(timeout=LONGEST)


def test_a_line_without_end_is_no_message(index_folder: str, tmp_path: Path) -> None:
    process = start(index_folder, tmp_path)
    send(process, b"x" * (9 * 2**20), json.dumps(HELLO).encode())
    assert process.stdout is not None
    while json.loads(process.stdout.readline()).get("id") != 1:
        pass
    process.communicate(timeout=LONGEST)
    assert process.returncode == 0


def test_a_bad_index_is_told_on_stderr(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "whichsense", "mcp", "--index", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_the_command_answers_from_the_sample(tmp_path: Path) -> None:
    """The real command with the model that ships: asked before it is loaded."""
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "whichsense", "mcp", "--state", str(tmp_path)],
        env=dict(os.environ),
    )
    user = accepts(words="the one of 2008")
    result = call(program, "ask", ASK, user=user)
    assert answers(result) == ["Heath Ledger"]
    assert len(user.asked) == 1
