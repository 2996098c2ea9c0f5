"""`whichsense prompts`: a prompt is listed, shown, copied, edited, and then used."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from whichsense.cli import command
from whichsense.errors import BadConfig, BadInput
from whichsense.models.llm.prompts import check_folder, load_prompt, names


def _run(*arguments: str) -> str:
    done = CliRunner().invoke(command, ["prompts", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_every_prompt_is_listed_with_its_fields() -> None:
    listed = _run("list")
    assert names() == ["clarify", "detect", "explain", "read", "rewrite", "verify"]
    for name in names():
        prompt = load_prompt(name)
        assert prompt.about and prompt.about in listed
        assert f"fields: {', '.join(sorted(prompt.fields))}" in listed


def test_an_edited_copy_takes_the_place_of_what_ships(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    assert _run("copy", str(folder), "read").split() == [str(folder / "read.md")]
    assert [path.name for path in folder.iterdir()] == ["read.md"]
    text = (folder / "read.md").read_text(encoding="utf-8")
    assert text == _run("show", "read")
    edited = text.replace("You look for answers", "You hunt for answers")
    (folder / "read.md").write_text(edited, encoding="utf-8")
    assert _run("show", "read", "--prompts", str(folder)) == edited
    assert "You hunt" in load_prompt("read", str(folder)).system
    assert check_folder(str(folder))["verify"] == load_prompt("verify")
    # Copied once more, an edited file stays; the others come.
    assert len(_run("copy", str(folder)).split()) == len(names()) - 1
    assert (folder / "read.md").read_text(encoding="utf-8") == edited


def test_what_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no prompt 'rad'\. Did you mean 'read'"):
        _run("show", "rad")
    _run("copy", str(tmp_path), "detect")
    path = tmp_path / "detect.md"
    path.write_text(path.read_text(encoding="utf-8").replace("{answers}", "{answer}"))
    with pytest.raises(BadConfig, match=r"no field '\{answer\}'"):
        check_folder(str(tmp_path))
