"""Settings files: what is right is read, what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from whichsense import config
from whichsense.errors import BadConfig, MissingExtra, require


def test_reads_toml(tmp_path: Path) -> None:
    path = tmp_path / "whichsense.toml"
    path.write_text('[retrieve]\nindex = "wiki"\nmethod = "bm25"\ndepth = 50\n')
    assert config.load(path).retrieve == config.RetrieveConfig("wiki", "bm25", 50)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("[retreive]\n", "Did you mean 'retrieve'"),
        ("[retrieve]\ndepht = 1\n", "'retrieve.depht'. Did you mean 'depth'"),
        ('[retrieve]\nmethod = "bm52"\n', "'retrieve.method' must be"),
        ("[retrieve]\ndepth = true\n", "must be int, not True"),
        ('[retrieve]\ndepth = "5"\n', "must be int, not '5'"),
        ("retrieve = 3\n", "must be a table"),
        ("= = =", "not valid TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, body: str, why: str) -> None:
    path = tmp_path / "whichsense.toml"
    path.write_text(body)
    with pytest.raises(BadConfig, match=why.replace(".", r"\.")):
        config.load(path)


def test_missing_file() -> None:
    with pytest.raises(BadConfig, match="no file"):
        config.load("nowhere.toml")


def test_missing_extra_names_its_pip_line() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'whichsense\[cluster\]'"):
        require("surely_not_installed", "cluster")
