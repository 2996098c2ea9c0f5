"""Several systems in one service: each is asked by its name, and models that are equal are there once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_service import ANSWERS, QUESTION, SlowReader, build, make_index

from whichsense import sample
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.pipeline import Pipeline
from whichsense.serve.answering import Engines
from whichsense.serve.settings import ServiceSettings
from whichsense.stages.rerank import CompactReranker

Start = Callable[..., Any]
SHALLOW = str(Path(__file__).parents[2] / "systems" / "compact-shallow.toml")


def build_other(index: Index) -> Pipeline:
    """A system that knows one answer less."""
    reader = SlowReader({"Ledger": ANSWERS["Ledger"]})
    return dataclasses.replace(build(index), reader=reader)


def test_each_system_is_asked_by_its_name(start: Start) -> None:
    client = start({"both": build, "one": build_other})
    info = client.get("/v1/info").json()
    assert info["system"] == "both"
    assert [one["name"] for one in info["systems"]] == ["both", "one"]
    for chosen, answered, count in (("", "both", 2), ("one", "one", 1)):
        body = {"question": QUESTION, "system": chosen}
        answer = client.post("/v1/ask", json=body).json()
        assert answer["system"] == answered
        assert len(answer["case"]["readings"]) == count
        path = f"/v1/cases/{answer['id']}"
        assert client.get(path).json()["system"] == answered
        events = client.get(path, headers={"Accept": "text/event-stream"})
        assert f'"system":"{answered}"' in events.text
    refused = client.post("/v1/ask", json={"question": QUESTION, "system": "x"})
    assert refused.status_code == 409 and "both, one" in refused.json()["fix"]


def test_a_conversation_keeps_its_system(start: Start) -> None:
    client = start({"both": build, "one": build_other})
    with_key = {"question": QUESTION, "system": "one"}
    begun = client.post("/v1/conversations", json=with_key).json()
    assert begun["system"] == "one"
    path = f"/v1/conversations/{begun['id']}"
    again = client.post(f"{path}/replies", json={"text": QUESTION}).json()
    assert again["system"] == "one" and client.get(path).json() == again
    (last,) = again["conversation"]["turns"][-1]["readings"]
    assert last["answer"] == ANSWERS["Ledger"]
    case = client.get(f"/v1/cases/{again['case_id']}").json()
    assert case["system"] == "one"
    refused = client.post("/v1/conversations", json=with_key | {"system": "x"})
    assert refused.status_code == 409 and "both, one" in refused.json()["fix"]


def test_embedded_systems_share_their_model() -> None:
    engines = Engines(ServiceSettings(compare=(SHALLOW,)))
    engines.load()
    deep, shallow = engines.choose().served.systems.values()
    assert list(engines.choose().served.systems) == ["compact", "compact-shallow"]
    assert "fewer passages" in engines.about["compact-shallow"]
    rerankers: list[Any] = [deep.reranker, shallow.reranker]
    for reranker in rerankers:
        assert isinstance(reranker, CompactReranker)
    assert rerankers[0].compact.parts is rerankers[1].compact.parts
    assert (deep.keep, shallow.keep) == (20, 3)


def test_trained_models_are_shared(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "bert.json").write_text(json.dumps({"task": "reranker"}))
    for name, keep in (("a", 10), ("b", 20)):
        text = f'provider = "compact"\nkeep = {keep}\n[reranker]\nmodel = "{model}"\n'
        (tmp_path / f"{name}.toml").write_text(text)
    files = [str(tmp_path / f"{name}.toml") for name in "ab"]
    engines = Engines(ServiceSettings(system=files[0], compare=(files[1],)))
    engines.load()
    first, second = engines.choose().served.systems.values()
    assert first.reranker is second.reranker and first.keep != second.keep


def test_two_systems_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "compact.toml").write_text('provider = "compact"\n')
    engines = Engines(ServiceSettings(compare=(str(tmp_path / "compact.toml"),)))
    with pytest.raises(BadConfig, match="Two of the systems are called 'compact'"):
        engines.load()


def test_an_index_lists_its_passages_by_source(tmp_path: Path) -> None:
    with_folder = Index.open(make_index(tmp_path))
    assert len(list(with_folder.passages())) == len(with_folder)
    (source,) = {passage.source for passage in with_folder.passages()}
    assert len(with_folder.of_source(source)) == len(with_folder)
    with_folder.close()
    embedded = sample.open_index(None)
    assert sum(1 for _ in embedded.passages()) == len(embedded)
    embedded.close()
