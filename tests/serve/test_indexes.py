"""Several indexes in one service, and every kind of key at every route that the application has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_service import QUESTION, RECORDS
from starlette.routing import Mount
from test_access import bearer

from whichsense.cli import command
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.serve import settings
from whichsense.serve.app import create_app
from whichsense.serve.settings import SCOPES, KeyFile, ServiceSettings

Start = Callable[..., Any]
CATS = [{"title": "Lynx", "text": "The lynx has tufted ears."}]


def make_indexes(folder: Path) -> dict[str, str]:
    """Two of them; the films are the default."""
    places = {}
    for name, records in (("films", RECORDS), ("cats", CATS)):
        Index.build(records, folder / f"{name}-index", encoder=None).close()
        places[name] = str(folder / f"{name}-index")
    return places


@pytest.fixture
def client(start: Start, tmp_path: Path) -> Any:
    return start(indexes=make_indexes(tmp_path))


def titles(client: Any, **given: Any) -> set[str]:
    body = {"question": "Which one has ears or played the Joker?", **given}
    found = client.post("/v1/search", json=body).json()
    assert found["index"] == given.get("index", "films")
    return {hit["passage"]["title"] for hit in found["hits"]}


def test_each_request_names_its_index(client: Any) -> None:
    first, second = client.get("/v1/indexes").json()["indexes"]
    assert (first["name"], first["default"]) == ("films", True)
    assert (second["name"], second["passages"]) == ("cats", 1)
    assert "Lynx" not in titles(client) and titles(client, index="cats") == {"Lynx"}
    for index in ("films", "cats"):
        body = {"question": QUESTION, "index": index}
        answer = client.post("/v1/ask", json=body).json()
        assert answer["index"] == index
        assert client.get(f"/v1/cases/{answer['id']}").json()["index"] == index
        listed = client.get("/v1/cases", params={"index": index}).json()["cases"]
        assert {case["index"] for case in listed} == {index}
        talk = client.post("/v1/conversations", json=body).json()
        path = f"/v1/conversations/{talk['id']}"
        again = client.post(f"{path}/replies", json={"text": QUESTION}).json()
        assert again["index"] == client.get(path).json()["index"] == index
        hits = again["conversation"]["case"]["hits"]
        assert {hit["passage"]["title"] for hit in hits} <= titles(client, index=index)
        place = client.get("/v1/corpus", params={"index": index}).json()
        assert place["passages"] == len(RECORDS if index == "films" else CATS)
    hit = client.post("/v1/search", json={"question": "ears", "index": "cats"}).json()
    path = f"/v1/passages/{hit['hits'][0]['passage']['id']}"
    found = client.get(path, params={"index": "cats"}).json()
    assert found["passage"]["title"] == "Lynx"
    missing = client.post("/v1/ask", json={"question": QUESTION, "index": "dogs"})
    assert missing.status_code == 404 and "films, cats" in missing.json()["fix"]


def test_files_go_into_the_index_that_is_named(client: Any) -> None:
    path, cats = "/v1/corpus/sources/ounce.md", {"index": "cats"}
    assert client.put(path, params=cats, content=b"The ounce lives high up.").is_success
    assert client.get("/v1/corpus", params=cats).json()["passages"] == 2
    assert client.get("/v1/corpus").json()["passages"] == len(RECORDS)
    assert client.delete(path).status_code == 404
    assert client.delete(path, params=cats).json()["passages"] == 1


def test_chat_programs_choose_an_index_by_the_model(client: Any) -> None:
    names = {model["id"] for model in client.get("/v1/models").json()["data"]}
    assert {"whichsense", "whichsense@cats", "whichsense-readings@cats"} <= names
    assert client.get("/v1/models/whichsense@cats").json()["id"] == "whichsense@cats"

    def chat(**given: Any) -> Any:
        messages = [{"role": "user", "content": "Who played the Joker?"}]
        body = {"model": "whichsense-readings", "messages": messages} | given
        return client.post("/v1/chat/completions", json=body)

    answer = chat().json()["choices"][0]["message"]
    assert [one["answer"] for one in answer["readings"]]
    asked = {"messages": [{"role": "user", "content": "What ears has the lynx?"}]}
    for given in ({"model": "whichsense-readings@cats"}, {"index": "cats"}):
        other = chat(**asked, **given).json()["choices"][0]["message"]
        assert (
            not other["readings"] and "index=cats" in other["annotations"][0]["url_citation"]["url"]
        )
    assert chat(model="whichsense@dogs").status_code == 404


def test_names_of_indexes_are_checked(tmp_path: Path) -> None:
    for name in ("", "a b", "a=b", ".a", "x" * 61, "ä"):
        with pytest.raises(BadConfig, match="cannot name an index"):
            ServiceSettings(indexes={name: ""}, state=tmp_path)


# Every route with every kind of key.

OPEN = {"/healthz", "/readyz", "/v1/info", "/openapi.json"}
"""Beside these, only the page's own files need no key."""
PAGE = ("/page/", "/q/", "/compare", "/corpus", "/traces", "/t/")
EXAMPLES = {
    "/v1/ask": {"question": QUESTION},
    "/v1/search": {"question": QUESTION},
    "/v1/conversations": {"question": QUESTION},
    "/v1/conversations/{conversation_id}/replies": {"text": "1989"},
    "/v1/cases/{case_id}/feedback": {"verdict": "up"},
    "/v1/chat/completions": {
        "model": "whichsense",
        "messages": [{"role": "user", "content": QUESTION}],
    },
    "/v1/responses": {"model": "whichsense", "input": QUESTION},
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
}
WRITES = {
    ("PUT", "/v1/corpus/sources/{name}"),
    ("DELETE", "/v1/corpus/sources/{name:path}"),
    ("GET", "/v1/corpus/uploads/{key}"),
    ("PATCH", "/v1/corpus/uploads/{key}"),
}


