from __future__ import annotations

from pathlib import Path

import pytest

from whichsense.errors import BadInput
from whichsense.models.minilm import MiniLM
from whichsense.models.static import DEFAULT, Static, estimate, load_encoder
from whichsense.testing import FakeEncoder


def test_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(load_encoder(DEFAULT), Static)
    assert load_encoder(load_encoder("static").name) == load_encoder("static")
    assert load_encoder("minilm") == MiniLM()
    assert load_encoder("static+minilm") == Static(questions=MiniLM())
    assert load_encoder("static+minilm").name == load_encoder("static").name
    assert (
        load_encoder("sentence-transformers/all-MiniLM-L6-v2").name
        == "sentence-transformers/all-MiniLM-L6-v2"
    )
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_encoder("model").name == str(tmp_path / "model")
    assert load_encoder("own.npz").name == str(tmp_path / "own.npz")


def test_an_unknown_name_is_answered_with_a_known_one() -> None:
    with pytest.raises(BadInput, match="Did you mean 'static'"):
        load_encoder("statik")


def test_the_estimate_is_quick_and_positive() -> None:
    assert estimate(FakeEncoder(), ["who wrote dune"], seconds=0.01) > 0
    with pytest.raises(BadInput):
        estimate(FakeEncoder(), [])
