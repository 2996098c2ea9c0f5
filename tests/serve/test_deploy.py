"""The files under deploy/ are valid, and say what the service needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("check_jsonschema")
from ruamel.yaml import YAML

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


def test_what_the_container_copies_is_there() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("COPY") and "--from" not in line:
            for name in line.split()[1:-1]:
                assert (DEPLOY.parent / name).exists(), name
    assert "USER 10001" in text and '"--host", "0.0.0.0"' in text