def operations(routes: Any) -> Iterator[tuple[str, str]]:
    """Method and path of everything that the application answers."""
    for route in routes:
        assert not isinstance(route, Mount), f"{route.path} is not looked at"
        if not hasattr(route, "methods"):
            yield from operations(route.original_router.routes)
            continue
        for method in sorted(set(route.methods or ()) - {"HEAD"}):
            yield method, route.path


def send(client: Any, method: str, path: str, key: str = "", index: str = "") -> Any:
    """A request that would succeed, or find nothing, with the right key."""
    filled = path.replace("{model_id}", "whichsense").replace("{name}", "a.md")
    for name in ("case_id", "conversation_id", "key", "passage_id:path"):
        filled = filled.replace("{" + name + "}", "abcdefgh1234")
    filled = filled.replace("{name:path}", "a.md")
    body: dict[str, Any] | None = EXAMPLES.get(path) if method == "POST" else None
    if body is not None and index and path != "/mcp":
        body = {**body, "index": index}
    headers = bearer(key) if key else {}
    headers["Accept"] = "application/json, text/event-stream"
    if method == "PATCH":
        headers["Upload-Offset"] = "0"
    content = b"The ounce." if method in ("PUT", "PATCH") else None
    return client.request(
        method,
        filled,
        json=body,
        content=content,
        params={"index": index} if index else None,
        headers=headers,
    )


def test_every_route_with_every_wrong_key(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "_COST", 2)  # hundreds of wrong keys
    keys = KeyFile(tmp_path)
    places = make_indexes(tmp_path)
    right = keys.add("right", SCOPES, rate=1_000_000)
    revoked = keys.add("revoked", SCOPES)
    keys.revoke("revoked")
    expired = keys.add("expired", SCOPES, expires=time.time() - 1)
    wrong = {
        "none": "",
        "unknown": "ws_00000000_" + "x" * 43,
        "of another secret": right[:-3] + "xyz",
        "revoked": revoked,
        "expired": expired,
        "no key": "x",
    }
    asking = keys.add("asking", ["ask"], rate=1_000_000)
    writing = keys.add("writing", ["write"], rate=1_000_000)
    bound = keys.add("bound", SCOPES, indexes=("cats",), rate=1_000_000)
    client = start(indexes=places, failures=1_000_000)
    description = client.get("/openapi.json").json()
    seen = set()
    for method, path in operations(create_app(ServiceSettings()).routes):
        seen.add((method, path))
        is_open = path in OPEN or path == "/" or path.startswith(PAGE)
        for kind, key in wrong.items():
            status = send(client, method, path, key).status_code
            assert (status == 401) != is_open, (method, path, kind, status)
        if is_open:
            continue
        status = send(client, method, path, right).status_code
        assert status in (200, 202, 204, 400, 404, 406, 409), (method, path, status)
        lacking = asking if (method, path) in WRITES else writing
        refused = send(client, method, path, lacking)
        assert refused.status_code == 403, (method, path)
        assert takes_index(description, method, path) == (
            problem(send(client, method, path, bound, "films")) == "index"
        ), (method, path)
        assert problem(send(client, method, path, bound, "cats")) != "index"
    assert WRITES < seen and len(seen) > 30


