"""The workflow file is valid, and runs the test command on every system and Python that the package promises."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("check_jsonschema")
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"


def job() -> dict[str, Any]:
    table = YAML(typ="safe").load(WORKFLOW.read_text(encoding="utf-8"))
    return dict(table["jobs"]["test"])


def test_the_schema_holds() -> None:
    """The schema ships with the linter, so that no network is needed."""
    linter = [sys.executable, "-m", "check_jsonschema"]
    schema = ["--builtin-schema", "vendor.github-workflows"]
    result = subprocess.run(
        [*linter, *schema, str(WORKFLOW)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_expression_names_a_key_of_the_matrix() -> None:
    used = re.findall(r"matrix\.(\w+)", WORKFLOW.read_text(encoding="utf-8"))
    assert set(used) == set(job()["strategy"]["matrix"])


def test_the_matrix_covers_what_the_package_promises() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    prefix = "Programming Language :: Python :: "
    classifiers = project["project"]["classifiers"]
    promised = {one.removeprefix(prefix) for one in classifiers if one.startswith(prefix)}
    matrix = job()["strategy"]["matrix"]
    assert set(matrix["python"]) == promised
    systems = {runner.split("-")[0] for runner in matrix["runner"]}
    assert systems == {"ubuntu", "macos"}
    assert any(runner.endswith("-arm") for runner in matrix["runner"])


def test_the_last_step_is_the_test_command() -> None:
    assert job()["steps"][-1]["run"] == "bash scripts/test"
