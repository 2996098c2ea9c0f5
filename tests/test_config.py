"""Settings files: what is right is read, what is wrong is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from whichsense import config
from whichsense.errors import BadConfig, MissingExtra, require


def test_reads_toml(tmp_path: Path) -> None:
    path = tmp_path / "whichsense.toml"
    path.write_text('[retrieve]\nindex = "wiki"\nmethod = "bm25"\n')
    assert config.load_config(path).retrieve == config.RetrieveConfig("wiki", "bm25")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("[retreive]\n", "Did you mean 'retrieve'"),
        ("[retrieve]\nmetod = 1\n", "'retrieve.metod'. Did you mean 'method'"),
        ('[retrieve]\nmethod = "bm52"\n', "'retrieve.method' must be"),
        ("[retrieve]\nindex = true\n", "must be str, not True"),
        ("[retrieve]\nindex = 5\n", "must be str, not 5"),
        ("retrieve = 3\n", "must be a table"),
        ("= = =", "not valid TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, body: str, why: str) -> None:
    path = tmp_path / "whichsense.toml"
    path.write_text(body)
    with pytest.raises(BadConfig, match=why.replace(".", r"\.")):
        config.load_config(path)


@dataclass(frozen=True)
class Recipe:
    steps: int
    rate: float = 0.1
    layers: tuple[int, ...] = ()


def test_any_record_can_be_read() -> None:
    assert config.from_table(Recipe, {"steps": 3, "rate": 1, "layers": [1, 2]}) == Recipe(
        3, 1.0, (1, 2)
    )
    for table, why in (
        ({}, "missing steps"),
        ({"steps": True}, "must be int"),
        ({"steps": 1, "layers": ["a"]}, "layers"),
    ):
        with pytest.raises(BadConfig, match=why):
            config.from_table(Recipe, table)


def test_the_folder_s_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert config.find_config() == config.Config()
    (tmp_path / "whichsense.toml").write_text('[retrieve]\nindex = "here"\n')
    assert config.find_config().retrieve.index == "here"
    (tmp_path / "other.toml").write_text('[retrieve]\nindex = "there"\n')
    monkeypatch.setenv("WHICHSENSE_CONFIG", "other.toml")
    assert config.find_config().retrieve.index == "there"


def test_missing_file() -> None:
    with pytest.raises(BadConfig, match="no file"):
        config.load_config("nowhere.toml")


def test_missing_extra_names_its_pip_line() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'whichsense\[cluster\]'"):
        require("surely_not_installed", "cluster")