def problem(response: Any) -> str:
    """What kind of problem a response is."""
    if response.status_code != 404:
        return ""
    body = response.json()
    kind = body.get("type") or body["error"]["code"]
    return str(kind).rpartition(":")[2]


def takes_index(description: Any, method: str, path: str) -> bool:
    """Whether the description has a parameter or a field `index` for an operation."""
    path = path.replace(":path", "")
    operation = description["paths"].get(path, {}).get(method.lower(), {})
    names = {one["name"] for one in operation.get("parameters", ())}
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    schema = description["components"]["schemas"].get(reference.rpartition("/")[2], {})
    return "index" in names | set(schema.get("properties", ()))


def test_a_bound_key_sees_nothing_of_other_indexes(start: Start, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    admin, cats = keys.add("all", SCOPES), keys.add("cats", SCOPES, indexes=("cats",))
    client = start(indexes=make_indexes(tmp_path))
    listed = client.get("/v1/indexes", headers=bearer(cats)).json()["indexes"]
    assert [(one["name"], one["default"]) for one in listed] == [("cats", True)]
    body = {"question": QUESTION}
    own = client.post("/v1/ask", json=body, headers=bearer(cats)).json()
    assert own["index"] == "cats", "its default is the first that it may use"
    asked = client.post("/v1/ask", json=body, headers=bearer(admin)).json()
    talk = client.post("/v1/conversations", json=body, headers=bearer(admin)).json()
    case, conversation = f"/v1/cases/{asked['id']}", f"/v1/conversations/{talk['id']}"
    for method, path, sent in (
        ("GET", case, None),
        ("GET", f"{case}/feedback", None),
        ("POST", f"{case}/feedback", {"verdict": "up"}),
        ("DELETE", case, None),
        ("GET", conversation, None),
        ("POST", f"{conversation}/replies", {"text": "1989"}),
        ("DELETE", conversation, None),
    ):
        refused = client.request(method, path, json=sent, headers=bearer(cats))
        assert refused.status_code == 404, (method, path)
    for path in ("/v1/cases", "/v1/models"):
        rows = client.get(path, headers=bearer(cats)).text
        assert asked["id"] not in rows and "films" not in rows
    assert client.get(case, headers=bearer(admin)).status_code == 200
    assert client.get(conversation, headers=bearer(admin)).status_code == 200


def test_keys_are_bound_by_the_command(tmp_path: Path) -> None:
    runner, state = CliRunner(), ["--state", str(tmp_path)]
    given = ["--index", "cats", "--expires", "90d", "--quota", "5", "--rate", "7"]
    assert not runner.invoke(command, ["keys", "add", "team", *given, *state]).exit_code
    (key,) = KeyFile(tmp_path).active().values()
    assert (key.indexes, key.quota, key.rate) == (("cats",), 5 * 2**20, 7)
    assert key.expires and 89 < (key.expires - time.time()) / 86_400 < 91
    listed = runner.invoke(command, ["keys", "list", *state]).output
    assert "of cats" in listed and "until" in listed
    wrong = runner.invoke(command, ["keys", "add", "x", "--expires", "soon", *state])
    assert wrong.exit_code and not wrong.output.startswith("ws_")
