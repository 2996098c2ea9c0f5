"""What many tests share: small corpora, made on the spot."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from chromium import CHROMIUM
from small_corpora import ANIMALS, Corpus

SHARED = Path(__file__).parents[2] / "shared"
# Property tests do not depend on how busy the machine is.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")
# A run in the background of a shell ignores Ctrl-C, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
SLOW = ("cluster", "llm", "page", "serve", "train", "cli/test_train_and_predict.py")
"""Whose tests need a cluster, a language model, a browser, a server or training: all are marked slow."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Here, before marks are looked at: skips of one place are one line of the summary."""
    if CHROMIUM is None and "browser" in getattr(item, "fixturenames", ()):
        pytest.skip("There is no chromium: apt-get install chromium")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where nothing slow is wanted, what these tests import is not waited for."""
    quick = config.option.markexpr == "not slow"
    return True if quick and is_slow(collection_path) else None


def is_slow(path: Path) -> bool:
    return any(path.is_relative_to(HERE / folder) for folder in SLOW)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real datasets beside the checkout, for those who have them."""
    if not (SHARED / "data").exists():
        pytest.skip("needs the real datasets in ../shared/data, which are not part of the project")
    return SHARED / "data"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests never touch the user's cache; they share one of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def make_corpus(tmp_path: Path) -> Corpus:
    """Writes JSON lines from (title, text) pairs and returns the path."""

    def make(records: Iterable[tuple[str, str]], name: str = "corpus.jsonl") -> Path:
        path = tmp_path / name
        lines = (
            json.dumps({"id": str(n), "title": t, "text": x}) for n, (t, x) in enumerate(records)
        )
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return make


@pytest.fixture
def animals(make_corpus: Corpus) -> Path:
    return make_corpus(ANIMALS)
