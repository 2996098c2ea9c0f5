"""docs/studio.md, as a newcomer follows it: from documents to a trained reader."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import client

pytest.importorskip("torch", reason="needs the extra 'train'")

PAGE = Path(__file__).parents[2] / "docs" / "studio.md"
ANSWERS: dict[str, dict[str, Any]] = {
    "Who won the Harbour Cup?": {
        "outcome": "several",
        "pairs": [
            {"question": "Who won the Harbour Cup in 1990?", "answers": ["Ann Lee"]},
            {"question": "Who won the Harbour Cup in 1991?", "answers": ["Bo Ray"]},
        ],
    },
    "Who won the Hill Run?": {"outcome": "single", "answers": ["Cem Oz"]},
    "When was the town bridge built?": {"outcome": "single", "answers": ["1875"]},
}


def run(block: str, folder: Path) -> str:
    """Run a block of the page as a shell would."""
    called = block.replace("whichsense ", f"{sys.executable} -m whichsense ")
    done = subprocess.run(
        ["bash", "-e", "-c", called], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_from_documents_to_a_reader(tmp_path: Path) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    made, serve, used, chained = blocks
    keys = re.findall(r"#invitation=(\S+)", run(made, tmp_path))
    assert len(keys) == 3  # the owner's, and two annotators'
    command = [sys.executable, "-m", *serve.split(), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    ) as service:
        assert service.stdout is not None
        address = service.stdout.readline().split()[-1]
        for key in keys[1:]:
            with client(address, key) as person:
                annotate_all(person)
        service.send_signal(signal.SIGINT)
    said = run(used, tmp_path)
    assert "6 of 6 annotations submitted" in said
    assert "F1ans: 1.000" in said and "ok   data/ambignq.json: 3 records" in said
    assert (tmp_path / "reader" / "model").is_dir()
    assert "checked: 3 items" in run(chained, tmp_path)


def annotate_all(person: Any) -> None:
    while view := person.post("/v1/take", json={}).json()["view"]:
        path = f"/v1/items/{view['item']}"
        query = {"query": view["body"]["question"]}
        assert person.post(f"{path}/search", json=query).json()["hits"]
        value = ANSWERS[view["body"]["question"]]
        person.post(f"{path}/save", json={"version": 0, "set": value})
        assert person.post(f"{path}/submit", json={"version": 1}).status_code == 200
